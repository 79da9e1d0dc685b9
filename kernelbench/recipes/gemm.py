# SPDX-License-Identifier: Apache-2.0
"""Recipes for the dense product. It knows templates and knobs only."""

from __future__ import annotations

from ..policies import HALVES
from ..recipe import Constraint, Facts, Knobs
from ._knobs import THREADS, USEFUL_THREADS, integer, make_knob, register_budget
from ._modelled import model_product
from ._render import cpp_recipes

L2_BYTES = 1 << 20
"""A common size of the second-level cache; a block of A should leave half of it to B and C."""

KNOBS = (
    make_knob("rows", 4, 6, 8, 12, meaning="rows of the tile held in registers"),
    make_knob("vectors", 1, 2, 3, 4, meaning="vectors in a row of that tile"),
    make_knob("kc", 128, 256, 512, meaning="steps of the inner dimension per block"),
    make_knob("mc", 48, 96, 192, meaning="rows of A per block"),
    make_knob("nc", 128, 256, 512, meaning="columns of B per block"),
    make_knob("unroll", 1, 4, meaning="steps of the inner dimension per turn of the loop"),
    make_knob("vector", "native", "half", meaning="width of a vector"),
    THREADS,
)
DEFAULT: Knobs = {
    "rows": 6,
    "vectors": 2,
    "kc": 256,
    "mc": 96,
    "nc": 256,
    "unroll": 4,
    "vector": "native",
    "threads": 0,
}

AS_FLOAT32 = ("tf32", "tf32x3")
"""Policies that allow more than they ask for: float32 keeps them."""


def _tile_fits(knobs: Knobs, facts: Facts) -> bool:
    return integer(knobs, "rows") * integer(knobs, "vectors") <= register_budget(facts)


def _tile_hides_latency(knobs: Knobs, _: Facts) -> bool:
    return integer(knobs, "rows") * integer(knobs, "vectors") >= 8


def _block_fits(knobs: Knobs, _: Facts) -> bool:
    return 4 * integer(knobs, "mc") * integer(knobs, "kc") <= L2_BYTES // 4


CONSTRAINTS = (
    Constraint("the tile's accumulators fit in the vector registers", _tile_fits),
    Constraint("two units with a latency of four need eight chains", _tile_hides_latency),
    Constraint("a block of A leaves room in the second-level cache", _block_fits),
    USEFUL_THREADS,
)

RECIPES = (
    *cpp_recipes(
        "gemm",
        "packed",
        "A and B are packed into panels; a tile of C stays in registers.",
        knobs=KNOBS,
        constraints=CONSTRAINTS,
        default=DEFAULT,
        model=model_product(packs_a=True),
        policies=(*HALVES, *AS_FLOAT32, "int8"),
    ),
    *cpp_recipes(
        "gemm",
        "packed-b",
        "Only B is packed; the rows of A are read where they lie.",
        knobs=KNOBS,
        constraints=CONSTRAINTS,
        default=DEFAULT,
        model=model_product(packs_a=False),
        policies=AS_FLOAT32,
    ),
)
