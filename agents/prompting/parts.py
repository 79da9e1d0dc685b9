# SPDX-License-Identifier: Apache-2.0
"""The parts that prompts are filled with: the task, a candidate, its verdict and its profile.

Pure functions from the records to text. Everything that a candidate or a tool wrote (sources,
reasons, logs, remarks) is fenced as data; our own figures are not. The same records at the same
place give the same text, since a call's key rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...kernelbench.languages import language_of
from ...kernelbench.packs import tell_parts
from ...kernelbench.precision import INTEGERS, STRICT_FP32, SUM_FACTOR, Precision
from ...kernelbench.problem import FLUSHED, Family, Problem, Tensor, Workload
from ...kernelbench.recipes.kin import find_example
from ...kernelbench.targets import target_of
from ...traces.events import CampaignStarted
from ...traces.place import Place
from ...traces.records import Check, Speedup, Status, Verdict
from ..roles import Assignment, Member, Situation
from ..text.candidate_text import ORDINARY
from ..text.untrusted import fence_text, one_line
from . import guides, techniques
from .figures import busy_machine, profile, with_lines
from .render import render
from .target_card import Card
from .workload import workload

SOURCE_CHARACTERS = 48_000
"""Of a base; a longer one is shown in part, and then may not be edited by search and replace."""
EXEMPLAR_CHARACTERS = 12_000
FINDINGS_CHARACTERS = 6_000
LOG_LINES = 150
"""Of the end of a log; what a compiler says last is what made it stop (CudaForge keeps as many)."""
_LEGAL = {
    Family.NORMAL: "normal",
    Family.UNIFORM: "uniform",
    Family.LAPLACE: "Laplace",
    Family.LOGNORMAL: "log-normal",
    Family.EXPONENTIAL: "exponential",
    Family.OUTLIERS: "1 % outliers at a hundred times",
    Family.ALTERNATING: "alternating signs",
    Family.CONSTANT: "constant",
    Family.SORTED: "sorted",
    Family.DENORMAL: "denormals (no flush to zero of sums of products)",
    Family.LARGE: "large magnitudes",
    Family.NONFINITE: "NaN and infinities, as told above",
    Family.EXACT: "integers from {-1, 0, 1}, where the answer must match bit for bit",
    Family.PROBE: "few terms with full 24-bit mantissas, which show narrower arithmetic",
}


@dataclass(frozen=True)
class Briefing:
    """What stays the same in all prompts of a campaign, beside the problem."""

    card: Card
    workload: str = ""
    """The name and the note of the workload that is timed."""


def briefing(started: CampaignStarted) -> Briefing:
    """What every prompt of a campaign says of its target and its workload."""
    told = started.config.get("card")
    card = Card.model_validate(told) if told else Card(target=started.target, title=started.target)
    if (spec := started.workload_spec).get("parts"):
        weighed = tell_parts(Workload.model_validate(spec))
        note = f"several; what counts is the weighted geometric mean of {weighed}"
    else:
        note = str(spec.get("note") or "")
    return Briefing(card, f"{started.workload}: {note}" if note else started.workload)


def system(situation: Situation, briefing: Briefing, *, may_patch: bool, tokens: int) -> str:
    """The first message to a Coder: what a reply is, and what a candidate is.

    Args:
        tokens: The most that a reply may have.
    """
    known = techniques.list_applicable(
        situation.problem, situation.language, situation.target, facts=situation.facts
    )
    return render(
        "coder",
        language=situation.language,
        fence=language_of(situation.language).markup,
        guide=guides.guide(situation, briefing.card.target),
        edits=render("edits") if may_patch else "",
        techniques=", ".join(technique.name for technique in known),
        tokens=f"{tokens:,}",
    )


def task(situation: Situation, briefing: Briefing) -> dict[str, str]:
    """The values of `_task.md`."""
    problem = situation.problem
    return {
        "title": problem.title,
        "problem": problem.name,
        "definition": problem.definition,
        "signature": guides.signature_text(problem, situation.language),
        "axes": _axes(problem, situation.facts),
        "tensors": _tensors(problem),
        "workload": workload(situation, briefing.workload),
        "precision": _precision(problem),
        "timing": _timing(situation, briefing.card),
        "card": briefing.card.text,
    }


def example(situation: Situation) -> str:
    """The nearest recipe of ours, and what it is for; empty where there is none."""
    found = find_example(situation.problem, situation.language)
    if found is None:
        return ""
    markup = language_of(situation.language).markup
    whose = "this problem" if found.problem == situation.problem.name else found.problem
    told = f"The recipe `{found.family}` for {whose}, written by hand, right and fast:"
    return f"{told}\n\n```{markup}\n{found.source.strip()}\n```"


def source(text: str, place: Place, *, characters: int = SOURCE_CHARACTERS) -> str:
    """A candidate's source as data."""
    return fence_text(text, what="the source", place=place, characters=characters)


def verdict(member: Member, place: Place) -> str:
    """What the referee found: the status in our words, everything else as data."""
    verdict = member.verdict
    words = [*verdict.reasons, *(_word_failure(c) for c in verdict.checks if not c.passed)]
    head = " ".join([f"Status: {verdict.label}.", *_reading(member)])
    if verdict.status.is_pass:
        return head + "\n" + _word_measurement(verdict)
    tail = "\n".join(verdict.log.splitlines()[-LOG_LINES:])
    said = "\n".join(dict.fromkeys(words))
    if verdict.status is not Status.BUILD_FAILED:
        # Compilers quote the lines they name; checks do not.
        said = with_lines(said, member.source)
    findings = fence_text(
        said, what="what the checks say", place=place, characters=FINDINGS_CHARACTERS
    )
    if not tail.strip():
        return f"{head}\n\n{findings}"
    log = fence_text(
        tail,
        what="the end of the log (compiler or program)",
        place=place,
        characters=FINDINGS_CHARACTERS,
    )
    return f"{head}\n\n{findings}\n\n{log}"


def _reading(member: Member) -> Iterator[str]:
    """What whoever read the reply has to remark of it: code that was left out may be missed."""
    told = [note for note in member.notes if note not in ORDINARY]
    if told:
        yield f"Of the reply that it came from: {'; '.join(told)}."


def exemplar(label: str, member: Member, situation: Situation, place: Place) -> str:
    """One of several candidates in a prompt."""
    return render(
        "exemplar",
        label=label,
        candidate=member.candidate[:12],
        source=source(member.source, place, characters=EXEMPLAR_CHARACTERS),
        verdict=verdict(member, place),
        profile=profile(member, situation, place),
    )


def advice(assignment: Assignment, place: Place) -> str:
    """The Judge's words; empty where there are none."""
    judged = assignment.advice
    if judged is None:
        return ""
    is_repair = judged.mode == "repair"
    named = {
        "Issue" if is_repair else "Bottleneck": judged.bottleneck,
        "Why it matters" if is_repair else "Method": judged.why,
        "Fix" if is_repair else "Plan": judged.change,
        "Technique": judged.technique,
        "Confidence": judged.confidence,
    }
    lines = [f"{name}: {one_line(text, 600)}" for name, text in named.items() if text]
    if judged.nothing_left:
        lines.insert(0, "The Judge sees nothing left that is worth a change.")
    if judged.rests_on:
        lines.append("Figures: " + ", ".join(f"{k} = {v:.6g}" for k, v in judged.rests_on.items()))
    return fence_text("\n".join(lines), what="the Judge's words", place=place)


def word_told(assignment: Assignment, place: Place) -> str:
    """Lessons and strategies of others, one a line; empty where there are none."""
    lines = [f"- {one_line(text, 300)}" for text in assignment.told]
    return fence_text("\n".join(lines), what="a list", place=place) if lines else ""


def _axes(problem: Problem, facts: Mapping[str, float]) -> str:
    return "\n".join(
        f"- {name}: {meaning}"
        + (f"; {facts[name]:.0f} in the timed workload" if name in facts else "")
        for name, meaning in problem.axes.items()
    )


def _tensors(problem: Problem) -> str:
    outputs = {tensor.name for tensor in problem.outputs}
    return "\n".join(_tensor(t, t.name in outputs) for t in problem.tensors)


def _tensor(tensor: Tensor, is_output: bool) -> str:
    side = "output, written" if is_output else "input, read-only"
    meaning = f": {tensor.meaning}" if tensor.meaning else ""
    return f"- {tensor.name}: {tensor.dtype} [{', '.join(tensor.shape)}], {side}{meaning}"


def _precision(problem: Problem) -> str:
    precision = problem.precision
    more = {} if precision.policy == STRICT_FP32.policy else {"types": _word_types(problem)}
    held = max((problem.precision_of(t.name) for t in problem.outputs), key=lambda p: p.u_out)
    is_exact = precision.policy == INTEGERS
    return render(
        "precision_" + precision.policy.replace("-", "_"),
        element="0" if is_exact else _word_limit(held),
        nrmse="0" if is_exact else f"{held.nrmse:.3g}",
        **more,
        accuracy=problem.accuracy,
        families="; ".join(_word_legal(family, precision) for family in problem.families),
    )


def _word_limit(precision: Precision) -> str:
    """Gate G1, in letters."""
    product = f"{SUM_FACTOR:g} u sqrt(n)"
    if precision.u_product:
        product = f"({product} + {_word_power(precision.u_product)})"
    rounding = "2 u |r|"
    if precision.u_out > precision.u_acc:
        share = _word_power(precision.roundings * precision.u_out)
        rounding = f"{share} |r| + half a step of its type"
    return f"{product} s + {rounding}"


def _word_power(value: float) -> str:
    """`2^-9`, `3 * 2^-20`: a small whole number of a power of two."""
    mantissa, exponent = math.frexp(value)
    while mantissa % 1:
        mantissa, exponent = 2 * mantissa, exponent - 1
    return f"2^{exponent}" if mantissa == 1 else f"{mantissa:g} * 2^{exponent}"


def _word_types(problem: Problem) -> str:
    """`A and B are bfloat16, C is bfloat16`, with what C++ calls them."""
    told = []
    for tensors in (problem.inputs, problem.outputs):
        for dtype in dict.fromkeys(t.dtype for t in tensors if not t.is_index):
            names = [t.name for t in tensors if t.dtype == dtype and not t.is_index]
            verb = "is" if len(names) == 1 else "are"
            told.append(f"{' and '.join(names)} {verb} {dtype}")
    return ", ".join(told)


def _word_legal(family: Family, precision: Precision) -> str:
    if family is Family.DENORMAL and precision.underflow >= FLUSHED:
        return "denormals (which may count as zero, as they do in atomic sums on global memory)"
    return _LEGAL[family]


def _timing(situation: Situation, card: Card) -> str:
    target = target_of(situation.target)
    named = [b.name for b in situation.problem.baselines if b.runs_on(target.torch_device)]
    baselines = ", ".join(named) or "none"
    if target.is_cpu:
        return render("timing_cpu", baselines=baselines)
    if card.is_emulated:
        return render(f"timing_emulated_{situation.language}")
    return render("timing_device", baselines=baselines)


def _word_failure(check: Check) -> str:
    figure = "" if check.figure is None else f" = {check.figure:.4g}"
    limit = "" if check.limit is None else f" (limit {check.limit:.4g})"
    where = f", on {check.workload}" if check.workload else ""
    return f"{check.name}{figure}{limit}{where}: {check.detail}"


def _word_measurement(verdict: Verdict) -> str:
    timed = verdict.measurement
    if timed is None:
        modelled = verdict.modelled_us
        return f"Not timed; modelled: {modelled:.4g} us." if modelled else "Not timed."
    lines = [f"Time of a call: {timed.candidate.median_us:.5g} us (median)."]
    gain = "Screen estimate of the speed-up" if verdict.screen_estimate else "Speed-up"
    lines += [
        f"{gain} against {name}: {_ratio(ratio)}"
        + (", the fastest baseline." if name == timed.best_baseline else ".")
        for name, ratio in timed.against_baselines.items()
    ]
    if warning := busy_machine(timed):
        lines.append(warning)
    return "\n".join(lines)


def _ratio(ratio: Speedup) -> str:
    return f"{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def exemplars(labelled: Sequence[tuple[str, Member]], situation: Situation, place: Place) -> str:
    """Several candidates, each under its label."""
    return "\n\n".join(exemplar(label, m, situation, place) for label, m in labelled)
