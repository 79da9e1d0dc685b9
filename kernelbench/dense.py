"""What the dense problems share: structures that are axis values only, and hidden variations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ..errors import UsageError
from .problem import Axes, Structure, Workload

HARD_SIZES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 127, 257)
"""One, primes, and one more and one less than the widths of vectors and tiles."""


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
    *names: str, more: Mapping[str, tuple[int, ...]] | None = None
) -> Callable[[Structure, np.random.Generator], Iterator[Structure]]:
    """The `variations` of a dense problem: hard sizes per axis, a few long rows, all small."""

    def vary(structure: Structure, rng: np.random.Generator) -> Iterator[Structure]:
        for round_number in itertools.count():
            axes: Axes = {}
            for name in names:
                choices = (*HARD_SIZES, *(more or {}).get(name, ()))
                axes[name] = int(rng.choice(choices))
            if round_number % 8 == 0:
                axes[names[round_number // 8 % len(names)]] = 1
            if round_number % 8 == 4:
                # The workload's own row length, with few rows: the path it will be timed on.
                last = names[-1]
                axes = {name: min(axes[name], 9) for name in names}
                axes[last] = min(structure.axes[last], 8192)
            yield Structure(axes)

    return vary
