# SPDX-License-Identifier: Apache-2.0
"""What the chart of a campaign stands over: candidates, time, tokens or dollars."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple

from ..history import History
from ..transcript import Transcript


class Over(NamedTuple):
    """An axis of a campaign's chart."""

    title: str
    place: Callable[[int, float], float]
    """Where a candidate stands, by its number and the moment that it was proposed at."""
    last: float
    """The end of the campaign on it."""
    is_whole: bool = False
    """Whether it counts."""


def over_numbers(history: History) -> Over:
    """Over the candidates, one after the other."""
    last = max((entry.number for entry in history.entries.values()), default=1)
    return Over("candidate", lambda number, _: float(number), float(last), is_whole=True)


def over_time(history: History, _: Transcript) -> Over:
    """Over the minutes since it began, pauses between its processes included."""
    begun = history.started_at
    return Over(
        "minutes since the beginning",
        lambda _, at: (at - begun) / 60.0,
        (history.last_at - begun) / 60.0,
    )


def over_tokens(_: History, transcript: Transcript) -> Over:
    """Over the tokens that were booked until then."""
    return _over_spending("tokens", transcript, lambda tokens, _: float(tokens))


def over_dollars(_: History, transcript: Transcript) -> Over:
    """Over what was spent on models until then, as far as prices are known."""
    return _over_spending("US dollars", transcript, lambda _, usd: usd or 0.0)


def _over_spending(
    title: str, transcript: Transcript, figure: Callable[[int, float | None], float]
) -> Over:
    ended = sorted(
        (attempt.until, figure(attempt.outcome.tokens, attempt.outcome.usd))
        for call in transcript.calls.values()
        for attempt in call.attempts
        if attempt.outcome and attempt.until is not None
    )
    moments = [until for until, _ in ended]
    spent = [0.0, *accumulate(each for _, each in ended)]
    return Over(
        f"{title} spent on models", lambda _, at: spent[bisect_right(moments, at)], spent[-1]
    )


AXES: dict[str, Callable[[History, Transcript], Over]] = {
    "candidates": lambda history, _: over_numbers(history),
    "time": over_time,
    "tokens": over_tokens,
    "dollars": over_dollars,
}
"""By the name that a page is asked with."""


def list_axes(history: History) -> list[str]:
    """Those that say something of a campaign."""
    spent = {"tokens": bool(history.tokens), "dollars": bool(history.usd)}
    return [name for name in AXES if spent.get(name, True)]
