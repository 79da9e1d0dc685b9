# SPDX-License-Identifier: Apache-2.0
"""Reads out of bounds in the build that is timed: tensors beside pages that cannot be accessed.

Sanitizers look at another build than the timed one, and a source may tell. Here the same process
that passed its trials is called with each tensor ending where accessible memory ends, then with
each beginning where it begins. An access beyond is a crash; one within the few bytes that
alignment leaves finds NaN. It is a promotion's check, and knows native candidates only.
"""

from __future__ import annotations

import numpy as np

from ...sandbox.run.arena import Fence
from ...sandbox.run.process import RunFault
from ...traces.records import Check
from ..clock.timed_sides import CandidateSide
from ..truth import gates
from ..truth.trials import Item, Stage, Trial, make_item, small_trials

NAME = "fenced memory"


def examine(side: CandidateSide, stage: Stage, rng: np.random.Generator) -> Check:
    """Small trials and the workload asked for, each between both fences, up to the first failure.

    Raises:
        RunFault: the process ended; says between which fences.
    """
    families = list(stage.problem.families)
    trials = small_trials(stage, rng)
    if all(trial.name != stage.target_name for trial in trials):
        family = families[int(rng.integers(len(families)))]
        trials.append(Trial(stage.target_name, stage.target, family))
    for trial in trials:
        item = make_item(stage.problem, trial.structure, trial.family, rng)
        for fence in (Fence.AFTER, Fence.BEFORE):
            failed = _failure(side, trial, item, fence)
            if failed:
                return failed
    return Check(
        name=NAME,
        passed=True,
        figure=float(len(trials)),
        detail=f"tensors that end, and that begin, beside inaccessible memory: {len(trials)} "
        "shapes are right",
    )


def _failure(side: CandidateSide, trial: Trial, item: Item, fence: Fence) -> Check | None:
    slot = side.place(trial.structure, 1, fence)[0]
    where = f"where each tensor {fence} (inputs: {trial.family}, {trial.name})"
    try:
        failed = gates.first_failure(side.answer(item, slot))
    except RunFault as fault:
        raise RunFault(fault.status, f"{where}: {fault.reason}", fault.log) from fault
    if failed is None:
        return None
    detail = f"{where}: {failed.name}: {failed.detail}"
    return failed.model_copy(update={"name": NAME, "detail": detail, "workload": trial.name})
