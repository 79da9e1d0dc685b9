# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for what vision and graphics look up."""

from __future__ import annotations

from collections.abc import Sequence

from ...recipe import Knobs, Recipe
from .._front_matter import LaunchPlan, Table
from .._knobs import integer, make_knob
from ._knobs import THREADS, UNROLL, VECTOR
from ._recipe import by_width, cuda_recipe, launch, times

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


def _plan_attend(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"ms_deform_attn<{width}>",
            when=conditions,
            grid=[f"cdiv(M * H * D, {times('THREADS', width)})"],
            block=["THREADS"],
            args=["M", "H", "L", "P", "D", "value", "shapes", "loc", "weight", "y"],
        )

    return LaunchPlan(by_width(integer(knobs, "vector"), "D", make))


MS_DEFORM_ATTN = cuda_recipe(
    "ms_deform_attn",
    "by-channel",
    "A few channels of a query's head to a thread, which goes through all of its samples.",
    template="ms_deform_attn",
    knobs=(THREADS, VECTOR, UNROLL),
    constraints=(),
    default={**DEFAULT, "vector": 4},
    plan=_plan_attend,
)

TINY_MLP = cuda_recipe(
    "tiny_mlp_fused",
    "shared",
    "A block takes a few points through all layers in shared memory; a thread has a unit.",
    template="tiny_mlp_fused",
    knobs=(
        make_knob("threads", 32, 64, 128, meaning="threads per block, units at once"),
        make_knob("points", 2, 4, 8, 16, meaning="points per block, which share loads of weights"),
        UNROLL,
    ),
    constraints=(),
    default={**DEFAULT, "threads": 64, "points": 16},
    plan=lambda _: LaunchPlan(
        [
            launch(
                "tiny_mlp_fused",
                grid=["cdiv(M, POINTS)"],
                block=["THREADS"],
                args=[*"MDHBN", "x", "first", "middle", "last", "y"],
            )
        ]
    ),
)

RECIPES: tuple[Recipe, ...] = (HASHGRID_ENCODE, MS_DEFORM_ATTN, TINY_MLP)
