# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for the dense product of float16 and of bfloat16, with sums in float32."""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import BFLOAT16, FLOAT16, DType, in_cuda
from ...policies import HALVES, POLICIES, name_in
from ...recipe import Constraint, Facts, Knobs, Recipe
from .._front_matter import LaunchPlan, Table
from .._knobs import integer, make_knob
from ._knobs import UNROLL, fits_block, fits_shared, product
from ._recipe import cuda_recipe, launch

SIDE = 16
"""Of the squares that tensor cores multiply."""
HEADERS = {FLOAT16: "cuda_fp16.h", BFLOAT16: "cuda_bf16.h"}
KNOBS = (
    make_knob("tile_m", 32, 64, 128, meaning="rows of C per block"),
    make_knob("tile_n", 32, 64, 128, meaning="columns of C per block"),
    make_knob("tile_k", 16, 32, 64, meaning="steps of the inner dimension in shared memory"),
    make_knob("warps_m", 1, 2, 4, meaning="warps that share the rows of a block"),
    make_knob("warps_n", 1, 2, 4, meaning="warps that share its columns"),
    make_knob("pad", 0, 8, meaning="elements behind each row in shared memory, against conflicts"),
    make_knob("vector", 1, 8, meaning="elements read at once, where rows allow it"),
)
DEFAULT: Knobs = {
    "tile_m": 64,
    "tile_n": 64,
    "tile_k": 32,
    "warps_m": 2,
    "warps_n": 2,
    "pad": 8,
    "vector": 8,
    "width": 128,
    "rows": 4,
    "unroll": 4,
}


def _threads(knobs: Knobs) -> int:
    return 32 * product(knobs, "warps_m", "warps_n")


def _count_shared_bytes(knobs: Knobs) -> int:
    pad = integer(knobs, "pad")
    a = integer(knobs, "tile_m") * (integer(knobs, "tile_k") + pad)
    b = integer(knobs, "tile_k") * (integer(knobs, "tile_n") + pad)
    return 2 * (a + b) + 4 * SIDE * SIDE * product(knobs, "warps_m", "warps_n")


def _has_squares(knobs: Knobs, _: Facts) -> bool:
    """Each warp has whole squares, and no more than it has registers for: 8 a lane for each."""
    down, rest_m = divmod(integer(knobs, "tile_m"), SIDE * integer(knobs, "warps_m"))
    across, rest_n = divmod(integer(knobs, "tile_n"), SIDE * integer(knobs, "warps_n"))
    return not rest_m and not rest_n and 1 <= down * across <= 16


CONSTRAINTS = (
    fits_block(_threads),
    fits_shared(_count_shared_bytes),
    Constraint("a warp has 1 to 16 whole squares of 16 x 16", _has_squares),
)


def _plan_wmma(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"gemm_wmma<{width}>",
            when=conditions,
            grid=["cdiv(M, TILE_M)", "cdiv(N, TILE_N)"],
            block=["32 * WARPS_M * WARPS_N"],
            args=["M", "N", "K", "A", "B", "C"],
        )

    if knobs["vector"] == 1:
        return LaunchPlan([make(1, [])])
    return LaunchPlan(
        [make(8, ["N % 8 == 0", "K % 8 == 0"]), make(1, ["(N % 8 != 0 or K % 8 != 0)"])]
    )


def _plan_naive(_: Knobs) -> LaunchPlan:
    only = launch(
        "gemm_naive",
        grid=["cdiv(M, ROWS)", "cdiv(N, WIDTH)"],
        block=["WIDTH"],
        args=["M", "N", "K", "A", "B", "C"],
    )
    return LaunchPlan([only])


def _recipes_of(policy: str, dtype: DType) -> tuple[Recipe, Recipe]:
    problem, words = name_in("gemm", policy), {"element": in_cuda(dtype), "header": HEADERS[dtype]}
    return (
        cuda_recipe(
            problem,
            "naive",
            "A thread per column of a few rows; everything is read from the caches.",
            template="gemm_naive",
            knobs=(
                make_knob("width", 32, 64, 128, 256, meaning="columns per block"),
                make_knob("rows", 1, 2, 4, 8, meaning="rows per block"),
                UNROLL,
            ),
            constraints=(),
            default=DEFAULT,
            plan=_plan_naive,
            **words,
        ),
        cuda_recipe(
            problem,
            "wmma",
            "Tensor cores: tiles in shared memory, squares of 16 x 16 summed in float32.",
            template="gemm_wmma",
            knobs=KNOBS,
            constraints=CONSTRAINTS,
            default=DEFAULT,
            plan=_plan_wmma,
            **words,
        ),
    )


RECIPES = tuple(each for name in HALVES for each in _recipes_of(name, POLICIES[name].inputs))
