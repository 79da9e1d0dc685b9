# SPDX-License-Identifier: Apache-2.0
"""Addresses of pages: on the server, and inside one report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlencode

from ..place import NOWHERE, Place
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

    def trace(self, place: Place = NOWHERE) -> str:
        """What was asked and answered, at one place of the workflow or from the beginning."""

    def call(self, number: int) -> str:
        """One question to a model and its answer."""

    def why(self) -> str:
        """Why the campaign at hand ended as it did."""


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

    def trace(self, place: Place = NOWHERE) -> str:
        where = f"?{urlencode({'at': str(place)})}#{anchor(place)}" if place else ""
        return f"{self.campaign(self.at)}/trace{where}"

    def call(self, number: int) -> str:
        return f"{self.campaign(self.at)}/calls/{number}"

    def why(self) -> str:
        return f"{self.campaign(self.at)}/why"

    def search(self) -> str:
        """Where words stand in what the campaign at hand left."""
        return f"{self.campaign(self.at)}/search"

    def archive(self) -> str:
        """What the search of the campaign at hand keeps."""
        return f"{self.campaign(self.at)}/archive"

    def tree(self) -> str:
        """Who came of whom in the campaign at hand."""
        return f"{self.campaign(self.at)}/tree"

    def compare(self, *candidates: str) -> str:
        """Several candidates of the campaign at hand beside each other."""
        return f"/compare?{urlencode([('of', f'{self.at}/{each}') for each in candidates])}"


@dataclass(frozen=True)
class ReportLinks:
    """Anchors inside one file."""

    def home(self) -> str:
        return "#main"

    def campaign(self, campaign: str) -> str:  # noqa: ARG002
        return "#main"

    def candidate(self, candidate: str) -> str:
        return f"#c-{words.shorten_id(candidate)}"

    def query(self, **choices: object) -> str:  # noqa: ARG002
        return "#main"

    def trace(self, place: Place = NOWHERE) -> str:
        return f"#{anchor(place)}" if place else "#trace"

    def call(self, number: int) -> str:
        return f"#call-{number}"

    def why(self) -> str:
        return "#main"


def anchor(place: Place) -> str:
    """The id of a place's element."""
    return "p-" + re.sub(r"[^A-Za-z0-9]+", "-", str(place))
