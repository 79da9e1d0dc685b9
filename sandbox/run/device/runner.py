"""A started device runner: what its process is asked beyond a runner that shares our memory.

Tensors are copied to the device for a call and their outputs back after it. No gate is watched:
the device's own events tell how long the kernels took, and the host's clock is told beside them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ...frames import Kind
from ..process import Runner, Timed

_COPY_S = 30.0
"""What copying the slots of a call to a device or back may take beyond the deadline of the call."""
_ANSWER = {
    Kind.PING: Kind.PONG, Kind.UPLOAD: Kind.PONG, Kind.FETCH: Kind.PONG, Kind.CALL: Kind.DONE,
    Kind.REPLAY: Kind.DONE,
}  # fmt: skip


class DeviceRunner(Runner):
    """A Runner whose program has memory of its own (`Program.has_own_memory`)."""

    _dry_ns = 0

    def ping(self, first: int = 0, count: int = 0, *, timeout_s: float = 5.0) -> None:
        """With slots it does all that a call does but the launches, for the referee to take off."""
        self._dry_ns = self._exchange(Kind.PING, first, count, timeout_s).wall_ns

    def call(
        self,
        slot: int,
        count: int = 1,
        *,
        timeout_s: float,
        release: Callable[[], None] | None = None,
        as_graph: bool = False,
    ) -> Timed:
        """Runs `count` placed slots from `slot`. Raises RunFault.

        Each slot is copied to the device right before its own call, so that no call finds the
        inputs of a later one; the round trips beyond the first are taken off, each as long as the
        last ping. As one CUDA graph the slots are all there at once.
        """
        if release:
            release()
        if as_graph:
            return self._on_device(Kind.REPLAY, slot, count, timeout_s)
        calls = [
            self._on_device(Kind.CALL, each, 1, timeout_s) for each in range(slot, slot + count)
        ]
        total = Timed(*(sum(column) for column in zip(*calls, strict=True)))
        return total._replace(wall_ns=max(1, total.wall_ns - (count - 1) * self._dry_ns))

    def _on_device(self, kind: Kind, first: int, count: int, timeout_s: float) -> Timed:
        self._exchange(Kind.UPLOAD, first, count, timeout_s + _COPY_S)
        timed = self._exchange(kind, first, count, timeout_s)
        self._exchange(Kind.FETCH, first, count, timeout_s + _COPY_S)
        return timed

    def _exchange(self, kind: Kind, first: int, count: int, timeout_s: float) -> Timed:
        before = self._cpu_now()
        start = time.perf_counter_ns()
        frame = self._hear(_ANSWER[kind], self._say(kind, first, count), timeout_s).frame
        wall = time.perf_counter_ns() - start
        self._cpu_mark = self._cpu_now()
        # A claim of nothing at all would break every ratio that is made of it.
        cpu = self._cpu_mark - before
        return Timed(max(frame.first, 1), wall, cpu, host_ns=frame.second)

    def _measure_empty(self, timeout_s: float) -> None:
        """What its calls take besides kernels is told by pings."""
