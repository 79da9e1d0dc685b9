# SPDX-License-Identifier: Apache-2.0
"""Recipes for arithmetic on integers and narrow codes. It knows templates and knobs only."""

from __future__ import annotations

import math

from ..policies import HALVES
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
from ._modelled import ASKED, OWN_CACHE_BYTES, WIDTH, Model, count_threads, model_rows, roofline_us
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
FIRST_CACHE_BYTES = 1 << 15
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


def _model_tables(knobs: Knobs, facts: Facts) -> float:
    """A lookup is a load and a sum of as many numbers as there are vectors; tables that a first
    cache does not hold are slower. Sums of a table take one operation each."""
    if not {*"MNGP", *ASKED} <= facts.keys():
        return math.nan
    bits, depth = integer(knobs, "bits"), integer(knobs, "depth")
    lanes = 1 if facts["N"] == 1 else 4 if facts["N"] <= 4 else 8
    lookups = facts["M"] * facts["G"] * facts["P"] * 128 / bits
    pieces = count_threads(knobs, facts) * integer(knobs, "pieces")
    sums = pieces * facts["G"] * 128 / bits * 2**bits
    size = 4 * lanes * min(depth, facts["G"]) * 128 / bits * 2**bits
    slower = 1.0 if size <= FIRST_CACHE_BYTES else 1.5 if size <= OWN_CACHE_BYTES else 3.0
    again = math.ceil(facts["G"] / depth) * 16 * facts["M"]
    flops = 8 * (2 * slower * lookups + 2 * sums + again)
    moved = facts["M"] * facts["G"] * (16 * facts["P"] + 4)
    chains = 4.0 * math.sqrt(integer(knobs, "unroll"))
    return roofline_us(flops, moved, knobs, facts, chains=chains, dealt=pieces)


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
    *cpp_recipes(
        "lut_gemv",
        "tables",
        "All sums of a few activations with signs are made once; planes of weights choose.",
        knobs=(
            make_knob("bits", 4, 8, meaning="activations of a table's sums"),
            make_knob("depth", 1, 2, 4, 8, 16, meaning="groups whose tables are made at once"),
            make_knob("unroll", 1, 2, 4, meaning="running sums of a group"),
            make_knob("pieces", 1, 2, 4, meaning="pieces of rows of a thread, with their tables"),
            THREADS,
        ),
        constraints=(USEFUL_THREADS,),
        default={
            "bits": 8,
            "depth": 2,
            "unroll": 2,
            "pieces": 1,
            "threads": 0,
        },
        model=_model_tables,
        policies=HALVES,
    ),
)
