# SPDX-License-Identifier: Apache-2.0
"""Triton recipes for the operators on a CSR pattern.

A tile has rows, entries of each row, and columns of the dense operand. Where rows are long, their
entries take the place of rows: no row keeps a program for more turns than TURNS, as far as the tile
allows.
"""

from __future__ import annotations

from collections.abc import Callable

from ...recipe import Knob, Knobs, Recipe
from .._front_matter import LaunchPlan, Table
from .._knobs import integer, make_knob
from ._parts import MOST_EACH, STAGES, TILE, TILE_FITS, WARP, WARPS, launch, rows_of, triton_recipe

ENTRIES = make_knob("entries", 4, 8, 16, 32, meaning="entries of a row in one turn of the loop")
COLUMNS = make_knob("columns", 32, 64, 128, meaning="columns of a tile, if there are as many")
DEPTH = make_knob("depth", 32, 64, 128, meaning="features in one turn, if there are as many")
HEADS = make_knob("heads", 1, 4, 8, meaning="heads of a tile, if there are as many")
LONG = make_knob(
    "long", 64, 256, 1024, meaning="entries of a row beyond which it is finished apart"
)
TURNS = 256
MOST_ENTRIES = 64
SPARE = 16
"""How many times longer than an average row all rows may be taken to be."""
NUMBERED = 4096
"""Elements of a tile that writes the rows' numbers."""
FINISHED_ROWS = 256
"""Rows that one program looks through for long ones."""

DEFAULT: Knobs = {
    "tile": 16384,
    "entries": 8,
    "columns": 128,
    "depth": 64,
    "heads": 4,
    "long": 256,
    "num_warps": 16,
    "stages": 1,
}
CSR = ("indptr", "indices", "values")


class Tile:
    """The expressions for the extents of a tile."""

    def __init__(self, wide: str = "1", *, is_even: bool = False) -> None:
        """A tile `wide` elements wide.

        Args:
            wide: An expression; its elements lie side by side.
            is_even: Whether no row is longer than a fixed number of turns.
        """
        self.wide = wide
        needed = f"min({MOST_ENTRIES}, next_pow2(ceil(max_row)) // {TURNS})"
        self.entries = f"min(TILE // {wide}, {'ENTRIES' if is_even else f'max(ENTRIES, {needed})'})"
        self.rows = rows_of(f"({wide} * {self.entries})")


def _row_tiles(
    kernel: str, args: list[str], tile: Tile, knobs: Knobs, more: Table, columns: str = ""
) -> Table:
    return launch(
        kernel,
        grid=[f"cdiv(M, {tile.rows})", *([columns] if columns else [])],
        args=args,
        constants={"ROWS": tile.rows, "ENTRIES": tile.entries, **more, "STAGES": knobs["stages"]},
        num_warps=integer(knobs, "num_warps"),
    )


def _launch_finish(
    args: list[str], wide: str, knobs: Knobs, more: Table, columns: str = ""
) -> Table:
    return launch(
        "finish",
        when="max_row > LONG",
        grid=[f"cdiv(M, {FINISHED_ROWS})", *([columns] if columns else [])],
        args=args,
        constants={
            "LONG": "LONG",
            "ROWS": FINISHED_ROWS,
            "ENTRIES": f"TILE // {wide}",
            **more,
            "STAGES": knobs["stages"],
        },
        num_warps=integer(knobs, "num_warps"),
    )


def _products(kernel: str, args: list[str], fixed: Table, *, is_wide: bool) -> tuple[Plan, Plan]:
    """The launches of a sum or maximum over the entries of rows: by rows, and long rows apart."""
    wide = "min(COLUMNS, next_pow2(N))" if is_wide else "1"
    columns = f"cdiv(N, {wide})" if is_wide else ""
    more: Table = {**fixed, **({"COLUMNS": wide} if is_wide else {})}

    def by_row(knobs: Knobs) -> LaunchPlan:
        return LaunchPlan([_row_tiles(kernel, args, Tile(wide), knobs, more, columns)])

    def plan_apart(knobs: Knobs) -> LaunchPlan:
        even = Tile(wide, is_even=True)
        return LaunchPlan(
            [
                _row_tiles(kernel, args, even, knobs, {**more, "LONG": "LONG"}, columns),
                _launch_finish(args, wide, knobs, more, columns),
            ]
        )

    return by_row, plan_apart


Plan = Callable[[Knobs], LaunchPlan]


def _make_both(
    problem: str, plans: tuple[Plan, Plan], *knobs: Knob, **default: int
) -> tuple[Recipe, ...]:
    return (
        triton_recipe(
            problem,
            "row-balanced",
            "A program owns a tile of rows and turns as often as the longest of them asks for.",
            plan=plans[0],
            knobs=(TILE, ENTRIES, *knobs, WARPS, STAGES),
            constraints=(TILE_FITS,),
            default={**DEFAULT, **default},
        ),
        triton_recipe(
            problem,
            "long-rows-apart",
            "What rows have beyond their first entries is left to a second launch, a whole tile "
            "for one row at a time.",
            plan=plans[1],
            knobs=(TILE, ENTRIES, *knobs, LONG, WARPS, STAGES),
            constraints=(TILE_FITS,),
            default={**DEFAULT, **default},
        ),
    )


SPMV = _make_both(
    "spmv_csr",
    _products("spmv", [*CSR, "x", "y", "M"], {}, is_wide=False),
    tile=8192,
    num_warps=8,
)
SPMM = _make_both(
    "spmm_csr", _products("spmm", [*CSR, "B", "C", "M", "N"], {}, is_wide=True), COLUMNS
)
GSPMM = _make_both(
    "gspmm_reduce",
    _products("gspmm", [*CSR, "B", "C", "M", "N"], {"IS_MEAN": "reduce"}, is_wide=True),
    COLUMNS,
)


def _sddmm_rows(knobs: Knobs) -> LaunchPlan:
    tile = Tile("min(DEPTH, next_pow2(D))")
    args = ["indptr", "indices", "U", "V", "E", "M", "D"]
    return LaunchPlan([_row_tiles("sddmm", args, tile, knobs, {"DEPTH": tile.wide})])


def _sddmm_entries(knobs: Knobs) -> LaunchPlan:
    wide = "min(DEPTH, next_pow2(D))"
    entries = f"TILE // {wide}"
    needed = f"max(8, min({MOST_ENTRIES}, next_pow2(ceil(max_row)) // {TURNS}))"
    rows = f"{NUMBERED} // {needed}"
    number = launch(
        "number_rows",
        grid=[f"cdiv(M, {rows})"],
        args=["indptr", "row_numbers", "M"],
        constants={"ROWS": rows, "ENTRIES": needed, "STAGES": knobs["stages"]},
        num_warps=4,
    )
    product = launch(
        "sddmm",
        grid=[f"cdiv(nnz, {entries})"],
        args=["row_numbers", "indices", "U", "V", "E", "D", "nnz"],
        constants={"ENTRIES": entries, "DEPTH": wide, "STAGES": knobs["stages"]},
        num_warps=integer(knobs, "num_warps"),
    )
    return LaunchPlan([number, product], {"row_numbers": {"shape": ["nnz"], "dtype": "int32"}})


SDDMM = (
    triton_recipe(
        "sddmm_csr",
        "row-balanced",
        "A program owns a tile of rows; products with the same row of U are made together.",
        plan=_sddmm_rows,
        knobs=(TILE, ENTRIES, DEPTH, WARPS, STAGES),
        constraints=(TILE_FITS,),
        default=DEFAULT,
    ),
    triton_recipe(
        "sddmm_csr",
        "nnz-balanced",
        "The rows of all entries are noted; then programs own equal numbers of entries.",
        plan=_sddmm_entries,
        knobs=(TILE, DEPTH, WARPS, STAGES),
        constraints=(TILE_FITS,),
        default=DEFAULT,
    ),
)

EDGE_ARGS = ["indptr", "e", "alpha", "M", "H"]
EDGE_WIDE = "min(HEADS, next_pow2(H))"


def _edge_looped(knobs: Knobs, when: str = "") -> LaunchPlan:
    tile = Tile(EDGE_WIDE)
    made = _row_tiles(
        "edge_softmax_looped", EDGE_ARGS, tile, knobs, {"HEADS": EDGE_WIDE}, f"cdiv(H, {EDGE_WIDE})"
    )
    return LaunchPlan([{"when": when, **made} if when else made])


def _edge_resident(knobs: Knobs) -> LaunchPlan:
    longest = "next_pow2(max(1, ceil(max_row)))"
    warps = integer(knobs, "num_warps")
    most = MOST_EACH * WARP * warps
    rows = rows_of(f"({EDGE_WIDE} * {longest})")
    fits = f"{EDGE_WIDE} * {longest} <= {most} and {longest} <= {SPARE} * max(1, ceil(avg_row))"
    whole = launch(
        "edge_softmax",
        when=fits,
        grid=[f"cdiv(M, {rows})", f"cdiv(H, {EDGE_WIDE})"],
        args=EDGE_ARGS,
        constants={"ROWS": rows, "ENTRIES": longest, "HEADS": EDGE_WIDE},
        num_warps=warps,
    )
    return LaunchPlan([whole, *_edge_looped(knobs, f"not ({fits})").launches])


EDGE_SOFTMAX = (
    triton_recipe(
        "edge_softmax",
        "looped",
        "One pass for maximum and sum, one that makes exponentials anew; a tile of rows each.",
        plan=_edge_looped,
        knobs=(TILE, ENTRIES, HEADS, WARPS, STAGES),
        constraints=(TILE_FITS,),
        default={**DEFAULT, "tile": 8192, "entries": 32},
    ),
    triton_recipe(
        "edge_softmax",
        "resident",
        "Whole rows stay in registers where none is much longer than most; else they are looped "
        "over.",
        plan=_edge_resident,
        knobs=(TILE, ENTRIES, HEADS, WARPS, STAGES),
        constraints=(TILE_FITS,),
        default={**DEFAULT, "tile": 8192, "entries": 32},
    ),
)

RECIPES = (*SPMV, *SPMM, *GSPMM, *SDDMM, *EDGE_SOFTMAX)
