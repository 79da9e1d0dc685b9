# SPDX-License-Identifier: Apache-2.0
"""Recipes for layers on int8. It knows templates and knobs only."""

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
from ._modelled import Model, model_product
from ._render import cpp_recipes

KNOBS = (
    make_knob("rows", 1, 2, 3, 4, meaning="tokens of the tile held in registers"),
    make_knob("columns", 2, 3, 4, 6, meaning="outputs of that tile"),
    make_knob("mc", 16, 48, 96, meaning="tokens per block"),
    make_knob("nc", 24, 96, 384, meaning="outputs per block"),
    VECTOR,
    THREADS,
)
DEFAULT: Knobs = {"rows": 3, "columns": 3, "mc": 48, "nc": 96, "vector": "native", "threads": 0}


def _tile_fits(knobs: Knobs, facts: Facts) -> bool:
    return integer(knobs, "rows") * integer(knobs, "columns") <= register_budget(facts)


def _model(knobs: Knobs, facts: Facts) -> float:
    """The dense product's, where a tile's loads are two of its sides and nothing is packed."""
    if not {"M", "N", "K"} <= facts.keys():
        return math.nan
    known = {**knobs, "vectors": knobs["columns"], "unroll": 1, "kc": max(1, int(facts["K"]))}
    return PRODUCT(known, {**facts, "element_bytes": 1.0})


def _model_convolution(knobs: Knobs, facts: Facts) -> float:
    """The product's, of all places with filters."""
    if not {*"MCFHWR"} <= facts.keys():
        return math.nan
    depth = facts["C"] * facts["R"] ** 2
    sizes = {"M": facts["M"] * facts["H"] * facts["W"], "N": facts["F"], "K": depth}
    return _model({**knobs, "mc": max(1, int(facts["W"]))}, {**facts, **sizes})


PRODUCT: Model = model_product(packs_a=False)
CONSTRAINTS = (
    Constraint("the tile's sums fit in the vector registers", _tile_fits),
    USEFUL_THREADS,
    USEFUL_VECTOR,
)
LINEAR = tuple(
    recipe
    for problem in ("w8a8_linear", "w8a8_outlier_linear")
    for family, summary in (
        ("direct", "Codes are read where they lie, and widened to 16 bits as they are."),
        ("widened", "Activations are widened to 16 bits once, for all outputs."),
    )
    for recipe in cpp_recipes(
        problem,
        family,
        summary,
        knobs=KNOBS,
        constraints=CONSTRAINTS,
        default=DEFAULT,
        model=_model,
        policies=HALVES,
    )
)
CONVOLUTION = tuple(
    recipe
    for family, summary in (
        ("direct", "A border of the zero point is put around images, which stay codes."),
        ("widened", "Images less the zero point as 16 bits, with zeros around them."),
    )
    for recipe in cpp_recipes(
        "conv2d_w8a8",
        family,
        summary,
        knobs=(
            make_knob("rows", 1, 2, 3, 4, meaning="places of the tile held in registers"),
            make_knob("columns", 2, 3, 4, 6, meaning="filters of that tile"),
            make_knob("nc", 24, 96, 384, meaning="filters per block"),
            VECTOR,
            THREADS,
        ),
        constraints=CONSTRAINTS,
        default=DEFAULT,
        model=_model_convolution,
        policies=HALVES,
    )
)
RECIPES = (*LINEAR, *CONVOLUTION)
