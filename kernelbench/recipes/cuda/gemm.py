# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for the dense product."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...recipe import Constraint, Facts, Knobs
from ...targets import MAX_REGISTERS_PER_THREAD, REGISTERS_PER_SM
from .._front_matter import LaunchPlan, Table
from .._knobs import integer, make_knob
from ._knobs import UNROLL, fits_block, fits_shared, product
from ._recipe import cuda_recipe, launch

KNOBS = (
    make_knob("tile_m", 32, 64, 128, meaning="rows of C per block"),
    make_knob("tile_n", 32, 64, 128, meaning="columns of C per block"),
    make_knob("tile_k", 8, 16, 32, meaning="steps of the inner dimension in shared memory"),
    make_knob("thread_m", 2, 4, 8, meaning="rows of C per thread"),
    make_knob("thread_n", 2, 4, 8, meaning="columns of C per thread"),
    make_knob("stages", 1, 2, meaning="tiles in shared memory: 2 overlap copying and multiplying"),
    make_knob("pad", 0, 4, meaning="floats behind each row of A's tile, against bank conflicts"),
    make_knob("vector", 1, 4, meaning="floats read at once, where rows allow it"),
)
DEFAULT: Knobs = {
    "tile_m": 64,
    "tile_n": 64,
    "tile_k": 16,
    "thread_m": 4,
    "thread_n": 4,
    "stages": 2,
    "pad": 4,
    "vector": 4,
    "split": 4,
    "width": 128,
    "rows": 4,
    "unroll": 4,
}
BLOCK = "TILE_M * TILE_N // (THREAD_M * THREAD_N)"
PAD = 4
"""Where it is no knob."""
MOST_PARTS = 1 << 28
"""Floats of all partial sums together: 1 GiB, beyond which K is not split."""


def _threads(knobs: Knobs) -> int:
    return product(knobs, "tile_m", "tile_n") // product(knobs, "thread_m", "thread_n")


def _count_shared_bytes(knobs: Knobs) -> int:
    row = integer(knobs, "tile_m") + int(knobs.get("pad", PAD)) + integer(knobs, "tile_n")
    return 4 * product(knobs, "stages", "tile_k") * row


def _fits_registers(knobs: Knobs, _: Facts) -> bool:
    rows, columns, threads = integer(knobs, "thread_m"), integer(knobs, "thread_n"), _threads(knobs)
    edges = integer(knobs, "tile_m") + integer(knobs, "tile_n")
    cargo = integer(knobs, "tile_k") * edges // threads
    needed = rows * columns + rows + columns + cargo + 32
    return needed <= MAX_REGISTERS_PER_THREAD and needed * threads <= REGISTERS_PER_SM


CONSTRAINTS = (
    fits_block(_threads, fewest=64),
    fits_shared(_count_shared_bytes),
    Constraint("sums, operands and what is on its way fit in registers", _fits_registers),
)


def _plan_tiled(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"gemm_tiled<{width}>",
            when=conditions,
            grid=["cdiv(M, TILE_M)", "cdiv(N, TILE_N)"],
            block=[BLOCK],
            args=["M", "N", "K", "A", "B", "C"],
        )

    return LaunchPlan(_by_width(knobs, make))


def _by_width(knobs: Knobs, make: Callable[[int, Sequence[str]], Table]) -> list[Table]:
    if knobs["vector"] == 1:
        return [make(1, [])]
    return [
        make(4, ["N % 4 == 0", "K % 4 == 0"]),
        make(1, ["(N % 4 != 0 or K % 4 != 0)"]),
    ]


SPLIT = f"(SPLIT if M * N * SPLIT <= {MOST_PARTS} else 1)"


def _split(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"gemm_tiled<{width}>",
            when=conditions,
            grid=["cdiv(M, TILE_M)", "cdiv(N, TILE_N)", SPLIT],
            block=[BLOCK],
            args=["M", "N", "K", f"cdiv(cdiv(K, TILE_K), {SPLIT}) * TILE_K", "A", "B", "parts"],
        )

    joined = launch(
        "add_parts",
        grid=["cdiv(M * N, 256)"],
        block=[256],
        args=["M", "N", SPLIT, "parts", "C"],
    )
    return LaunchPlan(
        [*_by_width(knobs, make), joined],
        {"parts": {"shape": [SPLIT, "M", "N"], "dtype": "float32"}},
    )


def _plan_naive(_: Knobs) -> LaunchPlan:
    only = launch(
        "gemm_naive",
        grid=["cdiv(M, ROWS)", "cdiv(N, WIDTH)"],
        block=["WIDTH"],
        args=["M", "N", "K", "A", "B", "C"],
    )
    return LaunchPlan([only])


RECIPES = (
    cuda_recipe(
        "gemm",
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
        element="float",
        header="",
    ),
    cuda_recipe(
        "gemm",
        "tiled",
        "Tiles in shared memory and in registers; the next tile is on its way meanwhile.",
        template="gemm_tiled",
        knobs=KNOBS,
        constraints=CONSTRAINTS,
        default=DEFAULT,
        plan=_plan_tiled,
    ),
    cuda_recipe(
        "gemm",
        "split-k",
        "As tiled, with the inner dimension shared by several blocks; a second launch adds up.",
        template="gemm_tiled",
        knobs=(
            *(knob for knob in KNOBS if knob.name != "pad"),
            make_knob("split", 4, 8, 16, meaning="blocks that share the inner dimension"),
        ),
        constraints=CONSTRAINTS,
        default=DEFAULT,
        plan=_split,
    ),
)
