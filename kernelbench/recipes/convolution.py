# SPDX-License-Identifier: Apache-2.0
"""Recipes for convolutions, state spaces and encodings. It knows templates and knobs only."""

from __future__ import annotations

import math

from ..policies import HALVES
from ..recipe import Constraint, Facts, Knobs, Recipe
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
from ._modelled import DIVISION_FLOPS, EXP_FLOPS, model_pieces
from ._render import cpp_recipes

DEALT = (USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR)
DEFAULT: Knobs = {
    "vector": "native",
    "unroll": 4,
    "schedule": "static",
    "chunk": 16,
    "stream": 1,
    "threads": 0,
    "block": 4096,
}
UNROLL = make_knob("unroll", 1, 2, 4, 8, meaning="independent vectors in flight")


def _causal_work(knobs: Knobs, facts: Facts) -> tuple[float, float, float, float, float]:
    size = facts["M"] * facts["C"] * facts["L"]
    pieces = facts["M"] * facts["C"] * math.ceil(facts["L"] / integer(knobs, "block"))
    flops = size * (EXP_FLOPS + DIVISION_FLOPS + 10)
    return flops, size, size, pieces, 2.0 * integer(knobs, "unroll")


CAUSAL_CONV1D = cpp_recipes(
    "causal_conv1d",
    "by-piece",
    "Pieces of a channel's steps are dealt; each vector is loaded four times, a step apart.",
    knobs=(
        *(VECTOR, UNROLL, SCHEDULE, CHUNK, STREAM, THREADS),
        make_knob("block", 256, 1024, 4096, 16384, meaning="steps of a piece"),
    ),
    constraints=DEALT,
    default=DEFAULT,
    model=model_pieces("MCL", _causal_work),
    policies=HALVES,
)


def _tile_fits(knobs: Knobs, facts: Facts) -> bool:
    return 6 <= integer(knobs, "filters") * integer(knobs, "vectors") <= register_budget(facts)


def _convolution_work(knobs: Knobs, facts: Facts) -> tuple[float, float, float, float, float]:
    """Besides products there are loads: of a step, as many as a tile has filters and vectors."""
    filters, vectors = integer(knobs, "filters"), integer(knobs, "vectors")
    images, depth, taps = facts["M"], facts["C"], (facts["R"] + 1) ** 2
    places = facts["P"] * (facts["Q"] + facts["R"])
    tiles = math.ceil(places / (vectors * facts["vector_bytes"] / 4)) * images
    groups = math.ceil(facts["F"] / filters)
    busy = min(1.0, filters * vectors / (filters + 1.5 * vectors))
    sums = 1.0 + 2.0 / (taps * min(depth, integer(knobs, "channels")))
    flops = 2 * places * images * groups * filters * depth * taps * sums / busy
    read = images * depth * (facts["P"] + facts["R"]) * (facts["Q"] + facts["R"])
    read += facts["F"] * depth * taps
    pieces = groups * max(1.0, tiles / integer(knobs, "tiles"))
    written = images * facts["F"] * facts["P"] * facts["Q"]
    return flops, read, written, pieces, 1.0 * filters * vectors


CONV2D_NCHW = cpp_recipes(
    "conv2d_nchw",
    "flat-rows",
    "Tiles of filters by places in registers; places run over the ends of rows.",
    knobs=(
        make_knob("filters", 2, 4, 6, 8, meaning="filters of the tile held in registers"),
        make_knob("vectors", 1, 2, 3, 4, meaning="vectors of places of that tile"),
        make_knob("channels", 16, 64, 256, meaning="channels between two looks at a tile's sums"),
        make_knob("tiles", 2, 8, 32, meaning="tiles that take the same channels in turn"),
        make_knob("order", "filters", "places", meaning="what pieces go through first"),
        make_knob("schedule", "static", "dynamic", meaning="how pieces are dealt to threads"),
        *(VECTOR, THREADS),
    ),
    constraints=(
        Constraint("the tile has enough sums to hide latency, and fits registers", _tile_fits),
        *(USEFUL_THREADS, USEFUL_VECTOR),
    ),
    default={
        **DEFAULT,
        "filters": 6,
        "vectors": 2,
        "channels": 256,
        "tiles": 8,
        "order": "filters",
    },
    model=model_pieces("MCFPQR", _convolution_work),
)


def _depthwise_work(knobs: Knobs, facts: Facts) -> tuple[float, float, float, float, float]:
    """A row that is loaded serves as many rows of the output as are made together."""
    rows, width = integer(knobs, "rows"), facts["R"]
    channels = facts["M"] * facts["C"]
    size = channels * facts["H"] * facts["W"]
    loads = width * (rows + width - 1) / rows
    flops = size * (2 * width * width + 2 * loads + 4)
    pieces = channels * math.ceil(facts["H"] / integer(knobs, "block"))
    return flops, size, size, pieces, 1.0 * rows * integer(knobs, "unroll")


DEPTHWISE_CONV = cpp_recipes(
    "depthwise_conv",
    "padded-rows",
    "Rows of the input wait with zeros around them; several rows of the output share each.",
    knobs=(
        make_knob("rows", 1, 2, 4, meaning="rows of the output that are made together"),
        *(UNROLL, SCHEDULE, CHUNK, STREAM, VECTOR, THREADS),
        make_knob("block", 16, 64, 1024, meaning="rows of a piece"),
    ),
    constraints=(
        Constraint(
            "the sums of all rows fit registers",
            lambda knobs, facts: (
                integer(knobs, "rows") * integer(knobs, "unroll") <= register_budget(facts)
            ),
        ),
        *DEALT,
    ),
    default={**DEFAULT, "rows": 2, "unroll": 2, "block": 64},
    model=model_pieces("MCHWR", _depthwise_work),
)


def _state_work(knobs: Knobs, facts: Facts) -> tuple[float, float, float, float, float]:
    """B and C are loaded anew for each group of rows."""
    heads, rows = facts["M"] * facts["H"], integer(knobs, "rows")
    tokens = heads * facts["P"]
    flops = tokens * facts["N"] * (5.0 + 2.0 / rows) + 60 * tokens
    pieces = heads * math.ceil(facts["P"] / integer(knobs, "block"))
    size = tokens * facts["N"]
    return flops, size + 2 * tokens, size + tokens, pieces, 2.0 * rows * integer(knobs, "unroll")


SSM_STATE_UPDATE = cpp_recipes(
    "ssm_state_update",
    "row-group",
    "Several rows of a head's state together, so that B and C are loaded once for all.",
    knobs=(
        make_knob("rows", 1, 2, 4, 8, meaning="rows of the state that are made together"),
        make_knob("unroll", 1, 2, 4, meaning="vectors of each row that are under way at once"),
        *(SCHEDULE, CHUNK, STREAM, VECTOR, THREADS),
        make_knob("block", 16, 64, 1024, meaning="elements of a head to a piece"),
    ),
    constraints=DEALT,
    default={**DEFAULT, "rows": 4, "unroll": 2, "block": 64},
    model=model_pieces("MHPN", _state_work),
    policies=HALVES,
)


def _scan_work(knobs: Knobs, facts: Facts) -> tuple[float, float, float, float, float]:
    """A state is loaded and stored once for all steps that are taken at once."""
    vectors, steps = integer(knobs, "vectors"), integer(knobs, "steps")
    sequences, length = facts["M"] * facts["L"], vectors * facts["vector_bytes"] / 4
    parts = math.ceil(facts["P"] / length)
    work = 6.0 + 4.0 / vectors + 4.0 / steps
    flops = sequences * facts["H"] * parts * length * facts["N"] * work
    size = sequences * facts["H"] * facts["P"]
    read = size + sequences * (facts["H"] + 2 * facts["N"])
    return flops, read, size, facts["M"] * facts["H"] * parts, 2.0 * vectors * steps


MAMBA2_SSD_CHUNK_SCAN = cpp_recipes(
    "mamba2_ssd_chunk_scan",
    "few-steps",
    "States of a few vectors stay in cache; a few steps at once share their loads.",
    knobs=(
        make_knob("vectors", 1, 2, 4, meaning="vectors of elements of a head"),
        make_knob("steps", 1, 2, 4, 8, meaning="steps that are taken at once"),
        make_knob("order", "heads", "parts", meaning="what pieces go through last"),
        make_knob("schedule", "static", "dynamic", meaning="how pieces are dealt to threads"),
        *(VECTOR, THREADS),
    ),
    constraints=(
        Constraint(
            "inputs and sums of all steps fit registers",
            lambda knobs, facts: (
                2 * integer(knobs, "vectors") * integer(knobs, "steps") <= register_budget(facts)
            ),
        ),
        *(USEFUL_THREADS, USEFUL_VECTOR),
    ),
    default={**DEFAULT, "vectors": 2, "steps": 2, "order": "heads"},
    model=model_pieces("MLHPN", _scan_work),
)

RECIPES: tuple[Recipe, ...] = (
    *CAUSAL_CONV1D,
    *CONV2D_NCHW,
    *DEPTHWISE_CONV,
    *SSM_STATE_UPDATE,
    *MAMBA2_SSD_CHUNK_SCAN,
)
