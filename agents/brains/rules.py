# SPDX-License-Identifier: Apache-2.0
"""The offline Judge: rules over the metrics of a verdict's profile and its measurement.

It names one bottleneck and one change, in words and as hints in the knobs of the recipes at hand.
It orders work and credits nothing. The rules stand in the order in which a cause hides the next:
what fails, then what idles, then what waits, then what is merely slow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...kernelbench.recipe import Recipe
from ...kernelbench.targets import target_of
from ...traces.records import Advice, Check, Status
from ..prompting.evidence import Evidence, Hints, Rule, RuleFinding
from ..roles import Member, Situation
from . import gpu_rules

AT_ROOF = 0.85
"""Share of the roofline above which the timing noise is larger than what is left to gain."""
IMBALANCED = 1.25
"""Fullest equal-row chunk over the mean from which the slowest thread is what is timed."""
IDLE = 0.7
"""Share of its CPU time below which a kernel leaves cores idle."""
HOT = 0.5
"""Of the latency, what the hot loop must come to by the model for it to be what binds."""
CHAINED = 1.3
"""Cycles of a pass with its dependences over those of its ports (verifier/profile/hot_loop.py)."""
SPILLED = 0.25
"""Of the accesses of the hot loop, those to the stack."""
WAITING = 0.35
"""Share of the roofline below which a vectorised, busy kernel is waiting for memory."""

TEAM_START_US = 100.0
"""Below twice what starting a team of passively waiting OpenMP threads takes."""
VECTOR_TYPES = ("vector_size(", "_mm256_", "_mm512_")
"""A source with one of these is vectorised by hand, which the compiler's remarks do not count."""


class RuleJudge:
    """A Judge that needs no model."""

    name = "rules"

    def __init__(self, recipes: Sequence[Recipe] = ()) -> None:
        self._recipes = {recipe.family: recipe for recipe in recipes}

    def diagnose(self, member: Member, situation: Situation) -> Advice:
        """The first rule that applies speaks; the last always does."""
        finding = _failure(member)
        if finding is None:
            evidence = Evidence(member, situation, self._recipes)
            rules = RULES if target_of(situation.target).is_cpu else gpu_rules.RULES
            finding = next(said for rule in rules if (said := rule(evidence)) is not None)
        return Advice(
            candidate=member.candidate,
            bottleneck=finding.bottleneck,
            change=finding.change,
            rests_on=finding.rests_on,
            hints=finding.hints,
        )


def _not_timed(evidence: Evidence) -> RuleFinding | None:
    if evidence.member.verdict.measurement is not None:
        return None
    return RuleFinding("not timed", "Nothing was timed here; try another family.", {}, {})


def _call_overhead(evidence: Evidence) -> RuleFinding | None:
    if not evidence.is_below("latency_us", TEAM_START_US):
        return None
    return RuleFinding(
        "call overhead",
        "The kernel is so short that starting threads dominates: use fewer threads.",
        evidence.cite("latency_us"),
        evidence.fewer_threads(),
    )


def _at_roof(evidence: Evidence) -> RuleFinding | None:
    if evidence.is_below("roofline", AT_ROOF) or "roofline" not in evidence.figures:
        return None
    return RuleFinding(
        "at the roofline",
        "Only fewer bytes can help now: write the output past the caches.",
        evidence.cite("roofline"),
        evidence.changed_to("stream", 1),
    )


def _imbalance(evidence: Evidence) -> RuleFinding | None:
    is_uneven = evidence.figures.get("imbalance", 1.0) >= IMBALANCED
    # A family that deals out non-zeros does not suffer from uneven rows.
    is_dealt_by_rows = "nnz" not in evidence.member.family
    is_busy = evidence.figures.get("cpu_utilisation", 0.0) >= IDLE
    if not (is_uneven and is_dealt_by_rows) or is_busy:
        return None
    balanced = evidence.family_with("nnz")
    hints: Hints = evidence.list_others("schedule", "chunk")
    change = "Deal rows out in smaller pieces as threads become free."
    if balanced:
        hints["family"] = balanced
        change = f"Give every thread the same number of non-zeros, as {balanced} does."
    return RuleFinding(
        "load imbalance", change, evidence.cite("imbalance", "cpu_utilisation"), hints
    )


def _find_idle_cores(evidence: Evidence) -> RuleFinding | None:
    if not evidence.is_below("cpu_utilisation", IDLE):
        return None
    return RuleFinding(
        "idle cores",
        "Keep every core busy: all threads, and pieces small enough to share out.",
        evidence.cite("cpu_utilisation"),
        evidence.changed_to("threads", 0) | evidence.list_others("schedule", "chunk", "pieces"),
    )


def _not_vectorised(evidence: Evidence) -> RuleFinding | None:
    widest = evidence.facts.get("vector_bytes", 0.0)
    if any(name in evidence.member.source for name in VECTOR_TYPES):
        return None
    is_scalar = evidence.figures.get("vectorised_loops") == 0
    is_narrow = evidence.is_below("vector_bytes", widest)
    if not (is_scalar or is_narrow):
        return None
    return RuleFinding(
        "not vectorised" if is_scalar else "narrow vectors",
        "Make the inner loop work on whole vectors of the machine's width.",
        evidence.cite("vectorised_loops", "missed_loops", "vector_bytes"),
        evidence.changed_to("vector", "native")
        | evidence.list_larger("width", "vectors", "unroll"),
    )


def _find_chain(evidence: Evidence) -> RuleFinding | None:
    """The hot loop waits for its own answers, where it is what takes the time."""
    figures = evidence.figures
    ports, chain = figures.get("hot_port_cycles", 0.0), figures.get("hot_chain_cycles", 0.0)
    if not _is_hot(evidence) or not ports or chain < CHAINED * ports:
        return None
    return RuleFinding(
        "latency of its own sums",
        "Keep several independent sums in the hot loop and add them up behind it.",
        evidence.cite("hot_chain_cycles", "hot_port_cycles", "hot_loop_us", "latency_us"),
        evidence.list_larger("unroll", "vectors", "width", "rows", "columns"),
    )


def _spilling(evidence: Evidence) -> RuleFinding | None:
    """Of what the hot loop works with, much does not fit into registers."""
    accesses = evidence.figures.get("hot_loads", 0.0) + evidence.figures.get("hot_stores", 0.0)
    spilled = evidence.figures.get("hot_spills", 0.0)
    if not _is_hot(evidence) or not spilled or spilled < SPILLED * accesses:
        return None
    return RuleFinding(
        "registers spilled in the hot loop",
        "Keep fewer vectors at once: a smaller tile, or less unrolling.",
        evidence.cite("hot_spills", "hot_loads", "hot_stores", "hot_loop_us", "latency_us"),
        evidence.list_smaller("unroll", "vectors", "width", "rows", "columns"),
    )


def _busy_ports(evidence: Evidence) -> RuleFinding | None:
    if not _is_hot(evidence):
        return None
    return RuleFinding(
        "instructions of its hot loop",
        "Do the same with fewer instructions: reuse what is in registers, divide less, load wider.",
        evidence.cite("hot_port_cycles", "hot_instructions", "hot_loop_us", "latency_us"),
        evidence.list_neighbours(),
    )


def _is_hot(evidence: Evidence) -> bool:
    """Whether the time is that of the hot loop, and not of memory or of waiting."""
    share = evidence.figures.get("hot_loop_us", 0.0) / evidence.figures.get("latency_us", math.inf)
    return share >= HOT


def _find_waiting_for_memory(evidence: Evidence) -> RuleFinding | None:
    if not evidence.is_below("roofline", WAITING):
        return None
    return RuleFinding(
        "waiting for memory",
        "Have more loads in flight: prefetch further ahead and keep more columns in registers.",
        evidence.cite("roofline", "cpu_utilisation"),
        evidence.list_others("prefetch", "block", "tile")
        | evidence.list_larger("width", "vectors", "unroll"),
    )


def _bandwidth(evidence: Evidence) -> RuleFinding:
    return RuleFinding(
        "between compute and memory",
        "No single cause stands out: move one knob to a neighbouring value.",
        evidence.cite("roofline", "cpu_utilisation", "latency_us"),
        evidence.list_neighbours(),
    )


RULES: tuple[Rule, ...] = (
    _not_timed,
    _call_overhead,
    _at_roof,
    _imbalance,
    _find_idle_cores,
    _not_vectorised,
    _find_chain,
    _spilling,
    _busy_ports,
    _find_waiting_for_memory,
    _bandwidth,
)

FAILURES: dict[Status, tuple[str, str]] = {
    Status.BUILD_FAILED: ("does not build", "Mend what the compiler says first"),
    Status.INCORRECT: ("wrong results", "Mend the computation before making it faster"),
    Status.NOT_DISCRIMINATING: ("inputs prove nothing", "Choose another workload"),
    Status.SUSPECT: ("not credible", "Remove what makes the figure hard to believe"),
    Status.CRASHED: ("crashes", "Keep every access inside its array"),
    Status.TIMED_OUT: ("too slow to finish", "Remove the loop that does not end or the lock"),
    Status.RESOURCE: ("takes too much", "Use less memory and fewer processes"),
    Status.PROTOCOL_ERROR: ("breaks the protocol", "Leave descriptors and streams alone"),
    Status.HARNESS_ERROR: ("not evaluated", "The harness failed; the kernel is not to blame"),
    Status.UNSUPPORTED: ("not supported", "Leave out what this version or machine cannot judge"),
}


def _failure(member: Member) -> RuleFinding | None:
    """What to mend, if the member failed; failures carry no hints, since no knob is to blame."""
    verdict = member.verdict
    if verdict.status.is_pass:
        return None
    bottleneck, change = FAILURES[verdict.status]
    failed = next((check for check in verdict.checks if not check.passed), None)
    said = _in_words(failed) if failed else verdict.reasons[0]
    figures = {failed.name: failed.figure} if failed and failed.figure is not None else {}
    return RuleFinding(bottleneck, f"{change}: {said}", figures, {})


def _in_words(check: Check) -> str:
    figure = "" if check.figure is None else f" = {check.figure:.3g}"
    limit = "" if check.limit is None else f", limit {check.limit:.3g}"
    detail = f" ({check.detail})" if check.detail else ""
    return f"{check.name}{figure}{limit}{detail}"
