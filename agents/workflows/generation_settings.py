# SPDX-License-Identifier: Apache-2.0
"""What may be set of `evolve`: known to its steps and to what plans a generation."""

from __future__ import annotations

from pydantic import Field

from ...traces.records import Record


class Settings(Record):
    """What may be set. Where no source is named the number is a start to be tuned by comparison."""

    generations: int = Field(default=40, ge=1)
    """As KernelFoundry quotes the robust-kbench agent; `--rounds` counts more."""
    proposals: int = Field(default=8, ge=1, le=64)
    """In a generation (robust-kbench)."""
    evaluated: int = Field(default=4, ge=1)
    """Of a generation, where soft verifiers choose (robust-kbench)."""
    abreast: int = Field(default=4, ge=1)
    """Slots of one wave: so many do not know of each other."""
    islands: int = Field(default=4, ge=1)
    migrate_every: int = Field(default=10, ge=0)
    """Generations; 0: never (ShinkaEvolve, KernelFoundry: 10)."""
    kept_per_niche: int = Field(default=2, ge=1)
    exemplars: int = Field(default=5, ge=2)
    """Correct kernels in a crossover, slow to fast (robust-kbench)."""
    soft: bool = False
    """Soft verifiers before the evaluation. They only pay where building is slow."""
    reflect_every: int = Field(default=4, ge=0)
    """Generations between two looks back for lessons; 0: never."""
    judged: bool = True
    """Whether the leader of each generation is diagnosed for its next edit."""
