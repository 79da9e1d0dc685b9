# SPDX-License-Identifier: Apache-2.0
"""A Judge that asks a language model, and speaks by rules where the model's words cannot be used.

The verdict decides the mode: what failed is to be repaired, what passed to be made faster. The
model's JSON is held to its form, its fields to their limits, and its evidence to the profile of
exactly this candidate. Whatever was done to its words stands in the advice's notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from ...traces.place import Place
from ...traces.records import Advice, Status
from ..prompting import parts, techniques
from ..prompting.evidence import figures_of
from ..prompting.figures import profile, shown_figures
from ..prompting.parts import Briefing
from ..prompting.past import past
from ..prompting.render import render
from ..prompting.techniques import Technique
from ..roles import Judge, Member, Situation
from ..text.untrusted import clip_sentences, make_readable
from .asks import Asks, Parameters, Typed, ask_typed, schema_of
from .evidence_check import LEAST, MOST, Cited, find_faults, select_figures
from .identity import ensure_one

FALLBACK = "rules (fallback)"
JUDGE_TOKENS = 8_192
"""The answer is short; what a reasoning model thinks before it counts as well."""
NOT_FOR_A_MODEL = (Status.HARNESS_ERROR, Status.NOT_DISCRIMINATING)
"""The candidate is not to blame: there is nothing to diagnose and no reason to pay."""


WORDS = {
    "critical_issue": 20,
    "why_it_matters": 35,
    "minimal_fix_hint": 20,
    "bottleneck": 30,
    "method": 35,
    "plan": 35,
}
"""At most so many words a field; the prompts say the same."""


def _words(field: str, meaning: str) -> str:
    """A field of the form whose limit the schema tells."""
    told: str = Field(description=f"{meaning}; at most {WORDS[field]} words")
    return told


class RepairAdvice(BaseModel):
    """What the Judge answers about a failure."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    critical_issue: str = _words("critical_issue", "the one cause, with its place")
    why_it_matters: str = _words("why_it_matters", "how it leads to what was found")
    minimal_fix_hint: str = _words("minimal_fix_hint", "the smallest change that removes it")
    confidence: Literal["low", "medium", "high"]


class OptimiseAdvice(BaseModel):
    """What the Judge answers about a correct candidate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bottleneck: str = _words("bottleneck", "the one thing that limits this candidate")
    method: str = _words("method", "the one change that removes it, or why nothing is left")
    plan: str = _words("plan", "how to make that change in this code; empty if nothing is left")
    technique: str
    evidence: list[Cited] = Field(description=f"{LEAST} or {MOST} metrics of the profile")


class LlmJudge:
    """Diagnoses one candidate by asking one model."""

    def __init__(
        self,
        asker: Asks,
        briefing: Briefing,
        fallback: Judge,
        parameters: Parameters | None = None,
    ) -> None:
        self.name = asker.model_name
        self._asker = asker
        self._briefing = briefing
        self._fallback = fallback
        self._parameters = parameters or Parameters(max_output_tokens=JUDGE_TOKENS)

    def diagnose(self, member: Member, situation: Situation) -> Advice:
        """One issue and one change for exactly this member.

        Raises:
            SandboxError: source, verdict and assignment are not of one candidate.
        """
        ensure_one(member, base=situation.assignment.base)
        status = member.verdict.status
        if status in NOT_FOR_A_MODEL:
            return self._by_rules(member, situation, (f"no model was asked about {status}",))
        return (
            self._optimise(member, situation) if status.is_pass else self._repair(member, situation)
        )

    def _repair(self, member: Member, situation: Situation) -> Advice:
        place = _place(member, situation)
        user = render(
            "judge_repair",
            **self._word_member(member, situation, place),
            statuses=render("statuses"),
        )
        ask = self._parameters.ask("judge repair", render("judge"), user)
        reply = ask_typed(self._asker, ask, RepairAdvice, place.for_purpose("judge repair"))
        if reply.form is None:
            return self._by_rules(member, situation, reply.notes)
        cut = _Cut(reply.notes)
        return Advice(
            candidate=member.candidate,
            bottleneck=cut("critical_issue", reply.form.critical_issue),
            change=cut("minimal_fix_hint", reply.form.minimal_fix_hint),
            why=cut("why_it_matters", reply.form.why_it_matters),
            mode="repair",
            confidence=reply.form.confidence,
            by=self.name,
            notes=cut.notes,
        )

    def _optimise(self, member: Member, situation: Situation) -> Advice:
        place = _place(member, situation)
        figures, shown = figures_of(member), shown_figures(member, situation.judged)
        known = techniques.list_applicable(
            situation.problem,
            situation.language,
            situation.target,
            figures,
            facts=situation.facts,
        )
        user = render(
            "judge_optimise",
            **self._word_member(member, situation, place),
            profile=profile(member, situation, place),
            techniques=techniques.word_techniques(known),
        )
        ask = self._parameters.ask("judge optimise", render("judge"), user)
        said = ask_typed(
            self._asker,
            ask,
            OptimiseAdvice,
            place.for_purpose("judge optimise"),
            schema=_schema(known, shown),
            fault_of=lambda form: find_faults(form.evidence, shown),
        )
        return self._advise_optimising(member, situation, said, known)

    def _advise_optimising(
        self,
        member: Member,
        situation: Situation,
        said: Typed[OptimiseAdvice],
        known: Sequence[Technique],
    ) -> Advice:
        form = said.form
        if form is None:
            return self._by_rules(member, situation, said.notes)
        cut = _Cut(said.notes)
        named = form.technique.strip().strip("`")
        technique = named if named in {each.name for each in known} else ""
        if not technique and named not in (techniques.NONE, techniques.OTHER):
            cut.note("the technique it names is not in the catalogue")
        return Advice(
            candidate=member.candidate,
            bottleneck=cut("bottleneck", form.bottleneck),
            change=cut("plan", form.plan),
            why=cut("method", form.method),
            rests_on=select_figures(form.evidence, shown_figures(member, situation.judged)),
            mode="optimise",
            technique=technique,
            nothing_left=named == techniques.NONE,
            by=self.name,
            notes=cut.notes,
        )

    def _word_member(self, member: Member, situation: Situation, place: Place) -> dict[str, str]:
        return {
            **parts.task(situation, self._briefing),
            "candidate": member.candidate[:12],
            "language": situation.language,
            "source": parts.source(member.source, place),
            "verdict": parts.verdict(member, place),
            **past(situation.history, place),
        }

    def _by_rules(self, member: Member, situation: Situation, notes: tuple[str, ...]) -> Advice:
        said = self._fallback.diagnose(member, situation)
        mode = "optimise" if member.verdict.status.is_pass else "repair"
        return said.model_copy(update={"by": FALLBACK, "mode": mode, "notes": notes})


class _Cut:
    """Cuts fields at their limits, and keeps what was done."""

    def __init__(self, notes: tuple[str, ...]) -> None:
        self.notes = notes

    def __call__(self, field: str, text: str) -> str:
        kept, was_cut = clip_sentences(make_readable(text), WORDS[field])
        if was_cut:
            self.note(f"{field} cut to {WORDS[field]} words")
        return kept

    def note(self, text: str) -> None:
        self.notes = (*self.notes, text)


def _place(member: Member, situation: Situation) -> Place:
    return situation.assignment.place or Place(slot=f"candidate {member.number}")


def _schema(known: Sequence[Technique], figures: Iterable[str]) -> dict[str, JsonValue]:
    """The form's schema with the closed lists of techniques and of metrics."""
    schema = schema_of(OptimiseAdvice)
    names: list[JsonValue] = [technique.name for technique in known]
    properties = schema["properties"]
    assert isinstance(properties, dict)
    properties["technique"] = {
        "type": "string",
        "enum": [*names, techniques.OTHER, techniques.NONE],
        "description": "other: a method that is not listed; none: nothing is left to gain",
    }
    metrics: list[JsonValue] = list(figures)
    cited = _find_schema(schema, "$defs", "Cited", "properties")
    cited["metric"] = {"type": "string", "description": "a name of the profile"}
    if metrics:
        # An empty list of choices is an error to servers.
        _find_schema(cited, "metric")["enum"] = metrics
    return schema


def _find_schema(schema: dict[str, JsonValue], *keys: str) -> dict[str, JsonValue]:
    found = schema
    for key in keys:
        inner = found[key]
        assert isinstance(inner, dict)
        found = inner
    return found
