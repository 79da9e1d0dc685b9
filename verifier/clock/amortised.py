# SPDX-License-Identifier: Apache-2.0
"""After how many calls it pays that a candidate has prepared a pattern. Pure; knows no clock."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from ...kernelbench.dtypes import dtype_of
from ...kernelbench.problem import Axes, Problem
from ...traces.records import Measurement


def add_preparing(found: Measurement, prepare_us: Sequence[float], problem: Problem) -> Measurement:
    """The measurement with what preparing takes, of a candidate that does."""
    if not prepare_us:
        return found
    median_us = statistics.median(prepare_us)
    prepared = {baseline.name for baseline in problem.baselines if baseline.is_prepared}
    others = [time.median_us for name, time in found.baselines.items() if name not in prepared]
    gained_us = min(others, default=0.0) - found.candidate.median_us
    pays = math.ceil(median_us / gained_us) if gained_us > 0 else None
    return found.model_copy(update={"prepare_us": median_us, "pays_after_calls": pays})


def pattern_bytes(problem: Problem, axes: Axes) -> float:
    """Of the index inputs: a call that has a plan can do without them."""
    return float(
        sum(
            math.prod(tensor.extent(axes)) * dtype_of(tensor.dtype).bytes
            for tensor in problem.inputs
            if tensor.is_index
        )
    )
