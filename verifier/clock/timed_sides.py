# SPDX-License-Identifier: Apache-2.0
"""One side of a paired timing: something that is given fresh inputs and is called.

A candidate's side poisons its outputs before each call and holds answers against the truth
afterwards, so that the calls that are timed are the calls that are checked (verification.md,
finding 3). Where there are hundreds of calls, a sample of them is judged, drawn after the answers:
nobody can be wrong in a share of them that moves the result, and be missed. Calls on other families
of inputs are scattered among them, which nobody can tell apart before it has looked at its inputs.
The inputs of a call are written once the call before has been answered and its answer copied,
while the process is stopped: nobody can work on several at once, or on the next one ahead (C7).
Baselines get their inputs the same way, in the same kind of memory.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from ...kernelbench.problem import Arrays, Problem, Structure
from ...kernelbench.rows import (
    FEWER,
    RowTurns,
    changed_rows,
    count_parts,
    differing_rows,
    is_parted,
    take_rows,
)
from ...sandbox.isolation.model import Job
from ...sandbox.run.arena import GUARD_BYTES, MOST_SHIFT, Arena, Behind, Fence, Slot, nothing_more
from ...sandbox.run.process import Runner, Timed
from ...traces.records import Check, Status
from ..baselines.process import BaselineProcess
from ..failure import Failed
from ..truth import gates, poison
from ..truth.trials import Item
from .answers import Answer, AnsweredShare
from .clocks import Clocks
from .drawn_words import all_written, told_when_done
from .laying import lay_items, rewrite_pattern, wipe_slots, write_inputs
from .pace import Pace
from .plans import Plans, words_of

_UNWRITTEN = 0xFF
"""In every byte of a work buffer before a call: NaN as a float of any size. Of values, too, while
a plan is made of a pattern."""
_ANSWER_ROOM = 512 << 20
"""Bytes of answers, with their inputs, that wait to be judged."""
_LEAST_JUDGED = 4
_PART_BYTES = 2 << 20
"""Of an answer that is judged in parts after timed calls, with the inputs of its rows."""

Call = tuple[Item, Slot]
"""Inputs, and where they are called."""


class Side(Protocol):
    """What the sampler times: calls, or several at a time where its pace says so."""

    name: str

    @property
    def waited(self) -> float:
        """The largest share of one of the last calls that a thread was ready, and had no CPU."""

    def take(self, items: list[Item], first: int) -> float:
        """Calls consecutive slots from `first`, one item each; the median call's microseconds, of
        those that its pace has count."""


@dataclass
class BaselineSide:
    """One baseline of the baseline process."""

    name: str
    process: BaselineProcess
    baseline: str = ""
    """The baseline's own name, where the side goes by another."""
    pace: Pace = field(default_factory=Pace)
    waited = 0.0

    def take(self, items: list[Item], first: int) -> float:
        """See Side."""
        spent_ns, name = [], self.baseline or self.name
        slots = self.process.slots[first : first + len(items)]
        wipe_slots(slots[self.pace.instances :])
        for calls in self.pace.together(list(zip(items, slots, strict=True))):
            lay = partial(lay_items, calls)
            called = [slot for _, slot in calls]
            spent_ns.append(self.process.call(name, called, lay, self.pace.rest))
        return statistics.median(spent_ns[self.pace.uncounted :]) / 1e3


class CandidateSide:
    """A runner with its arena: the candidate's, or the champion's.

    Where the candidate makes a plan of a pattern, it does so before the first call on each pattern
    at each slot, and anew once the pattern there is another. The pattern is written then, and the
    values of the call are not: NaN stands where they will be.
    """

    def __init__(
        self,
        name: str,
        runner: Runner,
        arena: Arena,
        problem: Problem,
        rng: np.random.Generator,
        *,
        timeout_s: float,
        extra: Behind = nothing_more,
        pace: Pace | None = None,
    ) -> None:
        """`extra` says what a call on a structure is given beside its tensors, `pace` what comes
        ahead of calls that are timed."""
        self.name = name
        self.clocks = Clocks()
        self.waited = 0.0
        self.slots: list[Slot] = []
        self.asked: Item | None = None
        """Of the last call."""
        self.seen = AnsweredShare()
        self.plans = Plans(runner)
        self._runner = runner
        self._arena = arena
        self._problem = problem
        self._rng = rng
        self._timeout_s = timeout_s
        self._extra = extra
        self._pace = pace or Pace()
        self._answers: dict[bool, list[Answer]] = {False: [], True: []}
        """Of timed calls: on the placed structure, and on another."""
        self._taken = {False: 0, True: 0}
        self._tests: list[Answer] = []
        self._fill_unjudged: int | None = None
        # A generator of its own: what the others draw can be read from memory that is lent.
        self._lots = np.random.default_rng()
        self._turns = RowTurns(self._lots)
        self._shift = 0

    @property
    def pid(self) -> int:
        """The runner's process."""
        return self._runner.pid

    @property
    def job(self) -> Job:
        """The process's jail, which can have it stand still."""
        return self._runner.job

    @property
    def arena(self) -> Arena:
        """The memory of its calls."""
        return self._arena

    def place(self, structure: Structure, count: int, fence: Fence = Fence.NONE) -> list[Slot]:
        """Lays out `count` slots at addresses that vary from one placement to the next."""
        return self.place_at(int(self._rng.integers(0, MOST_SHIFT)), structure, count, fence)

    def place_at(
        self, shift: int, structure: Structure, count: int, fence: Fence = Fence.NONE
    ) -> list[Slot]:
        """The same at given ones, as others have them who work in the same memory."""
        self._shift = shift
        self._lay_out(structure, count, fence)
        # A Python runner makes its tensors now, and not between two timed calls.
        self._runner.ping(self.slots[0].index, count)
        return self.slots

    def _lay_out(self, structure: Structure, count: int, fence: Fence) -> None:
        extra = self._extra(structure)
        self._arena.reset(self._shift)
        lent = sum(extra.scratch) + (extra.plan or 0)
        if lent and not self._arena.fits(self._problem, structure.axes, extra):
            what = "its scratch buffers take" if extra.scratch else "its plan takes"
            raise Failed(
                Status.RESOURCE,
                f"{what} {lent} bytes on {structure.axes}, a small "
                "shape, for which there is less room: let their size follow from the axes",
            )
        self.slots = [
            self._arena.place(self._problem, structure, fence, extra=extra) for _ in range(count)
        ]
        self._placed = structure
        self.plans.begin(structure)
        self._runner.expect(extra.table)

    def _hold(self, slot: Slot, structure: Structure) -> Slot:
        """The slot for another structure of its sizes, at the same addresses."""
        if self._extra is nothing_more or slot.plan is not None:
            return slot
        if structure is self._arena.structure_at(slot):
            return slot
        # Launches follow from the structure too; the tensors come first and stay where they are.
        self._lay_out(structure, len(self.slots), Fence.NONE)
        return next(each for each in self.slots if each.index == slot.index)

    def _write(self, item: Item, slot: Slot) -> None:
        self._write_pattern(item.structure, slot)
        write_inputs(item, slot)

    def _write_pattern(self, structure: Structure, slot: Slot) -> None:
        rewrite_pattern(slot, self._arena.structure_at(slot), structure)
        self._arena.lay(slot, structure)

    def _prepare(self, item: Item, slot: Slot, timeout_s: float) -> None:
        """Has a slot's plan made, of who makes one, where it is not of the item's pattern.

        Raises RunFault, Failed.
        """
        if slot.plan is None or not self.plans.lack(slot, item.structure):
            return
        marks = poison.Marks(poison.choose(self._rng))
        hidden = [slot.plan, *(slot.inputs[name] for name in item.inputs)]

        def lay() -> None:
            self._mark(slot, marks)
            self._write_pattern(item.structure, slot)
            for array in hidden:
                array.reshape(-1).view(np.uint8).fill(_UNWRITTEN)

        timed = self.plans.make(slot, item.structure, lay, timeout_s)
        told = told_when_done({"the plan": words_of(slot)}, timed)
        if failed := gates.first_failure([marks.check(slot.index), told]):
            reason = f"a pattern was prepared wrongly: {failed.name}: {failed.detail}"
            raise Failed(Status.INCORRECT, reason, check=failed)

    def answer(self, item: Item, slot: Slot, also: np.ndarray | None = None) -> list[Check]:
        """One checked call. Raises RunFault; wrong answers are failed checks.

        Args:
            also: Rows that are judged where an answer is judged in parts, and few of the others.
        """
        marks, timed = self._call([(item, slot)], self._timeout_s, is_alone=True)
        is_partial = (coverage := self._runner.coverage).is_partial
        share = 1 if is_partial else self._parts(item) * (1 if also is None else FEWER)
        told = told_when_done(slot.outputs, timed)
        answer = self._copy_answer(item, slot, marks, told, share=share, also=also)
        if is_partial:
            answer = replace(answer, known=answer.find_written())
        self.seen.add(coverage, answer)
        return [marks.check(slot.index), *answer.checks()]

    def _parts(self, item: Item) -> int:
        return count_parts(self._problem, item.structure.axes)

    def repeat(
        self, item: Item, slot: Slot, first: Arrays, *, patience: float = 1.0, times: int = 1
    ) -> Answer | None:
        """The same call again; its answer, or None where it is `first` to the bit.

        Every row that differs is judged. Raises RunFault.

        Args:
            patience: Stretches the deadline, for a machine that is known to be busy.
            times: So many calls one after the other; the answer is the last one's.
        """
        timeout_s = self._timeout_s * patience
        marks, timed = self._call([(item, slot)], timeout_s, is_alone=True, times=times)
        guard, told = marks.check(slot.index), told_when_done(slot.outputs, timed)
        rows = differing_rows(self._problem, item.structure, first, slot.outputs) if first else None
        if rows is not None and not len(rows) and guard.passed and told.passed:
            return None
        share = self._parts(item)
        answer = self._copy_answer(item, slot, marks, told, share=share, also=rows)
        return replace(answer, seen=(guard, *answer.seen))

    def take(self, items: list[Item], first: int) -> float:
        """See Side. What is to be judged is kept for `answers`. Raises RunFault, Failed."""
        counted: list[float] = []
        runner, self.waited = self._runner, 0.0
        slots = self.slots[first : first + len(items)]
        self._wipe(slots)
        for calls in self._pace.together(list(zip(items, slots, strict=True))):
            marks, timed = self._call(calls, self._timeout_s)
            outputs = _outputs_of(calls)
            told = told_when_done(outputs, timed)
            for item, slot in calls:
                self._sample(item, slot, marks, told)
            self.waited = max(self.waited, timed.waited_ns / max(1, timed.wall_ns))
            us = self.clocks.add(
                timed,
                runner.clean,
                runner.cpus,
                overhead_us=runner.overhead_us,
            )
            counted.append(us)
            guards = (marks.check(slot.index) for _, slot in calls)
            for check in (told, all_written(outputs, timed, marks.pattern), *guards):
                if not check.passed:
                    raise Failed.of_answer(check)
        return statistics.median(counted[self._pace.uncounted :])

    def test(self, items: list[Item], first: int) -> None:
        """As those calls of `take` that are made at a time; all are judged, and none is timed."""
        if not (calls := list(zip(items, self.slots[first:], strict=False))):
            return
        marks, timed = self._call(calls, self._timeout_s)
        told = told_when_done(_outputs_of(calls), timed)
        for item, slot in calls:
            self._tests.append(self._copy_answer(item, slot, marks, told))
            if not (guard := marks.check(slot.index)).passed:
                raise Failed.of_answer(guard)

    def judge(self, most: int | None) -> None:
        """From now on so many of the timed calls are judged, and all that were made; None: all.

        Where copies of as many answers would fill the memory, there are fewer.
        """
        held = [*self.slots[0].inputs.values(), *self.slots[0].outputs.values()]
        size = sum(array.nbytes for array in held)
        if is_parted(self._problem, self._placed.axes):
            size = _PART_BYTES
        room = max(_LEAST_JUDGED, _ANSWER_ROOM // max(1, size))
        self._tests = self.answers()
        self._fill_unjudged = None if most is None else min(most, room)

    def answers(self) -> list[Answer]:
        """The answers that are to be judged since the last time this was asked."""
        kept = [*self._tests, *self._answers[False], *self._answers[True]]
        self._tests, self._answers = [], {False: [], True: []}
        self._taken = {False: 0, True: 0}
        return kept

    def _sample(self, item: Item, slot: Slot, marks: poison.Marks, told: Check) -> None:
        """Keeps the answer or not: each call on a pattern is as likely to be judged as another on
        it (Vitter's algorithm R), and others than the workload's are half of what is judged, as far
        as there were any: who keeps a pattern is wrong on them."""
        is_other = item.structure is not self._placed
        kept, most = self._answers[is_other], self._fill_unjudged
        self._taken[is_other] += 1
        if most is not None:
            room = most // 2 if is_other else most - len(self._answers[True])
            if len(kept) >= room:
                at = int(self._lots.integers(self._taken[is_other]))
                if at < room:
                    kept[at] = self._copy_answer(item, slot, marks, told)
                return
        kept.append(self._copy_answer(item, slot, marks, told))
        if most is not None and sum(map(len, self._answers.values())) > most:
            own = self._answers[False]
            own.pop(int(self._lots.integers(len(own))))

    def _call(
        self,
        calls: list[Call],
        timeout_s: float,
        *,
        is_alone: bool = False,
        times: int = 1,
    ) -> tuple[poison.Marks, Timed]:
        """One call, or several at a time; of one that is alone, all memory around its outputs is
        watched."""
        self.asked = calls[0][0]
        calls = [(item, self._hold(slot, item.structure)) for item, slot in calls]
        for item, slot in calls:
            self._prepare(item, slot, timeout_s)
        marks = poison.Marks(poison.choose(self._rng))

        def lay() -> None:
            """All that a call finds, as the process stands still: none of it can be replaced."""
            for item, slot in calls:
                self._mark(slot, marks, is_alone=is_alone)
                self._write(item, slot)
            if not is_alone:
                self._pace.rest()

        first, call, many = calls[0][1].index, self._runner.call, len(calls)
        if times > 1:
            timed = self._runner.repeat(first, times, timeout_s=timeout_s, release=lay)
        else:
            timed = call(first, timeout_s=timeout_s, release=lay, together=many)
        for _, slot in calls:
            self.plans.watch(slot, marks)
        return marks, timed

    def _wipe(self, slots: list[Slot]) -> None:
        """Before its turn: what another process left there, inputs that are to come and answers.

        This one is stopped behind its last answer. The slot of its next call is written before it
        is woken, so that only those behind it are to be wiped.
        """
        if self._arena.is_shared:
            wipe_slots(slots[self._pace.instances :])

    def _mark(self, slot: Slot, marks: poison.Marks, *, is_alone: bool = False) -> None:
        for output in slot.outputs.values():
            poison.fill(output, marks.pattern)
        for buffer in slot.scratch:
            buffer.fill(_UNWRITTEN)
        for where, band in self._arena.guards(slot):
            marks.guard(slot.index, where, band, self._rng)
        for where, rest in self._arena.surroundings(slot) if is_alone else ():
            marks.watch(slot.index, where, rest, GUARD_BYTES)

    def _copy_answer(
        self,
        item: Item,
        slot: Slot,
        marks: poison.Marks,
        told: Check,
        *,
        share: int = 0,
        also: np.ndarray | None = None,
    ) -> Answer:
        """At once: the process could rewrite its outputs while they are compared (E18).

        One in `share` rows of what is judged in parts; 0: as many as a timed call may cost.
        """
        if item.is_parted and share != 1:
            return self._copy_part(item, slot, marks.pattern, told, share, also)
        outputs = {name: array.copy() for name, array in slot.outputs.items()}
        return Answer(self._problem, item, outputs, marks.pattern, (told,))

    def _copy_part(
        self,
        item: Item,
        slot: Slot,
        pattern: int,
        told: Check,
        share: int,
        also: np.ndarray | None,
    ) -> Answer:
        """Some rows of an answer, and what can be told of all of it without the truth."""
        seen = [
            check
            for name, array in slot.outputs.items()
            for check in gates.look_over(name, array, item.family, poison=pattern)
        ]
        size = int(self._problem.bytes_moved(item.structure.axes))
        drawn = self._turns.take(item.structure.axes["M"], share or -(-size // _PART_BYTES))
        changed = changed_rows(self._placed, item.structure)
        chosen = np.union1d(drawn, changed if also is None else np.union1d(changed, also))
        rows = take_rows(item.structure, chosen)
        outputs = rows.take(self._problem, slot.outputs)
        part = item.part(rows)
        return Answer(self._problem, part, outputs, pattern, (*seen, told), rows=rows)


def _outputs_of(calls: list[Call]) -> Arrays:
    """Of all that were made at a time, each under a name of its own."""
    return {
        f"{name} at {slot.index}": array
        for _, slot in calls
        for name, array in slot.outputs.items()
    }
