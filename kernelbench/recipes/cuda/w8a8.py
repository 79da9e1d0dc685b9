# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for layers on int8, by products of four codes at once (__dp4a)."""

from __future__ import annotations

from collections.abc import Sequence

from ...recipe import Knobs, Recipe
from .._front_matter import LaunchPlan, Table, Value
from .._knobs import integer, make_knob
from ._knobs import LANES, THREADS, UNROLL, fits_block, fits_shared, product
from ._recipe import Planner, cuda_recipe, launch

ARGS = ("M", "N", "K", "x", "w", "sx", "sw", "bias", "y")
TILE_M = make_knob("tile_m", 16, 32, 64, meaning="tokens per block")
TILE_N = make_knob("tile_n", 32, 64, 128, meaning="outputs per block")
WORDS = make_knob("words", 8, 16, 32, meaning="words of four codes that are staged at once")
EACH = make_knob("each", 2, 4, meaning="tokens, and outputs, of a thread")
TOKENS = make_knob("tokens", 1, 2, 4, 8, meaning="tokens that share a load of weights")
VECTOR = make_knob("vector", 1, 4, meaning="codes read at once, where rows allow it")
DEFAULT: Knobs = {
    "tile_m": 32,
    "tile_n": 64,
    "words": 16,
    "each": 4,
    "unroll": 4,
    "vector": 4,
    "threads": 128,
    "lanes": 32,
    "tokens": 4,
}

OUTLIERS = launch(
    "w8a8_outlier_rows",
    grid=["cdiv(N, THREADS // LANES)", "min(cdiv(M, TOKENS), 65535)"],
    block=["THREADS"],
    args=["M", "N", "K", "S", "x", "w", "sx", "sw", "columns", "outliers", "y"],
)
PLACES = make_knob("places", 2, 4, 8, 16, meaning="places that share a load of weights")
CONVOLVED = launch(
    "conv_places",
    grid=["cdiv(F, THREADS // LANES)", "min(cdiv(M * H * W, PLACES), 65535)"],
    block=["THREADS"],
    args=["M", "C", "F", "H", "W", "R", "x", "w", "zero", "scale", "bias", "y"],
)


def _planner(grid: Sequence[str], block: Value) -> Planner:
    def make(width: int, when: Sequence[str]) -> Table:
        return launch(f"w8a8_linear<{width}>", when=when, grid=grid, block=[block], args=ARGS)

    def plan(knobs: Knobs) -> LaunchPlan:
        if knobs["vector"] == 1:
            return LaunchPlan([make(1, [])])
        return LaunchPlan([make(4, ["K % 4 == 0"]), make(1, ["K % 4 != 0"])])

    return plan


def _count_threads(knobs: Knobs) -> int:
    return product(knobs, "tile_m", "tile_n") // integer(knobs, "each") ** 2


def _count_shared_bytes(knobs: Knobs) -> int:
    rows = integer(knobs, "tile_m") + integer(knobs, "tile_n")
    return 4 * rows * (integer(knobs, "words") + 1)


RECIPES: tuple[Recipe, ...] = (
    cuda_recipe(
        "w8a8_linear",
        "tiled",
        "Tiles of codes in shared memory; a thread has a few tokens of a few outputs.",
        template="w8a8_linear",
        knobs=(TILE_M, TILE_N, WORDS, EACH, VECTOR, UNROLL),
        constraints=(fits_block(_count_threads), fits_shared(_count_shared_bytes)),
        default=DEFAULT,
        plan=_planner(
            ["cdiv(M, TILE_M)", "cdiv(N, TILE_N)"], "(TILE_M // EACH) * (TILE_N // EACH)"
        ),
    ),
    cuda_recipe(
        "w8a8_linear",
        "rows",
        "A team of threads goes along a row of weights, for a few tokens at once.",
        template="w8a8_linear",
        knobs=(THREADS, LANES, TOKENS, VECTOR, UNROLL),
        constraints=(),
        default=DEFAULT,
        plan=_planner(["cdiv(N, THREADS // LANES)", "cdiv(M, TOKENS)"], "THREADS"),
    ),
    cuda_recipe(
        "w8a8_outlier_linear",
        "rows",
        "A team of threads goes along a row of weights, for a few tokens, then along outliers.",
        template="w8a8_outlier_linear",
        knobs=(THREADS, LANES, TOKENS, UNROLL),
        constraints=(),
        default=DEFAULT,
        plan=lambda _: LaunchPlan([OUTLIERS]),
    ),
    cuda_recipe(
        "conv2d_w8a8",
        "taps",
        "A team of threads goes along a filter, for a few places; taps outside are left out.",
        template="conv2d_w8a8",
        knobs=(THREADS, LANES, PLACES, UNROLL),
        constraints=(),
        default={**DEFAULT, "places": 4},
        plan=lambda _: LaunchPlan([CONVOLVED]),
    ),
)
