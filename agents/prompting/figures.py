# SPDX-License-Identifier: Apache-2.0
"""The figures of a candidate as prompts show them: defined, and only those that tell something.

What a figure means stands in `traces/metric_words.toml`. What is left out here cannot be cited
either: a Judge's evidence is held against exactly what it was shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping

from ...kernelbench.targets import target_of
from ...traces.metric_words import STALL, family_of, figure_words, stall_words, unit_of
from ...traces.place import Place
from ...traces.records import MODELLED_US, Level, Measurement, Metric
from ...verifier.profile.metrics import STALLS, load_packaged
from ..roles import Member, Situation
from ..text.untrusted import fence_text
from .evidence import figures_of

REMARKS = 16
REMARKS_CHARACTERS = 4_000
LINES_QUOTED = 16
CPU_METRICS = (
    "latency_us",
    "roofline",
    "cpu_utilisation",
    "achieved_gbs",
    "achieved_gflops",
    "vectorised_loops",
    "missed_loops",
    "vector_bytes",
)
"""What a complete profile on `cpu` tells."""
SMALL_TERM = 0.05
"""Of a modelled time, or of what runs: smaller parts decide nothing."""
IDLE, WIDE = 0.7, 1.25
"""Below this utilisation, with an interval this wide, something else had the machine."""

EXECUTED = "executed_instructions"
_COUNTER = "__"
"""In the names of hardware counters."""
_OF_CODE = ("instructions", "loop_instructions")
"""Left out where it is known what runs."""
_TOLD_AT_ZERO = ("vectorised_loops",)
_OF_LOOPS = ("vectorised_loops", "missed_loops", "vector_bytes")
_BY_HAND = re.compile(r"\b_mm(?:256|512)?_\w+\(|vector_size\s*\(")
_NOT_VECTORISED = re.compile(r"^\d+: not vectorized")
_CITED_LINES = re.compile(r"^(\d+):|\blines? (\d+(?:, \d+)*)", re.M)


def shown_figures(member: Member, judged: Collection[str] = ()) -> dict[str, float]:
    """The figures of a member that prompts show, by the names that may be cited.

    Args:
        judged: Of the hardware's counters only these; (): all that were read.
    """
    known = figures_of(member)
    return {
        name: value
        for name, value in known.items()
        if _tells(name, value, known, member) and (not judged or _is_fed(name, judged))
    }


def _is_fed(name: str, judged: Collection[str]) -> bool:
    """Whether it is one of the counters chosen for a Judge, or no counter."""
    if name.startswith(STALL):
        return STALLS in judged
    return name in judged or _COUNTER not in name


def profile(member: Member, situation: Situation, place: Place) -> str:
    """Every figure that tells something, what is missing, and the tools' remarks."""
    known = member.verdict.profile
    metrics = {m.name: m for m in known.metrics} if known else {}
    lines = [
        _word_metric(metrics.get(name) or Metric(name=name, value=value, level=Level.MEASURED))
        for name, value in shown_figures(member, situation.judged).items()
    ]
    parts = ["\n".join(lines) or "No figure is known."]
    if member.verdict.emulated:
        parts.append("No hardware counters: nothing ran on a device.")
    elif missing := missing_metrics(member, situation):
        parts.append("Missing here, so that nothing can rest on them: " + ", ".join(missing))
    if said := _remarks(member):
        parts.append(
            fence_text(
                said, what="remarks of the tools", place=place, characters=REMARKS_CHARACTERS
            )
        )
    return "\n\n".join(parts)


def missing_metrics(member: Member, situation: Situation) -> tuple[str, ...]:
    """What a Judge is fed on this target where it can be had, and the profile does not tell."""
    known = figures_of(member)
    if target_of(situation.target).is_cpu:
        left_out = _OF_LOOPS if is_by_hand(member.source) else ()
        return tuple(name for name in CPU_METRICS if name not in known and name not in left_out)
    wanted = situation.judged or load_packaged().judge_metrics(
        situation.target, situation.problem.tags
    )
    has_stalls = any(name.startswith(STALL) for name in known)
    return tuple(
        name for name in wanted if name not in known and not (name == STALLS and has_stalls)
    )


def busy_machine(timed: Measurement) -> str:
    """A warning where something else had the machine while this was timed; empty: nothing had."""
    taken = timed.candidate.median_us * timed.threads
    ratio = timed.headline
    if timed.cpu_us is None or taken <= 0 or ratio is None or ratio.low <= 0:
        return ""
    share = timed.cpu_us / taken
    if share >= IDLE or ratio.high / ratio.low < WIDE:
        return ""
    return (
        f"The machine was busy with other work: the threads ran {share:.0%} of the time, and the "
        "interval is wide. Do not conclude from the wall time or cpu_utilisation; cpu_time_us is "
        "what the code took."
    )


def is_by_hand(source: str) -> bool:
    """Whether the source says its vectors itself, so that the vectoriser has little to tell."""
    return _BY_HAND.search(source) is not None


def with_lines(text: str, source: str) -> str:
    """The text, with the lines of the source that it names."""
    lines = source.split("\n")
    found = [one or several for one, several in _CITED_LINES.findall(text)]
    numbers = dict.fromkeys(int(each) for part in found for each in part.split(", "))
    quoted = [
        f"{number:>4} | {lines[number - 1].strip()[:100]}"
        for number in sorted(n for n in numbers if 0 < n <= len(lines))[:LINES_QUOTED]
        if lines[number - 1].strip()
    ]
    return "\n".join([text, "The lines named:", *quoted]) if quoted else text


def _tells(name: str, value: float, known: Mapping[str, float], member: Member) -> bool:
    is_defined = family_of(name) in figure_words() or _COUNTER in name or name.startswith(STALL)
    if not is_defined or (value == 0.0 and name not in _TOLD_AT_ZERO):
        return False
    if name in _OF_LOOPS and is_by_hand(member.source):
        return False
    if name == "least_occupancy":
        return value != known.get("occupancy")
    if name == "spilling_kernels":
        return known.get("launches", 1.0) > 1.0
    if name == "launches":
        return value > 1.0
    if name.startswith("limit_"):
        return value == known.get("blocks_per_sm") and known.get("waves", math.inf) > 1.0
    if name in _OF_CODE:
        return EXECUTED not in known
    if name.startswith("executed_"):
        return value >= SMALL_TERM * known.get(EXECUTED, 0.0)
    if name.startswith("model_"):
        return value >= SMALL_TERM * known.get(MODELLED_US, 0.0)
    return True


def _word_metric(metric: Metric) -> str:
    told = unit_of(metric)
    unit = f" {told}" if told else ""
    meaning = figure_words().get(family_of(metric.name), "")
    if metric.name.startswith(STALL):
        meaning = stall_words().get(metric.name.removeprefix(STALL), "")
    tail = f": {meaning}" if meaning else ""
    return f"- {metric.name} = {metric.value:.6g}{unit} ({metric.level}){tail}"


def _remarks(member: Member) -> str:
    known = member.verdict.profile
    remarks = known.remarks if known else ()
    if is_by_hand(member.source):
        remarks = tuple(each for each in remarks if not _NOT_VECTORISED.match(each))
    return with_lines("\n".join(remarks[:REMARKS]), member.source) if remarks else ""
