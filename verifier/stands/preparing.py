# SPDX-License-Identifier: Apache-2.0
"""What runs a candidate on the CPUs: its program, and the plan that it makes of a pattern.

A C++ candidate of a sparse problem may declare one (sandbox/plan/pattern_plan.py). It lies among
the work buffers of a call; a CandidateSide has it made wherever a pattern is new.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...kernelbench.languages import CPP, language_of
from ...kernelbench.problem import Structure
from ...sandbox.plan.faults import PlanFault
from ...sandbox.plan.limits import MAX_SCRATCH_BYTES
from ...sandbox.plan.pattern_plan import MAX_SHARE, PatternPlan
from ...sandbox.run.arena import Extra, room
from ...traces.records import Status
from ..failure import Failed
from .contests import RunnerLaunch
from .gpu_candidates import status_of
from .programs import build_program, pattern_plan
from .session import Session
from .sides import HIDDEN_ROOM


@dataclass(frozen=True)
class PlanBehind:
    """The plan as what a call is given behind its tensors."""

    plan: PatternPlan

    def __call__(self, structure: Structure) -> Extra:
        """See Behind. Raises Failed where it takes what is not lent."""
        size = self.plan.bytes(structure.axes)
        if isinstance(size, PlanFault):
            raise Failed(status_of(size), size.sentence)
        return Extra(plan=size)


def launch(session: Session, source: str, language: str) -> RunnerLaunch:
    """What a runner of this source is started with; built. Raises Failed."""
    program = build_program(session, source, language)
    declared = pattern_plan(session.problem, source) if language_of(language) is CPP else None
    if declared is None:
        return RunnerLaunch(program, is_light=language_of(language).is_native)
    extra, stage = PlanBehind(declared), session.stage
    timed = session.slots * room(extra(stage.target))
    if timed > MAX_SCRATCH_BYTES:
        raise Failed(
            Status.RESOURCE,
            f"its plans take {timed} bytes for the {session.slots} calls that lie side by side, at "
            f"most {MAX_SCRATCH_BYTES} are lent",
        )
    tried = [2 * room(extra(structure)) for _, structure in (*stage.others, ("", stage.target))]
    return RunnerLaunch(program, extra, max(timed, *tried, MAX_SHARE * sum(HIDDEN_ROOM)))
