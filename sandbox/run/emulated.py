# SPDX-License-Identifier: Apache-2.0
"""CUDA candidates on the CPU: what `build/emulated.py` built, loaded by the ordinary runner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..builders.emulated import EXITS, SCHEDULE
from ..builders.model import Built, EmulatedVariant
from .native import native_program
from .program import Program


def emulated_program(
    built: Built, cache_dir: Path, *, variant: EmulatedVariant, schedule: str = "order"
) -> Program:
    """The program of an emulated candidate.

    Args:
        built: What was built with this variant.
        cache_dir: Where our own runner is kept.
        schedule: One of `build.emulated.schedules`: which threads and blocks go first.

    Raises:
        PrerequisiteError: there is no compiler, or it lacks the sanitizers that were asked for.
    """
    program = native_program(built, cache_dir, sanitized=variant is EmulatedVariant.ASAN)
    # Stacks are changed by hand: a sanitizer's second stack for each would not fit them.
    environment = {SCHEDULE: schedule, "ASAN_OPTIONS": "detect_stack_use_after_return=0"}
    return replace(program, environment=environment, exits=EXITS, is_timed=False)
