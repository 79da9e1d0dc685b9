"""What the nodes of every workflow work with. It is handed to each node and never stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..kernelbench.problem import Problem
from ..kernelbench.recipe import Facts
from .budget import Budget
from .ledger import Ledger
from .protocols import Coder, Judge, Situation
from .stop import Stop


@dataclass(frozen=True)
class Loop:
    """The means of one campaign: who decides, what may be spent, and the books."""

    problem: Problem
    target: str
    language: str
    seed: int
    facts: Facts
    coder: Coder
    judge: Judge
    ledger: Ledger
    budget: Budget
    stop: Stop = field(default_factory=Stop)

    def situation(self, parents: Sequence[str]) -> Situation:
        """What the Coder may know now; the round is the number of candidates so far."""
        progress = self.ledger.progress
        return Situation(
            problem=self.problem,
            target=self.target,
            language=self.language,
            facts=self.facts,
            round=len(progress.tracks),
            seed=self.seed,
            parents=tuple(self.ledger.member(candidate) for candidate in parents),
            seen=progress.seen,
        )

    def why_halted(self) -> str | None:
        """Why not even an evaluation that is owed may begin, or None."""
        return "interrupted" if self.stop.requested else self.budget.why_out_of_time()
