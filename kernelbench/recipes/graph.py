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
from .sparse import BY_ROW, PIECE_SCHEDULE, PIECES

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

RECIPES: tuple[Recipe, ...] = (*GAT, *EMBEDDING_BAG)
