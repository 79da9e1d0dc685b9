# SPDX-License-Identifier: Apache-2.0
"""Recipes for arithmetic on integers and narrow codes. It knows templates and knobs only."""

from __future__ import annotations

from ..recipe import Facts, Knobs
from ._knobs import (
    CHUNK,
    SCHEDULE,
    STREAM,
    THREADS,
    USEFUL_CHUNK,
    USEFUL_THREADS,
    USEFUL_VECTOR,
    VECTOR,
    make_knob,
)
from ._modelled import WIDTH, Model, model_rows
from ._render import cpp_recipes

UNROLL = make_knob("unroll", 1, 2, 4, meaning="vectors or numbers of a row under way together")
LOOKUP = make_knob("lookup", "scalar", "gather", meaning="how a vector's numbers are looked up")
ROWS_DEFAULT: Knobs = {
    "lookup": "scalar",
    "unroll": 2,
    "schedule": "static",
    "chunk": 16,
    "vector": "native",
    "threads": 0,
    "stream": 0,
}
CONSTRAINTS = (USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR)


def _model_bytes(flops: float, width: float) -> Model:
    """Of rows whose elements have so many bytes, the mean of what is read and what is written."""
    rows = model_rows(1, flops)

    def model(knobs: Knobs, facts: Facts) -> float:
        return rows(knobs, {**facts, WIDTH: width})

    return model


RECIPES = (
    *(
        recipe
        for family, summary in (
            ("computed", "Exponentials of a vector at once; its whole part by a float division."),
            ("table", "Differences to the maximum are looked up among 256 exponentials."),
        )
        for recipe in cpp_recipes(
            "shiftmax",
            family,
            summary,
            knobs=(UNROLL, SCHEDULE, CHUNK, VECTOR, THREADS),
            constraints=CONSTRAINTS,
            default=ROWS_DEFAULT,
            model=_model_bytes(20 if family == "computed" else 8, 1.0),
        )
    ),
    *cpp_recipes(
        "shiftgelu",
        "table",
        "Answers of a maximum's 256 numbers are worked out once, and looked up.",
        knobs=(LOOKUP, UNROLL, SCHEDULE, CHUNK, STREAM, VECTOR, THREADS),
        constraints=CONSTRAINTS,
        default=ROWS_DEFAULT,
        model=_model_bytes(8, 2.5),
    ),
    *(
        recipe
        for family, summary in (
            ("two-pass", "The sum of a row first, then the squares of differences to its mean."),
            ("one-pass", "Sums and squares at once, of differences to the row's first number."),
        )
        for recipe in cpp_recipes(
            "int_layernorm",
            family,
            summary,
            knobs=(UNROLL, SCHEDULE, CHUNK, STREAM, VECTOR, THREADS),
            constraints=CONSTRAINTS,
            default=ROWS_DEFAULT,
            model=_model_bytes(10 if family == "two-pass" else 9, 4.0),
        )
    ),
)
