# SPDX-License-Identifier: Apache-2.0
"""The outputs of one call as they were copied, how they are held against the truth, and how much of
what was asked they answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ...kernelbench.problem import Arrays, Expected, Problem
from ...kernelbench.rows import Rows
from ...sandbox.run.gate import Coverage
from ...traces.records import Check
from ..truth import gates
from ..truth.poison import find_left
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
        return {name: ~find_left(each, self.pattern) for name, each in self.outputs.items()}

    def checks(self) -> list[Check]:
        """Every gate on every output."""
        found: list[Check] = []
        for name in self.item.expected:
            expected = self._expect(name)
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

    def _expect(self, name: str) -> Expected:
        """The right answer. Where an output is rounded at random, rows of which something was left
        out, and is filled with ours, have no bits in common with others."""
        expected = self.item.expected[name]
        if expected.streams is None or name not in self.known:
            return expected
        is_whole = self.known[name].reshape(len(expected.streams), -1).all(1)
        _, streams = np.unique(expected.streams, return_inverse=True)
        own = len(streams) + np.arange(len(streams))
        return replace(expected, streams=np.where(is_whole, streams.reshape(-1), own))

    def _fill_unjudged(self, name: str, expected: Expected) -> np.ndarray:
        """The output, with the right answer wherever none is judged."""
        got = self.outputs[name]
        if name not in self.known:
            return got
        right = expected.store_as(got.dtype)
        return np.where(self.known[name], got, np.broadcast_to(right, got.shape))

    def failure(self) -> Check | None:
        """The first gate that did not hold."""
        return gates.first_failure(self.checks())


@dataclass
class AnsweredShare:
    """How much of what it was asked a candidate has answered; all of it but in emulation."""

    calls: int = 0
    partial: int = 0
    """Calls of which some programs were left out."""
    unanswered: int = 0
    """Calls without any answer that can be judged."""
    judged: int = 0
    """Elements."""
    elements: int = 0
    largest: tuple[int, int] = (0, 0)
    """The most programs that one partial call has, and how many of them ran."""

    def add(self, coverage: Coverage, answer: Answer) -> None:
        """Counts one call."""
        size = sum(array.size for array in answer.outputs.values())
        known = [int(mask.sum()) for mask in answer.known.values()]
        judged = sum(known) if coverage.is_partial else size
        self.calls += 1
        self.elements += size
        self.judged += judged
        if coverage.is_partial:
            self.partial += 1
            self.unanswered += not judged
            ran = coverage.programs - coverage.left_out
            self.largest = max(self.largest, (coverage.programs, ran))
