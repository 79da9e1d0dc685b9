# SPDX-License-Identifier: Apache-2.0
"""Recipes for operators on the rows of a dense matrix. It knows templates and knobs only."""

from __future__ import annotations

import math

from ..policies import HALVES
from ..recipe import Facts, Knob, Knobs, Recipe
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
from ._modelled import DIVISION_FLOPS, EXP_FLOPS, Model, model_heads, model_rows
from ._render import cpp_recipes

GELU_FLOPS = EXP_FLOPS + DIVISION_FLOPS + 8
SILU_FLOPS = EXP_FLOPS + DIVISION_FLOPS + 3
UNROLL = make_knob("unroll", 1, 2, 4, 8, meaning="independent vectors in flight")
DEFAULT: Knobs = {
    "vector": "native",
    "unroll": 4,
    "schedule": "static",
    "chunk": 16,
    "stream": 0,
    "threads": 0,
    "block": 1024,
    "group": 2,
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


SOFTMAX = (
    *_recipes(
        "softmax",
        "three-pass",
        "Maximum; exponentials into the output with their sum; scaling in place.",
        model_rows(2, EXP_FLOPS + 4, writes_twice=1),
        policies=(),  # exponentials that wait in a narrow output would be rounded twice
    ),
    *_recipes(
        "softmax",
        "online",
        "One pass for maximum and sum, one that computes exponentials anew and writes.",
        model_rows(2, 2 * EXP_FLOPS + 4),
        make_knob("block", 256, 1024, 4096, meaning="floats that share one maximum"),
    ),
    *_recipes(
        "softmax",
        "buffered",
        "Exponentials wait in a buffer of one row; the output is written once.",
        model_rows(2, EXP_FLOPS + 4),
        stream=1,
    ),
)

SOFTMAX_BACKWARD = (
    *_recipes(
        "softmax_backward",
        "two-pass",
        "A row's sum of y dy; then its gradient.",
        model_rows(2, 5, tensors=3),
        stream=1,
    ),
)

LAYERNORM = (
    *_recipes(
        "layernorm",
        "two-pass",
        "Mean; distances from it; the scaled output.",
        model_rows(3, 8),
        unroll=8,
        stream=1,
    ),
    *_recipes(
        "layernorm",
        "blocked",
        "One pass over memory: mean and spread per block, merged; then the scaled output.",
        model_rows(2, 9),
        make_knob("block", 256, 1024, 4096, meaning="floats per block"),
        stream=1,
    ),
)

RMSNORM = (
    *_recipes(
        "rmsnorm",
        "row-wise",
        "A row's squares, then its scaled output.",
        model_rows(2, 5),
        stream=1,
    ),
    *_recipes(
        "rmsnorm",
        "row-group",
        "Several rows together, so that gamma is loaded once for all.",
        model_rows(2, 4.5),
        make_knob("group", 2, 4, 8, meaning="rows made together"),
        stream=1,
    ),
)


def _elementwise(problem: str, flops: float, tensors: int = 2) -> tuple[Recipe, ...]:
    """Of what each element becomes by itself; its template includes `_combine.cpp.j2`."""
    return (
        *_recipes(
            problem,
            "row-wise",
            "Rows are dealt to threads.",
            model_rows(1, flops, tensors=tensors),
            unroll=8,
            stream=1,
        ),
        *_recipes(
            problem,
            "flat",
            "Equal pieces of the whole matrix are dealt, so that long rows are shared.",
            model_rows(1, flops, tensors=tensors, block="block"),
            make_knob("block", 1024, 4096, 16384, 65536, meaning="floats per piece"),
            block=16384,
            unroll=8,
            stream=1,
        ),
    )


BIAS_GELU = _elementwise("bias_gelu", GELU_FLOPS)
SWIGLU = _elementwise("swiglu", SILU_FLOPS, tensors=3)

ROPE = (
    *_recipes(
        "rope", "by-head", "Heads of all tokens are dealt to threads.", model_heads(3), stream=1
    ),
    *_recipes(
        "rope",
        "head-group",
        "Several heads of a token together, so that its cosines and sines are loaded once for all.",
        model_heads(3),
        make_knob("group", 2, 4, 8, meaning="heads turned together"),
        stream=1,
    ),
)

RESIDUAL_RMSNORM = (
    *_recipes(
        "residual_rmsnorm",
        "two-pass",
        "Squares and the largest product with gamma in one pass; then the codes.",
        model_rows(2, 8, tensors=4),
        stream=1,
    ),
    *_recipes(
        "residual_rmsnorm",
        "three-pass",
        "Squares; then the largest product with gamma; then the codes.",
        model_rows(3, 9, tensors=4),
        stream=1,
    ),
)

RADIX = make_knob("radix", 2, 4, 8, 16, meaning="vectors whose stages are made in registers")


def _hadamard(
    family: str, summary: str, *more: Knob, policies: tuple[str, ...] = ()
) -> tuple[Recipe, ...]:
    return cpp_recipes(
        "hadamard_transform",
        family,
        summary,
        knobs=(VECTOR, RADIX, SCHEDULE, CHUNK, THREADS, *more),
        constraints=(USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR),
        default={**DEFAULT, "radix": 8, "stream": 1},
        model=_model_hadamard,
        policies=policies,
    )


def _model_hadamard(knobs: Knobs, facts: Facts) -> float:
    """Rows that log2 N stages go over, each with as many chains as vectors lie in registers."""
    return model_rows(2, 2 * math.log2(facts.get("N", 1.0)) + 2)(
        {**knobs, "unroll": knobs["radix"]}, facts
    )


HADAMARD = (
    *_hadamard("in-place", "What lies between two passes waits in the output."),
    *_hadamard(
        "buffered",
        "What lies between two passes waits in a buffer of one row; the output is written once.",
        STREAM,
        policies=HALVES,
    ),
)

RECIPES = (
    *(*SOFTMAX, *SOFTMAX_BACKWARD, *LAYERNORM, *RMSNORM, *BIAS_GELU),
    *(*RESIDUAL_RMSNORM, *SWIGLU, *ROPE, *HADAMARD),
)
