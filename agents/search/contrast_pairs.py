# SPDX-License-Identifier: Apache-2.0
"""Which variants are shown side by side, and what a group's scores are: pure functions (CUDA-L1).

Variants stand in buckets of like score. Distinct buckets give contrast, a softmax over their means
keeps them competitive. Scores are logarithms of what ranks a candidate, since gains multiply.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence

BUCKETS = 5
"""The paper does not say; so few that a handful of variants already fills several."""

LEAST_BUCKETS = 3
"""With fewer there is no choice, and drafting another variant teaches more."""

CLIP = 1.5
"""Of a group's normalised score (CUDA-L1)."""


def buckets(scores: Mapping[str, float]) -> list[list[str]]:
    """Candidates by quantiles of log score, slow to fast; empty buckets are left out."""
    logs = {candidate: math.log(score) for candidate, score in scores.items() if score > 0}
    if len(logs) < 2:
        return [list(logs)] if logs else []
    edges = statistics.quantiles(logs.values(), n=BUCKETS, method="inclusive")
    found: dict[int, list[str]] = {}
    for candidate in sorted(logs, key=lambda c: (logs[c], c)):
        # Equal scores fall into one bucket, whatever the rank.
        found.setdefault(sum(logs[candidate] > edge for edge in edges), []).append(candidate)
    return [found[number] for number in sorted(found)]


def chances(filled: Sequence[Sequence[str]], scores: Mapping[str, float]) -> list[float]:
    """How likely each bucket is: exp((mean of the bucket - mean of all) / temperature)."""
    logs = {c: math.log(scores[c]) for bucket in filled for c in bucket}
    mean = statistics.fmean(logs.values())
    temperature = statistics.pstdev(logs.values()) or 1.0
    weights = [
        math.exp((statistics.fmean(logs[c] for c in bucket) - mean) / temperature)
        for bucket in filled
    ]
    return [weight / sum(weights) for weight in weights]


def draw(scores: Mapping[str, float], count: int, rng: random.Random) -> tuple[str, ...]:
    """Variants of distinct buckets, slow to fast; none where too few buckets are filled."""
    filled = buckets(scores)
    if len(filled) < max(LEAST_BUCKETS, count):
        return ()
    left = list(range(len(filled)))
    weights = chances(filled, scores)
    chosen: list[int] = []
    for _ in range(count):
        chosen.append(rng.choices(left, [weights[number] for number in left])[0])
        left.remove(chosen[-1])
    return tuple(rng.choice(filled[number]) for number in sorted(chosen))


def group_score(candidate: str, scores: Mapping[str, float]) -> float:
    """clip((log s - mean) / deviation, -1.5, 1.5) within the group: for exports, never to promote.

    A candidate that failed has the lowest.
    """
    if scores.get(candidate, 0.0) <= 0:
        return -CLIP
    logs = [math.log(score) for score in scores.values() if score > 0]
    deviation = statistics.pstdev(logs)
    if not deviation:
        return 0.0
    value = (math.log(scores[candidate]) - statistics.fmean(logs)) / deviation
    return max(-CLIP, min(CLIP, value))
