# SPDX-License-Identifier: Apache-2.0
"""Recipes for attention, and what goes with its caches. It knows templates and knobs only."""

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
from ._modelled import EXP_FLOPS, count_threads, model_pieces
from ._render import cpp_recipes


def _tile_fits(knobs: Knobs, facts: Facts) -> bool:
    return 4 <= integer(knobs, "rows") * integer(knobs, "vectors") <= register_budget(facts)


TILE_FITS = Constraint(
    "a tile's sums fit in the vector registers, and are four at least", _tile_fits
)

Work = tuple[float, float, float, float, float]


def _prefill_work(knobs: Knobs, facts: Facts) -> Work:
    """Half of all pairs of tokens, an exponential each; keys are read for each tile of queries."""
    heads, tokens, wide = facts["G"] * facts["R"], facts["S"], facts["D"]
    block = integer(knobs, "vectors") * integer(knobs, "tiles") * facts["vector_bytes"] / 4
    flops = heads * tokens * tokens * (2 * wide + EXP_FLOPS / 2)
    read = (heads + 2 * facts["G"]) * tokens * wide
    pieces = heads * math.ceil(tokens / block)
    chains = float(integer(knobs, "rows") * integer(knobs, "vectors"))
    return flops, read, heads * tokens * wide, pieces, chains


def _decode_work(knobs: Knobs, facts: Facts) -> Work:
    """Memory has the cache once."""
    cache = 16 * facts["B"] * facts["P"] * facts["G"] * facts["D"]
    queries = facts["B"] * facts["G"] * facts["R"] * facts["D"]
    pieces = max(facts["B"] * facts["G"], integer(knobs, "shares") * count_threads(knobs, facts))
    held = integer(knobs, "heads") * max(integer(knobs, "tokens"), integer(knobs, "vectors"))
    return 4 * cache * facts["R"], 2 * cache + queries, queries, pieces, float(held)


ATTENTION_PREFILL = cpp_recipes(
    "attention_prefill",
    "flash",
    "Blocks of keys with running maxima; queries lie side by side, so that no sum crosses lanes.",
    knobs=(
        make_knob("rows", 2, 4, 8, meaning="keys of the tile held in registers"),
        make_knob("vectors", 1, 2, 3, meaning="vectors of queries of that tile"),
        make_knob("tiles", 1, 2, 4, meaning="tiles of queries that go over a block of keys"),
        make_knob("keys", 16, 32, 64, 128, meaning="keys that share a maximum"),
        VECTOR,
        THREADS,
    ),
    constraints=(TILE_FITS, USEFUL_THREADS, USEFUL_VECTOR),
    default={"rows": 4, "vectors": 3, "tiles": 2, "keys": 32, "vector": "native", "threads": 0},
    model=model_pieces("GRSD", _prefill_work),
)

HEADS = make_knob("heads", 1, 2, 4, 8, meaning="query heads of the tile held in registers")


def _heads_fit(knobs: Knobs, facts: Facts) -> bool:
    widest = max(integer(knobs, "tokens"), integer(knobs, "vectors"))
    return integer(knobs, "heads") * widest <= register_budget(facts)


ATTENTION_DECODE = cpp_recipes(
    "attention_decode_gqa",
    "pages",
    "All heads of a group go over a page while it is in the cache; long sequences are split.",
    knobs=(
        HEADS,
        make_knob("tokens", 1, 2, 4, meaning="keys of the tile of logits"),
        make_knob("vectors", 1, 2, 4, meaning="vectors of a value in the tile of sums"),
        make_knob("pages", 1, 2, 4, 8, meaning="pages whose exponentials share a maximum"),
        make_knob("shares", 2, 4, 8, meaning="pieces that a thread is to have, at least"),
        VECTOR,
        THREADS,
    ),
    constraints=(
        Constraint("the sums of either tile fit in the vector registers", _heads_fit),
        USEFUL_THREADS,
        USEFUL_VECTOR,
    ),
    default={
        "heads": 4,
        "tokens": 2,
        "vectors": 2,
        "pages": 4,
        "shares": 4,
        "vector": "native",
        "threads": 0,
    },
    model=model_pieces("BGRPD", _decode_work),
)


def _merge_work(knobs: Knobs, facts: Facts) -> Work:
    """Every part is read once; an exponential of each head and part."""
    parts, heads, wide = facts["P"], facts["M"], facts["D"]
    pieces = math.ceil(heads / integer(knobs, "rows"))
    chains = float(integer(knobs, "vectors") * integer(knobs, "parts"))
    flops = parts * heads * (2 * wide + EXP_FLOPS)
    return flops, parts * heads * wide, heads * wide, pieces, chains


def _linear_work(knobs: Knobs, facts: Facts) -> Work:
    """Two products with a head's state; blocks of tokens are what is dealt."""
    heads, tokens, wide = facts["H"], facts["N"], facts["D"]
    pieces = heads * math.ceil(tokens / integer(knobs, "tokens"))
    chains = float(integer(knobs, "rows") * integer(knobs, "vectors"))
    size = heads * tokens * wide
    return 4 * size * wide, 3 * size, size, pieces, chains


ATTENTION_MERGE = cpp_recipes(
    "attention_partial_merge",
    "rows",
    "A head's weights first, then its sum over the parts, whose rows lie far apart.",
    knobs=(
        make_knob("rows", 1, 4, 16, 64, meaning="heads that a thread takes at once"),
        make_knob("vectors", 2, 4, 8, meaning="vectors of a sum that stay in registers"),
        make_knob("parts", 1, 2, meaning="parts that are added at once"),
        make_knob("prefetch", 0, 2, 4, meaning="parts whose rows are asked for ahead"),
        SCHEDULE,
        CHUNK,
        VECTOR,
        THREADS,
    ),
    constraints=(USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR),
    default={
        "rows": 4,
        "vectors": 8,
        "parts": 1,
        "prefetch": 2,
        "schedule": "static",
        "chunk": 16,
        "vector": "native",
        "threads": 0,
    },
    model=model_pieces("PMD", _merge_work),
)

LINEAR_ATTENTION = cpp_recipes(
    "linear_attention_relu",
    "states",
    "A head's state by blocks of tokens, then its answers; both in tiles that registers hold.",
    knobs=(
        make_knob("rows", 2, 4, 6, 8, meaning="rows of the tile held in registers"),
        make_knob("vectors", 1, 2, 3, 4, meaning="vectors in a row of that tile"),
        make_knob("tokens", 24, 48, 96, 192, meaning="tokens of a block that the cache holds"),
        SCHEDULE,
        CHUNK,
        VECTOR,
        THREADS,
    ),
    constraints=(TILE_FITS, USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR),
    default={
        "rows": 6,
        "vectors": 2,
        "tokens": 192,
        "schedule": "static",
        "chunk": 16,
        "vector": "native",
        "threads": 0,
    },
    model=model_pieces("HND", _linear_work),
)


def _pairs_fit(knobs: Knobs, facts: Facts) -> bool:
    return 4 <= 2 * integer(knobs, "rows") * integer(knobs, "pairs") <= register_budget(facts)


def _lowrank_work(knobs: Knobs, facts: Facts) -> Work:
    """A product of each chosen token; panels of a head are copied for each piece of its chunks."""
    tokens, wide = 8 * facts["H"] * facts["C"], 2 * facts["P"]
    pieces = facts["H"] * math.ceil(facts["C"] / integer(knobs, "chunks"))
    chains = 2.0 * integer(knobs, "rows") * integer(knobs, "pairs")
    read = tokens * (facts["R"] + wide) + 2 * pieces * facts["R"] * wide
    return 2 * tokens * facts["R"] * wide, read, tokens * wide, pieces, chains


LOWRANK_KEYS = cpp_recipes(
    "lowrank_key_rope_gemm",
    "panels",
    "Both halves of some pairs in a panel that chunks share; sums are turned in registers.",
    knobs=(
        make_knob("rows", 1, 2, 4, 8, meaning="tokens of the tile held in registers"),
        make_knob("pairs", 1, 2, 3, meaning="vectors of pairs of that tile"),
        make_knob("chunks", 4, 8, 16, 64, 256, meaning="chunks that share a panel, at most"),
        make_knob("schedule", "static", "dynamic", meaning="how pieces are dealt to threads"),
        VECTOR,
        THREADS,
    ),
    constraints=(
        Constraint("a tile's sums, of both halves, fit in the vector registers", _pairs_fit),
        USEFUL_THREADS,
        USEFUL_VECTOR,
    ),
    default={
        "rows": 4,
        "pairs": 1,
        "chunks": 64,
        "schedule": "static",
        "vector": "native",
        "threads": 0,
    },
    model=model_pieces("HCRP", _lowrank_work),
)


def _neighbor_work(knobs: Knobs, facts: Facts) -> Work:
    """Two products of each list with itself, and an exponential of each pair."""
    lists, places, wide = facts["M"] * facts["H"], facts["L"], facts["D"]
    size = lists * places * wide
    chains = float(integer(knobs, "keys") * integer(knobs, "vectors"))
    flops = lists * places * places * (4 * wide + EXP_FLOPS)
    return flops, 3 * size, size, lists if knobs["by"] == "head" else facts["M"], chains


def _both_tiles_fit(knobs: Knobs, facts: Facts) -> bool:
    return all(_tile_fits({**knobs, "rows": knobs[name]}, facts) for name in ("rows", "keys"))


NEIGHBOR_ATTENTION = cpp_recipes(
    "neighbor_attention",
    "lists",
    "A list's scores of one head stay in the cache; queries lie side by side, values as they are.",
    knobs=(
        make_knob("keys", 2, 4, 6, 8, meaning="keys of a tile of scores held in registers"),
        make_knob("rows", 2, 4, 6, 8, meaning="queries of a tile of answers"),
        make_knob("vectors", 1, 2, 4, meaning="vectors beside either"),
        make_knob("by", "head", "atom", meaning="what is dealt: a head of a list, or a list"),
        SCHEDULE,
        CHUNK,
        VECTOR,
        THREADS,
    ),
    constraints=(
        Constraint("both tiles' sums fit in the registers, and are four at least", _both_tiles_fit),
        USEFUL_CHUNK,
        USEFUL_THREADS,
        USEFUL_VECTOR,
    ),
    default={
        "keys": 6,
        "rows": 6,
        "vectors": 2,
        "by": "atom",
        "schedule": "dynamic",
        "chunk": 16,
        "vector": "native",
        "threads": 0,
    },
    model=model_pieces("MLHD", _neighbor_work),
)


def _cascaded_work(knobs: Knobs, facts: Facts) -> Work:
    """Products of tokens with a head's weights, of tokens with each other, and the projection."""
    tokens, wide = facts["H"] * facts["W"], facts["D"]
    rows, all_wide = facts["M"] * tokens, facts["G"] * wide
    pieces = math.ceil(facts["M"] / integer(knobs, "images"))
    chains = float(integer(knobs, "rows") * integer(knobs, "vectors"))
    pairs = tokens * (2 * wide + 32 + EXP_FLOPS)
    flops = rows * facts["G"] * (2 * wide * (32 + wide) + 800 + pairs + 2 * wide * all_wide)
    weights = facts["G"] * wide * (32 + wide) + all_wide * all_wide
    return flops, rows * all_wide + pieces * weights, rows * all_wide, pieces, chains


CASCADED_ATTENTION = cpp_recipes(
    "cascaded_group_attention",
    "images",
    "A few images go through all heads and the projection within the caches; weights in panels.",
    knobs=(
        make_knob("rows", 2, 4, 6, 8, meaning="rows of the tile held in registers"),
        make_knob("vectors", 1, 2, 3, meaning="vectors in a row of that tile"),
        make_knob("images", 1, 2, 4, 8, meaning="images whose tokens share a load of weights"),
        make_knob("schedule", "static", "dynamic", meaning="how images are dealt to threads"),
        VECTOR,
        THREADS,
    ),
    constraints=(TILE_FITS, USEFUL_THREADS, USEFUL_VECTOR),
    default={
        "rows": 6,
        "vectors": 2,
        "images": 1,
        "schedule": "static",
        "vector": "native",
        "threads": 0,
    },
    model=model_pieces("MHWGD", _cascaded_work),
)

RECIPES: tuple[Recipe, ...] = (
    *ATTENTION_PREFILL,
    *ATTENTION_DECODE,
    *ATTENTION_MERGE,
    *LINEAR_ATTENTION,
    *LOWRANK_KEYS,
    *NEIGHBOR_ATTENTION,
    *CASCADED_ATTENTION,
)
