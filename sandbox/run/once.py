# SPDX-License-Identifier: Apache-2.0
"""One call of an emulated candidate outside of any trial: memory of its own, a process, outputs.

It lays out the arguments that `builders/emulated.py` describes and starts the ordinary runner. It
judges nothing: what comes back is what the candidate's process wrote.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from ...kernelbench.dtypes import dtype_of
from ...kernelbench.problem import Arrays, Axes, Problem
from ..builders.workshop import Workshop
from ..isolation.model import Limits
from ..plan.model import Launches
from . import call_table
from .begun import Plane
from .call_table import ONE_ENTRY_BYTES, Passed, Role
from .process import Runner
from .program import Program
from .sealed_memory import SealedMemory

ALIGNMENT = 256
"""What device memory comes with; sectors and cache lines are counted from there."""
_UNWRITTEN = 0xFF


@dataclass(frozen=True)
class CallInputs:
    """Everything that one call is given."""

    problem: Problem
    axes: Axes
    inputs: Mapping[str, np.ndarray]
    """One array for each input of the problem, of its dtype."""
    launches: Launches
    report: bytes = b""
    """What one more argument, ahead of the scratch buffers, points at: it may be written."""


@dataclass(frozen=True)
class CallResult:
    """What a call left behind."""

    outputs: Arrays
    report: bytes


def play(
    workshop: Workshop,
    program: Program,
    call: CallInputs,
    *,
    limits: Limits,
    timeout_s: float,
) -> CallResult:
    """Calls the candidate once, on outputs and scratch buffers that hold NaN.

    Raises:
        RunFault: the process did not answer.
        SandboxError: the jail or our own runner failed.
    """
    sheet = Sheet(call)
    with sheet.map_plane() as plane, Runner(workshop, program, plane, limits=limits) as runner:
        runner.call(0, timeout_s=timeout_s)
        return sheet.answer()


class Sheet:
    """Where everything lies: offsets first, then two files in memory."""

    def __init__(self, call: CallInputs) -> None:
        self._call = call
        self._sizes = [ONE_ENTRY_BYTES, 0]
        self._arguments = [call_table.integer(call.axes[axis]) for axis in call.problem.axes]
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
        self._inputs.append((0, call_table.pack_entry(self._arguments)))

    @contextmanager
    def map_plane(self) -> Iterator[Plane]:
        """The plane with everything in it, for as long as it is needed."""
        names = ("kw-inputs", "kw-outputs")
        with ExitStack() as stack:
            both = [SealedMemory(name, size) for name, size in zip(names, self._sizes, strict=True)]
            for memory in both:
                stack.callback(memory.close)
            inputs, outputs = both
            self._fill(inputs.map, outputs.map)
            fds = (
                inputs.open_descriptor(is_writable=False),
                outputs.open_descriptor(is_writable=True),
            )
            for fd in fds:
                stack.callback(os.close, fd)
            yield Plane(*fds, inputs.size, outputs.size)

    def answer(self) -> CallResult:
        """What the second file holds now."""
        raw = self._written
        outputs = {}
        for name, (offset, shape, dtype) in self._outputs.items():
            content = raw[offset : offset + byte_size(shape, dtype)]
            outputs[name] = np.frombuffer(content, dtype).reshape(shape)
        return CallResult(outputs, raw[self._report : self._report + len(self._call.report)])

    def _fill(self, inputs: mmap.mmap, outputs: mmap.mmap) -> None:
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
        self._arguments.append(Passed(Role.OUTPUT if side else Role.INPUT, offset, size))
        return offset


def byte_size(shape: tuple[int, ...], dtype: str) -> int:
    """Bytes of an array without gaps."""
    return int(np.prod(shape, dtype=np.int64)) * dtype_of(dtype).bytes
