"""Recipes for operators that work on each row of a dense matrix. It knows templates and knobs only."""

from __future__ import annotations

from ..recipe import Recipe
from ._knobs import (
    CHUNK,
    SCHEDULE,
    STREAM,
    THREADS,
    USEFUL_CHUNK,
    USEFUL_THREADS,
    USEFUL_VECTOR,
    VECTOR,
    chosen,
)
from ._render import renderer

UNROLL = chosen("unroll", 1, 2, 4, 8, meaning="independent vectors in flight")
COMMON = (VECTOR, UNROLL, SCHEDULE, CHUNK, STREAM, THREADS)
CONSTRAINTS = (USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR)
DEFAULT = {
    "vector": "native",
    "unroll": 4,
    "schedule": "static",
    "chunk": 16,
    "stream": 0,
    "threads": 0,
}


def _softmax() -> tuple[Recipe, ...]:
    block = chosen("block", 256, 1024, 4096, meaning="floats that share one maximum")
    return (
        Recipe(
            problem="softmax",
            family="three-pass",
            language="cpp",
            summary="Maximum; exponentials into the output with their sum; scaling in place.",
            knobs=COMMON,
            render=renderer("softmax.cpp.j2", "three-pass", COMMON),
            constraints=CONSTRAINTS,
            default=DEFAULT,
        ),
        Recipe(
            problem="softmax",
            family="online",
            language="cpp",
            summary="One pass for maximum and sum, one that recomputes exponentials and writes.",
            knobs=(*COMMON, block),
            render=renderer("softmax.cpp.j2", "online", (*COMMON, block)),
            constraints=CONSTRAINTS,
            default={**DEFAULT, "block": 1024},
        ),
        Recipe(
            problem="softmax",
            family="buffered",
            language="cpp",
            summary="Exponentials wait in a buffer of one row; the output is written once.",
            knobs=COMMON,
            render=renderer("softmax.cpp.j2", "buffered", COMMON),
            constraints=CONSTRAINTS,
            default={**DEFAULT, "stream": 1},
        ),
    )


RECIPES = _softmax()
