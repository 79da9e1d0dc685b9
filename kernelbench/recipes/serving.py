# SPDX-License-Identifier: Apache-2.0
"""Recipes for layers as servers and mixtures of experts call them.

It knows templates and knobs only.
"""

from __future__ import annotations

import math

from ..policies import HALVES
from ..recipe import Constraint, Facts, Knobs, Recipe
from ._knobs import (
    STREAM,
    THREADS,
    USEFUL_THREADS,
    USEFUL_VECTOR,
    VECTOR,
    integer,
    make_knob,
    register_budget,
)
from ._modelled import ASKED, WIDTH, Model, model_product, roofline_us, writes
from ._render import cpp_recipes

UNROLL = make_knob("unroll", 1, 2, 4, meaning="vectors of a row that are under way at once")
HELD = 16
"""Sums that stay in registers, or nearly: a few are spilled while memory is waited for anyway."""


def _sums_fit(knobs: Knobs, _: Facts) -> bool:
    return integer(knobs, "rows") * integer(knobs, "unroll") <= HELD


def _model_gemv(knobs: Knobs, facts: Facts) -> float:
    """Memory has each element of the matrix once."""
    if not {"M", "K", *ASKED} <= facts.keys():
        return math.nan
    elements = facts["M"] * facts["K"]
    chains = float(integer(knobs, "rows") * integer(knobs, "unroll"))
    moved = facts.get(WIDTH, 4.0) * elements
    return roofline_us(2 * elements, moved, knobs, facts, chains=chains)


GEMV = cpp_recipes(
    "gemv",
    "row-group",
    "Several rows share what is loaded of x; rows fewer than threads are cut into parts.",
    knobs=(
        make_knob("rows", 1, 2, 4, 8, meaning="rows that share what is loaded of x"),
        UNROLL,
        make_knob("ahead", 0, 512, 1024, 2048, meaning="bytes of a row asked for ahead; 0: none"),
        make_knob("schedule", "static", "dynamic", meaning="how groups of rows are dealt"),
        VECTOR,
        THREADS,
    ),
    constraints=(
        Constraint("the sums of all rows fit in the registers", _sums_fit),
        USEFUL_THREADS,
        USEFUL_VECTOR,
    ),
    default={
        "rows": 2,
        "unroll": 4,
        "ahead": 1024,
        "schedule": "static",
        "vector": "native",
        "threads": 0,
    },
    model=_model_gemv,
    policies=HALVES,
)


def _tile_fits(knobs: Knobs, facts: Facts) -> bool:
    columns = float(knobs.get("columns", knobs.get("vectors", 1)))
    return 2 <= integer(knobs, "rows") * columns <= register_budget(facts)


def _model_skinny(knobs: Knobs, facts: Facts) -> float:
    """The dense product's, where a tile's loads are its sides and nothing is packed."""
    known = {**knobs, "vectors": knobs["columns"], "unroll": 1, "mc": 16}
    return PRODUCT(known, facts)


PRODUCT: Model = model_product(packs_a=False)
TILE_FITS = Constraint("the tile's sums are 2 or more, and fit in the registers", _tile_fits)
SCHEDULE = make_knob("schedule", "static", "dynamic", meaning="how blocks are dealt to threads")

SKINNY = cpp_recipes(
    "skinny_gemm",
    "dots",
    "Tiles of a few tokens and rows of weights, which are read once, along vectors of K.",
    knobs=(
        make_knob("rows", 1, 2, 3, 4, meaning="tokens of the tile held in registers"),
        make_knob("columns", 1, 2, 3, 4, 6, meaning="rows of weights of that tile"),
        make_knob("kc", 512, 1024, 4096, meaning="steps of the inner dimension per block"),
        make_knob("nc", 12, 24, 48, meaning="rows of weights per block"),
        SCHEDULE,
        VECTOR,
        THREADS,
    ),
    constraints=(TILE_FITS, USEFUL_THREADS, USEFUL_VECTOR),
    default={
        "rows": 4,
        "columns": 3,
        "kc": 1024,
        "nc": 24,
        "schedule": "static",
        "vector": "native",
        "threads": 0,
    },
    model=_model_skinny,
    policies=HALVES,
)


def _model_grouped(knobs: Knobs, facts: Facts) -> float:
    """The dense product's, with panels of the weights that are packed for each piece of rows."""
    return PRODUCT({**knobs, "unroll": 4, "mc": knobs["share"]}, facts)


GROUPED = cpp_recipes(
    "grouped_gemm",
    "packed",
    "Pieces of an expert's rows meet a panel of its weights at a time, packed for the cache.",
    knobs=(
        make_knob("rows", 3, 4, 6, 8, 12, meaning="rows of the tile held in registers"),
        make_knob("vectors", 1, 2, 3, meaning="vectors in a row of that tile"),
        make_knob("kc", 128, 256, 512, meaning="steps of the inner dimension per block"),
        make_knob("share", 48, 96, 384, meaning="rows of an expert that are dealt at a time"),
        VECTOR,
        THREADS,
    ),
    constraints=(TILE_FITS, USEFUL_THREADS, USEFUL_VECTOR),
    default={
        "rows": 6,
        "vectors": 2,
        "kc": 256,
        "share": 96,
        "vector": "native",
        "threads": 0,
    },
    model=_model_grouped,
)


def _model_monarch(knobs: Knobs, facts: Facts) -> float:
    """Both products; the middle stays in the cache, where its tokens are not too many."""
    if not {"M", "B", "P", *ASKED} <= facts.keys():
        return math.nan
    elements, width = facts["M"] * facts["B"] * facts["P"], facts["B"] + facts["P"]
    chains = float(integer(knobs, "rows") * integer(knobs, "columns"))
    return roofline_us(2 * elements * width, 8 * elements, knobs, facts, chains=chains)


MONARCH = cpp_recipes(
    "monarch_mm",
    "fused",
    "The middle of a few tokens waits in the cache; permutations are where a vector lies.",
    knobs=(
        make_knob("tokens", 8, 16, 32, 64, meaning="tokens whose middle waits in the cache"),
        make_knob("rows", 2, 4, 6, meaning="tokens of the tile held in registers"),
        make_knob("columns", 1, 2, 3, meaning="outputs of that tile in the second product"),
        SCHEDULE,
        VECTOR,
        THREADS,
    ),
    constraints=(TILE_FITS, USEFUL_THREADS, USEFUL_VECTOR),
    default={
        "tokens": 32,
        "rows": 4,
        "columns": 2,
        "schedule": "static",
        "vector": "native",
        "threads": 0,
    },
    model=_model_monarch,
)


def _model_copies(knobs: Knobs, facts: Facts, scores: float, moved: float) -> float:
    """Scores are read some times, from the cache; what stays is read and written.

    Args:
        moved: bytes that stay.
    """
    chains = 2.0 * integer(knobs, "unroll")
    return roofline_us(
        40 * scores, moved + writes(knobs, moved) + 4 * scores, knobs, facts, chains=chains
    )


def _model_gather(knobs: Knobs, facts: Facts) -> float:
    """Features of the tokens that stay are copied."""
    if not {"B", "G", "D", "W", *ASKED} <= facts.keys():
        return math.nan
    tokens = facts["B"] * facts["G"]
    return _model_copies(knobs, facts, 5 * tokens, 4 * tokens * facts["W"] * facts["D"])


def _model_evict(knobs: Knobs, facts: Facts) -> float:
    """Keys and values of the tokens that stay are copied."""
    if not {"H", "C", "E", "S", "D", *ASKED} <= facts.keys():
        return math.nan
    stay = facts["H"] * (facts["C"] + facts["S"])
    return _model_copies(
        knobs, facts, facts["H"] * (facts["C"] + facts["E"]), 8 * stay * facts["D"]
    )


SELECTIONS = {
    "partial": "The last score that stays by partial sorting; tokens are copied in order.",
    "radix": "The last score that stays by counting its bytes; tokens are copied in order.",
}
COPIES = (
    make_knob("unroll", 1, 2, 4, meaning="vectors that are copied together"),
    make_knob("ahead", 0, 1, 2, 4, meaning="tokens asked for ahead; 0: none"),
    STREAM,
)

GATHER = tuple(
    recipe
    for family, summary in SELECTIONS.items()
    for recipe in cpp_recipes(
        "token_topk_gather",
        family,
        summary,
        knobs=(*COPIES, VECTOR, THREADS),
        constraints=(USEFUL_THREADS, USEFUL_VECTOR),
        default={"unroll": 4, "ahead": 1, "stream": 1, "vector": "native", "threads": 0},
        model=_model_gather,
    )
)

PIECE = make_knob("piece", 0, 16, 64, 256, meaning="tokens dealt at a time; 0: equal shares")
EVICT = tuple(
    recipe
    for family, summary in SELECTIONS.items()
    for recipe in cpp_recipes(
        "kv_evict_topk",
        family,
        summary,
        knobs=(*COPIES, PIECE, VECTOR, THREADS),
        constraints=(USEFUL_THREADS, USEFUL_VECTOR),
        default={
            "unroll": 4,
            "ahead": 1,
            "stream": 1,
            "piece": 0,
            "vector": "native",
            "threads": 0,
        },
        model=_model_evict,
    )
)


def _model_route(knobs: Knobs, facts: Facts) -> float:
    """Tokens are read once at least, and written once for each choice."""
    if not {"M", "K", "E", "D", *ASKED} <= facts.keys():
        return math.nan
    choices = facts["M"] * facts["K"]
    return _model_copies(knobs, facts, choices, 4 * choices * facts["D"])


ROUTE = tuple(
    recipe
    for family, summary in {
        "scatter": "Counts of the experts, places, then each token to all of its rows.",
        "gather": "Counts of the experts, places, then rows in the order of experts.",
    }.items()
    for recipe in cpp_recipes(
        "moe_route_permute",
        family,
        summary,
        knobs=(
            *(COPIES[0], COPIES[2]),
            make_knob("piece", 0, 1, 4, 16, 64, meaning="rows dealt at a time; 0: equal shares"),
            VECTOR,
            THREADS,
        ),
        constraints=(USEFUL_THREADS, USEFUL_VECTOR),
        default={"unroll": 4, "stream": 1, "piece": 0, "vector": "native", "threads": 0},
        model=_model_route,
    )
)

RECIPES: tuple[Recipe, ...] = (*GEMV, *SKINNY, *GROUPED, *MONARCH, *GATHER, *EVICT, *ROUTE)
