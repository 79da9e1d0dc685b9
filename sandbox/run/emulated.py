# SPDX-License-Identifier: Apache-2.0
"""CUDA candidates on the CPU: what `build/emulated.py` built, loaded by the ordinary runner."""

from __future__ import annotations

from dataclasses import replace

from ..builders.emulated import EXITS, SCHEDULE
from ..builders.model import Built, EmulatedVariant
from ..builders.workshop import Workshop
from .native import native_program
from .program import Program


def emulated_program(
    workshop: Workshop, built: Built, *, variant: EmulatedVariant, schedule: str = "order"
) -> Program:
    """The program of an emulated candidate.

    Args:
        built: What was built with this variant.
        schedule: One of `build.emulated.schedules`: which threads and blocks go first.

    Raises:
        PrerequisiteError: there is no compiler, or it lacks the sanitizers that were asked for.
    """
    program = native_program(workshop, built, sanitized=variant is EmulatedVariant.ASAN)
    # Stacks are changed by hand: a sanitizer's second stack for each would not fit them.
    environment = {SCHEDULE: schedule, "ASAN_OPTIONS": "detect_stack_use_after_return=0"}
    return replace(program, environment=environment, exits=EXITS, is_timed=False)
