# SPDX-License-Identifier: Apache-2.0
"""A campaign as its events tell it to people: who leads, how it was isolated, its best so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..errors import UnknownNameError, UsageError
from .events import Event
from .fold import Entry, Fold
from .records import Isolation
from .spending import Booked


class BestSoFar(NamedTuple):
    """The best credited speed-up from this candidate on; 0.0 where there is none."""

    number: int
    at: float
    credited: float
    tokens: int = 0
    """Spent on models until then."""
    usd: float | None = 0.0


class History(Fold[Entry]):
    """A campaign as its events tell it."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        super().__init__(Entry, events)

    @property
    def usd(self) -> float | None:
        """What models cost; None where a price is unknown."""
        return self.spending.usd

    @property
    def tokens(self) -> int:
        """What models took."""
        return self.spending.tokens

    @property
    def booked(self) -> Booked:
        """What of both is booked for attempts whose outcome nobody knows."""
        return self.spending.booked

    @property
    def preparation_s(self) -> float:
        """Seconds before candidates could be judged, of all processes; outside of the budget."""
        return sum(prepared.total_s for prepared in self.prepared)

    @property
    def best(self) -> Entry | None:
        """The champion."""
        return self.entries[self.champion] if self.champion else None

    @property
    def file(self) -> str:
        """What the file is called whose evaluation this is; empty where nobody can say."""
        if not self.started.is_evaluation:
            return ""
        return next((entry.file for entry in self.entries.values()), "")

    @property
    def leader(self) -> Entry | None:
        """The candidate with the shortest modelled time where nothing can be timed.

        It leads a ranking; it is no winner and has no speed-up.
        """
        candidate = self.tally.leader.candidate
        return self.entries[candidate] if candidate else None

    @property
    def isolation(self) -> Isolation | None:
        """The isolation matrix that the newest verdict carries."""
        return self.tally.isolation

    @property
    def not_enforced(self) -> tuple[str, ...]:
        """What was open to a kernel in any of the evaluations: rows of the matrix."""
        return self.tally.not_enforced

    @property
    def is_weakly_isolated(self) -> bool:
        """Whether any evaluation went without what unattended work needs."""
        return self.tally.is_weakly_isolated

    def best_so_far(self) -> list[BestSoFar]:
        """One step per change of champion: from which candidate on, when, and its credit."""
        credits = self.credits
        steps = [
            BestSoFar(
                self.entries[fall.beside].number,
                fall.at,
                credits.get(fall.champion or "", 0.0),
                fall.tokens,
                fall.usd,
            )
            for fall in self.falls
        ]
        steps += [
            BestSoFar(self.entries[event.candidate].number, at, event.credited, tokens, usd)
            for at, event, tokens, usd in self.changes
        ]
        return sorted(steps, key=lambda step: step.at)


def derive(events: Iterable[Event]) -> History:
    """The history that the events of one campaign tell.

    Raises:
        StorageError: the events do not begin with a start, or name a candidate never proposed.
    """
    history = History(events)
    _ = history.started
    return history


def find_candidate(history: History, text: str) -> str:
    """The candidate that `text` names: its number, an id's unique beginning, or `@best`.

    Raises:
        UnknownNameError: no candidate matches.
        UsageError: several match, or there is no best one.
    """
    if text == "@best":
        if history.champion is None:
            leads = f": #{history.leader.number} leads by modelled time" if history.leader else ""
            raise UsageError(
                f"campaign {history.campaign} has no verified winner",
                hint=f"name a candidate by its number or the beginning of its id{leads}",
            )
        return history.champion
    if text in history.entries:
        return text
    if text.isdecimal():
        for entry in history.entries.values():
            if entry.number == int(text):
                return entry.candidate
    found = [name for name in history.entries if text and name.startswith(text)]
    known = [str(entry.number) for entry in history.entries.values()]
    return the_only(f"candidate of campaign {history.campaign}", text, found, known)


def the_only(kind: str, text: str, found: list[str], known: list[str]) -> str:
    """The one name that was found for `text`, or the error that says how it is not one."""
    if len(found) == 1:
        return found[0]
    if not found:
        raise UnknownNameError.for_name(kind, text, known)
    shown = ", ".join(name[:24] for name in found[:8])
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    raise UsageError(
        f"'{text}' names {len(found)} {kind.split()[0]}s", hint=f"one of: {shown}{more}"
    )
