# SPDX-License-Identifier: Apache-2.0
"""Which few candidates together leave the least regret: chosen one after the other."""

from __future__ import annotations

import numpy as np

LEAST_GAIN = 0.002
"""Mean logarithm of time that one more candidate has to bring: a fifth of a percent."""


def choose_together(regret: np.ndarray, most: int) -> list[int]:
    """At most so many candidates, the one that helps most first; at least one.

    Args:
        regret: [workload, candidate] logarithm of its time over the best one's.
        most: At least 1.
    """
    chosen: list[int] = []
    left = np.full(len(regret), np.inf)
    while len(chosen) < most:
        means = np.minimum(left[:, None], regret).mean(axis=0)
        best = int(means.argmin())
        if chosen and left.mean() - means[best] < LEAST_GAIN:
            break
        chosen.append(best)
        left = np.minimum(left, regret[:, best])
    return chosen
