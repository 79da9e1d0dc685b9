# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for what vision and graphics look up."""

from __future__ import annotations

from ...recipe import Knobs, Recipe
from .._front_matter import LaunchPlan
from .._knobs import make_knob
from ._knobs import THREADS, UNROLL
from ._recipe import cuda_recipe, launch

DEFAULT: Knobs = {"threads": 256, "unroll": 2}


def _plan_encode(_: Knobs) -> LaunchPlan:
    pieces = "cdiv(M, THREADS * UNROLL)"
    return LaunchPlan(
        [
            launch(
                "hashgrid_encode",
                grid=[f"{pieces} * V"],
                block=["THREADS"],
                args=["M", "V", "T", pieces, "x", "size", "table", "y"],
            )
        ]
    )


HASHGRID_ENCODE = cuda_recipe(
    "hashgrid_encode",
    "by-level",
    "A thread has a few points on one level; blocks that run together share its table.",
    template="hashgrid_encode",
    knobs=(
        THREADS,
        UNROLL,
        make_knob("order", "levels", "points", meaning="what blocks go through last"),
    ),
    constraints=(),
    default={**DEFAULT, "order": "points"},
    plan=_plan_encode,
)

RECIPES: tuple[Recipe, ...] = (HASHGRID_ENCODE,)
