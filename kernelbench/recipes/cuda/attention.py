# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for attention, and what goes with its caches."""

from __future__ import annotations

from ...recipe import Knobs, Recipe
from .._front_matter import LaunchPlan, Table
from .._knobs import make_knob
from ._knobs import UNROLL, fits_block, fits_shared, product
from ._recipe import cuda_recipe, launch
from .rows import EXPONENTIAL

HEADS = (64, 128)
"""Elements of a head that there are."""
PREFILL_ARGS = ("R", "S", "cdiv(S, ROWS)", "q", "k", "v", "o")


def _plan_prefill(_: Knobs) -> LaunchPlan:
    def make(width: int) -> Table:
        return launch(
            f"attention_prefill<{width}>",
            when=[f"D == {width}"],
            grid=["cdiv(S, ROWS) * G * R"],
            block=["TEAM * ROWS"],
            args=PREFILL_ARGS,
        )

    return LaunchPlan([make(width) for width in HEADS])


ATTENTION_PREFILL = (
    cuda_recipe(
        "attention_prefill",
        "flash",
        "Blocks of keys in shared memory with running maxima; a few threads share a query.",
        template="attention_prefill",
        knobs=(
            make_knob("rows", 8, 16, 32, 64, meaning="queries per block"),
            make_knob("team", 4, 8, 16, meaning="threads that share a query"),
            make_knob("keys", 8, 16, 32, meaning="keys that are staged at once"),
            UNROLL,
            EXPONENTIAL,
        ),
        constraints=(
            fits_block(lambda knobs: product(knobs, "rows", "team"), fewest=64),
            fits_shared(lambda knobs: 2 * 4 * HEADS[-1] * product(knobs, "keys")),
        ),
        default={"rows": 16, "team": 4, "keys": 16, "unroll": 4, "exponential": "exp2"},
        plan=_plan_prefill,
    ),
)


RECIPES: tuple[Recipe, ...] = (*ATTENTION_PREFILL,)
