# SPDX-License-Identifier: Apache-2.0
"""What workflows tell a model beside the record: they order the work, and these are their words."""

from __future__ import annotations

from ...traces.records import Advice, Verdict
from ..roles import Member
from ..text.untrusted import one_line

REASON_CHARACTERS = 300
"""Of what the referee said of a foreign source."""


def others_strategy(strategy: str) -> str:
    """What another candidate claims to do."""
    return f"another candidate's strategy: {strategy}"


def tuning(base: Member) -> Advice:
    """A knob search in words: structure stays, figures move."""
    return Advice(
        candidate=base.candidate,
        bottleneck="its constants were not tuned",
        change="Change only numeric constants (tile sizes, unrolling, threads, schedules): choose "
        "the values that fit this target best, and keep the structure as it is.",
        mode="optimise",
        by="workflow",
    )


def source_checked(verdict: Verdict) -> str:
    """What the referee found of a foreign source that was run as it stands."""
    if verdict.status.is_pass:
        return "the source itself was run and passes the task's tests"
    reasons = one_line("; ".join(verdict.reasons), REASON_CHARACTERS)
    return (
        f"the source itself was run on the task's tests and is {verdict.label}: {reasons}. "
        "The task's definition counts, not the source"
    )


def same_source(number: int) -> str:
    """Why a reply held no candidate: what it holds was proposed before."""
    return f"the same source as candidate {number}"


def over_best(ratio: float) -> str:
    """Why a result is surprising: it leaves the others of its campaign behind."""
    return f"{ratio:.2f} times the best before"


def over_baseline(ratio: float) -> str:
    """Why a result is surprising: it leaves the baseline behind."""
    return f"{ratio:.2f} times the baseline"


def over_roofline(share: float) -> str:
    """Why a result is surprising: the machine should not be able to do that."""
    return f"{share:.2f} of the roofline"
