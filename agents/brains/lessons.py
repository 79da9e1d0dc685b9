# SPDX-License-Identifier: Apache-2.0
"""Distils what attempts showed into at most three conclusions; memory holds these and no logs."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from ...traces.records import Verdict
from ..prompting import parts
from ..prompting.parts import Briefing
from ..prompting.render import render
from ..roles import Member, Situation
from ..text.untrusted import clip_sentences, fence_text, one_line
from .asks import Asks, Parameters, ask_typed

MOST_LESSONS = 3
LESSON_WORDS = 30
_REASON = 240


class Lessons(BaseModel):
    """What the model answers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lessons: list[str]


def reflect(
    asker: Asks,
    briefing: Briefing,
    situation: Situation,
    attempts: Sequence[tuple[Member, str]],
    parameters: Parameters | None = None,
) -> tuple[str, ...]:
    """The conclusions; none where the model said nothing useful.

    Args:
        attempts: Each candidate with the one line that its Coder said of it, oldest first.
    """
    place = situation.assignment.place.for_purpose("reflect")
    lines = "\n".join(_line(member, said) for member, said in attempts)
    user = render(
        "lessons",
        **parts.task(situation, briefing),
        attempts=fence_text(lines, what="a list of attempts", place=place),
    )
    ask = (parameters or Parameters(max_output_tokens=4_096)).ask("reflect", render("judge"), user)
    form = ask_typed(asker, ask, Lessons, place).form
    told = form.lessons[:MOST_LESSONS] if form else []
    cut = (clip_sentences(one_line(text, 10 * _REASON), LESSON_WORDS).text for text in told)
    return tuple(text for text in cut if text)


def _gain(verdict: Verdict) -> str:
    if verdict.credited is not None:
        return f", credited {verdict.credited:.3f}"
    estimate = verdict.screen_estimate
    return f", screen estimate {estimate.median:.3f}" if estimate else ""


def _line(member: Member, said: str) -> str:
    verdict = member.verdict
    timed = verdict.measurement
    if timed is not None:
        found = f"{timed.candidate.median_us:.5g} us" + _gain(verdict)
    elif verdict.modelled_us:
        found = f"modelled {verdict.modelled_us:.5g} us"
    else:
        found = one_line("; ".join(verdict.reasons), _REASON)
    return f"- {member.candidate[:12]} ({one_line(said, _REASON)}): {verdict.label}, {found}"
