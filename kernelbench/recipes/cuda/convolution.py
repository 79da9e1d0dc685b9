# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for convolutions, state spaces and encodings."""

from __future__ import annotations

from collections.abc import Sequence

from ...recipe import Knobs, Recipe
from .._front_matter import LaunchPlan, Table
from .._knobs import integer, make_knob
from ._knobs import THREADS, UNROLL, VECTOR
from ._recipe import by_width, cuda_recipe, launch, times

EXPONENTIAL = make_knob("exponential", "exp", "exp2", meaning="how e^a is made: expf(a), or exp2f")
DEFAULT: Knobs = {"threads": 256, "vector": 4, "unroll": 2, "exponential": "exp2"}


def _plan_causal(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"causal_conv1d<{width}>",
            when=conditions,
            grid=[f"cdiv(M * C * L, {times('THREADS * UNROLL', width)})"],
            block=["THREADS"],
            args=["M", "C", "L", "x", "w", "bias", "y"],
        )

    return LaunchPlan(by_width(integer(knobs, "vector"), "L", make))


CAUSAL_CONV1D = cuda_recipe(
    "causal_conv1d",
    "flat",
    "Steps of all channels as one run of vectors, a few to a thread.",
    template="causal_conv1d",
    knobs=(THREADS, VECTOR, UNROLL, EXPONENTIAL),
    constraints=(),
    default=DEFAULT,
    plan=_plan_causal,
)

RECIPES: tuple[Recipe, ...] = (CAUSAL_CONV1D,)
