# SPDX-License-Identifier: Apache-2.0
"""The data plane: two sealed memfds per process, with guard bands around every tensor.

The first holds the call table and the inputs and reaches the process read-only; the second holds
the outputs. The referee keeps writable views of both. It knows where bytes lie, not what they mean.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from enum import StrEnum
from types import TracebackType
from typing import Self

import numpy as np

from ...errors import SandboxError
from ...kernelbench.codecs import host_dtype
from ...kernelbench.dtypes import dtype_of
from ...kernelbench.problem import Arrays, Problem, Structure
from . import call_table
from .call_table import ENTRY_BYTES, MAX_ARGUMENTS, MAX_SLOTS, TABLE_BYTES, Passed, Role
from .sealed_memory import PAGE, SealedMemory

GUARD_BYTES = 4096
"""Before and after every tensor (verification.md §3.8)."""
ALIGN = 64
MOST_SHIFT = 4096
"""By which addresses vary from one placement to the next."""
_FENCE_ROOM = (3 * MAX_ARGUMENTS // 2 + 1) * PAGE
"""What the pages around the tensors of one fenced call take beyond its footprint."""
_OUTSIDE = 0x7FC00BAD
"""Around fenced inputs: as a float32 a NaN, as an index far beyond any tensor."""


class Fence(StrEnum):
    """Which end of each tensor of a call touches memory that cannot be accessed."""

    NONE = "none"
    BEFORE = "begins where memory begins"
    AFTER = "ends where memory ends"
    """But for the alignment of its start."""


@dataclass(frozen=True)
class Extra:
    """What one call is given behind its tensors."""

    table: bytes = b""
    """Read-only, e.g. a table of launches."""
    scratch: tuple[int, ...] = ()
    """Bytes of each work buffer."""
    plan: int | None = None
    """Bytes of what a candidate makes of the pattern ahead of its calls; None: it makes nothing."""


NOTHING_MORE = Extra()
EXTRA_BYTES = 64 << 20
"""Room for what calls are given behind their tensors, where they are given a little."""
TABLES_BYTES = 2 << 20
"""The same where there are no work buffers: tables of launches."""


def room(extra: Extra) -> int:
    """Bytes that one call's extra takes, guard bands included."""
    return sum(_rooms(extra))


def _rooms(extra: Extra) -> tuple[int, int]:
    """The same among the inputs, and among the outputs."""
    bands = 2 * GUARD_BYTES + ALIGN
    table = len(extra.table) + bands if extra.table else 0
    buffers = [*extra.scratch, *([] if extra.plan is None else [extra.plan])]
    return table, sum(buffers) + bands * len(buffers)


Behind = Callable[[Structure], Extra]
"""What a call on a structure is given behind its tensors."""


def nothing_more(structure: Structure) -> Extra:
    """For candidates that are called with their tensors and no more."""
    del structure
    return NOTHING_MORE


def footprint(problem: Problem, axes: Mapping[str, int]) -> tuple[int, int]:
    """Bytes of inputs and of outputs that one call needs, guard bands included."""
    sizes = [0, 0]
    for side, tensors in enumerate((problem.inputs, problem.outputs)):
        for tensor in tensors:
            size = int(np.prod(tensor.extent(axes), dtype=np.int64)) * dtype_of(tensor.dtype).bytes
            sizes[side] += -(-size // ALIGN) * ALIGN + 2 * GUARD_BYTES + ALIGN
    return sizes[0], sizes[1]


@dataclass(frozen=True)
class TensorRegion:
    """Where one tensor lies: byte offset in its memfd, and what it is."""

    offset: int
    dtype: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Size without the guard bands."""
        return int(np.prod(self.shape, dtype=np.int64)) * dtype_of(self.dtype).bytes

    def to_argument(self, role: Role) -> Passed:
        """As the argument of a call."""
        return Passed(role, self.offset, self.bytes)


@dataclass(frozen=True)
class Slot:
    """One placed call: views for the referee, regions for a trusted peer."""

    index: int
    structure: Structure
    inputs: Arrays
    outputs: Arrays
    input_regions: dict[str, TensorRegion]
    output_regions: dict[str, TensorRegion]
    arguments: tuple[str, ...]
    """What the call is passed, by name and in its order; axes come first."""
    scratch: tuple[np.ndarray, ...] = ()
    """Work buffers as bytes."""
    scratch_regions: tuple[TensorRegion, ...] = ()
    plan: np.ndarray | None = None
    """The plan as bytes, of a candidate that makes one."""
    plan_region: TensorRegion | None = None

    @property
    def start(self) -> int:
        """Where it begins among the inputs."""
        return min(region.offset for region in self.input_regions.values())


WATCHED = 4 << 20
"""Bytes beside an output that are watched at most: an arena may be as large as a workload."""


class Arena:
    """Memory for the calls of one process. Slots are placed one after the other until `reset`."""

    def __init__(self, input_bytes: int, output_bytes: int) -> None:
        try:
            self._inputs = SealedMemory("kw-inputs", TABLE_BYTES + input_bytes + _FENCE_ROOM)
            self._outputs = SealedMemory("kw-outputs", output_bytes + _FENCE_ROOM)
        except OSError as error:
            raise SandboxError(
                f"cannot get {(input_bytes + output_bytes) >> 20} MiB of shared memory ({error})",
                hint="choose a smaller workload, or free memory on this machine",
            ) from error
        self._at = [TABLE_BYTES, 0]
        self._first = self._index = 0
        self._is_owner = True
        self._apart = self._inputs.size
        self._laid: dict[int, Structure] = {}
        self._background = 1 + os.urandom(1)[0] % 254
        self._dirty = self._outputs.size  # up to where it may hold something else

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives the memory back; views handed out keep their pages until they go.

        May be called twice.
        """
        if self._is_owner:
            self._inputs.close()
            self._outputs.close()

    def share(self, first: int = 0) -> Self:
        """Another layout over the same memory, for a process that takes turns with others.

        So all of them work on the same physical pages: where those lie moves the time of a kernel
        by more than what one kernel has over another. Its calls are numbered from `first` in the
        one table. What one leaves in a slot the next finds there, unless it is wiped. All must be
        placed with one shift, and have nothing behind their tensors.
        """
        other = copy(self)
        other._at = [TABLE_BYTES, 0]
        other._first = other._index = first
        other._is_owner = False
        return other

    @property
    def is_shared(self) -> bool:
        """Whether others have layouts over its memory."""
        return not self._is_owner

    def renew(self) -> None:
        """Other physical pages for all tensors but those that were placed apart."""
        for memory, start, end in (
            (self._inputs, TABLE_BYTES, self._apart),
            (self._outputs, 0, self._outputs.size),
        ):
            start, end = -(-start // PAGE) * PAGE, end // PAGE * PAGE
            memory.map.madvise(mmap.MADV_REMOVE, start, end - start)
        self._laid.clear()

    def structure_at(self, slot: Slot) -> Structure:
        """Whose index arrays lie in a slot, whoever wrote them."""
        return self._laid[slot.start]

    def lay(self, slot: Slot, structure: Structure) -> None:
        """Says that these lie there now."""
        self._laid[slot.start] = structure

    def open_fds(self, *, is_written: bool = False) -> tuple[int, int]:
        """New descriptors for a process: inputs read-only, outputs writable. The caller closes.

        A process of baselines may write its inputs where one of them `writes_inputs`.
        """
        inputs = self._inputs.open_descriptor(is_writable=is_written)
        return inputs, self._outputs.open_descriptor(is_writable=True)

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of the input and of the output mapping."""
        return self._inputs.size, self._outputs.size

    def copy_of_inputs(self) -> bytes:
        """The call table and the inputs, for a program that reads them from a file."""
        return self._inputs.view.tobytes()

    def wipe(self) -> None:
        """Makes all memory for outputs the same byte: one process leaves nothing to the next."""
        self._outputs.view.fill(self._background)
        self._dirty = 0

    def stir(self, count: int) -> None:
        """Writes as many bytes of inputs as calls have that nothing is to be learned from."""
        self._inputs.view[TABLE_BYTES : TABLE_BYTES + count] = os.urandom(1)[0]

    def reset(self, shift: int = 0) -> None:
        """Forgets all slots; the next begins `shift` bytes in, so that addresses vary."""
        self._dirty = max(self._dirty, self._at[1])
        shift = shift // ALIGN * ALIGN
        self._at = [TABLE_BYTES + shift, shift]
        self._index = self._first
        self._laid.clear()

    def fits(self, problem: Problem, axes: Mapping[str, int], extra: Extra = NOTHING_MORE) -> bool:
        """Whether one more call of these axes has room."""
        inputs, outputs = footprint(problem, axes)
        table, scratch = _rooms(extra)
        return (
            self._at[0] + inputs + table <= self._apart - _FENCE_ROOM
            and self._at[1] + outputs + scratch <= self._outputs.size - _FENCE_ROOM
            and self._index - self._first < MAX_SLOTS // 2
        )

    def place(
        self,
        problem: Problem,
        structure: Structure,
        fence: Fence = Fence.NONE,
        *,
        extra: Extra = NOTHING_MORE,
    ) -> Slot:
        """Lays out one call, writes its table entry and its index arrays.

        A fenced call stands alone. It is a native runner that puts the fences up. What is `extra`
        comes after the tensors: the table's argument, then one for each work buffer, then the plan.
        """
        is_second = fence is not Fence.NONE and self._index > 0
        if is_second or not self.fits(problem, structure.axes, extra):
            raise SandboxError(f"no room for another call of {problem.name} {structure.axes}")
        regions = {
            tensor.name: self._reserve(side, tensor.dtype, tensor.extent(structure.axes), fence)
            for side, tensors in enumerate((problem.inputs, problem.outputs))
            for tensor in tensors
        }
        inputs = {t.name: regions[t.name] for t in problem.inputs}
        outputs = {t.name: regions[t.name] for t in problem.outputs}
        arguments = [call_table.integer(structure.axes[axis]) for axis in problem.axes]
        names = [*problem.axes, *inputs, *outputs]
        fenced = Role(0) if fence is Fence.NONE else Role.FENCED
        for role, placed in ((Role.INPUT | fenced, inputs), (Role.OUTPUT | fenced, outputs)):
            arguments += [region.to_argument(role) for region in placed.values()]
        if extra.table:
            table = self._reserve(0, "uint8", (len(extra.table),), Fence.NONE)
            self._array(0, table)[...] = np.frombuffer(extra.table, dtype=np.uint8)
            arguments.append(table.to_argument(Role.INPUT))
            names.append("the table of launches")
        scratch = [self._reserve(1, "uint8", (size,), fence) for size in extra.scratch]
        arguments += [region.to_argument(Role.SCRATCH | fenced) for region in scratch]
        names += [f"scratch {number}" for number in range(len(scratch))]
        plan = None
        if extra.plan is not None:
            plan = self._reserve(1, "uint8", (extra.plan,), fence)
            arguments.append(plan.to_argument(Role.SCRATCH | fenced))
            names.append("the plan")
        entry, start = call_table.pack_entry(arguments), self._index * ENTRY_BYTES
        self._inputs.map[start : start + len(entry)] = entry
        slot = Slot(
            index=self._index,
            structure=structure,
            inputs={name: self._array(0, region) for name, region in inputs.items()},
            outputs={name: self._array(1, region) for name, region in outputs.items()},
            input_regions=inputs,
            output_regions=outputs,
            arguments=tuple(names),
            scratch=tuple(
                self._outputs.view[region.offset : region.offset + region.bytes]
                for region in scratch
            ),
            scratch_regions=tuple(scratch),
            plan=self._array(1, plan) if plan else None,
            plan_region=plan,
        )
        for name, array in structure.arrays.items():
            slot.inputs[name][...] = array
        self.lay(slot, structure)
        self._index += 1
        return slot

    def place_apart(self, problem: Problem, structure: Structure, shift: int) -> Slot:
        """Lays out a call for a trusted process, whose index arrays nobody else writes over.

        It is no entry of the table. They lie behind all that others place; what else it is given
        lies where theirs does, at this shift for all.
        """
        if not self._index:
            self.reset(shift)
        slot = self.place(problem, structure)
        regions, inputs = dict(slot.input_regions), dict(slot.inputs)
        for name, array in structure.arrays.items():
            region = regions[name]
            self._apart = (self._apart - region.bytes - PAGE) // PAGE * PAGE
            regions[name] = replace(region, offset=self._apart)
            inputs[name] = self._array(0, regions[name])
            inputs[name][...] = array
        return replace(slot, inputs=inputs, input_regions=regions)

    def guards(self, slot: Slot) -> list[tuple[str, np.ndarray]]:
        """The guard bands of a slot's outputs, and of its plan, as writable bytes: (`before C`,
        view) …"""
        bands = []
        for name, region in [*slot.output_regions.items(), *_plan_of(slot)]:
            end = region.offset + region.bytes
            view = self._outputs.view
            bands.append((f"before {name}", view[region.offset - GUARD_BYTES : region.offset]))
            bands.append((f"after {name}", view[end : end + GUARD_BYTES]))
        return bands

    def surroundings(self, slot: Slot) -> list[tuple[str, np.ndarray]]:
        """The rest of the outputs' memory as bytes: (`before C`, view) … behind the guard bands.

        Every byte of it now has one value, the same one in all of them, unless a call before wrote
        there. Only what slots were placed in is written, since the whole may be large.
        """
        own = [*slot.output_regions.items(), *(("scratch", r) for r in slot.scratch_regions)]
        own += _plan_of(slot)
        regions = sorted(own, key=lambda item: item[1].offset)
        edges = [(f"before {regions[0][0]}", 0)]
        edges += [(f"after {name}", r.offset + r.bytes + GUARD_BYTES) for name, r in regions]
        ends = [r.offset - GUARD_BYTES for _, r in regions] + [self._outputs.size]
        found, used, is_clean = [], max(self._dirty, self._at[1]), True
        for (where, start), end in zip(edges, ends, strict=True):
            if end - start > WATCHED:
                first = start
                start, end = _clip_beside(where, start, end)
                # What is left out below that stays as it was.
                is_clean &= first >= used or (first == start and end >= used)
            if start < end:
                found.append((where, self._outputs.view[start:end]))
                self._outputs.view[start : min(end, used)] = self._background
        self._dirty = 0 if is_clean else used
        return found

    def _reserve(self, side: int, dtype: str, shape: tuple[int, ...], fence: Fence) -> TensorRegion:
        if fence is not Fence.NONE:
            return self._reserve_fenced(side, dtype, shape, fence)
        region = TensorRegion(self._at[side] + GUARD_BYTES, dtype, shape)
        self._at[side] = -(-(region.offset + region.bytes + GUARD_BYTES) // ALIGN) * ALIGN
        return region

    def _reserve_fenced(
        self, side: int, dtype: str, shape: tuple[int, ...], fence: Fence
    ) -> TensorRegion:
        """Whole pages for one tensor, and a page before and after them for the fence."""
        start = -(-self._at[side] // PAGE) * PAGE + PAGE
        region = TensorRegion(start, dtype, shape)
        end = start + -(-region.bytes // PAGE) * PAGE
        if fence is Fence.AFTER:
            region = TensorRegion(end - -(-region.bytes // ALIGN) * ALIGN, dtype, shape)
        if side == 0:
            self._inputs.view[start:end].view(np.uint32)[...] = _OUTSIDE
        self._at[side] = end + PAGE
        self._dirty = max(self._dirty, self._at[1])
        return region

    def _array(self, side: int, region: TensorRegion) -> np.ndarray:
        memory = (self._inputs, self._outputs)[side]
        raw = memory.view[region.offset : region.offset + region.bytes]
        return raw.view(host_dtype(dtype_of(region.dtype))).reshape(region.shape)


def _plan_of(slot: Slot) -> list[tuple[str, TensorRegion]]:
    return [("the plan", slot.plan_region)] if slot.plan_region else []


def _clip_beside(where: str, start: int, end: int) -> tuple[int, int]:
    """What is next to the output that lies before or after this."""
    return (end - WATCHED, end) if where.startswith("before") else (start, start + WATCHED)
