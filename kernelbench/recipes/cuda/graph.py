# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for neural networks on graphs."""

from __future__ import annotations

from collections.abc import Sequence

from ...recipe import Knobs, Recipe
from .._front_matter import LaunchPlan, Table
from .._knobs import integer, make_knob
from ._knobs import LANES, ROWS, THREADS, UNROLL, VECTOR
from ._recipe import by_width, cuda_recipe, launch, times
from .rows import EXPONENTIAL
from .serving import recipe_of_segments
from .sparse import ENTRY_LANES, GROUP, PASSES
from .spmm import COLUMNS, in_block

ITEMS = make_knob("items", 1, 2, meaning="vectors of features that a thread has at a time")

DEFAULT: Knobs = {
    "threads": 128,
    "lanes": 16,
    "rows": 16,
    "unroll": 4,
    "items": 1,
    "vector": 4,
    "passes": "online",
    "exponential": "exp2",
}


def _plan_gat(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"gat<{width}>",
            when=conditions,
            grid=["cdiv(M * H, THREADS // LANES)"],
            block=["THREADS"],
            args=["M", "H", "F", "indptr", "indices", "a_row", "a_col", "X", "Y"],
        )

    return LaunchPlan(by_width(integer(knobs, "vector"), "F", make))


GAT = (
    cuda_recipe(
        "gat_fused",
        "row-heads",
        "Lanes share a row and head; scores are made twice and never stored (dgNN).",
        template="gat_fused",
        knobs=(THREADS, LANES, ITEMS, VECTOR, UNROLL, PASSES, EXPONENTIAL),
        constraints=(),
        default=DEFAULT,
        plan=_plan_gat,
    ),
)


def _plan_bags(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"embedding_bag<{width}>",
            when=conditions,
            grid=["cdiv(M, ROWS)", f"cdiv(N, {times('LANES', width)})"],
            block=["LANES", "ROWS"],
            args=["M", "N", "mean", "indptr", "indices", "table", "y"],
        )

    return LaunchPlan(by_width(integer(knobs, "vector"), "N", make))


EMBEDDING_BAG = (
    cuda_recipe(
        "embedding_bag",
        "row-seq",
        "Threads side by side have a bag's columns, each goes along its rows.",
        template="embedding_bag",
        knobs=(COLUMNS, ROWS, VECTOR, UNROLL),
        constraints=(in_block,),
        default=DEFAULT,
        plan=_plan_bags,
    ),
)


def _plan_push(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"push<{width}>",
            when=conditions,
            grid=["cdiv(nnz, THREADS // LANES * GROUP)"],
            block=["THREADS"],
            args=[*("M", "N", "nnz", "indptr", "indices"), *PUSHED],
        )

    return LaunchPlan(
        [{"zero": "d_B"}, *by_width(integer(knobs, "vector"), "N", make, ["nnz > 0"])]
    )


PUSHED = ("values", "B", "G", "d_values", "d_B")
SPMM_BACKWARD = (
    cuda_recipe(
        "spmm_backward",
        "atomic",
        "Lanes share groups of entries, and add to the gradients of their columns by atomics.",
        template="spmm_backward",
        knobs=(THREADS, ENTRY_LANES, GROUP, VECTOR, UNROLL),
        constraints=(),
        default={**DEFAULT, "group": 2},
        plan=_plan_push,
    ),
)


def _plan_back(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"gat_backward<{width}>",
            when=conditions,
            grid=["cdiv(M * H, THREADS // LANES)"],
            block=["THREADS"],
            args=["M", "H", "F", "indptr", "indices", *BACKWARD, "told"],
        )

    launches = [{"zero": "d_col"}, {"zero": "dX"}, *by_width(integer(knobs, "vector"), "F", make)]
    return LaunchPlan(launches, {"told": {"shape": ["nnz", "H"], "dtype": "float32"}})


BACKWARD = ("a_row", "a_col", "X", "dY", "d_row", "d_col", "dX")
GAT_BACKWARD = (
    cuda_recipe(
        "gat_backward",
        "row-heads",
        "Lanes share a row and head; columns get their sums by atomics, weights are made again.",
        template="gat_backward",
        knobs=(THREADS, LANES, VECTOR, UNROLL, EXPONENTIAL),
        constraints=(),
        default={**DEFAULT, "lanes": 4},
        plan=_plan_back,
    ),
)

TYPED_LINEAR = recipe_of_segments(
    "typed_linear",
    "Rows are gathered into shared memory; a block finds its type by counting tiles.",
    *("src", "seg_ptr"),
)

RECIPES: tuple[Recipe, ...] = (*GAT, *EMBEDDING_BAG, *SPMM_BACKWARD, *GAT_BACKWARD, TYPED_LINEAR)
