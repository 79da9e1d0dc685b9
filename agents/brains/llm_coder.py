# SPDX-License-Identifier: Apache-2.0
"""A Coder that asks a language model: one prompt for each mode, one candidate out of the reply.

A reply that cannot be used is asked for once again; after that there is no candidate, which is a
result. Nothing that the model says of its candidate is believed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from ...kernelbench.languages import language_of
from ..model import Finish, Reply
from ..prompting import parts, techniques
from ..prompting.figures import profile
from ..prompting.parts import SOURCE_CHARACTERS, Briefing
from ..prompting.past import past
from ..prompting.render import render
from ..roles import Assignment, Member, Mode, NoProposal, Proposal, Situation
from ..text.candidate_text import extract
from ..text.edits import revise_source
from ..text.foreign_source import is_cuda
from ..text.found import FoundSource, ReplyOutcome, Unusable
from ..text.thinking import without_thinking
from ..text.untrusted import one_line
from .asks import CODE_ECHO, REASON_CHARACTERS, Asks, Parameters, repeat_ask
from .identity import ensure_one

FAMILY = "model"
"""The niche of what a model wrote: it comes from no recipe."""
STRATEGY_CHARACTERS = 240
_SAID = r"^[ \t>*_#-]*{word}[ \t*_]*:[ \t*_]*(.+)$"
_STRATEGY = re.compile(_SAID.format(word="strategy"), re.I | re.M)
_NO_CHANGE = re.compile(_SAID.format(word="no change"), re.I | re.M)
_FASTER = re.compile(_SAID.format(word="faster"), re.I | re.M)


class LlmCoder:
    """Writes, mends and changes candidates by asking one model."""

    def __init__(
        self, asker: Asks, briefing: Briefing, parameters: Parameters | None = None
    ) -> None:
        self.name = asker.model_name
        self._asker = asker
        self._briefing = briefing
        self._parameters = parameters or Parameters()

    def propose(self, situation: Situation) -> Proposal | NoProposal:
        """The candidate of the situation's assignment.

        Raises:
            SandboxError: base, verdict and advice are not of one candidate; nothing was asked.
        """
        assignment = situation.assignment
        place = assignment.place.for_purpose(assignment.mode)
        base = _source_to_patch(assignment)
        ask = self._parameters.ask(
            str(assignment.mode),
            parts.system(
                situation,
                self._briefing,
                may_patch=base is not None,
                tokens=self._parameters.max_output_tokens,
            ),
            _PROMPTS[assignment.mode](situation, self._briefing),
        )
        reply = self._asker.ask(ask, place.at_turn(0))
        found = _find_source(reply, situation, base)
        call = self._asker.key(ask, place.at_turn(0))
        if isinstance(found, Unusable) and found.outcome is not ReplyOutcome.NO_CHANGE:
            ask = repeat_ask(ask, reply, found, _request(found, situation.language), CODE_ECHO)
            reply = self._asker.ask(ask, place.at_turn(1))
            call = self._asker.key(ask, place.at_turn(1))
            found = _find_source(reply, situation, base)
        if isinstance(found, Unusable):
            return NoProposal(str(found.outcome), one_line(found.reason, REASON_CHARACTERS), call)
        return Proposal(
            source=found.source,
            language=situation.language,
            family=FAMILY,
            knobs={},
            operator=str(assignment.mode),
            parents=tuple(member.candidate for member in _shown_members(assignment)),
            strategy=strategy_of(reply.text),
            techniques=techniques.parse_declared(_words(reply.text)),
            notes=_notes(reply.text, found, assignment),
        )


def strategy_of(reply_text: str) -> str:
    """The line in which a reply says what it does; empty where it does not."""
    found = _STRATEGY.search(_words(reply_text))
    return one_line(found[1], STRATEGY_CHARACTERS) if found else ""


def label_exemplars(assignment: Assignment) -> tuple[tuple[str, Member], ...]:
    """The exemplars under the labels of the prompt.

    Two variants to be contrasted stand in an order that no position gives away.
    """
    members = assignment.exemplars
    if assignment.mode is Mode.CONTRAST:
        ids = ",".join(sorted(member.candidate for member in members))
        draw = hashlib.sha256(f"{assignment.place}:{ids}".encode()).digest()
        if draw[0] % 2:
            members = tuple(reversed(members))
    return tuple((chr(ord("A") + number), member) for number, member in enumerate(members))


def _source_to_patch(assignment: Assignment) -> str | None:
    """The source that edits would be made of; None where only a whole source is taken."""
    base = assignment.base
    is_change = assignment.mode in (Mode.REPAIR, Mode.OPTIMISE, Mode.FEATURES)
    if base is None or not (assignment.may_patch and is_change):
        return None
    return base.source if len(base.source) <= SOURCE_CHARACTERS else None


def _request(fault: Unusable, language: str) -> str:
    """What a useless reply is answered with."""
    if fault.outcome is ReplyOutcome.TRUNCATED:
        return render("shorter")
    reason = one_line(fault.reason, REASON_CHARACTERS)
    return render("again", reason=reason, fence=language_of(language).markup)


def _read(reply: Reply, language: str, base: str | None) -> FoundSource | Unusable:
    if base is None:
        return extract(reply.text, reply.finish, language)
    return revise_source(reply.text, reply.finish, language, base)


def _find_source(reply: Reply, situation: Situation, base: str | None) -> FoundSource | Unusable:
    """What a reply holds. That nothing is to be changed is an answer where a change was asked."""
    found = _read(reply, situation.language, base)
    if not isinstance(found, Unusable) or situation.assignment.mode is not Mode.OPTIMISE:
        return found
    said = _NO_CHANGE.search(_words(reply.text))
    is_none = found.outcome is ReplyOutcome.NO_CANDIDATE and reply.finish is Finish.STOP
    return Unusable(ReplyOutcome.NO_CHANGE, said[1]) if said and is_none else found


def _shown_members(assignment: Assignment) -> tuple[Member, ...]:
    return ((assignment.base,) if assignment.base else ()) + assignment.exemplars


def _words(reply_text: str) -> str:
    """What a reply says before its code."""
    return without_thinking(reply_text).text.partition("```")[0]


def _notes(reply_text: str, found: FoundSource, assignment: Assignment) -> tuple[str, ...]:
    """What is remarked of a reply that holds a candidate."""
    if assignment.mode is Mode.CONTRAST and not _contrast_holds(reply_text, assignment):
        return ("failed contrast: it does not name the faster variant", *found.notes)
    return found.notes


def _contrast_holds(reply_text: str, assignment: Assignment) -> bool:
    """Whether the reply names the faster of the variants, which stand slow to fast."""
    said = _FASTER.search(_words(reply_text))
    label = next(
        (
            name
            for name, member in label_exemplars(assignment)
            if member is assignment.exemplars[-1]
        ),
        "",
    )
    return bool(said and label and said[1].strip(" `*_.").upper().startswith(label))


def _common(situation: Situation, briefing: Briefing) -> dict[str, str]:
    told = parts.word_told(situation.assignment, situation.assignment.place)
    return {
        **parts.task(situation, briefing),
        "told": told,
        **past(situation.history, situation.assignment.place),
    }


def _word_base(situation: Situation) -> dict[str, str]:
    """What is shown of the base. Raises SandboxError where it is not one candidate."""
    assignment = situation.assignment
    base = assignment.base
    if base is None:
        raise ValueError(f"the mode {assignment.mode} needs a base")
    ensure_one(base, advice=assignment.advice)
    return {
        "candidate": base.candidate[:12],
        "source": parts.source(base.source, assignment.place),
        "verdict": parts.verdict(base, assignment.place),
    }


def _write(situation: Situation, briefing: Briefing) -> str:
    sample = situation.assignment.sample
    which = (
        f"This is sample {sample.number} of {sample.of}: the fastest one counts." if sample else ""
    )
    if sample and situation.assignment.told:
        which += " Choose another strategy than those listed below."
    example = parts.example(situation)
    return render("write", **_common(situation, briefing), sample=which, example=example)


def _repair(situation: Situation, briefing: Briefing) -> str:
    return render(
        "repair",
        **_common(situation, briefing),
        **_word_base(situation),
        advice=parts.advice(situation.assignment, situation.assignment.place),
        statuses=render("statuses"),
    )


def _optimise(situation: Situation, briefing: Briefing) -> str:
    assignment = situation.assignment
    based = _word_base(situation)
    assert assignment.base is not None
    return render(
        "optimise",
        **_common(situation, briefing),
        **based,
        advice=parts.advice(assignment, assignment.place),
        profile=profile(assignment.base, situation, assignment.place),
    )


def _prompt_with_several(situation: Situation, briefing: Briefing) -> str:
    assignment = situation.assignment
    if len(assignment.exemplars) < 2:
        raise ValueError(f"the mode {assignment.mode} needs at least two exemplars")
    for member in assignment.exemplars:
        ensure_one(member)
    shown = parts.exemplars(label_exemplars(assignment), situation, assignment.place)
    prompt = "contrast" if assignment.mode is Mode.CONTRAST else "cross_over"
    return render(prompt, **_common(situation, briefing), exemplars=shown)


def _features(situation: Situation, briefing: Briefing) -> str:
    assignment = situation.assignment
    known = techniques.catalogue()
    wanted = techniques.word_techniques([known[name] for name in assignment.features])
    based = {"candidate": "", "source": "", "verdict": "", "profile": ""}
    if assignment.base is not None:
        shown = profile(assignment.base, situation, assignment.place)
        based = {**_word_base(situation), "profile": shown}
    return render("features", **_common(situation, briefing), **based, features=wanted)


def _foreign(situation: Situation, briefing: Briefing) -> str:
    assignment = situation.assignment
    shown = parts.source(assignment.source, assignment.place)
    common = _common(situation, briefing)
    if assignment.mode is Mode.TRANSLATE:
        return render("translate", **common, source=shown)
    kind = "CUDA" if is_cuda(assignment.source) else "PyTorch"
    return render("convert", **common, source=shown, language=situation.language, kind=kind)


_PROMPTS: dict[Mode, Callable[[Situation, Briefing], str]] = {
    Mode.WRITE: _write,
    Mode.REPAIR: _repair,
    Mode.OPTIMISE: _optimise,
    Mode.CROSS_OVER: _prompt_with_several,
    Mode.CONTRAST: _prompt_with_several,
    Mode.FEATURES: _features,
    Mode.TRANSLATE: _foreign,
    Mode.CONVERT: _foreign,
}
