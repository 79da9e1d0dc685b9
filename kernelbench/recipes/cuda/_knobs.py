# SPDX-License-Identifier: Apache-2.0
"""Knobs and constraints that several recipes in CUDA C++ share."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...recipe import Constraint, Facts, Knobs
from ...targets import MAX_THREADS_PER_BLOCK, SHARED_WITHOUT_OPT_IN, WARP
from .._knobs import integer, make_knob

VECTOR = make_knob(
    "vector", 1, 2, 4, meaning="floats read and written at once, where rows allow it"
)
UNROLL = make_knob("unroll", 1, 2, 4, 8, meaning="turns of the innermost loop in flight")
ROWS = make_knob("rows", 1, 2, 4, 8, 16, meaning="rows per block")
THREADS = make_knob("threads", 64, 128, 256, 512, meaning="threads per block")
LANES = make_knob("lanes", 2, 4, 8, 16, 32, meaning="threads that share a row")


def product(knobs: Knobs, *names: str) -> int:
    """Of integer knobs."""
    return math.prod(integer(knobs, name) for name in names)


def fits_block(threads: Callable[[Knobs], int], fewest: int = WARP) -> Constraint:
    """A block of so many threads can be launched, in whole warps, and is worth it."""

    def holds(knobs: Knobs, _: Facts) -> bool:
        count = threads(knobs)
        return fewest <= count <= MAX_THREADS_PER_BLOCK and count % WARP == 0

    return Constraint(
        f"a block has whole warps, at least {fewest} threads and at most {MAX_THREADS_PER_BLOCK}",
        holds,
    )


def fits_shared(size: Callable[[Knobs], int]) -> Constraint:
    """So many bytes can be declared statically."""
    return Constraint(
        f"a block declares at most {SHARED_WITHOUT_OPT_IN} bytes of shared memory",
        lambda knobs, _: size(knobs) <= SHARED_WITHOUT_OPT_IN,
    )
