# SPDX-License-Identifier: Apache-2.0
"""Three soft verifiers: a model's guess at what a candidate would fail at, before it is built.

A guess orders the work and never decides it. What guesses were worth is a pure fold over the pairs
of guess and verdict that a campaign recorded; a verifier that is wrong too often is switched off.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ...traces.decisions import Opinion, SoftKind
from ...traces.records import Status, Verdict
from ..prompting import parts
from ..prompting.parts import Briefing
from ..prompting.render import render
from ..roles import Situation
from ..text.untrusted import clip_words, make_readable
from .asks import Asks, Parameters, ask_typed

VOTES = 3
REASON_WORDS = 25
SOFT = Parameters(max_output_tokens=2_048, temperature=0.7)
"""Votes must be able to differ."""
LEAST_CASES = 30
LEAST_ACCURACY = 0.6


class Vote(BaseModel):
    """One answer of a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    verdict: Literal["ok", "suspect", "broken"]
    line: int
    reason: str


class LlmSoftVerifier:
    """Asks one model for several votes on a source."""

    def __init__(
        self, asker: Asks, briefing: Briefing, *, votes: int = VOTES, parameters: Parameters = SOFT
    ) -> None:
        self.name = asker.model_name
        self._asker = asker
        self._briefing = briefing
        self._votes = votes
        self._parameters = parameters

    def opinion(self, kind: SoftKind, source: str, situation: Situation) -> Opinion:
        """The majority of the votes. Votes that cannot be read are left out."""
        place = situation.assignment.place.for_purpose(f"soft {kind}")
        user = render(
            f"soft_{kind}",
            **parts.task(situation, self._briefing),
            language=situation.language,
            source=parts.source(source, place),
        )
        ask = self._parameters.ask(place.purpose, render("soft"), user)
        said = [
            ask_typed(self._asker, ask, Vote, place.for_vote(number)).form
            for number in range(self._votes)
        ]
        return join_votes(kind, self.name, [vote for vote in said if vote is not None])


def join_votes(kind: SoftKind, model: str, votes: Sequence[Vote]) -> Opinion:
    """The opinion of the majority; without one, and without votes, nothing is called broken."""
    counts = {word: sum(vote.verdict == word for vote in votes) for word in ("ok", "broken")}
    word: Literal["ok", "suspect", "broken"] = "suspect"
    if 2 * counts["broken"] > len(votes):
        word = "broken"
    elif 2 * counts["ok"] > len(votes) or not votes:
        word = "ok"
    first = next((vote for vote in votes if vote.verdict == word), None)
    reason = clip_words(make_readable(first.reason), REASON_WORDS).text if first else ""
    return Opinion(
        kind=kind,
        model=model,
        verdict=word,
        broken=counts["broken"],
        votes=len(votes),
        line=max(0, first.line) if first else 0,
        reason=reason,
    )


def shortlist(opinions: Mapping[str, Sequence[Opinion]], count: int, draw: str) -> tuple[str, ...]:
    """Which candidates are evaluated: those with the fewest votes for `broken`, in their order.

    One place goes to a candidate that was passed over, drawn by `draw`, so that guesses can be
    held against verdicts; with one place only there is no such draw. At least one is chosen.

    Args:
        opinions: By candidate, in the order they were proposed.
    """
    count = max(1, count)
    order = {candidate: number for number, candidate in enumerate(opinions)}
    ranked = sorted(opinions, key=lambda c: (sum(o.broken for o in opinions[c]), order[c]))
    if len(ranked) <= count:
        return tuple(ranked)
    chosen, rejected = ranked[:count], ranked[count:]
    if count > 1:
        rest = [chosen[-1], *rejected]
        chosen[-1] = min(rest[1:], key=lambda c: hashlib.sha256(f"{draw}:{c}".encode()).digest())
    return tuple(chosen)


_BUILD = (Status.BUILD_FAILED,)
_UNDECIDED = (
    Status.HARNESS_ERROR,
    Status.NOT_DISCRIMINATING,
    Status.UNSUPPORTED,
    Status.SUSPECT,
    Status.PROTOCOL_ERROR,
)


def was_right_to_doubt(kind: SoftKind, verdict: Verdict) -> bool | None:
    """Whether the candidate failed at what this kind asks; None where the verdict does not say.

    What did not build shows nothing of its memory and its numbers. A wrong answer may come from
    either, and counts for both.
    """
    status = verdict.status
    if status in _UNDECIDED:
        return None
    if kind is SoftKind.BUILD:
        return status in _BUILD
    if status in _BUILD:
        return None
    wrong = {
        SoftKind.MEMORY: (Status.CRASHED, Status.INCORRECT, Status.RESOURCE, Status.TIMED_OUT),
        SoftKind.NUMERICS: (Status.INCORRECT,),
    }
    return status in wrong[kind]


@dataclass(frozen=True)
class Calibration:
    """What the guesses of one kind and model were worth; a fold over recorded pairs."""

    caught: int = 0
    """Called broken, and failed."""
    wronged: int = 0
    """Called broken, and right."""
    missed: int = 0
    cleared: int = 0

    @property
    def cases(self) -> int:
        """Guesses that a verdict decided."""
        return self.caught + self.wronged + self.missed + self.cleared

    @property
    def accuracy(self) -> float | None:
        """Share of right guesses."""
        return _share(self.caught + self.cleared, self.cases)

    @property
    def precision(self) -> float | None:
        """Of those called broken, the share that failed."""
        return _share(self.caught, self.caught + self.wronged)

    @property
    def recall(self) -> float | None:
        """Of those that failed, the share called broken."""
        return _share(self.caught, self.caught + self.missed)

    @property
    def why_off(self) -> str:
        """Why the verifier is switched off; empty: it is not."""
        if self.cases < LEAST_CASES or (self.accuracy or 0.0) >= LEAST_ACCURACY:
            return ""
        return f"accuracy {self.accuracy:.2f} over {self.cases} cases, below {LEAST_ACCURACY:g}"


def calibrations(
    pairs: Iterable[tuple[Opinion, Verdict]],
) -> dict[tuple[SoftKind, str], Calibration]:
    """By kind and model, from every guess and the verdict on the same candidate."""
    counts: dict[tuple[SoftKind, str], list[int]] = {}
    for opinion, verdict in pairs:
        failed = was_right_to_doubt(opinion.kind, verdict)
        if failed is None:
            continue
        is_doubted = opinion.verdict == "broken"
        place = (0 if failed else 1) if is_doubted else (2 if failed else 3)
        counts.setdefault((opinion.kind, opinion.model), [0, 0, 0, 0])[place] += 1
    return {key: Calibration(*each) for key, each in counts.items()}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
