# SPDX-License-Identifier: Apache-2.0
"""Recipes for what vision and graphics look up. It knows templates and knobs only."""

from __future__ import annotations

import math

from ..recipe import Constraint, Facts, Knobs, Recipe
from ._knobs import (
    SCHEDULE,
    THREADS,
    USEFUL_THREADS,
    USEFUL_VECTOR,
    VECTOR,
    integer,
    make_knob,
    register_budget,
)
from ._modelled import OWN_CACHE_BYTES, model_pieces
from ._render import cpp_recipes

DEFAULT: Knobs = {"vector": "native", "schedule": "static", "threads": 0}
LOAD_FLOPS = 16
"""As many operations as take as long as one load from anywhere within the nearest cache."""


def _encode_work(knobs: Knobs, facts: Facts) -> tuple[float, float, float, float, float]:
    """Eight loads of each point on each level; those of a table beyond a core's cache take longer,
    less where they were asked for before."""
    points, levels = facts["M"], facts["V"]
    held = 8 * facts["T"] * (1 if knobs["order"] == "levels" else levels)
    far = 1.0 if held < OWN_CACHE_BYTES else 1.5 if integer(knobs, "ahead") else 2.0
    flops = points * levels * (50 + 8 * LOAD_FLOPS * far)
    flops *= 1.0 + 2.0 / integer(knobs, "vectors") / 16
    read = 3 * points + 2 * levels * facts["T"]
    pieces = math.ceil(points / integer(knobs, "block"))
    # What a level writes lies apart: whole lines are read and written anew with each.
    again = 1.0 if knobs["order"] == "points" and integer(knobs, "block") <= 1024 else 4.0
    return flops, read, 2 * points * levels * again, pieces, 8.0


HASHGRID_ENCODE = cpp_recipes(
    "hashgrid_encode",
    "by-level",
    "Blocks of points level by level: places of several points first, then their entries.",
    knobs=(
        make_knob("block", 64, 256, 1024, 4096, meaning="points of a block"),
        make_knob("vectors", 1, 2, 4, meaning="vectors of points whose places are made at once"),
        make_knob("ahead", 0, 1, meaning="1: entries are asked for while others are added up"),
        make_knob("order", "points", "levels", meaning="what pieces go through last"),
        *(SCHEDULE, VECTOR, THREADS),
    ),
    constraints=(USEFUL_THREADS, USEFUL_VECTOR),
    default={**DEFAULT, "block": 256, "vectors": 2, "ahead": 0, "order": "points"},
    model=model_pieces("MVT", _encode_work),
)


def _attend_work(knobs: Knobs, facts: Facts) -> tuple[float, float, float, float, float]:
    """Of each sample four rows of a map; of a head of several vectors the list is gone through as
    often as these do not fit registers."""
    pairs = facts["M"] * facts["H"]
    samples, lanes = pairs * facts["L"] * facts["P"], facts["vector_bytes"] / 4
    vectors = math.ceil(facts["D"] / lanes)
    passes = math.ceil(vectors / integer(knobs, "vectors"))
    chains = integer(knobs, "unroll") * min(vectors, integer(knobs, "vectors"))
    flops = samples * (60.0 + 8 * vectors * lanes + 8 * LOAD_FLOPS * passes)
    maps = facts["S"] * facts["H"] * facts["D"]
    again = 1.0 if 4 * maps < OWN_CACHE_BYTES or knobs["order"] == "heads" else 2.0
    pieces = math.ceil(facts["M"] / integer(knobs, "queries"))
    return flops, again * maps + 3 * samples, pairs * facts["D"], pieces, 1.0 * chains


MS_DEFORM_ATTN = cpp_recipes(
    "ms_deform_attn",
    "by-list",
    "The elements that a query's head reads are listed, and then added up vector by vector.",
    knobs=(
        make_knob("queries", 4, 16, 64, meaning="queries of a piece"),
        make_knob("vectors", 1, 2, 4, 8, meaning="vectors of a head in registers"),
        make_knob("unroll", 1, 2, 4, meaning="elements that are under way together"),
        make_knob("ahead", 0, 1, meaning="1: elements are asked for as they are listed"),
        make_knob("order", "queries", "heads", meaning="what pieces go through last"),
        *(SCHEDULE, VECTOR, THREADS),
    ),
    constraints=(
        Constraint(
            "the sums of all elements fit registers",
            lambda knobs, facts: (
                integer(knobs, "vectors") * integer(knobs, "unroll") <= register_budget(facts)
            ),
        ),
        *(USEFUL_THREADS, USEFUL_VECTOR),
    ),
    default={
        **DEFAULT,
        "queries": 16,
        "vectors": 4,
        "unroll": 2,
        "ahead": 0,
        "order": "queries",
    },
    model=model_pieces("MHLPSD", _attend_work),
)


def _network_work(knobs: Knobs, facts: Facts) -> tuple[float, float, float, float, float]:
    """Whole panels of units, of which loads and products share the time."""
    points, lanes = facts["M"], facts["vector_bytes"] / 4
    across = integer(knobs, "vectors") * lanes
    hidden, out = (math.ceil(facts[axis] / across) * across for axis in "HN")
    terms = facts["D"] * hidden + facts["B"] * facts["H"] * hidden + facts["H"] * out
    products = integer(knobs, "rows") * integer(knobs, "vectors")
    busy = products / (products + integer(knobs, "rows") + integer(knobs, "vectors"))
    pieces = math.ceil(points / integer(knobs, "points"))
    return (
        2 * points * terms / busy,
        points * facts["D"],
        points * facts["N"],
        pieces,
        1.0 * products,
    )


def _tile_fits(knobs: Knobs, facts: Facts) -> bool:
    return 6 <= integer(knobs, "rows") * integer(knobs, "vectors") <= register_budget(facts)


TINY_MLP = cpp_recipes(
    "tiny_mlp_fused",
    "tiles",
    "Tiles of points go through all layers, whose weights are packed once and stay in the cache.",
    knobs=(
        make_knob("rows", 2, 4, 6, 8, meaning="points of a tile in registers"),
        make_knob("vectors", 1, 2, 4, meaning="vectors of units of a tile in registers"),
        make_knob("points", 24, 48, 96, 384, meaning="points that go through all layers together"),
        make_knob("unroll", 1, 2, 4, meaning="steps of a sum that are written out"),
        *(SCHEDULE, VECTOR, THREADS),
    ),
    constraints=(
        Constraint("the tile has enough sums to hide latency, and fits registers", _tile_fits),
        *(USEFUL_THREADS, USEFUL_VECTOR),
    ),
    default={**DEFAULT, "rows": 6, "vectors": 2, "points": 48, "unroll": 2},
    model=model_pieces("MDHBN", _network_work),
)

RECIPES: tuple[Recipe, ...] = (*HASHGRID_ENCODE, *MS_DEFORM_ATTN, *TINY_MLP)
