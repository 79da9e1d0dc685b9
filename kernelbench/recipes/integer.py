# SPDX-License-Identifier: Apache-2.0
"""Recipes for arithmetic on integers and narrow codes. It knows templates and knobs only."""

from __future__ import annotations

import math

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
from ._modelled import ASKED, OWN_CACHE_BYTES, WIDTH, Model, model_rows, roofline_us
from ._render import cpp_recipes

UNROLL = make_knob("unroll", 1, 2, 4, meaning="vectors or numbers of a row under way together")
LOOKUP = make_knob("lookup", "scalar", "gather", meaning="how a vector's numbers are looked up")
ROWS_DEFAULT: Knobs = {
    "lookup": "scalar",
    "unroll": 2,
    "schedule": "static",
    "chunk": 16,
    "vector": "native",
    "threads": 0,
    "stream": 0,
}
WORD = 16.0
"""Operations on vectors in the time that the signs of one word are counted."""
CONSTRAINTS = (USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR)


def _model_bytes(flops: float, width: float) -> Model:
    """Of rows whose elements have so many bytes, the mean of what is read and what is written."""
    rows = model_rows(1, flops)

    def model(knobs: Knobs, facts: Facts) -> float:
        return rows(knobs, {**facts, WIDTH: width})

    return model


def _model_planes(knobs: Knobs, facts: Facts) -> float:
    """A word of each pair of planes is compared, counted and added; a tile's loads are its sides.
    Counts are no vectors: as long as a word takes, vectors would make WORD operations."""
    if not {*"MNGPQ", *ASKED} <= facts.keys():
        return math.nan
    rows, columns = integer(knobs, "rows"), integer(knobs, "columns")
    tall, wide = (math.ceil(facts[a] / n) * n for a, n in (("M", rows), ("N", columns)))
    words = tall * wide * facts["G"] * facts["P"] * facts["Q"]
    flops = WORD * words * (1 + (rows + columns) / (3 * rows * columns))
    again = facts["M"] * math.ceil(facts["N"] / integer(knobs, "block"))
    moved = 8 * facts["G"] * (again * facts["P"] + facts["N"] * facts["Q"])
    chains = rows * columns * math.sqrt(integer(knobs, "unroll"))
    return roofline_us(flops, moved + 4 * facts["M"] * facts["N"], knobs, facts, chains=chains)


def _sums_fit(knobs: Knobs, facts: Facts) -> bool:
    return integer(knobs, "rows") * integer(knobs, "columns") <= register_budget(facts)


def _model_groups(knobs: Knobs, facts: Facts) -> float:
    """32 products are five operations beside a tile's loads, and unpacking them is sixteen; a panel
    that a core does not hold comes back for every tile of tokens."""
    if not {*"MNGB", *ASKED} <= facts.keys():
        return math.nan
    rows, columns = integer(knobs, "rows"), integer(knobs, "columns")
    tiles = facts["M"] // rows + facts["M"] % rows
    vectors = 4 * facts["N"] * facts["G"]
    loads = rows + 1 if columns == 1 else rows + 1 / columns
    flops = 8 * vectors * (16 + tiles * (5 * rows + loads))
    moved = facts["G"] * (98 * facts["N"] + facts["B"] * facts["M"]) + 2 * facts["M"] * facts["N"]
    panel = 128 * integer(knobs, "panel") * facts["G"]
    far = 1.0 if panel < OWN_CACHE_BYTES else 1.2
    dealt = math.ceil(facts["N"] / integer(knobs, "panel"))
    chains = rows * columns * integer(knobs, "unroll") * 2.0
    return far * roofline_us(
        flops, moved, knobs, facts, chains=chains, largest=1 / dealt, dealt=dealt
    )


SUMS_FIT = Constraint("the tile's sums fit in the vector registers", _sums_fit)
RECIPES = (
    *(
        recipe
        for family, summary in (
            ("computed", "Exponentials of a vector at once; its whole part by a float division."),
            ("table", "Differences to the maximum are looked up among 256 exponentials."),
        )
        for recipe in cpp_recipes(
            "shiftmax",
            family,
            summary,
            knobs=(UNROLL, SCHEDULE, CHUNK, VECTOR, THREADS),
            constraints=CONSTRAINTS,
            default=ROWS_DEFAULT,
            model=_model_bytes(20 if family == "computed" else 8, 1.0),
        )
    ),
    *cpp_recipes(
        "shiftgelu",
        "table",
        "Answers of a maximum's 256 numbers are worked out once, and looked up.",
        knobs=(LOOKUP, UNROLL, SCHEDULE, CHUNK, STREAM, VECTOR, THREADS),
        constraints=CONSTRAINTS,
        default=ROWS_DEFAULT,
        model=_model_bytes(8, 2.5),
    ),
    *(
        recipe
        for family, summary in (
            ("two-pass", "The sum of a row first, then the squares of differences to its mean."),
            ("one-pass", "Sums and squares at once, of differences to the row's first number."),
        )
        for recipe in cpp_recipes(
            "int_layernorm",
            family,
            summary,
            knobs=(UNROLL, SCHEDULE, CHUNK, STREAM, VECTOR, THREADS),
            constraints=CONSTRAINTS,
            default=ROWS_DEFAULT,
            model=_model_bytes(10 if family == "two-pass" else 9, 4.0),
        )
    ),
    *cpp_recipes(
        "apmm_bipolar",
        "popcount",
        "Words of 64 signs at once; of each pair of planes the bits that differ are counted.",
        knobs=(
            make_knob("rows", 1, 2, 4, meaning="rows of a tile of counts"),
            make_knob("columns", 1, 2, 4, meaning="tokens of it"),
            make_knob("block", 16, 64, 256, meaning="tokens that stay in the cache"),
            make_knob("unroll", 1, 2, 4, meaning="words of a plane under way together"),
            THREADS,
        ),
        constraints=(USEFUL_THREADS,),
        default={"rows": 2, "columns": 4, "block": 64, "unroll": 2, "threads": 0},
        model=_model_planes,
    ),
    *cpp_recipes(
        "w6ax_gemm",
        "raised",
        "Outputs are unpacked to unsigned bytes a panel at a time; tiles of exact sums of groups.",
        knobs=(
            make_knob("rows", 1, 2, 4, 8, meaning="tokens of a tile"),
            make_knob("columns", 1, 2, 4, meaning="outputs of it"),
            make_knob("panel", 4, 16, 64, meaning="outputs that are unpacked at once"),
            make_knob("unroll", 1, 2, meaning="groups of a tile under way together"),
            THREADS,
        ),
        constraints=(SUMS_FIT, USEFUL_THREADS),
        default={"rows": 4, "columns": 1, "panel": 4, "unroll": 1, "threads": 0},
        model=_model_groups,
    ),
)
