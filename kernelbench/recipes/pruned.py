# SPDX-License-Identifier: Apache-2.0
"""Recipes for products with weights that were pruned, and with blocks.

It knows templates and knobs only.
"""

from __future__ import annotations

import math

from ..policies import HALVES
from ..recipe import Constraint, Facts, Knobs
from ._knobs import (
    THREADS,
    USEFUL_THREADS,
    USEFUL_VECTOR,
    VECTOR,
    integer,
    make_knob,
    register_budget,
)
from ._modelled import ASKED, Model, roofline_us
from ._render import cpp_recipes

ROWS = make_knob("rows", 1, 2, 4, 8, 16, meaning="rows of the tile held in registers")
VECTORS = make_knob("vectors", 1, 2, 3, 4, meaning="vectors in a row of that tile")
SCHEDULE = make_knob("schedule", "static", "dynamic", meaning="how tasks are dealt to threads")
CHUNK = make_knob("chunk", 1, 8, 64, meaning="tasks dealt at a time by a dynamic schedule")
PREFETCH = make_knob("prefetch", 0, 1, 2, meaning="blocks ahead that weights are fetched")
PACK = make_knob("pack", 0, 1, meaning="1: the dense factor is copied, a panel behind the other")
CHAINS = make_knob("chains", 1, 2, 4, meaning="sums of each element that are joined in the end")
PANEL = (
    make_knob("vectors", 1, 2, 4, 8, meaning="vectors of a row of the answer held in registers"),
    CHAINS,
    make_knob("rows", 16, 64, 256, meaning="rows of the answer that share such a copy"),
    SCHEDULE,
    VECTOR,
    THREADS,
)
DEPTH = "rows of the dense factor that are copied at a time"
DEFAULT: Knobs = {
    "rows": 4,
    "vectors": 3,
    "schedule": "dynamic",
    "chunk": 1,
    "prefetch": 1,
    "pack": 1,
    "chains": 1,
    "vector": "native",
    "threads": 0,
}


def _tile_fits(knobs: Knobs, facts: Facts) -> bool:
    return 4 <= integer(knobs, "rows") * integer(knobs, "vectors") <= register_budget(facts)


def _model_tiles(elements: str) -> Model:
    """Of products whose tile stays in registers: two loads go beside two products.

    Args:
        elements: axes whose product is the number of weights, with one letter each.
    """

    def model(knobs: Knobs, facts: Facts) -> float:
        if not {"N", *ASKED, *elements.split()} <= facts.keys():
            return math.nan
        rows, vectors = integer(knobs, "rows"), integer(knobs, "vectors")
        weights = math.prod(facts[axis] for axis in elements.split())
        lanes = facts["vector_bytes"] / (8.0 if knobs["vector"] == "half" else 4.0)
        across = vectors * lanes
        filled = facts["N"] / (math.ceil(facts["N"] / across) * across)
        busy = min(1.0, rows * vectors / (vectors + rows * 1.15))
        work = 2.0 * weights * facts["N"] / (filled * busy)
        return roofline_us(work, 4.0 * weights, knobs, facts, chains=rows * vectors)

    return model


def _panel_fits(knobs: Knobs, facts: Facts) -> bool:
    """Whether the second-level cache holds a copy and the answers."""
    width = integer(knobs, "vectors") * facts.get("vector_bytes", 64.0)
    sums = integer(knobs, "vectors") * integer(knobs, "chains")
    is_small = (integer(knobs, "depth") + integer(knobs, "rows")) * width <= 1 << 17
    return is_small and sums <= register_budget(facts)


def _model_panels(elements: str) -> Model:
    """Of products of rows with a panel that a cache holds: each product takes a load.

    Args:
        elements: axes whose product is the number of weights.
    """

    def model(knobs: Knobs, facts: Facts) -> float:
        if not {"M", "N", *ASKED, *elements.split()} - {"4"} <= facts.keys():
            return math.nan
        vectors, rows = integer(knobs, "vectors"), min(integer(knobs, "rows"), facts["M"])
        weights = math.prod(facts.get(axis, 4.0) for axis in elements.split())
        lanes = facts["vector_bytes"] / (8.0 if knobs["vector"] == "half" else 4.0)
        across = vectors * lanes
        filled = facts["N"] / (math.ceil(facts["N"] / across) * across)
        # A weight is loaded beside its products, and what is copied takes two turns of a row.
        busy = vectors / (vectors + 2.0) * rows / (rows + 2.0)
        work = 2.0 * weights * facts["N"] / (filled * busy)
        dealt = facts["M"] / rows * math.ceil(facts["N"] / across)
        chains = vectors * integer(knobs, "chains")
        return roofline_us(
            work, 6.0 * weights, knobs, facts, chains=chains, largest=1 / dealt, dealt=dealt
        )

    return model


PANEL_FITS = Constraint(
    "a copy and the answers have 128 KiB, and the sums fit in the registers", _panel_fits
)


def _products_fit(knobs: Knobs, facts: Facts) -> bool:
    return integer(knobs, "rows") * integer(knobs, "columns") <= register_budget(facts)


def _model_dots(knobs: Knobs, facts: Facts) -> float:
    """Of products whose vectors lie along both factors."""
    if not {"nnz", "B", "D", *ASKED} <= facts.keys():
        return math.nan
    rows, columns = integer(knobs, "rows"), integer(knobs, "columns")
    products = facts["nnz"] * facts["B"] ** 2
    lanes = facts["vector_bytes"] / (8.0 if knobs["vector"] == "half" else 4.0)
    # A sum across a vector takes some twelve steps.
    busy = min(1.0, rows * columns / (rows + columns))
    work = 2.0 * products * (facts["D"] / busy + 12 * lanes / 2)
    return roofline_us(work, 4.0 * products, knobs, facts, chains=rows * columns)


PRODUCTS_FIT = Constraint("the sums of the products fit in the registers", _products_fit)
TILE_FITS = Constraint("the tile's sums are 4 or more, and fit in the registers", _tile_fits)
USEFUL_CHUNK = Constraint(
    "a static schedule deals equal shares and has no chunk",
    lambda knobs, _: knobs["schedule"] == "dynamic" or knobs["chunk"] == CHUNK.values[0],
)


def _model_spqr(knobs: Knobs, facts: Facts) -> float:
    """A word of each row of a tile; a weight takes three operations to be a number."""
    if not {"G", "H", *ASKED} <= facts.keys():
        return math.nan
    words, rows = 16 * facts["G"] * facts["H"], integer(knobs, "rows")
    largest = min(1.0, rows / (16 * facts["G"]))
    return roofline_us(80 * words, 8.5 * words, knobs, facts, chains=2.0 * rows, largest=largest)


SPQR = cpp_recipes(
    "spqr_gemv",
    "words",
    "Words become vectors by shifts; rows of a tile share the activations, and what codes mean.",
    knobs=(
        make_knob("rows", 2, 4, 8, 16, meaning="rows of a tile that share what is loaded"),
        make_knob("ahead", 0, 16, 64, meaning="tiles ahead whose words are asked for; 0: none"),
        CHAINS,
        SCHEDULE,
        make_knob("chunk", 1, 8, 64, meaning="groups of rows dealt at a time, unless static"),
        VECTOR,
        THREADS,
    ),
    constraints=(
        Constraint(
            "a static schedule has no chunk",
            lambda knobs, _: knobs["schedule"] != "static" or knobs["chunk"] == 1,
        ),
        USEFUL_THREADS,
        USEFUL_VECTOR,
    ),
    default={**DEFAULT, "rows": 8, "ahead": 16, "chains": 2, "chunk": 8},
    model=_model_spqr,
)

RECIPES = (
    *(
        recipe
        for problem, weights in (("bsr_spmm", "nnz B B"), ("spmm_shflbw", "nnz V"))
        for recipe in cpp_recipes(
            problem,
            "tiled",
            "Rows of a block and a panel of columns stay in registers while a row's blocks go by.",
            knobs=(ROWS, VECTORS, PACK, PREFETCH, SCHEDULE, CHUNK, VECTOR, THREADS),
            constraints=(TILE_FITS, USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR),
            default=DEFAULT,
            model=_model_tiles(weights),
            policies=HALVES,
        )
    ),
    *cpp_recipes(
        "spmm_nm",
        "panels",
        "A piece of a panel of X is copied into the nearest cache; rows take what they keep.",
        knobs=(*PANEL, make_knob("depth", 64, 128, 256, meaning=DEPTH)),
        constraints=(PANEL_FITS, USEFUL_THREADS, USEFUL_VECTOR),
        default={**DEFAULT, "vectors": 8, "depth": 128, "rows": 64},
        model=_model_panels("4 M H"),
        policies=HALVES,
    ),
    *cpp_recipes(
        "spmm_lscd",
        "panels",
        "A piece of a panel of X becomes floats in the nearest cache; each row goes on where the "
        "last piece ended.",
        knobs=(*PANEL, make_knob("depth", 128, 512, 2048, meaning=DEPTH)),
        constraints=(PANEL_FITS, USEFUL_THREADS, USEFUL_VECTOR),
        default={**DEFAULT, "vectors": 2, "depth": 512, "rows": 256, "chains": 4},
        model=_model_panels("nnz"),
    ),
    *cpp_recipes(
        "bsr_sdd",
        "dots",
        "Products of some rows of X with some of W share what is loaded; pieces of equal work.",
        knobs=(
            make_knob("rows", 2, 4, 8, meaning="rows of X whose products are made together"),
            make_knob("columns", 1, 2, 3, 4, meaning="rows of W whose products are made together"),
            make_knob("pieces", 1, 4, 16, meaning="equal pieces of the work per thread"),
            SCHEDULE,
            VECTOR,
            THREADS,
        ),
        constraints=(PRODUCTS_FIT, USEFUL_THREADS, USEFUL_VECTOR),
        default={**DEFAULT, "rows": 4, "columns": 3, "pieces": 4},
        model=_model_dots,
        policies=HALVES,
    ),
    *SPQR,
)
