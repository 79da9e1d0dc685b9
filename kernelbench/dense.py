# SPDX-License-Identifier: Apache-2.0
"""What the dense problems share: structures that are axis values only, and hidden variations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ..errors import UsageError
from .problem import Axes, Structure, Workload

HARD_SIZES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 127, 257)
"""One, primes, and one more and one less than the widths of vectors and tiles."""
WIDE = (1 << 16) + 2048
"""Beyond what 16 bits can count."""
MOST_ELEMENTS = 1 << 18
"""Of the first two axes together: what is hidden stays small."""
WIDE_ROUND = 5
"""One variation in this many is wide, beginning with the first: three axes have their turn in one
evaluation."""


def structure_maker(*names: str) -> Callable[[Workload], Structure]:
    """The `structure` function of a dense problem with these axes."""

    def make(workload: Workload) -> Structure:
        for name in names:
            if workload.axes.get(name, 0) < 1:
                raise UsageError(
                    f"workload '{workload.name}' gives {workload.axes.get(name)} for axis {name}",
                    hint="every axis needs a value of at least 1",
                )
        return Structure({name: workload.axes[name] for name in names})

    return make


def variations_of(
    *names: str, wide: tuple[str, ...], more: Mapping[str, tuple[int, ...]] | None = None
) -> Callable[[Structure, np.random.Generator], Iterator[Structure]]:
    """The `variations` of a dense problem: hard sizes per axis, a few long rows, all small.

    Args:
        names: its axes, in order.
        wide: those that may be beyond 16 bits while the others are tiny.
        more: further sizes of an axis.
    """

    def vary(structure: Structure, rng: np.random.Generator) -> Iterator[Structure]:
        start = int(rng.integers(len(wide)))
        for round_number in itertools.count():
            axes: Axes = {}
            for name in names:
                choices = (*HARD_SIZES, *(more or {}).get(name, ()))
                axes[name] = int(rng.choice(choices))
            if round_number % WIDE_ROUND == 0:
                axes = dict.fromkeys(names, 2)
                chosen = wide[(start + round_number // WIDE_ROUND) % len(wide)]
                axes[chosen] = WIDE + int(rng.integers(0, 4096))
            elif round_number % 8 == 1:
                axes[names[round_number // 8 % len(names)]] = 1
            elif round_number % 8 == 4:
                # The workload's own row length, with few rows: the path it will be timed on.
                last = names[-1]
                axes = {name: min(axes[name], 9) for name in names}
                axes[last] = min(structure.axes[last], 8192)
            first, second = names[:2]
            axes[first] = min(axes[first], MOST_ELEMENTS // axes[second])
            yield Structure(axes)

    return vary
