# SPDX-License-Identifier: Apache-2.0
"""How a campaign is asked to stop, and how its steps end it in order."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

_LOOK_S = 0.1
"""How often a pause looks for the wish; a lock would not be safe to set in a signal handler."""


@dataclass
class Stop:
    """Shared by whoever hears the wish (a signal handler) and the loop that grants it."""

    requested: bool = False

    def request(self) -> None:
        """Asks for an end in order: the running evaluation finishes and everything is saved."""
        self.requested = True

    def pause(self, seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
        """Waits, and raises Interrupted as soon as the wish is heard."""
        left = seconds
        while not self.requested and left > 0:
            sleep(min(_LOOK_S, left))
            left -= _LOOK_S
        if self.requested:
            raise Interrupted


class Halt(Exception):
    """Ends a campaign in order; everything before is kept and it may be resumed. No error."""

    def __init__(self, by: str) -> None:
        super().__init__(f"the campaign stops: {by}")
        self.by = by
        """What is recorded as `stopped_by`."""


class Interrupted(Halt):
    """The user asked for the end."""

    def __init__(self) -> None:
        super().__init__("interrupted")


class NothingToGain(Halt):
    """Less is expected of everything that was not tried than could be measured."""

    def __init__(self) -> None:
        super().__init__("no gain expected")


class BudgetSpent(Halt):
    """What was to be done next could pass a cap; it was not begun."""
