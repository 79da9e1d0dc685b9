# SPDX-License-Identifier: Apache-2.0
"""Recipes for the operators on a CSR pattern. It knows templates and knobs only.

Every operator has the two ways of sharing the work: by rows, cheap where rows are alike, and by
non-zeros, for patterns whose rows differ much.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..locality import WINDOW_USES
from ..policies import HALVES, name_in
from ..recipe import Constraint, Facts, Knob, Knobs, Recipe
from ._knobs import (
    CHUNK,
    SCHEDULE,
    STREAM,
    THREADS,
    USEFUL_CHUNK,
    USEFUL_THREADS,
    USEFUL_VECTOR,
    VECTOR,
    integer,
    make_knob,
    register_budget,
)
from ._modelled import EXP_FLOPS, Model, model_gather, model_products
from ._render import cpp_recipes

PREFETCH = make_knob(
    "prefetch", 0, 4, 8, 16, meaning="non-zeros ahead that a row of the dense operand is fetched"
)
VECTORS = make_knob("vectors", 1, 2, 4, 8, 16, meaning="vectors of an output row held in registers")
PIECES = make_knob("pieces", 1, 2, 4, 16, meaning="equal pieces of the work per thread")
PIECE_SCHEDULE = make_knob(
    "schedule", "static", "dynamic", meaning="how pieces are dealt to threads"
)
NEVER = 1 << 30
AS_FLOAT32 = "tf32"
"""The policy of spmm_csr that allows more than it asks for: float32 keeps it."""
TC_GNN = "(TC-GNN, Wang et al., ATC'23)"

DEFAULT: Knobs = {
    "vector": "native",
    "threads": 0,
    "schedule": "dynamic",
    "chunk": 256,
    "pieces": 4,
    "prefetch": 8,
    "vectors": 8,
    "unroll": 1,
    "stream": 0,
}

BY_ROW = "A thread owns rows, dealt in chunks"
BY_NNZ = "Pieces hold equal numbers of rows plus non-zeros"
ADDED = "the shares of a row that is cut are joined in a fixed order"


def _accumulators_fit(knobs: Knobs, facts: Facts) -> bool:
    chains = integer(knobs, "unroll") if "unroll" in knobs else 1
    return integer(knobs, "vectors") * chains <= register_budget(facts)


def _products_fit(knobs: Knobs, facts: Facts) -> bool:
    return integer(knobs, "group") * integer(knobs, "unroll") <= register_budget(facts)


FITS_REGISTERS = Constraint("the accumulators fit in the vector registers", _accumulators_fit)
PRODUCTS_FIT = Constraint("the group's accumulators fit in the vector registers", _products_fit)


def _make_both(
    problem: str,
    by_row: str,
    by_nnz: str,
    knobs: tuple[Knob, ...],
    *constraints: Constraint,
    default: Knobs,
    model: Callable[[bool], Model],
    policies: tuple[str, ...] = (),
) -> tuple[Recipe, ...]:
    common = (*constraints, USEFUL_THREADS, USEFUL_VECTOR)
    defaults = {**DEFAULT, **default}
    return (
        *cpp_recipes(
            problem,
            "row-balanced",
            by_row,
            knobs=(VECTOR, *knobs, SCHEDULE, CHUNK, THREADS),
            constraints=(*common, USEFUL_CHUNK),
            default=defaults,
            model=model(True),
            policies=policies,
        ),
        *cpp_recipes(
            problem,
            "nnz-balanced",
            by_nnz,
            knobs=(VECTOR, *knobs, PIECE_SCHEDULE, PIECES, THREADS),
            constraints=common,
            default=defaults,
            model=model(False),
            policies=policies,
        ),
    )


SPMV = _make_both(
    "spmv_csr",
    f"{BY_ROW}; short rows are scalar, long ones gather.",
    f"{BY_NNZ}; {ADDED}.",
    (
        make_knob("unroll", 1, 2, 4, meaning="independent chains of sums"),
        make_knob("gather_from", 8, 32, 128, NEVER, meaning="row length from which x is gathered"),
        make_knob(
            "serial_below", 20_000, 100_000, 500_000, meaning="operations one thread does alone"
        ),
    ),
    default={"unroll": 1, "gather_from": 32, "serial_below": 100_000},
    model=lambda by_row: model_gather("", 2.0, "M", by_row=by_row),
)

SPMM = _make_both(
    "spmm_csr",
    f"{BY_ROW}; a tile of an output row stays in registers.",
    f"{BY_NNZ}; {ADDED}.",
    (
        VECTORS,
        make_knob("unroll", 1, 2, meaning="non-zeros accumulated in parallel"),
        PREFETCH,
        STREAM,
    ),
    FITS_REGISTERS,
    default={},
    model=lambda by_row: model_gather("N", 2.0, "MN", by_row=by_row),
    policies=(*HALVES, AS_FLOAT32),
)


def _tile_fits(knobs: Knobs, facts: Facts) -> bool:
    return integer(knobs, "down") * integer(knobs, "vectors") <= register_budget(facts)


def _model_tiles(knobs: Knobs, facts: Facts) -> float:
    """As many products as a tile has places, of which as many are filled as share a column."""
    places = integer(knobs, "rows") / facts.get(WINDOW_USES, 1.0)
    chains = {"unroll": integer(knobs, "down")}
    return model_gather("N", 2.0 * max(1.0, places), "MN", by_row=True)(knobs | chains, facts)


ROWS = make_knob("rows", 4, 8, 16, meaning="rows of a window, whose columns are condensed")
WINDOWS = make_knob("chunk", 1, 4, 16, meaning="windows dealt at a time")
ALL_WINDOWS = Constraint(
    "a static schedule deals equal shares and has no chunk",
    lambda knobs, _: knobs["schedule"] != "static" or knobs["chunk"] == WINDOWS.values[0],
)
TRANSLATED_DEFAULT: Knobs = {
    **DEFAULT,
    "rows": 4,
    "down": 4,
    "vectors": 2,
    "depth": 32,
    "chunk": 16,
}
TRANSLATED = partial(
    cpp_recipes,
    name_in("spmm_csr", AS_FLOAT32),
    template="spmm_translated",
    # A count for each window, and a column and a word of bits for each entry at most.
    prepares="4 * M + 8 * nnz",
)
SPMM_TRANSLATED = (
    *TRANSLATED(
        family="translated-tiles",
        summary=f"Columns of windows of rows are condensed ahead of calls {TC_GNN} into dense "
        "tiles, with zeros where a row has no entry: meant for tensor cores, slower on CPUs.",
        knobs=(
            VECTOR,
            ROWS,
            make_knob("down", 2, 4, 8, meaning="rows of a tile that are summed together"),
            make_knob("vectors", 1, 2, 4, meaning="vectors of each row that are summed together"),
            make_knob("depth", 8, 32, 128, meaning="columns of a tile"),
            SCHEDULE,
            WINDOWS,
            THREADS,
        ),
        constraints=(
            Constraint("the tile's accumulators fit in the vector registers", _tile_fits),
            Constraint(
                "rows that are summed together are a window's",
                lambda knobs, _: integer(knobs, "down") <= integer(knobs, "rows"),
            ),
            ALL_WINDOWS,
            USEFUL_THREADS,
            USEFUL_VECTOR,
        ),
        default=TRANSLATED_DEFAULT,
        model=_model_tiles,
    ),
    *TRANSLATED(
        family="translated-columns",
        summary="The same condensed columns one by one: a row of B serves the rows of the window "
        "that need it, and no other.",
        knobs=(
            VECTOR,
            ROWS,
            make_knob("vectors", 2, 4, 8, meaning="vectors of a row of B held in registers"),
            PREFETCH,
            SCHEDULE,
            WINDOWS,
            THREADS,
        ),
        default={**TRANSLATED_DEFAULT, "rows": 16, "vectors": 8, "prefetch": 0},
        constraints=(ALL_WINDOWS, USEFUL_THREADS, USEFUL_VECTOR),
        # Beside each product a sum is read and written.
        model=model_gather("N", 4.0, "MN", by_row=True),
    ),
)

GSPMM = _make_both(
    "gspmm_reduce",
    f"{BY_ROW}; a tile of an output row stays in registers.",
    f"{BY_NNZ}; {ADDED}.",
    (VECTORS, PREFETCH),
    FITS_REGISTERS,
    default={},
    model=lambda by_row: model_gather("N", 3.0, "MN", by_row=by_row),
)

SDDMM = _make_both(
    "sddmm_csr",
    f"{BY_ROW}; products with the same row of U are made together.",
    "Pieces hold equal numbers of non-zeros, wherever rows begin.",
    (
        make_knob("group", 1, 2, 4, 8, meaning="products made together with one row of U"),
        make_knob("unroll", 1, 2, meaning="independent chains of sums in a product"),
        PREFETCH,
    ),
    PRODUCTS_FIT,
    default={"group": 4},
    model=lambda by_row: model_gather("D", 2.0, ("nnz",), by_row=by_row),
)

EDGE_SOFTMAX = _make_both(
    "edge_softmax",
    f"{BY_ROW}.",
    "Pieces hold the rows that begin in equal shares of the non-zeros.",
    (
        make_knob(
            "layout", "flat", "heads", meaning="a row's heads share vectors, or a lane per head"
        ),
    ),
    default={"layout": "flat"},
    model=lambda by_row: model_gather("H", 2.0 * EXP_FLOPS, ("nnz", "H"), by_row=by_row),
)

SPGEMM = cpp_recipes(
    "spgemm_csr",
    "dense-accumulator",
    "A thread owns rows, a sum for each column, and bits by which columns are read in their order.",
    knobs=(
        make_knob("prefetch", 0, 2, 8, meaning="entries of A ahead that a row of B is fetched"),
        make_knob("listed", 0, 16, 64, 256, meaning="products up to which columns are sorted"),
        SCHEDULE,
        CHUNK,
        THREADS,
    ),
    constraints=(USEFUL_CHUNK, USEFUL_THREADS),
    default={**DEFAULT, "prefetch": 2, "listed": 16, "chunk": 64},
    model=model_products,
)

RECIPES = (*SPMV, *SPMM, *SPMM_TRANSLATED, *GSPMM, *SDDMM, *EDGE_SOFTMAX, *SPGEMM)
