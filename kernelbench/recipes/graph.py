# SPDX-License-Identifier: Apache-2.0
"""Recipes for neural networks on graphs. It knows templates and knobs only."""

from __future__ import annotations

import math

from ..recipe import Constraint, Facts, Knobs, Recipe
from ._knobs import (
    CHUNK,
    SCHEDULE,
    THREADS,
    USEFUL_CHUNK,
    USEFUL_THREADS,
    USEFUL_VECTOR,
    VECTOR,
    integer,
    make_knob,
    register_budget,
)
from ._modelled import EXP_FLOPS, Model, model_gather
from ._render import cpp_recipes
from .serving import PRODUCT, TILE_FITS
from .sparse import BY_ROW, PIECE_SCHEDULE, PIECES, PRODUCTS_FIT

DEFAULT: Knobs = {
    "vector": "native",
    "threads": 0,
    "schedule": "dynamic",
    "chunk": 64,
    "pieces": 16,
    "prefetch": 8,
    "vectors": 4,
    "heads": 4,
    "unroll": 1,
    "held": 12,
}
VECTORS = make_knob("vectors", 2, 4, 8, meaning="vectors of features in registers")
HEADS = make_knob("heads", 1, 4, meaning="heads whose features are summed together")
UNROLL = make_knob("unroll", 1, 2, meaning="entries accumulated in parallel")
PREFETCH = make_knob("prefetch", 0, 8, 16, meaning="entries ahead whose features are fetched")
HELD = make_knob("held", 12, 24, meaning="accumulators that are held in registers at most")


def _holds_one(knobs: Knobs, facts: Facts) -> bool:
    chains = integer(knobs, "heads") * integer(knobs, "unroll")
    return chains <= integer(knobs, "held") <= register_budget(facts)


def _model_gat(*, by_row: bool) -> Model:
    """A gather of all heads' features for each entry, and a few exponentials beside it."""
    gather = model_gather("F", 2.0, ("M", "H", "F"), by_row=by_row)

    def model(knobs: Knobs, facts: Facts) -> float:
        heads = facts.get("H", math.nan)
        known = {**facts, "F": heads * facts.get("F", math.nan) + EXP_FLOPS * heads}
        chains = integer(knobs, "heads") * integer(knobs, "unroll")
        return gather({**knobs, "unroll": chains}, known)

    return model


FITS_REGISTERS = Constraint("a vector of each head fits in the vector registers", _holds_one)

BY_ENTRIES = "Pieces hold the rows that begin in equal shares of the entries"
GAT_KNOBS = (VECTOR, VECTORS, HEADS, UNROLL, HELD, PREFETCH)
GAT_COMMON = (FITS_REGISTERS, USEFUL_THREADS, USEFUL_VECTOR)
GAT = (
    *cpp_recipes(
        "gat_fused",
        "nnz-balanced",
        f"{BY_ENTRIES}; a row's weights stay in the cache.",
        knobs=(*GAT_KNOBS, PIECE_SCHEDULE, PIECES, THREADS),
        constraints=GAT_COMMON,
        default=DEFAULT,
        model=_model_gat(by_row=False),
    ),
    *cpp_recipes(
        "gat_fused",
        "row-balanced",
        f"{BY_ROW}; its weights stay in the cache.",
        knobs=(*GAT_KNOBS, SCHEDULE, CHUNK, THREADS),
        constraints=(*GAT_COMMON, USEFUL_CHUNK),
        default=DEFAULT,
        model=_model_gat(by_row=True),
    ),
)


def _accumulators_fit(knobs: Knobs, facts: Facts) -> bool:
    return integer(knobs, "vectors") * integer(knobs, "unroll") <= register_budget(facts)


BAG_KNOBS = (VECTOR, VECTORS, UNROLL, PREFETCH)
# A row of 64 floats in one pass, where a vector has 8: half of a row asked for twice costs more.
BAG_DEFAULT: Knobs = {**DEFAULT, "vectors": 8, "prefetch": 16}
BAG_COMMON = (
    Constraint("the accumulators fit in the vector registers", _accumulators_fit),
    USEFUL_THREADS,
    USEFUL_VECTOR,
)
EMBEDDING_BAG = (
    *cpp_recipes(
        "embedding_bag",
        "nnz-balanced",
        f"{BY_ENTRIES}; a bag's sum stays in registers.",
        knobs=(*BAG_KNOBS, PIECE_SCHEDULE, PIECES, THREADS),
        constraints=BAG_COMMON,
        default=BAG_DEFAULT,
        model=model_gather("N", 1.0, "MN", by_row=False),
    ),
    *cpp_recipes(
        "embedding_bag",
        "row-balanced",
        f"{BY_ROW}; a bag's sum stays in registers.",
        knobs=(*BAG_KNOBS, SCHEDULE, CHUNK, THREADS),
        constraints=(*BAG_COMMON, USEFUL_CHUNK),
        default=BAG_DEFAULT,
        model=model_gather("N", 1.0, "MN", by_row=True),
    ),
)

BY_COLUMNS = (
    VECTOR,
    make_knob("group", 1, 2, 4, 8, meaning="entries of a column that are met together"),
    make_knob("unroll", 1, 2, meaning="independent chains of sums in a product"),
    make_knob("width", 256, 1024, meaning="elements of a row that are met at a time"),
    PREFETCH,
    PIECE_SCHEDULE,
    PIECES,
    THREADS,
)
SPMM_BACKWARD = cpp_recipes(
    "spmm_backward",
    "by-columns",
    "Entries are sorted by column first; what is read of G then serves both gradients.",
    knobs=BY_COLUMNS,
    constraints=(PRODUCTS_FIT, USEFUL_THREADS, USEFUL_VECTOR),
    default={**DEFAULT, "group": 4, "width": 1024},
    model=model_gather("N", 4.0, "KN", by_row=False),
)


def _model_back(knobs: Knobs, facts: Facts) -> float:
    """A gather of all heads' gradients for each entry, and an exponential of each beside it."""
    heads = facts.get("H", math.nan)
    known = {**facts, "N": heads * facts.get("F", math.nan) + EXP_FLOPS * heads}
    return model_gather("N", 4.0, "KN", by_row=False)(knobs, known)


GAT_BACKWARD = cpp_recipes(
    "gat_backward",
    "by-columns",
    "Entries are sorted by column first; what is read of dY serves weights and features at once.",
    knobs=BY_COLUMNS,
    constraints=(PRODUCTS_FIT, USEFUL_THREADS, USEFUL_VECTOR),
    default={**DEFAULT, "group": 4, "width": 1024},
    model=_model_back,
)


def _model_typed(knobs: Knobs, facts: Facts) -> float:
    """The dense product's, with panels of the weights that are packed for each piece of edges."""
    return PRODUCT({**knobs, "mc": knobs["share"]}, facts)


TYPED_LINEAR = cpp_recipes(
    "typed_linear",
    "packed",
    "Pieces of a type's edges meet its weights, packed for the cache; rows are gathered as met.",
    knobs=(
        make_knob("rows", 4, 6, 8, 12, meaning="edges of the tile held in registers"),
        make_knob("vectors", 1, 2, 3, meaning="vectors in a row of that tile"),
        make_knob("unroll", 2, 4, meaning="steps of the inner dimension in flight"),
        make_knob("kc", 128, 256, meaning="steps of the inner dimension per block"),
        make_knob("panels", 4, 8, meaning="panels of weights per block"),
        make_knob("share", 96, 384, 1536, meaning="edges of a type that are dealt at a time"),
        make_knob("ahead", 0, 24, meaning="edges ahead whose rows are fetched"),
        VECTOR,
        THREADS,
    ),
    constraints=(TILE_FITS, USEFUL_THREADS, USEFUL_VECTOR),
    default={
        "rows": 6,
        "vectors": 2,
        "unroll": 4,
        "kc": 128,
        "panels": 4,
        "share": 384,
        "ahead": 24,
        "vector": "native",
        "threads": 0,
    },
    model=_model_typed,
)

RECIPES: tuple[Recipe, ...] = (*GAT, *EMBEDDING_BAG, *SPMM_BACKWARD, *GAT_BACKWARD, *TYPED_LINEAR)
