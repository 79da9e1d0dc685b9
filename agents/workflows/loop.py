# SPDX-License-Identifier: Apache-2.0
"""What the nodes of every workflow work with. It is handed to each node and never stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...kernelbench.problem import Problem
from ...kernelbench.recipe import Facts
from ...traces.options import Options
from ...traces.preparation import Preparation
from ..aids import Aids
from ..books.budget import Budget
from ..books.candidate import KnownCandidate
from ..books.ledger import Ledger
from ..books.past import Past
from ..books.progress import Progress
from ..prompting.history import history
from ..roles import Assignment, Coder, Judge, Lineage, Situation, TriedPoint
from ..stop import Stop


@dataclass(frozen=True)
class Loop:
    """The means of one campaign: who decides, what may be spent, and the books."""

    problem: Problem
    target: str
    language: str
    facts: Facts
    coder: Coder
    judge: Judge
    ledger: Ledger
    budget: Budget
    stop: Stop = field(default_factory=Stop)
    asked: Options = field(default_factory=Options)
    """What the user set."""
    slots: int = 0
    """Calls of the Coder that may be in flight at once; 0 where it asks no model."""
    asks_models: bool = True
    """Whether anybody here does."""
    aids: Aids = field(default_factory=Aids)
    source: str = ""
    """The foreign source to begin from, where the user gave one."""
    past: Past = field(default_factory=Past)
    """What earlier campaigns found, to begin with."""
    cursor: Path | None = None
    """Where the workflow's checkpoints may stand; without them it begins at START."""

    @property
    def progress(self) -> Progress:
        """Where the campaign stands."""
        return self.ledger.progress

    def situation(self, parents: Sequence[str], assignment: Assignment | None = None) -> Situation:
        """What the Coder may know now; the round is the number of candidates so far."""
        progress = self.progress
        given = assignment or Assignment()
        return Situation(
            problem=self.problem,
            target=self.target,
            language=self.language,
            facts=self.facts,
            round=progress.count,
            seed=self.asked.seed,
            parents=tuple(self.ledger.member(candidate) for candidate in parents),
            seen=progress.seen,
            assignment=given,
            history=self._history(given),
            prepared=self._prepared,
            judged=counting.judged if (counting := progress.started.counting) else (),
            tried=self._list_tried(),
            waiting=self._list_waiting(),
            past=tuple((point.family, point.knobs) for point in self.past.first),
            seen_before=self.past.seen,
        )

    @property
    def _prepared(self) -> Preparation | None:
        """What the first process of the campaign knew, or of the recorded one: questions keep
        their words."""
        recalled = self.ledger.recalled
        if recalled is not None and recalled.prepared is not None:
            return recalled.prepared
        return next(iter(self.progress.prepared), None)

    def _list_tried(self) -> tuple[TriedPoint, ...]:
        """Nobody reads it where models write."""
        if self.asks_models:
            return ()
        return tuple(
            _point_of(each, *observed)
            for each in self.progress.candidates.values()
            if (observed := self.progress.observe(each)) is not None
        )

    def _list_waiting(self) -> tuple[TriedPoint, ...]:
        if self.asks_models:
            return ()
        every = self.progress.candidates.values()
        return tuple(_point_of(each) for each in every if each.screened is None)

    def _history(self, given: Assignment) -> Lineage:
        """Nobody reads it where no model is asked, and it takes time."""
        if not self.asks_models:
            return Lineage()
        return history(self.progress, given, self.ledger.source)

    def why_halted(self) -> str | None:
        """Why not even an evaluation that is owed may begin, or None."""
        return "interrupted" if self.stop.requested else self.budget.why_out_of_time()


def _point_of(found: KnownCandidate, value: float | None = None, error: float = 0.0) -> TriedPoint:
    return TriedPoint(found.candidate, found.family, found.given_knobs, value, error)
