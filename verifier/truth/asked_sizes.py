# SPDX-License-Identifier: Apache-2.0
"""Hidden sizes within what a user asked for: between the smallest and largest of several workloads.

The problem's own hidden shapes are drawn from its axes' whole ranges, whatever is timed. Where a
kernel is to serve many sizes, some trials lie between those that are timed, evenly by their
logarithm: nobody who looks at the timed ones knows them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ...kernelbench.problem import Problem, Structure, Workload
from ...traces.records import Depth

MOST_BYTES = 16 << 20
"""Of one call at such a size: values of more take as long to draw as a dozen hidden shapes."""
_ATTEMPTS = 16
_COUNT = {Depth.SCREEN: 1, Depth.RACE: 1}
_USUAL_COUNT = 6


@dataclass(frozen=True)
class AskedSizes:
    """The least and the most of each axis over several workloads, and one of these."""

    workload: Workload
    ranges: Mapping[str, tuple[int, int]]

    @classmethod
    def between(cls, workload: Workload) -> AskedSizes | None:
        """Of several workloads; None where they do not differ in a size that can be chosen."""
        sizes: dict[str, list[int]] = {}
        for part in workload.parts:
            for axis, size in part.workload.axes.items():
                sizes.setdefault(axis, []).append(size)
        ranges = {axis: (min(each), max(each)) for axis, each in sizes.items()}
        is_wide = any(high > low + 1 for low, high in ranges.values())
        return cls(workload.first, ranges) if is_wide else None

    def draw(
        self, problem: Problem, depth: Depth, rng: np.random.Generator
    ) -> list[tuple[str, Structure]]:
        """Some structures of such sizes; fewer where most are large."""
        fits = (
            (f"between your sizes ({sizes})", problem.structure(workload))
            for sizes, workload in itertools.islice(self._workloads(rng), _ATTEMPTS)
        )
        small = (found for found in fits if problem.bytes_moved(found[1].axes) <= MOST_BYTES)
        return list(itertools.islice(small, _COUNT.get(depth, _USUAL_COUNT)))

    def _workloads(self, rng: np.random.Generator) -> Iterator[tuple[str, Workload]]:
        while True:
            axes = {
                axis: round(math.exp(rng.uniform(math.log(low), math.log(high))))
                for axis, (low, high) in self.ranges.items()
            }
            sizes = ", ".join(f"{axis}={size}" for axis, size in axes.items())
            yield sizes, self.workload.model_copy(update={"axes": {**self.workload.axes, **axes}})
