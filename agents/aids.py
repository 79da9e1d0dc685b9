# SPDX-License-Identifier: Apache-2.0
"""What helps a search beside its Coder and its Judge, where a model is at hand: doubts and lessons.

None decides anything: doubts order the work before it is evaluated, lessons go into prompts, and a
second opinion keeps what looks unearned from being an example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..traces.decisions import Opinion, SecondOpinion, SoftKind
from .roles import Member, Situation


class SoftVerifier(Protocol):
    """Guesses what a candidate would fail at: `brains.soft_verifier.LlmSoftVerifier` is one."""

    name: str

    def opinion(self, kind: SoftKind, source: str, situation: Situation) -> Opinion:
        """The majority of its votes."""


MOST_ATTEMPTS = 12
"""That a Reflector is given."""


class Reflector(Protocol):
    """Distils the newest attempts into a few conclusions."""

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
