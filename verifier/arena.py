"""The data plane: two sealed memfds per process, with guard bands around every tensor.

The first holds the call table and the inputs and reaches the process read-only; the second holds
the outputs. The referee keeps writable views of both. It knows where bytes lie, not what they mean.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np

from ..errors import SandboxError
from ..kernelbench.problem import Arrays, Problem, Structure

MAX_ARGUMENTS = 32
MAX_SLOTS = 64
_ENTRY_BYTES = 8 + 16 * MAX_ARGUMENTS
GUARD_BYTES = 4096
"""Before and after every tensor (verification.md §3.8)."""
ALIGN = 64
TABLE_BYTES = -(-_ENTRY_BYTES * MAX_SLOTS // 4096) * 4096
_INTEGER, _INPUT, _OUTPUT = 0, 1, 2
_F_ADD_SEALS, _SEALS = 1033, 0x0002 | 0x0004  # shrink, grow


def footprint(problem: Problem, axes: Mapping[str, int]) -> tuple[int, int]:
    """Bytes of inputs and of outputs that one call needs, guard bands included."""
    sizes = [0, 0]
    for side, tensors in enumerate((problem.inputs, problem.outputs)):
        for tensor in tensors:
            size = (
                int(np.prod(tensor.extent(axes), dtype=np.int64)) * np.dtype(tensor.dtype).itemsize
            )
            sizes[side] += -(-size // ALIGN) * ALIGN + 2 * GUARD_BYTES + ALIGN
    return sizes[0], sizes[1]


@dataclass(frozen=True)
class Region:
    """Where one tensor lies: byte offset in its memfd, and what it is."""

    offset: int
    dtype: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Size without the guard bands."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Slot:
    """One placed call: views for the referee, regions for a trusted peer."""

    index: int
    structure: Structure
    inputs: Arrays
    outputs: Arrays
    input_regions: dict[str, Region]
    output_regions: dict[str, Region]


class _Memory:
    """One sealed memfd with a writable view."""

    def __init__(self, name: str, size: int) -> None:
        self.size = max(4096, -(-size // 4096) * 4096)
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size)
        fcntl.fcntl(self.fd, _F_ADD_SEALS, _SEALS)
        self.map = mmap.mmap(self.fd, self.size)
        self.view = np.frombuffer(self.map, dtype=np.uint8)

    def close(self) -> None:
        del self.view
        try:
            self.map.close()
        except BufferError:
            # Somebody still holds a view; the mapping goes with the last of them.
            ctypes.pythonapi.PyErr_Clear()
        os.close(self.fd)


class Arena:
    """Memory for the calls of one process. Slots are placed one after the other until `reset`."""

    def __init__(self, input_bytes: int, output_bytes: int) -> None:
        try:
            self._inputs = _Memory("kw-inputs", TABLE_BYTES + input_bytes)
            self._outputs = _Memory("kw-outputs", output_bytes)
        except OSError as error:
            raise SandboxError(
                f"cannot get {(input_bytes + output_bytes) >> 20} MiB of shared memory ({error})",
                hint="choose a smaller workload, or free memory on this machine",
            ) from error
        self._at = [TABLE_BYTES, 0]
        self._index = 0
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
        """Gives the memory back; views handed out keep their pages until they go."""
        self._inputs.close()
        self._outputs.close()

    def open_fds(self, *, is_trusted: bool = False) -> tuple[int, int]:
        """New descriptors for a process: inputs read-only, outputs writable. The caller closes.

        A trusted process (the baselines') may write its inputs: torch wants writable memory.
        """
        mode = os.O_RDWR if is_trusted else os.O_RDONLY
        inputs = os.open(f"/proc/self/fd/{self._inputs.fd}", mode | os.O_CLOEXEC)
        return inputs, os.dup(self._outputs.fd)

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of the input and of the output mapping."""
        return self._inputs.size, self._outputs.size

    def reset(self, shift: int = 0) -> None:
        """Forgets all slots; the next begins `shift` bytes in, so that addresses vary."""
        self._dirty = max(self._dirty, self._at[1])
        shift = shift // ALIGN * ALIGN
        self._at = [TABLE_BYTES + shift, shift]
        self._index = 0

    def fits(self, problem: Problem, axes: Mapping[str, int]) -> bool:
        """Whether one more call of these axes has room."""
        inputs, outputs = footprint(problem, axes)
        return (
            self._at[0] + inputs <= self._inputs.size
            and self._at[1] + outputs <= self._outputs.size
            and self._index < MAX_SLOTS
        )

    def place(self, problem: Problem, structure: Structure) -> Slot:
        """Lays out one call, writes its table entry and its index arrays."""
        if not self.fits(problem, structure.axes):
            raise SandboxError(f"no room for another call of {problem.name} {structure.axes}")
        regions = {
            tensor.name: self._reserve(side, tensor.dtype, tensor.extent(structure.axes))
            for side, tensors in enumerate((problem.inputs, problem.outputs))
            for tensor in tensors
        }
        inputs = {t.name: regions[t.name] for t in problem.inputs}
        outputs = {t.name: regions[t.name] for t in problem.outputs}
        arguments = [(_INTEGER, structure.axes[axis], 4) for axis in problem.axes]
        arguments += [(_INPUT, region.offset, region.bytes) for region in inputs.values()]
        arguments += [(_OUTPUT, region.offset, region.bytes) for region in outputs.values()]
        self._write_entry(arguments)
        slot = Slot(
            index=self._index,
            structure=structure,
            inputs={name: self._array(0, region) for name, region in inputs.items()},
            outputs={name: self._array(1, region) for name, region in outputs.items()},
            input_regions=inputs,
            output_regions=outputs,
        )
        for name, array in structure.arrays.items():
            slot.inputs[name][...] = array
        self._index += 1
        return slot

    def guards(self, slot: Slot) -> list[tuple[str, np.ndarray]]:
        """The guard bands of a slot's outputs as writable bytes: (`before C`, view) …"""
        bands = []
        for name, region in slot.output_regions.items():
            end = region.offset + region.bytes
            view = self._outputs.view
            bands.append((f"before {name}", view[region.offset - GUARD_BYTES : region.offset]))
            bands.append((f"after {name}", view[end : end + GUARD_BYTES]))
        return bands

    def surroundings(self, slot: Slot) -> list[tuple[str, np.ndarray]]:
        """The rest of the outputs' memory as bytes: (`before C`, view) … behind the guard bands.

        Every byte of it now has one value, the same one in all of them. Only what slots were
        placed in since the last time is written, since the whole may be large.
        """
        regions = sorted(slot.output_regions.items(), key=lambda item: item[1].offset)
        edges = [(f"before {regions[0][0]}", 0)]
        edges += [(f"after {name}", r.offset + r.bytes + GUARD_BYTES) for name, r in regions]
        ends = [r.offset - GUARD_BYTES for _, r in regions] + [self._outputs.size]
        found, used = [], max(self._dirty, self._at[1])
        for (where, start), end in zip(edges, ends, strict=True):
            if start < end:
                found.append((where, self._outputs.view[start:end]))
                self._outputs.view[start : min(end, used)] = self._background
        self._dirty = 0
        return found

    def _reserve(self, side: int, dtype: str, shape: tuple[int, ...]) -> Region:
        region = Region(self._at[side] + GUARD_BYTES, dtype, shape)
        self._at[side] = -(-(region.offset + region.bytes + GUARD_BYTES) // ALIGN) * ALIGN
        return region

    def _array(self, side: int, region: Region) -> np.ndarray:
        memory = (self._inputs, self._outputs)[side]
        raw = memory.view[region.offset : region.offset + region.bytes]
        return raw.view(region.dtype).reshape(region.shape)

    def _write_entry(self, arguments: list[tuple[int, int, int]]) -> None:
        """Kind and value of each argument; behind them all, their sizes in bytes."""
        if 2 * len(arguments) > MAX_ARGUMENTS:
            most = MAX_ARGUMENTS // 2
            raise SandboxError(f"{len(arguments)} arguments; a call has at most {most}")
        pairs = [(kind, value) for kind, value, _ in arguments]
        pairs += [(_INTEGER, size) for _, _, size in arguments]
        flat = [number for pair in pairs for number in pair]
        packed = struct.pack(f"<{1 + len(flat)}Q", len(arguments), *flat)
        start = self._index * _ENTRY_BYTES
        self._inputs.map[start : start + len(packed)] = packed
