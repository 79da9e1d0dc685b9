# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for products with codes, and for what makes codes."""

from __future__ import annotations

from collections.abc import Sequence

from ...recipe import Knobs
from .._front_matter import LaunchPlan
from .._knobs import integer, make_knob
from ._knobs import ROWS, THREADS, UNROLL, fits_block, fits_shared, product
from ._recipe import Planner, cuda_recipe, launch

TEAM = make_knob("team", 8, 16, 32, meaning="threads that share a row")
TILE = (
    make_knob("tile", 16, 32, 64, meaning="rows and columns of C per block"),
    make_knob("each", 1, 2, 4, 8, meaning="rows of them that a thread has"),
    make_knob("depth", 16, 32, 64, meaning="steps that are decoded at a time"),
)
DEFAULT: Knobs = {
    "team": 32,
    "rows": 4,
    "unroll": 2,
    "tile": 32,
    "each": 4,
    "depth": 32,
    "threads": 128,
}
FITS_TILE = (
    fits_block(lambda knobs: integer(knobs, "tile") ** 2 // integer(knobs, "each"), fewest=64),
    fits_shared(lambda knobs: 8 * integer(knobs, "tile") * (integer(knobs, "depth") + 1)),
)


def _plan_gemv(knobs: Knobs) -> LaunchPlan:
    only = launch(
        f"gemv_groups<{knobs['team']}, {knobs['rows']}>",
        grid=["cdiv(M, ROWS)"],
        block=["TEAM", "ROWS"],
        args=["M", "H", "x", "q", "scales", "zeros", "y"],
    )
    return LaunchPlan([only])


def _plan_tiled(kernel: str, args: Sequence[str]) -> Planner:
    only = launch(
        kernel,
        grid=["cdiv(M, TILE)", "cdiv(N, TILE)"],
        block=["TILE * TILE // EACH"],
        args=args,
    )
    return lambda _: LaunchPlan([only])


def _plan_blocks(problem: str, given: Sequence[str]) -> Planner:
    only = launch(
        f"{problem}_blocks",
        grid=["cdiv(M * G, THREADS)"],
        block=["THREADS"],
        args=["M", "G", "x", *given, "q", "scales"],
    )
    return lambda _: LaunchPlan([only])


RECIPES = (
    cuda_recipe(
        "gemv_w4a16",
        "grouped",
        "Some threads share a row, a group of 32 weights each; sums in float32.",
        template="gemv_w4a16",
        knobs=(TEAM, ROWS, UNROLL),
        constraints=(fits_block(lambda knobs: product(knobs, "team", "rows")),),
        default=DEFAULT,
        plan=_plan_gemv,
    ),
    *(
        cuda_recipe(
            problem,
            "tiled",
            "Tiles of both factors are decoded into shared memory; sums in float32.",
            template=problem,
            knobs=TILE,
            constraints=FITS_TILE,
            default=DEFAULT,
            plan=_plan_tiled(kernel, args.split()),
        )
        for problem, kernel, args in (
            ("fp8_gemm_rowwise", "fp8_tiled", "M N K A B scale_a scale_b C"),
            ("wxa16_gemm", "wxa16_tiled", "M N G W x q scales zeros C"),
        )
    ),
    *(
        cuda_recipe(
            problem,
            "blocks",
            "A thread has a block: it is read once and stays in registers.",
            template=problem,
            knobs=(THREADS,),
            constraints=(),
            default=DEFAULT,
            plan=_plan_blocks(problem, given),
        )
        for problem, given in (
            ("mxfp4_quantize", []),
            ("mxfp4_quantize_hadamard", []),
            ("nvfp4_quantize", ["tensor_scale"]),
        )
    ),
    cuda_recipe(
        "stochastic_round",
        "hashed",
        "A block has a row: 16 bits of a hash are added below what is kept, which is then cut.",
        template="stochastic_round",
        knobs=(THREADS,),
        constraints=(),
        default=DEFAULT,
        plan=lambda _: LaunchPlan(
            [
                launch(
                    "stochastic_round_rows",
                    grid=["M"],
                    block=["THREADS"],
                    args=["M", "N", "x", "seed", "y"],
                )
            ]
        ),
    ),
)
