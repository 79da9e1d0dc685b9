# SPDX-License-Identifier: Apache-2.0
"""Triton recipes for the dense product, in float32 without TF32."""

from __future__ import annotations

from ...recipe import Constraint, Facts, Knobs
from .._front_matter import LaunchPlan, Table
from .._knobs import integer, make_knob
from ._parts import MOST_EACH, WARP, launch, triton_recipe

SHARED_BYTES = 160 << 10
"""Of one block, for the tiles that are under way: what every data-centre part since sm_80 has."""
LEAST_TILE = 2048
"""Elements of C: less makes each element of A and B be loaded too often."""
ADDED = 1024
"""Elements of C that one program adds up."""

KNOBS = (
    make_knob("block_m", 32, 64, 128, meaning="rows of C in a tile"),
    make_knob("block_n", 32, 64, 128, meaning="columns of C in a tile"),
    make_knob("block_k", 32, 64, meaning="steps of the inner dimension in one turn"),
    make_knob(
        "group", 1, 4, 8, meaning="rows of tiles that go together, for the second-level cache"
    ),
    make_knob("num_warps", 4, 8, meaning="warps that share a tile"),
    make_knob("stages", 2, 3, 4, meaning="turns whose tiles are under way at once"),
)
SPLITS = make_knob(
    "splits", 2, 4, 8, 16, meaning="shares of the inner dimension, if it is long enough"
)
DEFAULT: Knobs = {
    "block_m": 64,
    "block_n": 64,
    "block_k": 32,
    "group": 4,
    "num_warps": 4,
    "stages": 3,
    "splits": 4,
}


def _accumulators_fit(knobs: Knobs, _: Facts) -> bool:
    tile = integer(knobs, "block_m") * integer(knobs, "block_n")
    return LEAST_TILE <= tile <= MOST_EACH * WARP * integer(knobs, "num_warps")


def _shared_fits(knobs: Knobs, _: Facts) -> bool:
    both = integer(knobs, "block_m") + integer(knobs, "block_n")
    return 4 * both * integer(knobs, "block_k") * integer(knobs, "stages") <= SHARED_BYTES


CONSTRAINTS = (
    Constraint("a thread has at most 64 accumulators, a tile at least 2048", _accumulators_fit),
    Constraint("the tiles under way fit in shared memory", _shared_fits),
)
GRID = "cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)"
SHARES = "max(1, min(SPLITS, K // (4 * BLOCK_K)))"
"""A share has at least four turns, else adding up costs more than it saves."""


def _product(knobs: Knobs, output: str, grid: list[str], constants: Table) -> Table:
    return launch(
        "gemm",
        grid=grid,
        args=["A", "B", output, "M", "N", "K"],
        constants={
            "BLOCK_M": "BLOCK_M",
            "BLOCK_N": "BLOCK_N",
            "BLOCK_K": "BLOCK_K",
            **constants,
            "GROUP": "GROUP",
        },
        num_warps=integer(knobs, "num_warps"),
        num_stages=integer(knobs, "stages"),
    )


def _plan_tiled(knobs: Knobs) -> LaunchPlan:
    return LaunchPlan([_product(knobs, "C", [GRID], {})])


def _split(knobs: Knobs) -> LaunchPlan:
    added = launch(
        "add_up",
        grid=[f"cdiv(M * N, {ADDED})"],
        args=["partial", "C", "M", "N"],
        constants={"SPLITS": SHARES, "BLOCK": ADDED},
        num_warps=4,
    )
    product = _product(knobs, "partial", [GRID, SHARES], {"SPLITS": SHARES})
    scratch = {"partial": {"shape": [SHARES, "M", "N"], "dtype": "float32"}}
    return LaunchPlan([product, added], scratch)


RECIPES = (
    triton_recipe(
        "gemm",
        "tiled",
        "A program makes one tile of C.",
        plan=_plan_tiled,
        knobs=KNOBS,
        constraints=CONSTRAINTS,
        default=DEFAULT,
    ),
    triton_recipe(
        "gemm",
        "split-k",
        "Several programs share the inner dimension of a tile; a second launch adds them up.",
        plan=_split,
        knobs=(*KNOBS, SPLITS),
        constraints=CONSTRAINTS,
        default=DEFAULT,
    ),
)
