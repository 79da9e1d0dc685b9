"""One call of an emulated candidate outside of any trial: memory of its own, a process, outputs.

It lays out the arguments that `build/emulated.py` describes and starts the ordinary runner. It
judges nothing: what comes back is what the candidate's process wrote.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ...errors import SandboxError
from ...kernelbench.problem import Arrays, Axes, Problem
from ..isolation.model import Jail, Limits
from ..plan.model import Launches
from .process import Runner
from .program import Program
from .starting import Plane

ALIGNMENT = 256
"""What device memory comes with; sectors and cache lines are counted from there."""
_FIRST = 4096
"""Where tensors begin; the table of the call stands before them."""
_MOST_ARGUMENTS = 88
_INTEGER, _INPUT, _OUTPUT = 0, 1, 2
_UNWRITTEN = 0xFF


@dataclass(frozen=True)
class Call:
    """Everything that one call is given."""

    problem: Problem
    axes: Axes
    inputs: Mapping[str, np.ndarray]
    """One array for each input of the problem, of its dtype."""
    launches: Launches
    report: bytes = b""
    """What one more argument, ahead of the scratch buffers, points at: it may be written."""


@dataclass(frozen=True)
class Answer:
    """What a call left behind."""

    outputs: Arrays
    report: bytes


def play(
    jail: Jail,
    program: Program,
    call: Call,
    *,
    cpus: tuple[int, ...],
    limits: Limits,
    timeout_s: float,
) -> Answer:
    """Calls the candidate once, on outputs and scratch buffers that hold NaN.

    Raises:
        RunFault: the process did not answer.
        SandboxError: the jail or our own runner failed.
    """
    sheet = _Sheet(call)
    with sheet.mapped() as plane, Runner(jail, program, plane, cpus=cpus, limits=limits) as runner:
        runner.call(0, timeout_s=timeout_s)
        return sheet.answer()


class _Sheet:
    """Where everything lies: offsets first, then two files in memory."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._sizes = [_FIRST, 0]
        self._arguments = [(_INTEGER, call.axes[axis], 4) for axis in call.problem.axes]
        self._inputs: list[tuple[int, bytes]] = []
        self._outputs: dict[str, tuple[int, tuple[int, ...], str]] = {}
        for tensor in call.problem.inputs:
            array = np.ascontiguousarray(call.inputs[tensor.name], dtype=tensor.dtype)
            self._put(array.tobytes())
        for tensor in call.problem.outputs:
            shape = tensor.extent(call.axes)
            offset = self._room(1, byte_size(shape, tensor.dtype))
            self._outputs[tensor.name] = offset, shape, tensor.dtype
        self._put(call.launches.pack())
        self._report = self._room(1, len(call.report)) if call.report else 0
        for scratch in call.launches.scratch:
            self._room(1, byte_size(scratch.shape, scratch.dtype))
        if len(self._arguments) > _MOST_ARGUMENTS:
            raise SandboxError(
                f"{len(self._arguments)} arguments; a call has at most {_MOST_ARGUMENTS}"
            )

    @contextmanager
    def mapped(self) -> Iterator[Plane]:
        """The plane with everything in it, for as long as it is needed."""
        descriptors = [os.memfd_create(name) for name in ("kw-inputs", "kw-outputs")]
        maps: list[mmap.mmap] = []
        try:
            for descriptor, size in zip(descriptors, self._sizes, strict=True):
                os.ftruncate(descriptor, max(size, _FIRST))
                maps.append(mmap.mmap(descriptor, max(size, _FIRST)))
            self._fill(*maps)
            readonly = os.open(f"/proc/self/fd/{descriptors[0]}", os.O_RDONLY)
            descriptors.append(readonly)
            yield Plane(readonly, descriptors[1], len(maps[0]), len(maps[1]))
        finally:
            for one in maps:
                one.close()
            for descriptor in descriptors:
                os.close(descriptor)

    def answer(self) -> Answer:
        """What the second file holds now."""
        raw = self._written
        outputs = {}
        for name, (offset, shape, dtype) in self._outputs.items():
            content = raw[offset : offset + byte_size(shape, dtype)]
            outputs[name] = np.frombuffer(content, dtype).reshape(shape)
        return Answer(outputs, raw[self._report : self._report + len(self._call.report)])

    def _fill(self, inputs: mmap.mmap, outputs: mmap.mmap) -> None:
        flat = [len(self._arguments)]
        for kind, value, _ in self._arguments:
            flat += [kind, value]
        for _, _, size in self._arguments:
            flat += [_INTEGER, size]
        inputs[: 8 * len(flat)] = struct.pack(f"<{len(flat)}Q", *flat)
        for offset, content in self._inputs:
            inputs[offset : offset + len(content)] = content
        outputs[:] = bytes([_UNWRITTEN]) * len(outputs)
        outputs[self._report : self._report + len(self._call.report)] = self._call.report
        self._written = outputs

    def _put(self, content: bytes) -> None:
        self._inputs.append((self._room(0, len(content)), content))

    def _room(self, side: int, size: int) -> int:
        offset = self._sizes[side]
        self._sizes[side] = -(-(offset + size + 1) // ALIGNMENT) * ALIGNMENT
        self._arguments.append((_OUTPUT if side else _INPUT, offset, size))
        return offset


def byte_size(shape: tuple[int, ...], dtype: str) -> int:
    """Bytes of an array without gaps."""
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
