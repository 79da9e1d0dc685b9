# SPDX-License-Identifier: Apache-2.0
"""Recipes for products with codes, and for what makes codes. It knows templates and knobs only."""

from __future__ import annotations

import math
from collections.abc import Callable

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
from ._modelled import ASKED, WIDTH, Model, model_product, model_rows, roofline_us
from ._render import cpp_recipes

UNROLL = make_knob("unroll", 1, 2, 4, meaning="groups of a row whose loads are under way at once")
DEFAULT: Knobs = {"rows": 2, "unroll": 2, "vector": "native", "threads": 0}
TILE = (
    make_knob("rows", 2, 4, 6, 8, meaning="rows of the tile held in registers"),
    make_knob("vectors", 1, 2, 3, meaning="vectors in a row of that tile"),
    VECTOR,
    THREADS,
)
TILE_DEFAULT: Knobs = {"rows": 6, "vectors": 2, "vector": "native", "threads": 0}
ROWS_DEFAULT: Knobs = {"schedule": "static", "chunk": 16, "vector": "native", "threads": 0}


def _tile_fits(knobs: Knobs, facts: Facts) -> bool:
    return 4 <= integer(knobs, "rows") * integer(knobs, "vectors") <= register_budget(facts)


def _model_gemv(knobs: Knobs, facts: Facts) -> float:
    """Memory has half a byte of a weight, and 1/16 of its group's scale and zero point; a weight
    takes two operations to be a number, and two to be added."""
    if not {"M", "H", *ASKED} <= facts.keys():
        return math.nan
    weights, rows = 64 * facts["M"] * facts["H"], integer(knobs, "rows")
    chains = float(rows * integer(knobs, "unroll"))
    largest = min(1.0, rows / facts["M"])
    moved = weights * (0.5 + 1 / 16)
    return roofline_us(4 * weights, moved, knobs, facts, chains=2 * chains, largest=largest)


def _model_decoded(depth: Callable[[Facts], float], *asked: str) -> Model:
    """The dense product's, of factors that are decoded as they are packed, a panel of B at a time.

    Args:
        depth: the steps of a sum.
        asked: the axes that it follows from.
    """

    def model(knobs: Knobs, facts: Facts) -> float:
        if not {"M", "N", *asked} <= facts.keys():
            return math.nan
        steps = depth(facts)
        known = {"unroll": 1, "kc": int(steps), "mc": integer(knobs, "rows"), "nc": 1 << 30}
        return PRODUCT({**knobs, **known}, {**facts, "K": steps, WIDTH: 1.0})

    return model


def _model_blocks(block: int, flops: float = 20) -> Model:
    """Of rows of bfloat16, whose numbers are read once and take so many operations."""
    rows = model_rows(1, flops)

    def model(knobs: Knobs, facts: Facts) -> float:
        if "G" not in facts:
            return math.nan
        return rows({**knobs, "unroll": 2}, {**facts, "N": block * facts["G"], WIDTH: 2.0})

    return model


PRODUCT: Model = model_product(packs_a=True)
TILE_FITS = Constraint("the tile's sums are 4 or more, and fit in the registers", _tile_fits)

RECIPES = (
    *cpp_recipes(
        "gemv_w4a16",
        "grouped",
        "Sums of groups in float32, each times its scale; zero points wait for the sum of x.",
        knobs=(
            make_knob("rows", 1, 2, 4, meaning="rows that share what is loaded of x"),
            UNROLL,
            VECTOR,
            THREADS,
        ),
        constraints=(USEFUL_THREADS, USEFUL_VECTOR),
        default=DEFAULT,
        model=_model_gemv,
    ),
    *(
        recipe
        for problem, model in (
            ("fp8_gemm_rowwise", _model_decoded(lambda facts: facts["K"], "K")),
            ("wxa16_gemm", _model_decoded(lambda facts: 64 * facts["G"], "G")),
        )
        for recipe in cpp_recipes(
            problem,
            "decoded",
            "Codes become floats once, B a panel at a time; a tile of C stays in registers.",
            knobs=TILE,
            constraints=(TILE_FITS, USEFUL_THREADS, USEFUL_VECTOR),
            default=TILE_DEFAULT,
            model=model,
        )
    ),
    *(
        recipe
        for problem, block in (("mxfp4_quantize", 32), ("nvfp4_quantize", 16))
        for recipe in cpp_recipes(
            problem,
            "blocks",
            "A row at a time; of each block the maximum, then its codes.",
            knobs=(SCHEDULE, CHUNK, VECTOR, THREADS),
            constraints=(USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR),
            default=ROWS_DEFAULT,
            model=_model_blocks(block),
        )
    ),
    *cpp_recipes(
        "mxfp4_quantize_hadamard",
        "rotated-blocks",
        "A block goes through all stages of its rotation and to its codes in registers.",
        knobs=(
            make_knob("codes", "bounds", "bits", meaning="how a size becomes a code"),
            *(SCHEDULE, CHUNK, VECTOR, THREADS),
        ),
        constraints=(USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR),
        default={**ROWS_DEFAULT, "codes": "bits"},
        model=_model_blocks(32, 30),
    ),
    *cpp_recipes(
        "stochastic_round",
        "hashed",
        "16 bits of a hash of seed and column are added below what is kept, which is then cut.",
        knobs=(
            make_knob("unroll", 1, 2, 4, meaning="vectors of a row that are rounded together"),
            VECTOR,
            SCHEDULE,
            CHUNK,
            STREAM,
            THREADS,
        ),
        constraints=(USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR),
        default={**ROWS_DEFAULT, "unroll": 2, "stream": 0},
        model=model_rows(1, 8),
    ),
)
