# SPDX-License-Identifier: Apache-2.0
"""What each technique was worth, by what bounds the kernel it was tried on: a fold over credits.

The table is a result by itself (bottleneck, technique, observed gain, count), and Thompson sampling
over it chooses what is tried next. It holds figures of the referee and no word of a model.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

LEAST_GAIN = math.log(1.01)
"""A gain of 1 % in what ranks: less is noise."""


class Credit(NamedTuple):
    """One technique that one candidate really used."""

    technique: str
    bound: str
    gain: float
    """ln(new / old) of the score; of a candidate that failed, minus infinity."""


class Tally(NamedTuple):
    """What is known of one technique on kernels with one bound."""

    tried: int = 0
    gained: int = 0
    """How often it gained more than 1 %."""
    best: float = 0.0
    total: float = 0.0
    """Sum of the gains of candidates that were right."""
    right: int = 0

    @property
    def mean(self) -> float:
        """Mean gain of the candidates that were right."""
        return self.total / self.right if self.right else 0.0


Table = Mapping[tuple[str, str], Tally]
"""By technique and bound."""


def table(credits: Iterable[Credit]) -> dict[tuple[str, str], Tally]:
    """The fold."""
    found: dict[tuple[str, str], Tally] = {}
    for credit in credits:
        key = (credit.technique, credit.bound)
        tally = found.get(key, Tally())
        is_right = math.isfinite(credit.gain)
        gain = credit.gain if is_right else 0.0
        found[key] = Tally(
            tally.tried + 1,
            tally.gained + (credit.gain > LEAST_GAIN),
            max(tally.best, gain),
            tally.total + gain,
            tally.right + is_right,
        )
    return found


def draw(
    known: Table, techniques: Sequence[str], bound: str, count: int, rng: random.Random
) -> tuple[str, ...]:
    """Thompson sampling: the techniques with the highest draws from what is believed of them.

    A technique that was never tried may be anything between useless and certain.
    """

    def belief(technique: str) -> float:
        tally = known.get((technique, bound), Tally())
        return rng.betavariate(1 + tally.gained, 1 + tally.tried - tally.gained)

    drawn = {technique: belief(technique) for technique in techniques}
    return tuple(sorted(drawn, key=lambda technique: -drawn[technique])[:count])


_DETECTORS = {
    "coalesced-vector-access": r"float4|int4|float2|make_float4",
    "simd-vectors": r"vector_size|_mm\d*_\w+|omp simd",
    "shared-memory-tiling": r"__shared__",
    "warp-shuffle-reduction": r"__shfl",
    "asynchronous-copy": r"cp\.async|memcpy_async|__pipeline",
    "software-prefetch": r"__builtin_prefetch|_mm_prefetch|prefetch",
    "tensor-cores": r"wmma|mma\.sync|tl\.dot",
    "occupancy-limit": r"__launch_bounds__|maxnreg|num_warps",
    "cache-hints": r"__ldg|__ldc[sgav]|evict_|eviction_policy|cache_modifier",
    "streaming-stores": r"_mm\d*_stream|__stcs|__builtin_nontemporal",
    "loop-unrolling": r"unroll|static_range",
    "fast-intrinsics": r"__expf|__fdividef|__frcp|rsqrtf|__logf",
}
"""What the use of a technique looks like in a source, where it looks like something."""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


class Use(NamedTuple):
    """Whether a candidate uses a technique that it was asked to use."""

    is_used: bool
    is_disputed: bool
    """Source and declaration do not agree."""


def use(technique: str, before: str, after: str, declared: Sequence[str]) -> Use:
    """By the source where that shows it, and by what the Coder declared where the source changed.

    Args:
        before: The source that was extended; empty: there was none.
    """
    is_declared = technique in declared
    pattern = _DETECTORS.get(technique)
    changed = _COMMENT.sub("", before).split() != _COMMENT.sub("", after).split()
    if pattern is None:
        return Use(is_declared and changed, False)
    was, now = (len(re.findall(pattern, _COMMENT.sub("", text))) for text in (before, after))
    is_seen = now > was
    return Use(changed and is_seen, is_seen != is_declared)
