# SPDX-License-Identifier: Apache-2.0
"""Recipes for what training needs beside forward passes. It knows templates and knobs only."""

from __future__ import annotations

import math

from ..policies import HALVES
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
from ._modelled import EXP_FLOPS, Model, count_threads, model_pieces, model_rows
from ._render import cpp_recipes

UNROLL = make_knob("unroll", 1, 2, 4, 8, meaning="independent vectors in flight")
GROUP = make_knob("group", 1, 2, 4, meaning="rows made together")
STRIP = make_knob("strip", 2, 4, 8, meaning="vectors side by side whose sums stay in registers")
BLOCK = make_knob("block", 256, 1024, 4096, meaning="floats that share one maximum")
AHEAD = make_knob("ahead", 0, 256, 1024, meaning="floats that are asked for ahead; 0: none")
TILE = make_knob("tile", 4096, 16384, 65536, meaning="floats per tile")
DEFAULT: Knobs = {
    "vector": "native",
    "unroll": 4,
    "schedule": "static",
    "chunk": 16,
    "stream": 1,
    "threads": 0,
    "group": 2,
    "strip": 4,
    "block": 1024,
    "ahead": 0,
    "tile": 16384,
}


def _recipes(
    problem: str,
    family: str,
    summary: str,
    model: Model,
    *more: Knob,
    policies: tuple[str, ...] = HALVES,
    **default: int | str,
) -> tuple[Recipe, ...]:
    return cpp_recipes(
        problem,
        family,
        summary,
        knobs=(VECTOR, UNROLL, SCHEDULE, CHUNK, STREAM, THREADS, *more),
        constraints=(USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR),
        default={**DEFAULT, **default},
        model=model,
        policies=policies,
    )


def _make_backward(problem: str, flops: float) -> tuple[Recipe, ...]:
    """Of a normalisation: gradients along rows, and others that are summed over rows."""
    return (
        *_recipes(
            problem,
            "row-group",
            "Rows are dealt; each thread sums over its own, and the threads' sums are joined.",
            model_rows(2, flops, tensors=3),
            GROUP,
        ),
        *_recipes(
            problem,
            "strips",
            "Sums along rows first; then strips of columns, whose own sums stay in registers.",
            model_rows(2, flops, tensors=3),
            STRIP,
        ),
    )


RMSNORM_BACKWARD = _make_backward("rmsnorm_backward", 12)
LAYERNORM_BACKWARD = _make_backward("layernorm_backward", 16)

CROSS_ENTROPY = (
    *_recipes(
        "cross_entropy_ls",
        "online",
        "One pass for a row's maximum and sums, one that makes its exponentials anew and writes.",
        model_rows(2, 2 * EXP_FLOPS + 6),
        BLOCK,
    ),
    *_recipes(
        "cross_entropy_ls",
        "kept",
        "Maximum; exponentials into the gradient with their sum; what is left of it in place.",
        model_rows(2, EXP_FLOPS + 6, writes_twice=1),
        BLOCK,
        policies=(),  # exponentials that wait in a narrow output would be rounded twice
        stream=0,
    ),
)


def _adam_work(knobs: Knobs, facts: Facts) -> tuple[float, float, float, float, float]:
    """Four tensors are read and three written; a root and a quotient of each parameter."""
    count = facts["M"]
    pieces = count / integer(knobs, "tile") if "tile" in knobs else count_threads(knobs, facts)
    return 24 * count, 4 * count, 3 * count, max(1.0, pieces), 2.0 * integer(knobs, "unroll")


def _adam(family: str, summary: str, *more: Knob) -> tuple[Recipe, ...]:
    return cpp_recipes(
        "fused_adam",
        family,
        summary,
        knobs=(VECTOR, UNROLL, STREAM, THREADS, *more),
        constraints=(USEFUL_THREADS, USEFUL_VECTOR),
        default={**DEFAULT, "unroll": 2},
        policies=HALVES,
        model=model_pieces("M", _adam_work),
    )


FUSED_ADAM = (
    *_adam("shares", "Each thread has one run of the tensors.", AHEAD),
    *_adam("tiles", "Tiles of the tensors are dealt in turn.", SCHEDULE, TILE),
)


def _chain_work(knobs: Knobs, facts: Facts) -> tuple[float, float, float, float, float]:
    """Read and written once; of five operations about three are joined to one where they are."""
    count = facts["M"]
    flops = count * facts["K"] * (0.5 if knobs["fold"] else 1.5)
    return flops, count, count, count_threads(knobs, facts), float(integer(knobs, "unroll"))


CHAIN = cpp_recipes(
    "elementwise_chain",
    "registers",
    "All operations on a tile that registers hold; the table is read once for each.",
    knobs=(
        make_knob("unroll", 2, 4, 8, 16, meaning="vectors that a turn of the table is for"),
        make_knob("fold", 0, 1, meaning="1: operations are joined to products with a sum"),
        make_knob("ahead", 0, 512, 2048, meaning="floats that are asked for ahead; 0: none"),
        STREAM,
        VECTOR,
        THREADS,
    ),
    constraints=(USEFUL_THREADS, USEFUL_VECTOR),
    default={**DEFAULT, "unroll": 8, "fold": 1},
    model=model_pieces("MK", _chain_work),
)


def _galore_work(knobs: Knobs, facts: Facts) -> tuple[float, float, float, float, float]:
    """Two products; of each step as many loads as a tile has rows and vectors."""
    rows, vectors = integer(knobs, "rows"), integer(knobs, "vectors")
    m, n, rank = facts["M"], facts["N"], facts["R"]
    block = integer(knobs, "tiles") * vectors * facts["vector_bytes"] / 4
    busy = min(1.0, rows * vectors / (rows + vectors))
    # P is read from a farther cache for each block, and sums are loaded and stored once a piece.
    work = 1.0 / busy + 8.0 / block + 1.0 / integer(knobs, "depth")
    size, low = m * n, rank * n
    return (
        4 * size * rank * work,
        2 * size + m * rank + 2 * low,
        size + 2 * low,
        math.ceil(n / block),
        1.0 * rows * vectors,
    )


def _gradnorm_work(knobs: Knobs, facts: Facts) -> tuple[float, float, float, float, float]:
    """As of one side, with the other side's products and columns that are measured first."""
    flops, _, _, pieces, chains = _galore_work(knobs, facts)
    m, n, rank = facts["M"], facts["N"], facts["R"]
    more = flops * (1 + rank / m) + 10 * m * n
    return more, 5 * m * n + (m + 2 * n) * rank, m * n, pieces, chains


LOW_RANK = tuple(
    recipe
    for problem, summary, work in (
        (
            "galore_adam_step",
            "A few columns go through projection, Adam and update at once, and stay in the caches.",
            _galore_work,
        ),
        (
            "gradnorm_lorp_step",
            "A few columns are measured and projected at once; another pass updates them.",
            _gradnorm_work,
        ),
    )
    for recipe in cpp_recipes(
        problem,
        "by-columns",
        summary,
        knobs=(
            make_knob("rows", 2, 4, 6, 8, meaning="rows of a tile in registers"),
            make_knob("vectors", 1, 2, 3, meaning="vectors of columns of a tile"),
            make_knob("tiles", 1, 2, 4, meaning="tiles side by side that share a block of columns"),
            make_knob("depth", 64, 128, 256, meaning="terms of a sum that is made by itself"),
            make_knob("schedule", "static", "dynamic", meaning="how blocks are dealt to threads"),
            *(VECTOR, THREADS),
        ),
        constraints=(
            Constraint(
                "the tile has enough sums to hide latency, and fits registers",
                lambda knobs, facts: (
                    4
                    <= integer(knobs, "rows") * integer(knobs, "vectors")
                    <= register_budget(facts)
                ),
            ),
            *(USEFUL_THREADS, USEFUL_VECTOR),
        ),
        default={
            **DEFAULT,
            "rows": 6,
            "vectors": 2,
            "tiles": 4,
            "depth": 256,
            "schedule": "dynamic",
        },
        model=model_pieces("MNR", work),
    )
)


def _tiled_work(knobs: Knobs, facts: Facts) -> tuple[float, float, float, float, float]:
    """Three products and a gate; every tile of tokens reads all weights, which a far cache has."""
    rows, vectors = integer(knobs, "rows"), 2 * integer(knobs, "vectors")
    tokens, size = integer(knobs, "tokens"), facts["D"] * facts["F"]
    busy = min(1.0, rows * vectors / (rows + vectors))
    # Sums of answers are loaded and stored once a chunk, weights once a tile.
    work = 1.0 / busy + 1.0 / integer(knobs, "columns") + 1.0 / tokens
    flops = facts["M"] * (6 * size * work + 20 * facts["F"])
    moved = facts["M"] * facts["D"]
    return flops, moved + 6 * size, moved, math.ceil(facts["M"] / tokens), 1.0 * rows * vectors


TILED_MLP = cpp_recipes(
    "tiled_mlp",
    "chunks",
    "Tiles of tokens go over chunks of columns; gate and up share a tile, whose end is the gate.",
    knobs=(
        make_knob("rows", 2, 4, 6, 8, meaning="tokens of a tile in registers"),
        make_knob("vectors", 1, 2, meaning="vectors of gate in that tile, and as many of up"),
        make_knob("tokens", 24, 48, 96, 192, meaning="tokens that share a load of weights"),
        make_knob("columns", 64, 128, 256, 512, meaning="columns between that there are at once"),
        make_knob("schedule", "static", "dynamic", meaning="how tiles are dealt to threads"),
        *(VECTOR, THREADS),
    ),
    constraints=(
        Constraint(
            "the tile has enough sums to hide latency, and fits registers",
            lambda knobs, facts: (
                8
                <= 2 * integer(knobs, "rows") * integer(knobs, "vectors")
                <= register_budget(facts)
            ),
        ),
        *(USEFUL_THREADS, USEFUL_VECTOR),
    ),
    default={
        **DEFAULT,
        "rows": 6,
        "vectors": 1,
        "tokens": 96,
        "columns": 256,
        "schedule": "dynamic",
    },
    model=model_pieces("MDF", _tiled_work),
)

RECIPES = (
    *RMSNORM_BACKWARD,
    *LAYERNORM_BACKWARD,
    *CROSS_ENTROPY,
    *FUSED_ADAM,
    *CHAIN,
    *LOW_RANK,
    *TILED_MLP,
)
