# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for products with weights that were pruned, and with blocks."""

from __future__ import annotations

from collections.abc import Sequence

from ...recipe import Constraint, Knobs
from .._front_matter import LaunchPlan
from .._knobs import make_knob
from ._knobs import LANES, ROWS, UNROLL, fits_block, fits_shared, product
from ._recipe import Planner, cuda_recipe, launch

COLUMNS = make_knob("columns", 32, 64, 128, meaning="columns of the answer per block")
DOWN = make_knob("down", 2, 4, 8, 16, meaning="threads that share a column of a block's rows")
PANEL = (
    COLUMNS,
    DOWN,
    make_knob("rows", 16, 32, 64, meaning="rows of the answer per block"),
    make_knob("depth", 32, 64, 128, meaning="rows of the dense factor in shared memory"),
)
PANEL_FITS = (
    fits_block(lambda knobs: product(knobs, "columns", "down")),
    fits_shared(lambda knobs: 4 * product(knobs, "columns", "depth")),
)
DEFAULT: Knobs = {"columns": 64, "down": 4, "unroll": 4, "rows": 32, "depth": 64}


def _plan_blocks(kernel: str, axis: str, sizes: Sequence[int], args: str) -> Planner:
    """A launch for each size of blocks."""
    launches = [
        launch(
            f"{kernel}<{size}>",
            when=[f"{axis} == {size}"],
            grid=["M", "cdiv(N, COLUMNS)"],
            block=["COLUMNS", "DOWN"],
            args=args.split(),
        )
        for size in sizes
    ]
    return lambda _: LaunchPlan(launches)


def _plan_panels(kernel: str, args: str) -> Planner:
    only = launch(
        kernel,
        grid=["cdiv(M, ROWS)", "cdiv(N, COLUMNS)"],
        block=["COLUMNS", "DOWN"],
        args=args.split(),
    )
    return lambda _: LaunchPlan([only])


def _plan_spqr(knobs: Knobs) -> LaunchPlan:
    only = launch(
        f"spqr_rows<{knobs['team']}, {knobs['rows']}>",
        grid=["cdiv(16 * G, ROWS)"],
        block=["TEAM", "ROWS"],
        args=["G", "H", "x", "words", "tiles", "row_ptr", "cols", "outliers", "y"],
    )
    return LaunchPlan([only])


SPQR = (
    cuda_recipe(
        "spqr_gemv",
        "row-team",
        "Threads of a team have words of a row in turn, and then its outliers.",
        template="spqr_gemv",
        knobs=(
            make_knob("team", 8, 16, 32, 64, meaning="threads that share a row"),
            ROWS,
            UNROLL,
        ),
        constraints=(
            fits_block(lambda knobs: product(knobs, "team", "rows")),
            Constraint(
                "warps that share a row have a block to themselves",
                lambda knobs, _: knobs["team"] != 64 or knobs["rows"] == 1,
            ),
        ),
        default={"team": 32, "rows": 4, "unroll": 2},
        plan=_plan_spqr,
    ),
)

RECIPES = (
    cuda_recipe(
        "bsr_spmm",
        "tiled",
        "A block has a row of blocks and some columns; blocks go through shared memory.",
        template="bsr_spmm",
        knobs=(COLUMNS, DOWN, UNROLL),
        constraints=(fits_block(lambda knobs: product(knobs, "columns", "down")),),
        default=DEFAULT,
        plan=_plan_blocks("bsr_rows", "B", (16, 32), "N indptr indices values X Y"),
    ),
    cuda_recipe(
        "spmm_shflbw",
        "vectors",
        "A block has a group of rows and some columns; a thread has one column of some rows.",
        template="spmm_shflbw",
        knobs=(COLUMNS, DOWN, UNROLL),
        constraints=(fits_block(lambda knobs: product(knobs, "columns", "down")),),
        default=DEFAULT,
        plan=_plan_blocks("shflbw_rows", "V", (32, 64), "N indptr indices values perm X Y"),
    ),
    cuda_recipe(
        "spmm_nm",
        "panels",
        "A piece of a panel of X goes through shared memory; a thread has a column of some rows.",
        template="spmm_nm",
        knobs=PANEL,
        constraints=PANEL_FITS,
        default=DEFAULT,
        plan=_plan_panels("nm_panels", "M N H values codes X Y"),
    ),
    cuda_recipe(
        "spmm_lscd",
        "rows",
        "A thread has a column of a row, and reads its neighbours' weights out of the cache.",
        template="spmm_lscd",
        knobs=(LANES, ROWS, UNROLL),
        constraints=(fits_block(lambda knobs: product(knobs, "lanes", "rows")),),
        default={**DEFAULT, "lanes": 16, "rows": 8},
        plan=lambda _: LaunchPlan(
            [
                launch(
                    "lscd_rows",
                    grid=["cdiv(M, ROWS)", "cdiv(N, LANES)"],
                    block=["LANES", "ROWS"],
                    args=["M", "N", "indptr", "indices", "values", "X", "Y"],
                )
            ]
        ),
    ),
    cuda_recipe(
        "bsr_sdd",
        "tiled",
        "A block of threads has a block; some features of both factors are in shared memory.",
        template="bsr_sdd",
        knobs=(DOWN, make_knob("depth", 16, 32, 64, meaning="features in shared memory")),
        constraints=(),
        default={**DEFAULT, "depth": 32},
        plan=lambda _: LaunchPlan(
            [
                launch(
                    f"sdd_blocks<{size}>",
                    when=[f"B == {size}", "nnz > 0"],
                    grid=["nnz"],
                    block=["B", "DOWN"],
                    args=["M", "D", "indptr", "indices", "X", "W", "H"],
                )
                for size in (16, 32)
            ]
        ),
    ),
    *SPQR,
)
