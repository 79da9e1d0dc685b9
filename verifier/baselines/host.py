# SPDX-License-Identifier: Apache-2.0
"""The process that runs the baselines: torch and scipy, trusted, pinned, and never the candidate's.

Run as `python -m kernelwright.verifier.baselines.host CONTROL_FD CPU,CPU…`. Requests and answers
are JSON lines from the referee; the data lies in memfds. It prepares every baseline once per slot,
so that whatever a careful user would do once is not timed, and reports the nanoseconds of each
call. A call begins at a gate that is watched without sleep, as a candidate's does.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import mmap
import os
import signal
import socket
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...kernelbench import registry
from ...kernelbench.codecs import host_dtype
from ...kernelbench.compiled_calls import keep_compiled_in
from ...kernelbench.definition import run_text
from ...kernelbench.dtypes import dtype_of
from ...kernelbench.problem import BaselineCall, Handle, Prepared, Problem
from ...sandbox.run.crew import Crew, do_nothing
from .device import TorchDevice

_PR_SET_PDEATHSIG = 1
_SIDES = (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE)
_POPULATE = (22, 23, 22)
"""Inputs and outputs, mapped and brought in as a candidate's process does (MADV_POPULATE_READ and
_WRITE, madvise(2)): inputs that might be written are some per cent slower to gather from. Behind
them the inputs once more, for baselines that do write them."""
IDLE_CALLS = 31
"""The last ones tell what threads take that do nothing."""
YIELDS = 4096
"""Looks at the gate before a turn is given up: on a single CPU the referee must run."""


class _Host:
    """State of the process: one problem, mapped memory, prepared thunks per baseline and slot."""

    def __init__(self) -> None:
        self.problem: Problem | None = None
        self.maps: list[mmap.mmap] = []
        self.memory: list[np.ndarray] = []
        self.gate = self.looks = memoryview(bytearray(4)).cast("I")
        self.calls: dict[int, BaselineCall] = {}
        self.writable_calls: dict[int, BaselineCall] = {}
        """The same with inputs that may be written, of a problem with a baseline that does."""
        self.thunks: dict[tuple[str, int], Prepared | Handle] = {}
        self.crew: Crew | None = None
        """Who makes several calls at a time; None: none are asked for."""
        self.idle_ns: deque[int] = deque(maxlen=IDLE_CALLS)
        """What starting and awaiting threads took that had nothing to do."""
        self.place = ""
        """The device's name."""
        self.device: TorchDevice | None = None
        """None: baselines run on the CPUs, over the memory of the calls."""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carries out one request."""
        return getattr(self, f"_{request['do']}")(request)  # type: ignore[no-any-return]

    def _open(self, request: dict[str, Any]) -> dict[str, Any]:
        name, text = request["problem"], request["text"]
        self.problem = run_text(name, text, f"{name}.py") if text else registry.get(name)
        fds, sizes, sides = list(request["fds"]), list(request["sizes"]), list(_SIDES)
        self.place = request["device"]
        if not self.place and any(each.writes_inputs for each in self.problem.baselines):
            fds, sizes, sides = fds + fds[:1], sizes + sizes[:1], sides + sides[1:]
        self.maps = [
            mmap.mmap(fd, size, mmap.MAP_SHARED | mmap.MAP_POPULATE, side)
            for fd, size, side in zip(fds, sizes, sides, strict=True)
        ]
        self.memory = [np.frombuffer(each, dtype=np.uint8) for each in self.maps]
        gate, looks = request["gate"]
        shared = mmap.mmap(gate, mmap.PAGESIZE, prot=mmap.PROT_READ)
        self.gate = memoryview(shared).cast("I")
        self.looks = memoryview(mmap.mmap(looks, mmap.PAGESIZE)).cast("I")
        keep_compiled_in(Path(request["compiled"]))
        if (instances := request["instances"]) > 1:
            self.crew = Crew(instances, sorted(os.sched_getaffinity(0)))
        try:
            policy = self.problem.precision.policy
            is_warm = request["is_warm"]
            self.device = TorchDevice(self.place, policy, is_warm) if self.place else None
        except (RuntimeError, ImportError) as error:
            return {"ok": False, "why": str(error)[:300]}
        return {"ok": True}

    def _touch(self, _request: dict[str, Any]) -> dict[str, Any]:
        """Has every page at hand, so that no timed call waits for one."""
        for mapped, region, how in zip(self.maps, self.memory, _POPULATE, strict=False):
            try:
                mapped.madvise(how)
            except OSError:  # Linux before 5.14
                region[:: mmap.PAGESIZE].sum()
        return {"ok": True}

    def _peaks(self, _request: dict[str, Any]) -> dict[str, Any]:
        assert self.device is not None
        try:
            return {"ok": True, "peaks": self.device.peaks()}
        except RuntimeError as error:  # too little memory; there is a data sheet
            return {"ok": False, "why": str(error)[:300]}

    def _slot(self, request: dict[str, Any]) -> dict[str, Any]:
        views = [
            {name: self._array(side, *where) for name, where in request[key].items()}
            for side, key in enumerate(("inputs", "outputs", "inputs")[: len(self.memory)])
        ]
        axes, slot = request["axes"], request["slot"]
        call = self.calls[slot] = BaselineCall(axes, *views[:2])
        if len(views) > len(_SIDES):
            self.writable_calls[slot] = BaselineCall(axes, views[2], views[1])
        if self.device:
            self.device.add(call)
        self.thunks = {k: v for k, v in self.thunks.items() if k[1] != request["slot"]}
        return {"ok": True}

    def _prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.problem is not None
        name, slot = request["baseline"], request["slot"]
        baseline = next(b for b in self.problem.baselines if b.name == name)
        start = time.perf_counter()
        if not baseline.runs_on(self.place):
            return {
                "ok": False,
                "why": f"{baseline.requires} does not run on {self.place or 'CPUs'}",
            }
        try:
            if baseline.requires:
                importlib.import_module(baseline.requires)
            if self.device:
                self.device.upload(self.calls[slot])
            is_writing = baseline.writes_inputs and not self.device
            thunk = baseline.prepare((self.writable_calls if is_writing else self.calls)[slot])
            if self.device:
                self.device.warm_up(thunk)
            else:
                thunk()
        except Exception as error:  # reported to the referee, which leaves the baseline out
            return {"ok": False, "why": f"{type(error).__name__}: {str(error)[:300]}"}
        self.thunks[name, slot] = thunk
        with contextlib.suppress(OSError):  # a jail may not let it: then they stay where they are
            _bind_workers()
        return {"ok": True, "seconds": time.perf_counter() - start}

    def _count(self, request: dict[str, Any]) -> dict[str, Any]:
        """Counts the operations of a baseline by torch, which is prepared."""
        from .counting import count_operations

        thunk: Any = self.thunks[request["baseline"], request["slot"]]
        try:
            found = count_operations(thunk)
        except Exception as error:  # what counts may not be called within all that torch has
            return {"ok": False, "why": f"{type(error).__name__}: {str(error)[:300]}"}
        return {
            "ok": True,
            "least": found.least,
            "most": found.most,
            "unknown": sorted(set(found.unknown)),
        }

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        """A native kernel as a baseline: the same call as a candidate's, in this process."""
        assert self.problem is not None
        entry = getattr(ctypes.CDLL(request["library"]), self.problem.name)
        for slot, call in self.calls.items():
            arrays = [{**call.inputs, **call.outputs}[t.name] for t in self.problem.tensors]
            axes = [ctypes.c_int(call.axes[axis]) for axis in self.problem.axes]
            addresses = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
            self.thunks[request["baseline"], slot] = partial(entry, *axes, *addresses)
        return {"ok": True}

    def _add_copy(self, request: dict[str, Any]) -> dict[str, Any]:
        """A copy within the memory of this process as a baseline, whatever the slot."""
        import torch

        source = torch.zeros(request["moved"] // 8, dtype=torch.int32)
        copy = partial(torch.add, source, 1, out=torch.zeros_like(source))
        copy()
        with contextlib.suppress(OSError):  # as in _prepare
            _bind_workers()
        self.thunks |= {(request["baseline"], slot): copy for slot in self.calls}
        return {"ok": True}

    def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        """Waits for the gate and calls a baseline, or what it prepares."""
        name, slots = request["baseline"], request["slots"]
        thunks: list[Any] = [self.thunks[name, slot] for slot in slots]
        thunk = thunks[0].refresh if request["refresh"] else thunks[0]
        self._await(request["nonce"])
        if self.device:
            return {"ok": True, "ns": self._on_device(self.device, slots[0], thunk)}
        if self.crew and len(slots) > 1:
            return {"ok": True, "ns": self._together(self.crew, thunks)}
        return {"ok": True, "ns": _time_ns(thunk)}

    def _together(self, crew: Crew, thunks: list[Any]) -> int:
        """Nanoseconds of several calls at a time.

        Threads of Python start and end more slowly than a candidate's: what it takes without a call
        is measured behind each of them and taken off, so that nobody gains by it.
        """
        spent = _time_ns(lambda: crew.work(thunks))
        self.idle_ns.append(_time_ns(lambda: crew.work([do_nothing] * len(thunks))))
        return max(1, spent - int(statistics.median(self.idle_ns)))

    def _await(self, nonce: int) -> None:
        turn = 1
        while self.gate[0] != nonce:
            self.looks[0] = turn & 0xFFFFFFFF
            turn += 1
            if turn % YIELDS == 0:
                os.sched_yield()

    def _on_device(self, device: TorchDevice, slot: int, thunk: Callable[[], None]) -> int:
        device.upload(self.calls[slot])
        spent = device.time_ns(thunk)
        device.download(self.calls[slot])
        return spent

    def _array(self, side: int, offset: int, dtype: str, shape: list[int]) -> np.ndarray:
        element = host_dtype(dtype_of(dtype))
        size = int(np.prod(shape, dtype=np.int64)) * element.itemsize
        flat: np.ndarray = self.memory[side][offset : offset + size].view(element)
        return flat.reshape(shape)


def _bind_workers() -> None:
    """Binds the threads of a pool, each to a CPU of its own, where this thread is bound to one.

    OpenMP binds its own (OMP_PROC_BIND), this thread with them; OpenBLAS binds none, and a worker
    of it that wakes up where this thread waits for it loses ten milliseconds until it is moved.
    """
    here = os.sched_getaffinity(0)
    threads = [int(name) for name in os.listdir("/proc/self/task")]
    usable = set[int]().union(*map(os.sched_getaffinity, threads))
    others = sorted(usable - here)
    if len(here) > 1 or not others:
        return
    free = sorted(thread for thread in threads if os.sched_getaffinity(thread) == usable)
    for number, thread in enumerate(free):
        os.sched_setaffinity(thread, {others[number % len(others)]})


def _time_ns(thunk: Callable[[], object]) -> int:
    start = time.perf_counter_ns()
    thunk()
    return time.perf_counter_ns() - start


def main() -> None:
    """Serves requests until the referee closes the channel."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # In a jail, which may not show them, they were pinned before they began.
    with contextlib.suppress(PermissionError):
        # Of every thread that numpy has started by now, and so of those that they start.
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), {int(cpu) for cpu in sys.argv[2].split(",")})
    channel = socket.socket(fileno=int(sys.argv[1]))
    host = _Host()
    lines = channel.makefile("rb")
    gc.freeze()
    gc.disable()  # a collection inside a timed call would be charged to torch
    for count, line in enumerate(lines):
        channel.sendall(json.dumps(host.answer(json.loads(line))).encode() + b"\n")
        if count % 512 == 511:
            gc.collect()
    os._exit(0)


if __name__ == "__main__":
    main()
