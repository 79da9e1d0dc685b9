"""One side of a paired timing: something that is given fresh inputs and is called.

A candidate's side poisons its outputs before each call and holds every answer against the truth
afterwards, so that the calls that are timed are the calls that are checked (verification.md,
finding 3). Baselines get their inputs the same way, in the same kind of memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..kernelbench.problem import Arrays, Problem, Structure
from ..sandbox.run.process import Runner
from ..traces.records import Check
from . import gates, poison
from .arena import GUARD_BYTES, Arena, Slot
from .baselines import BaselineProcess
from .trials import Item


class Wrong(Exception):
    """An answer was wrong; carries the failed check."""

    def __init__(self, check: Check) -> None:
        super().__init__(check.detail)
        self.check = check


class Side(Protocol):
    """What the sampler times."""

    name: str

    def take(self, items: list[Item], first: int) -> float:
        """Copies the items into consecutive slots from `first`, calls; microseconds per call."""


@dataclass
class BaselineSide:
    """One baseline of the baseline process."""

    name: str
    process: BaselineProcess
    baseline: str = ""
    """The baseline's own name, where the side goes by another."""

    def take(self, items: list[Item], first: int) -> float:
        """See Side."""
        slots = self.process.slots[first : first + len(items)]
        for slot, item in zip(slots, items, strict=True):
            for name, array in item.inputs.items():
                slot.inputs[name][...] = array
            for output in slot.outputs.values():
                output.fill(0)
        return self.process.call(self.baseline or self.name, slots) / 1e3 / len(items)


@dataclass
class Clocks:
    """What the referee saw of the timed calls, beside the claims; microseconds."""

    calls: list[int] = field(default_factory=list)
    """Kernel calls in each sample."""
    claimed_us: list[float] = field(default_factory=list)
    """Per kernel call."""
    wall_us: list[float] = field(default_factory=list)
    """Per sample, the round trip included."""
    cpu_us: list[float] = field(default_factory=list)
    """Per kernel call."""
    idle_cpu_us: list[float] = field(default_factory=list)
    ping_us: list[float] = field(default_factory=list)
    """An empty round trip just before each sample."""


class CandidateSide:
    """A runner with its arena: the candidate's, or the champion's."""

    def __init__(
        self,
        name: str,
        runner: Runner,
        arena: Arena,
        problem: Problem,
        rng: np.random.Generator,
        *,
        timeout_s: float,
    ) -> None:
        self.name = name
        self.clocks = Clocks()
        self.slots: list[Slot] = []
        self._runner = runner
        self._arena = arena
        self._problem = problem
        self._rng = rng
        self._timeout_s = timeout_s
        self._answers: list[_Answer] = []
        self._held: dict[int, Structure] = {}

    def place(self, structure: Structure, count: int) -> list[Slot]:
        """Lays out `count` slots at addresses that vary from one placement to the next."""
        self._arena.reset(int(self._rng.integers(0, 4096)))
        self.slots = [self._arena.place(self._problem, structure) for _ in range(count)]
        self._held = {slot.index: structure for slot in self.slots}
        # A Python runner makes its tensors now, and not between two timed calls.
        self._runner.ping(0, count)
        return self.slots

    def answer(self, item: Item, slot: Slot, *, patience: float = 1.0) -> list[Check]:
        """One checked call. Raises RunFault; wrong answers are failed checks.

        `patience` stretches the deadline, for a machine that is known to be busy.
        """
        marks = self._give([item], [slot])
        for where, rest in self._arena.surroundings(slot):
            marks.watch(slot.index, where, rest, GUARD_BYTES)
        self._runner.call(slot.index, timeout_s=self._timeout_s * patience)
        return [marks.check(slot.index), *self._snapshot(item, slot, marks).checks()]

    def take(self, items: list[Item], first: int) -> float:
        """See Side. The answers are kept for `answers`. Raises RunFault, or Wrong."""
        slots = self.slots[first : first + len(items)]
        marks = self._give(items, slots)
        self.clocks.ping_us.append(self._runner.ping(slots[0].index, len(slots)) / 1e3)
        # A thread that worked on has had milliseconds since the last answer, and the inputs have
        # been there for a while: whoever began early has spent CPU time by now.
        self.clocks.idle_cpu_us.append(self._runner.idle_ns() / 1e3)
        timed = self._runner.call(slots[0].index, len(slots), timeout_s=self._timeout_s)
        for item, slot in zip(items, slots, strict=True):
            self._answers.append(self._snapshot(item, slot, marks))
            if not (guard := marks.check(slot.index)).passed:
                raise Wrong(guard)
        count = len(items)
        # A claim of nothing is a lie for the clocks to answer, and no time to make statistics of.
        claimed_us = max(timed.claimed_ns, 1) / 1e3 / count
        self.clocks.calls.append(count)
        self.clocks.claimed_us.append(claimed_us)
        self.clocks.wall_us.append(timed.wall_ns / 1e3)
        self.clocks.cpu_us.append(timed.cpu_ns / 1e3 / count)
        return claimed_us

    def answers(self) -> list[_Answer]:
        """What the timed calls answered since the last time this was asked."""
        kept, self._answers = self._answers, []
        return kept

    def _give(self, items: list[Item], slots: list[Slot]) -> poison.Marks:
        pattern = poison.choose(self._rng)
        marks = poison.Marks(pattern)
        for item, slot in zip(items, slots, strict=True):
            for output in slot.outputs.values():
                poison.fill(output, pattern)
            for where, band in self._arena.guards(slot):
                marks.guard(slot.index, where, band, self._rng)
            for name, array in item.inputs.items():
                slot.inputs[name][...] = array
            _rewrite(slot, self._held[slot.index], item.structure)
            self._held[slot.index] = item.structure
        return marks

    def _snapshot(self, item: Item, slot: Slot, marks: poison.Marks) -> _Answer:
        # A copy: the process could rewrite its outputs while they are compared (E18).
        outputs = {name: array.copy() for name, array in slot.outputs.items()}
        return _Answer(self._problem, item, outputs, marks.pattern)


def _rewrite(slot: Slot, old: Structure, new: Structure) -> None:
    """Puts one structure in another's place, which has the same sizes.

    Only what differs is written: the rest of the arrays stays as far from the CPU as it was.
    """
    if old is new:
        return
    kept: tuple[Structure, Arrays] | None = new.cache.get("differs")
    if kept is None or kept[0] is not old:
        kept = (
            old,
            {name: np.flatnonzero(old.arrays[name] != a) for name, a in new.arrays.items()},
        )
        new.cache["differs"] = kept
    for name, places in kept[1].items():
        slot.inputs[name][places] = new.arrays[name][places]


@dataclass(frozen=True)
class _Answer:
    """The outputs of one call with the truth they are held against."""

    problem: Problem
    item: Item
    outputs: Arrays
    pattern: int

    def checks(self) -> list[Check]:
        """Every gate on every output."""
        found: list[Check] = []
        for name, expected in self.item.expected.items():
            found += gates.check_output(
                name, self.outputs[name], expected, self.problem.precision, self.item.family,
                poison=self.pattern,
            )  # fmt: skip
        return found

    def failure(self) -> Check | None:
        """The first gate that did not hold."""
        return gates.first_failure(self.checks())
