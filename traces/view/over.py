# SPDX-License-Identifier: Apache-2.0
"""What the chart of a campaign stands over: candidates, time, tokens or dollars."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ..head import Head


class Placed(Protocol):
    """What has a place in the course of a campaign."""

    @property
    def number(self) -> int:
        """Of the candidate."""

    @property
    def at(self) -> float:
        """The moment."""

    @property
    def tokens(self) -> int:
        """What had been spent on models until then."""

    @property
    def usd(self) -> float | None:
        """The same in US dollars, as far as prices are known."""


class Over(NamedTuple):
    """An axis of a campaign's chart."""

    title: str
    place: Callable[[Placed], float]
    """Where something stands."""
    last: float
    """The end of the campaign on it."""
    is_whole: bool = False
    """Whether it counts."""


def over_numbers(head: Head) -> Over:
    """Over the candidates, one after the other."""
    return Over("candidate", lambda it: float(it.number), float(head.proposed or 1), is_whole=True)


def over_time(head: Head) -> Over:
    """Over the minutes since it began, pauses between its processes included."""
    begun = head.started_at
    title = "minutes since the beginning"
    return Over(title, lambda it: (it.at - begun) / 60.0, (head.last_at - begun) / 60.0)


def over_tokens(head: Head) -> Over:
    """Over the tokens that were booked until then."""
    last = float(head.spent.tokens)
    return Over("tokens spent on models", lambda it: float(it.tokens), last)


def over_dollars(head: Head) -> Over:
    """Over what was spent on models until then, where prices are known."""
    last = head.spent.priced_usd
    return Over("US dollars spent on models", lambda it: it.usd or 0.0, last)


AXES: dict[str, Callable[[Head], Over]] = {
    "candidates": over_numbers,
    "time": over_time,
    "tokens": over_tokens,
    "dollars": over_dollars,
}
"""By the name that a page is asked with."""


def list_axes(head: Head) -> list[str]:
    """Those that say something of a campaign."""
    spent = {"tokens": bool(head.spent.tokens), "dollars": bool(head.spent.usd)}
    return [name for name in AXES if spent.get(name, True)]
