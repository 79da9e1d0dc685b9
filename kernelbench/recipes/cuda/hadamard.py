# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for the Walsh-Hadamard transform of rows.

All stages within a segment of neighbours are made by one block, those across segments by a second
launch: the transform of a longer row is that of its segments, and then of their elements.
"""

from __future__ import annotations

from ...recipe import Constraint, Facts, Knobs, Recipe
from ...sizes import POWER_OF_2
from ...targets import MAX_THREADS_PER_BLOCK, WARP
from .._front_matter import LaunchPlan
from .._knobs import integer, make_knob
from ._knobs import THREADS
from ._recipe import cuda_recipe, launch

SEGMENT = make_knob("segment", 1024, 2048, 4096, 8192, meaning="elements of a block")
RADIX = make_knob("radix", 2, 4, 8, 16, meaning="elements that a thread has in registers")
DEFAULT: Knobs = {"segment": 2048, "radix": 8, "threads": 256}


def _plan(knobs: Knobs) -> LaunchPlan:
    segment = integer(knobs, "segment")
    threads = "SEGMENT // RADIX" if "radix" in knobs else "THREADS"
    within = launch(
        "hadamard", grid=["cdiv(M * N, SEGMENT)"], block=[threads], args=["M", "N", "x", "y"]
    )
    powers = [1 << power for power in range(1, POWER_OF_2.most.bit_length())]
    across = [
        launch(
            f"hadamard_across<{count}>",
            when=[f"N == {count} * SEGMENT"],
            grid=["cdiv(M * SEGMENT, 256)"],
            block=[256],
            args=["M", "N", "y"],
        )
        for count in powers
        if count * segment <= POWER_OF_2.most
    ]
    return LaunchPlan([within, *across])


def _fits_block(knobs: Knobs, _: Facts) -> bool:
    return WARP <= integer(knobs, "segment") // integer(knobs, "radix") <= MAX_THREADS_PER_BLOCK


RECIPES: tuple[Recipe, ...] = (
    cuda_recipe(
        "hadamard_transform",
        "radix",
        "A thread makes several stages in registers; shared memory turns what lies between.",
        template="hadamard_transform",
        knobs=(SEGMENT, RADIX),
        constraints=(Constraint("a block has 32 to 1024 threads", _fits_block),),
        default=DEFAULT,
        plan=_plan,
    ),
    cuda_recipe(
        "hadamard_transform",
        "stages",
        "One stage after the other in shared memory.",
        template="hadamard_transform",
        knobs=(SEGMENT, THREADS),
        constraints=(),
        default=DEFAULT,
        plan=_plan,
    ),
)
