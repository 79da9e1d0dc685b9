"""What a Coder and a Judge are. The brains that fill these roles stand in `brains/`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from ..kernelbench.problem import Problem
from ..kernelbench.recipe import Facts, Knobs
from ..traces.records import Advice, Verdict


@dataclass(frozen=True)
class Proposal:
    """A source that a Coder proposes, with its lineage."""

    source: str
    language: str
    family: str
    knobs: Knobs
    operator: str
    parents: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Member:
    """A candidate that was evaluated, as the Coder and the Archive see it."""

    candidate: str
    number: int
    source: str
    language: str
    family: str
    knobs: Knobs
    verdict: Verdict
    parents: tuple[str, ...] = ()
    advice: Advice | None = None


@dataclass(frozen=True)
class Situation:
    """What a Coder may know when it proposes."""

    problem: Problem
    target: str
    language: str
    facts: Facts
    round: int
    """0, 1, 2 …; with the seed it determines every random choice."""
    seed: int
    parents: tuple[Member, ...] = ()
    """Selected by the archive, best first; empty while the initial sample is drawn."""
    seen: frozenset[str] = field(default_factory=frozenset)
    """Ids of everything proposed so far: never propose one of these again."""


class Coder(Protocol):
    """Writes candidates."""

    name: str

    def propose(self, situation: Situation) -> Proposal | None:
        """The next candidate, or None when nothing new is left to propose."""


class Judge(Protocol):
    """Diagnoses; it never gives a verdict."""

    name: str

    def diagnose(self, member: Member, situation: Situation) -> Advice:
        """One bottleneck and one change for the member's next version."""
