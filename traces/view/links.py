"""Addresses of pages: on the server, and inside one report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlencode

from . import words


class Links(Protocol):
    """Where things are."""

    def home(self) -> str:
        """The first page."""

    def campaign(self, campaign: str) -> str:
        """A campaign."""

    def candidate(self, candidate: str) -> str:
        """A candidate of the campaign at hand."""

    def query(self, **choices: object) -> str:
        """The page at hand with other choices."""


@dataclass(frozen=True)
class ServerLinks:
    """Addresses of the web viewer."""

    at: str = ""
    """The campaign at hand."""

    def home(self) -> str:
        return "/"

    def campaign(self, campaign: str) -> str:
        return f"/c/{quote(campaign, safe='')}"

    def candidate(self, candidate: str) -> str:
        return f"{self.campaign(self.at)}/{quote(candidate, safe='')}"

    def query(self, **choices: object) -> str:
        return "?" + urlencode({key: value for key, value in choices.items() if value})


@dataclass(frozen=True)
class ReportLinks:
    """Anchors inside one file."""

    def home(self) -> str:
        return "#main"

    def campaign(self, campaign: str) -> str:  # noqa: ARG002
        return "#main"

    def candidate(self, candidate: str) -> str:
        return f"#c-{words.short(candidate)}"

    def query(self, **choices: object) -> str:  # noqa: ARG002
        return "#main"
