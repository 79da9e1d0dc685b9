# SPDX-License-Identifier: Apache-2.0
"""Recipes for products with codes, and for what makes codes. It knows templates and knobs only."""

from __future__ import annotations

from ..recipe import Constraint, Facts, Knobs
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
from ._modelled import model_rows
from ._render import cpp_recipes

UNROLL = make_knob("unroll", 1, 2, 4, meaning="groups of a row whose loads are under way at once")
DEFAULT: Knobs = {"rows": 2, "unroll": 2, "vector": "native", "threads": 0}
TILE = (
    make_knob("rows", 2, 4, 6, 8, meaning="rows of the tile held in registers"),
    make_knob("vectors", 1, 2, 3, meaning="vectors in a row of that tile"),
    VECTOR,
    THREADS,
)
TILE_DEFAULT: Knobs = {"rows": 6, "vectors": 2, "vector": "native", "threads": 0}
ROWS_DEFAULT: Knobs = {"schedule": "static", "chunk": 16, "vector": "native", "threads": 0}


def _tile_fits(knobs: Knobs, facts: Facts) -> bool:
    return 4 <= integer(knobs, "rows") * integer(knobs, "vectors") <= register_budget(facts)


TILE_FITS = Constraint("the tile's sums are 4 or more, and fit in the registers", _tile_fits)

RECIPES = (
    *cpp_recipes(
        "gemv_w4a16",
        "grouped",
        "Sums of groups in float32, each times its scale; zero points wait for the sum of x.",
        knobs=(
            make_knob("rows", 1, 2, 4, meaning="rows that share what is loaded of x"),
            UNROLL,
            VECTOR,
            THREADS,
        ),
        constraints=(USEFUL_THREADS, USEFUL_VECTOR),
        default=DEFAULT,
    ),
    *(
        recipe
        for problem in ("fp8_gemm_rowwise", "wxa16_gemm")
        for recipe in cpp_recipes(
            problem,
            "decoded",
            "Codes become floats once, B a panel at a time; a tile of C stays in registers.",
            knobs=TILE,
            constraints=(TILE_FITS, USEFUL_THREADS, USEFUL_VECTOR),
            default=TILE_DEFAULT,
        )
    ),
    *(
        recipe
        for problem in ("mxfp4_quantize", "nvfp4_quantize")
        for recipe in cpp_recipes(
            problem,
            "blocks",
            "A row at a time; of each block the maximum, then its codes.",
            knobs=(SCHEDULE, CHUNK, VECTOR, THREADS),
            constraints=(USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR),
            default=ROWS_DEFAULT,
        )
    ),
    *cpp_recipes(
        "stochastic_round",
        "hashed",
        "16 bits of a hash of seed and column are added below what is kept, which is then cut.",
        knobs=(
            make_knob("unroll", 1, 2, 4, meaning="vectors of a row that are rounded together"),
            VECTOR,
            SCHEDULE,
            CHUNK,
            STREAM,
            THREADS,
        ),
        constraints=(USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR),
        default={**ROWS_DEFAULT, "unroll": 2, "stream": 0},
        model=model_rows(1, 8),
    ),
)
