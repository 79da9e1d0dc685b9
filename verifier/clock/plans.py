# SPDX-License-Identifier: Apache-2.0
"""Plans of patterns: which a candidate has made at the slots of a placement, and what that took.

It asks for a plan and keeps words of it; CandidateSide says when one is due, and judges it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...kernelbench.problem import Structure
from ...sandbox.frames import SUMMED_WORDS
from ...sandbox.run.arena import Slot
from ...sandbox.run.process import Runner, Timed
from ..truth.poison import Marks
from .clocks import Clocks

PATIENCE = 10.0
"""The deadline of preparing a pattern is this many times a call's."""


@dataclass(frozen=True)
class _Made:
    """A plan at one slot."""

    structure: Structure
    words: np.ndarray
    """Some of its words, where they lie."""
    held: np.ndarray
    """What they were as it was done."""


class Plans:
    """Of one process, from one placement to the next."""

    def __init__(self, runner: Runner) -> None:
        self.us: list[float] = []
        """Of each time that the pattern which was placed was prepared."""
        self._runner = runner
        self._made: dict[int, _Made] = {}
        self._placed: Structure | None = None
        # A generator of its own: nobody knows which words are looked at.
        self._lots = np.random.default_rng()

    def begin(self, placed: Structure) -> None:
        """Forgets all of them: this pattern was placed, at addresses that are new."""
        self.us, self._made, self._placed = [], {}, placed

    def lack(self, slot: Slot, structure: Structure) -> bool:
        """Whether no plan of this pattern is at a slot."""
        made = self._made.get(slot.index)
        return made is None or made.structure is not structure

    def make(
        self, slot: Slot, structure: Structure, release: Callable[[], None], timeout_s: float
    ) -> Timed:
        """Has it made; `release` writes the pattern. Raises RunFault."""
        runner = self._runner
        timed = runner.prepare(slot.index, timeout_s=PATIENCE * timeout_s, release=release)
        words = words_of(slot)
        step = words.size // SUMMED_WORDS + 1
        looked_at = words[int(self._lots.integers(step)) :: step]
        self._made[slot.index] = _Made(structure, looked_at, looked_at.copy())
        if structure is self._placed:
            overhead_us = runner.overhead_us
            us = Clocks().add(timed, runner.clean, runner.cpus, overhead_us=overhead_us)
            self.us.append(us)
        return timed

    def watch(self, slot: Slot, marks: Marks) -> None:
        """Has words of a slot's plan looked at with its guard bands: a call leaves them alone."""
        if made := self._made.get(slot.index):
            marks.keep(made.words, made.held)


def words_of(slot: Slot) -> np.ndarray:
    """A slot's plan as words."""
    assert slot.plan is not None
    return slot.plan[: slot.plan.size // 4 * 4].view(np.uint32)
