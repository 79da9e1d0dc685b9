"""What helps a search beside its Coder and its Judge, where a model is at hand: doubts and lessons.

None decides anything: doubts order the work before it is evaluated, lessons go into prompts, and a
second opinion keeps what looks unearned from being an example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from ..traces.records import Record
from .roles import Member, Situation

SECOND_OPINION = "second opinion"
"""Under this name one stands in the record."""


class Kind(StrEnum):
    """What is asked."""

    BUILD = "build"
    MEMORY = "memory"
    NUMERICS = "numerics"


class Opinion(Record):
    """What the votes of one kind come to."""

    kind: Kind
    model: str
    verdict: Literal["ok", "suspect", "broken"]
    """Of the majority; `suspect` where there is none."""
    broken: int
    """Votes for `broken`."""
    votes: int
    """Votes that could be read."""
    line: int = 0
    reason: str = ""
    """Of the first vote with the majority."""


class SecondOpinion(Record):
    """What a model made of a surprising candidate."""

    candidate: str
    label: Literal["honest", "suspect", "none"]
    """`none`: its answer could not be used."""
    case: str = ""
    """The case of the catalogue that it names; empty: none of them."""
    line: int = 0
    reason: str = ""
    shown: tuple[str, ...] = ()
    """The cases that it was shown."""
    by: str = ""


class SoftVerifier(Protocol):
    """Guesses what a candidate would fail at: `brains.soft_verifier.LlmSoftVerifier` is one."""

    name: str

    def opinion(self, kind: Kind, source: str, situation: Situation) -> Opinion:
        """The majority of its votes."""


class Reflector(Protocol):
    """Distils attempts into a few conclusions."""

    def __call__(
        self, situation: Situation, attempts: Sequence[tuple[Member, str]]
    ) -> tuple[str, ...]:
        """At most three; each attempt comes with the line that its Coder said of it."""


class SecondLook(Protocol):
    """Looks at a result that is too good: `brains.second_opinion.LlmSecondLook` is one."""

    def __call__(self, member: Member, why: str, situation: Situation) -> SecondOpinion:
        """What it makes of exactly this member; `why` says what is surprising."""


@dataclass(frozen=True)
class Aids:
    """None: there is no such help, and a workflow does without."""

    doubter: SoftVerifier | None = None
    reflector: Reflector | None = None
    second: SecondLook | None = None
