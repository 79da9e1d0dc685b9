"""The process that runs the baselines: torch and scipy, trusted, pinned, and never the candidate's.

Run as `python -m kernelwright.verifier.baseline_host CONTROL_FD`. Requests and answers are JSON
lines from the referee; the data lies in memfds. It prepares every baseline once per slot, so that
whatever a careful user would do once is not timed, and reports the nanoseconds of each call.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import mmap
import os
import signal
import socket
import sys
import time
from typing import Any

import numpy as np

from ..kernelbench import registry
from ..kernelbench.problem import Call, Prepared, Problem

_PR_SET_PDEATHSIG = 1


class _Host:
    """State of the process: one problem, mapped memory, prepared thunks per baseline and slot."""

    def __init__(self) -> None:
        self.problem: Problem | None = None
        self.memory: list[np.ndarray] = []
        self.calls: dict[int, Call] = {}
        self.thunks: dict[tuple[str, int], Prepared] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carries out one request."""
        return getattr(self, f"_{request['do']}")(request)  # type: ignore[no-any-return]

    def _open(self, request: dict[str, Any]) -> dict[str, Any]:
        self.problem = registry.get(request["problem"])
        self.memory = [
            np.frombuffer(mmap.mmap(fd, size), dtype=np.uint8)
            for fd, size in zip(request["fds"], request["sizes"], strict=True)
        ]
        for region in self.memory:
            region[::4096].sum()
        return {"ok": True}

    def _slot(self, request: dict[str, Any]) -> dict[str, Any]:
        views = [
            {name: self._array(side, *where) for name, where in request[key].items()}
            for side, key in enumerate(("inputs", "outputs"))
        ]
        self.calls[request["slot"]] = Call(request["axes"], *views)
        self.thunks = {k: v for k, v in self.thunks.items() if k[1] != request["slot"]}
        return {"ok": True}

    def _prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.problem is not None
        name, slot = request["baseline"], request["slot"]
        baseline = next(b for b in self.problem.baselines if b.name == name)
        start = time.perf_counter()
        try:
            importlib.import_module(baseline.requires)
            thunk = baseline.prepare(self.calls[slot])
            thunk()
        except Exception as error:  # reported to the referee, which leaves the baseline out
            return {"ok": False, "why": f"{type(error).__name__}: {str(error)[:300]}"}
        self.thunks[name, slot] = thunk
        return {"ok": True, "seconds": time.perf_counter() - start}

    def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        thunks = [self.thunks[request["baseline"], slot] for slot in request["slots"]]
        spent = 0
        for thunk in thunks:
            start = time.perf_counter_ns()
            thunk()
            spent += time.perf_counter_ns() - start
        return {"ok": True, "ns": spent}

    def _array(self, side: int, offset: int, dtype: str, shape: list[int]) -> np.ndarray:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        flat: np.ndarray = self.memory[side][offset : offset + size].view(dtype)
        return flat.reshape(shape)


def main() -> None:
    """Serves requests until the referee closes the channel."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    channel = socket.socket(fileno=int(sys.argv[1]))
    host = _Host()
    lines = channel.makefile("rb")
    gc.freeze()
    gc.disable()  # a collection inside a timed call would be charged to torch
    for count, line in enumerate(lines):
        answer = host.answer(json.loads(line))
        channel.sendall(json.dumps(answer).encode() + b"\n")
        if count % 512 == 511:
            gc.collect()
    os._exit(0)


if __name__ == "__main__":
    main()
