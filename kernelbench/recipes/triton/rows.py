# SPDX-License-Identifier: Apache-2.0
"""Triton recipes for operators on the rows of a dense matrix."""

from __future__ import annotations

from collections.abc import Sequence

from ...recipe import Constraint, Facts, Knobs, Recipe
from .._front_matter import LaunchPlan
from .._knobs import integer, make_knob
from ._parts import MOST_EACH, STAGES, TILE, TILE_FITS, WARP, WARPS, launch, rows_of, triton_recipe

BLOCK = make_knob(
    "block", 512, 1024, 2048, 4096, meaning="elements of a row in one turn of the loop"
)
COLUMNS = make_knob(
    "columns", 128, 256, 512, 1024, meaning="columns of a tile, if the row has them"
)
DEFAULT: Knobs = {"tile": 4096, "num_warps": 8, "stages": 2, "block": 1024, "columns": 512}


def _block_fits(knobs: Knobs, _: Facts) -> bool:
    return integer(knobs, "block") <= integer(knobs, "tile")


BLOCK_FITS = Constraint("a turn of the loop takes no more than a tile", _block_fits)


def _plan_looped(problem: str, args: Sequence[str], knobs: Knobs, when: str = "") -> LaunchPlan:
    rows = rows_of("min(BLOCK, next_pow2(N))")
    made = launch(
        f"{problem}_looped",
        when=when,
        grid=[f"cdiv(M, {rows})"],
        args=[*args, "M", "N"],
        constants={"ROWS": rows, "BLOCK": "min(BLOCK, next_pow2(N))", "STAGES": knobs["stages"]},
        num_warps=integer(knobs, "num_warps"),
    )
    return LaunchPlan([made])


def _plan_resident(problem: str, args: Sequence[str], knobs: Knobs) -> LaunchPlan:
    warps = integer(knobs, "num_warps")
    most = MOST_EACH * WARP * warps
    rows = rows_of("next_pow2(N)")
    whole = launch(
        problem,
        when=f"N <= {most}",
        grid=[f"cdiv(M, {rows})"],
        args=[*args, "M", "N"],
        constants={"ROWS": rows, "COLUMNS": "next_pow2(N)"},
        num_warps=warps,
    )
    return LaunchPlan([whole, *_plan_looped(problem, args, knobs, f"N > {most}").launches])


def _make_both(problem: str, args: Sequence[str], looped: str) -> tuple[Recipe, ...]:
    pointers = [f"{name}_ptr" for name in args]
    return (
        triton_recipe(
            problem,
            "resident",
            "A program holds whole rows in registers; rows too long for that are looped over.",
            plan=lambda knobs: _plan_resident(problem, args, knobs),
            knobs=(TILE, BLOCK, WARPS, STAGES),
            constraints=(TILE_FITS, BLOCK_FITS),
            default=DEFAULT,
            kernel=problem,
            pointers=pointers,
        ),
        triton_recipe(
            problem,
            "looped",
            looped,
            plan=lambda knobs: _plan_looped(problem, args, knobs),
            knobs=(TILE, BLOCK, WARPS, STAGES),
            constraints=(TILE_FITS, BLOCK_FITS),
            default=DEFAULT,
            kernel=problem,
            pointers=pointers,
        ),
    )


ELEMENTS = make_knob("tile", 1024, 2048, 4096, 8192, 16384, meaning="elements of one program")
ELEMENT_WARPS = make_knob("num_warps", 2, 4, 8, 16, meaning="warps that share a tile")


def _make_elementwise(problem: str, args: Sequence[str], tiled: str) -> tuple[Recipe, ...]:
    """Of what each element becomes by itself."""

    def plan_flat(knobs: Knobs) -> LaunchPlan:
        made = launch(
            problem,
            grid=["cdiv(M * N, TILE)"],
            args=[*args, "M", "N"],
            constants={"BLOCK": "TILE"},
            num_warps=integer(knobs, "num_warps"),
        )
        return LaunchPlan([made])

    def plan_tiled(knobs: Knobs) -> LaunchPlan:
        columns = "min(COLUMNS, next_pow2(N))"
        rows = rows_of(columns)
        made = launch(
            problem,
            grid=[f"cdiv(M, {rows})", f"cdiv(N, {columns})"],
            args=[*args, "M", "N"],
            constants={"ROWS": rows, "COLUMNS": columns},
            num_warps=integer(knobs, "num_warps"),
        )
        return LaunchPlan([made])

    return (
        triton_recipe(
            problem,
            "tiled",
            tiled,
            plan=plan_tiled,
            knobs=(ELEMENTS, COLUMNS, ELEMENT_WARPS),
            constraints=(TILE_FITS,),
            default=DEFAULT,
        ),
        triton_recipe(
            problem,
            "flat",
            "Equal pieces of the matrix as it lies in memory.",
            plan=plan_flat,
            knobs=(ELEMENTS, ELEMENT_WARPS),
            constraints=(TILE_FITS,),
            default=DEFAULT,
        ),
    )


BIAS_GELU = _make_elementwise(
    "bias_gelu",
    ("x", "bias", "y"),
    "Tiles of rows and columns; the bias of a tile's columns is loaded once.",
)
SWIGLU = _make_elementwise("swiglu", ("x", "y"), "Tiles of rows and columns of the output.")

SOFTMAX = _make_both(
    "softmax", ("x", "y"), "One pass for maximum and sum, one that makes exponentials anew."
)
SOFTMAX_BACKWARD = _make_both(
    "softmax_backward", ("y", "dy", "dx"), "A row's sum of y dy; then its gradient."
)
LAYERNORM = _make_both(
    "layernorm", ("x", "gamma", "beta", "y"), "Mean; distances from it; the scaled output."
)
RMSNORM = _make_both("rmsnorm", ("x", "gamma", "y"), "A row's squares; then its scaled output.")

PAIRS = "min(COLUMNS, next_pow2(P))"
ROPE_TILE = make_knob("tile", 512, 1024, 2048, 4096, meaning="pairs of one program")


def _plan_rope(knobs: Knobs) -> LaunchPlan:
    is_by_token = "stages" in knobs
    rows = f"max(1, TILE // {PAIRS})"
    made = launch(
        "rope",
        grid=[f"cdiv({'M' if is_by_token else 'M * H'}, {rows})", f"cdiv(P, {PAIRS})"],
        args=["x", "cos", "sin", "y", "M", "H", "P"],
        constants={
            "ROWS": rows,
            "PAIRS": PAIRS,
            **({"STAGES": knobs["stages"]} if is_by_token else {}),
        },
        num_warps=integer(knobs, "num_warps"),
    )
    return LaunchPlan([made])


ROPE = (
    triton_recipe(
        "rope",
        "tiled",
        "Tiles of heads of all tokens and of pairs.",
        plan=_plan_rope,
        knobs=(ROPE_TILE, COLUMNS, ELEMENT_WARPS),
        constraints=(TILE_FITS,),
        default={**DEFAULT, "tile": 2048},
    ),
    triton_recipe(
        "rope",
        "heads",
        "The angles of a tile of tokens stay in registers; its heads are turned one by one.",
        plan=_plan_rope,
        knobs=(ROPE_TILE, COLUMNS, ELEMENT_WARPS, STAGES),
        constraints=(TILE_FITS,),
        default={**DEFAULT, "tile": 2048},
    ),
)

RECIPES = (*SOFTMAX, *SOFTMAX_BACKWARD, *LAYERNORM, *RMSNORM, *BIAS_GELU, *SWIGLU, *ROPE)
