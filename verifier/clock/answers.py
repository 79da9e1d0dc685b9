# SPDX-License-Identifier: Apache-2.0
"""The outputs of one call as they were copied, and how they are held against the truth."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...kernelbench.problem import Arrays, Expected, Problem
from ...kernelbench.rows import Rows
from ...traces.records import Check
from ..truth import gates
from ..truth.trials import Item


@dataclass(frozen=True)
class Answer:
    """The outputs of one call with the truth they are held against."""

    problem: Problem
    item: Item
    outputs: Arrays
    pattern: int
    seen: tuple[Check, ...]
    """What was found when it was copied."""
    known: Arrays = field(default_factory=dict)
    """Which elements of each output are to be judged, where a call has left some out."""
    rows: Rows | None = None
    """Which rows these are of a large answer."""

    def find_written(self) -> Arrays:
        """Which elements were written."""
        bits = {name: array.view(np.uint32) for name, array in self.outputs.items()}
        return {name: each != np.uint32(self.pattern) for name, each in bits.items()}

    def checks(self) -> list[Check]:
        """Every gate on every output."""
        found: list[Check] = []
        for name, expected in self.item.expected.items():
            found += gates.check_output(
                name,
                self._fill_unjudged(name, expected),
                expected,
                self.problem.precision,
                self.item.family,
                poison=self.pattern,
                places=self.rows.of(self.problem, name) if self.rows else None,
            )
        # After the gates, which say more: an answer that is wrong differs here as well.
        return [*found, *self.seen]

    def _fill_unjudged(self, name: str, expected: Expected) -> np.ndarray:
        """The output, with the right answer wherever none is judged."""
        got = self.outputs[name]
        if name not in self.known:
            return got
        with np.errstate(all="ignore"):
            right = np.asarray(expected.value).astype(got.dtype)
        return np.where(self.known[name], got, np.broadcast_to(right, got.shape))

    def failure(self) -> Check | None:
        """The first gate that did not hold."""
        return gates.first_failure(self.checks())
