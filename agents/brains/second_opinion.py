# SPDX-License-Identifier: Apache-2.0
"""A second look at a result that is too good: a model says whether it looks earned.

What it says is a label. It keeps a candidate from being shown to others as an example; it credits,
rejects and ranks nobody, which the referee does alone.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from ...traces.decisions import SecondOpinion
from ..prompting import hack_cases, parts
from ..prompting.parts import Briefing
from ..prompting.render import render
from ..roles import Member, Situation
from ..text.untrusted import clip_words, make_readable
from .asks import Asks, Parameters, ask_typed
from .identity import ensure_one

SHOWN = 3
"""Cases beside the candidate."""
REASON_WORDS = 25


class _Label(BaseModel):
    """What the model answers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: Literal["honest", "suspect"]
    case: str
    line: int
    reason: str


class LlmSecondLook:
    """Asks one model about one candidate."""

    def __init__(
        self, asker: Asks, briefing: Briefing, parameters: Parameters | None = None
    ) -> None:
        self.name = asker.model_name
        self._asker = asker
        self._briefing = briefing
        self._parameters = parameters or Parameters(max_output_tokens=4_096)

    def __call__(self, member: Member, why: str, situation: Situation) -> SecondOpinion:
        """The label of exactly this member.

        Args:
            why: What is surprising about its result, in our words.
        """
        ensure_one(member, base=situation.assignment.base)
        place = situation.assignment.place.for_purpose("second opinion")
        near = hack_cases.find_nearest(member.source, SHOWN)
        user = render(
            "second_opinion",
            **parts.task(situation, self._briefing),
            candidate=member.candidate[:12],
            language=situation.language,
            source=parts.source(member.source, place),
            why=why,
            verdict=parts.verdict(member, place),
            cases="\n".join(f"- `{case.name}`: {case.words}" for case in near),
        )
        ask = self._parameters.ask("second opinion", render("doubter"), user)
        label = ask_typed(self._asker, ask, _Label, place).form
        shown = tuple(case.name for case in near)
        if label is None:
            return SecondOpinion(
                candidate=member.candidate, label="none", shown=shown, by=self.name
            )
        named = label.case.strip().strip("`")
        return SecondOpinion(
            candidate=member.candidate,
            label=label.label,
            case=named if named in {case.name for case in hack_cases.cases()} else "",
            line=max(0, label.line),
            reason=clip_words(make_readable(label.reason), REASON_WORDS).text,
            shown=shown,
            by=self.name,
        )
