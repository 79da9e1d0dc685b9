"""How a campaign is asked to stop: a flag that its loop looks at between evaluations."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Stop:
    """Shared by whoever hears the wish (a signal handler) and the loop that grants it."""

    requested: bool = False

    def request(self) -> None:
        """Asks for an end in order: the running evaluation finishes and everything is saved."""
        self.requested = True
