# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for convolutions, state spaces and encodings."""

from __future__ import annotations

from collections.abc import Sequence

from ...recipe import Knobs, Recipe
from .._front_matter import LaunchPlan, Table
from .._knobs import integer, make_knob
from ._knobs import ROWS, THREADS, UNROLL, VECTOR, fits_block, product
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


STATE_ARGS = ("M", "H", "P", "N", "state", "x", "z", "dt", "A", "B", "C", "D", "after", "y")


def _plan_state(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"update<{width}, {knobs['team']}>",
            when=conditions,
            grid=["cdiv(M * H * P, ROWS)"],
            block=["TEAM", "ROWS"],
            args=STATE_ARGS,
        )

    return LaunchPlan(by_width(integer(knobs, "vector"), "N", make))


SSM_STATE_UPDATE = cuda_recipe(
    "ssm_state_update",
    "row-team",
    "Neighbouring threads share a row of the state, and join their sums.",
    template="ssm_state_update",
    knobs=(
        make_knob("team", 8, 16, 32, meaning="threads that share a row"),
        *(ROWS, VECTOR, UNROLL, EXPONENTIAL),
    ),
    constraints=(fits_block(lambda knobs: product(knobs, "team", "rows")),),
    default={**DEFAULT, "team": 32, "rows": 4},
    plan=_plan_state,
)

RECIPES: tuple[Recipe, ...] = (
    CAUSAL_CONV1D,
    SSM_STATE_UPDATE,
)
