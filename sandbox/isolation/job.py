# SPDX-License-Identifier: Apache-2.0
"""One running job: a watcher thread drains its output, holds it to its limits and sees it end.

Every jail uses it. What differs between jails is behind `Launched`: how the tree is started, listed
and killed. The thread that starts the tree is the one that stays with it, since a parent-death
signal follows the thread and not the process.

Use a job from one thread at a time; several jobs may run side by side.
"""

from __future__ import annotations

import os
import selectors
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple, Protocol

from ...errors import SandboxError
from . import tree
from .cgroup import Cgroup
from .limits import FLOOD_FACTOR, Stream, find_exceeded
from .model import End, Limits, Outcome

TICK_S = 0.025
"""Between two samples of the tree if memory is polled; at 3 GB/s a hog writes 75 MB meanwhile."""

GUARDED_TICK_S = 0.1
"""Where the kernel itself holds memory and tasks, and between two counts of temporary files; a
sample takes CPU time from what is timed."""

_GONE_S = 15.0
"""A killed process that is not gone by then hangs in the kernel, on a device for example."""


class Streams(NamedTuple):
    """The writing ends of the job's stdout and stderr."""

    stdout: int
    stderr: int


class Ending(NamedTuple):
    """How the tree ended, as its reaper saw it."""

    status: int
    """As wait(2) gives it."""
    cpu_s: float
    peak_bytes: int
    """Largest resident size of one process; 0: not known."""
    detail: str = ""


class StartedTree(Protocol):
    """A started tree."""

    pid: int

    @property
    def anchor(self) -> int:
        """Our direct child; when it has exited, nothing of the tree is left."""

    def members(self) -> list[int]:
        """The processes of the job that are alive."""

    def temporary_bytes(self, members: Iterable[int]) -> int:
        """What these processes keep in a folder for temporary files that has no size of its own."""

    def end(self) -> None:
        """Begins to kill the whole tree; may be called again."""

    def reap(self) -> Ending:
        """Collects the anchor, which has exited."""


class WatchedJob:
    """A `model.Job`."""

    def __init__(
        self, launch: Callable[[Streams], StartedTree], limits: Limits, cgroup: Cgroup | None
    ) -> None:
        self._launch, self._limits, self._cgroup = launch, limits, cgroup
        is_guarded = cgroup is not None and bool(cgroup.memory and cgroup.pids)
        self._tick_s = GUARDED_TICK_S if is_guarded else TICK_S
        self._wake_r, self._wake_w = os.pipe()
        self._reason: tuple[End, str] | None = None
        self._lock = threading.Lock()
        self._outcome: Outcome | None = None
        self._failure: BaseException | None = None
        self._running, self._done = threading.Event(), threading.Event()
        self._pid = 0
        self._usage = tree.TreeUsage(0, 0.0, 0)
        self._peak = 0
        self._next_count = 0.0
        self._launched: StartedTree | None = None
        self._stands_since = self._stood_s = 0.0
        self._made_stand: set[int] = set()
        thread = threading.Thread(target=self._run, name="kernelwright-job", daemon=True)
        thread.start()
        self._running.wait()
        if self._failure is not None:
            self._done.wait()
            raise self._failure

    @property
    def pid(self) -> int:
        """The pid, in our pid namespace, of the process that runs the command itself."""
        return self._pid

    def poll(self) -> Outcome | None:
        """The outcome if the whole tree is gone, else None."""
        return self._result() if self._done.is_set() else None

    def wait(self, timeout_s: float | None = None) -> Outcome:
        """Waits for the end; after `timeout_s`, if given, the tree is killed."""
        if not self._done.wait(timeout_s):
            self._stop(End.WALL, f"not done within the {timeout_s:g} s it was waited for")
            self._done.wait()
        return self._result()

    def stand(self) -> None:
        """Has the whole process tree stand still, at no cost of its time, until `go_on`.

        What is started while it is stopped is met by the next pass. What somebody else had stopped
        stays so afterwards.
        """
        with self._lock:
            if self._launched is None or self._stands_since or self._done.is_set():
                return
            met: set[int] = set()
            self._made_stand.clear()
            while new := [pid for pid in self._launched.members() if pid not in met]:
                going = [pid for pid in new if not tree.is_stopped(pid)]
                _signal(going, signal.SIGSTOP)
                self._made_stand.update(going)
                met.update(new)
            self._stands_since = time.monotonic()

    def go_on(self) -> None:
        """Has it go on, if it stands still."""
        with self._lock:
            if self._launched is None or not self._stands_since:
                return
            self._stood_s += time.monotonic() - self._stands_since
            self._stands_since = 0.0
            if not self._done.is_set():
                members = self._launched.members()
                _signal([p for p in members if p in self._made_stand], signal.SIGCONT)

    def kill(self) -> Outcome:
        """Kills the whole process tree and waits until it is gone. May be called again."""
        if not self._done.is_set():
            self._stop(End.KILLED, "killed by the harness")
            self._done.wait()
        return self._result()

    def _result(self) -> Outcome:
        if self._failure is not None:
            raise SandboxError(f"the watcher of a job failed: {self._failure}") from self._failure
        assert self._outcome is not None
        return self._outcome

    def _stop(self, end: End, detail: str) -> None:
        """Asks the watcher to kill the tree; the first reason is the one that is told."""
        with self._lock:
            if self._reason is None:
                self._reason = (end, detail)
            if not self._done.is_set():
                os.write(self._wake_w, b"k")

    def _run(self) -> None:
        try:
            self._start_and_watch()
        except BaseException as error:
            # In a thread: whoever waits for the job raises it.
            self._failure = error
        finally:
            if self._cgroup is not None:
                self._cgroup.remove()
            self._running.set()
            with self._lock:
                os.close(self._wake_r)
                os.close(self._wake_w)
                self._done.set()

    def _start_and_watch(self) -> None:
        began = time.monotonic()
        out_r, out_w = os.pipe()
        err_r, err_w = os.pipe()
        streams = {
            out_r: Stream(self._limits.output_bytes),
            err_r: Stream(self._limits.output_bytes),
        }
        try:
            try:
                launched = self._launch(Streams(out_w, err_w))
            except SandboxError as error:
                raise _with_words(error, err_r) from error
            finally:
                os.close(out_w)
                os.close(err_w)
            self._pid, self._launched = launched.pid, launched
            self._running.set()
            self._watch(launched, streams, began)
            ending = launched.reap()
            for descriptor in streams:
                while _drain(descriptor, streams[descriptor]):
                    pass
            out, err = streams[out_r], streams[err_r]
            self._outcome = self._tell(ending, out, err, time.monotonic() - began)
        finally:
            os.close(out_r)
            os.close(err_r)

    def _watch(self, launched: StartedTree, streams: dict[int, Stream], began: float) -> None:
        """Until the anchor has exited."""
        gone = os.pidfd_open(launched.anchor)
        try:
            with selectors.DefaultSelector() as selector:
                for descriptor in (*streams, self._wake_r, gone):
                    os.set_blocking(descriptor, False)
                    selector.register(descriptor, selectors.EVENT_READ)
                self._loop(launched, streams, began, selector, gone)
        except BaseException:
            launched.end()
            raise
        finally:
            os.close(gone)

    def _loop(
        self,
        launched: StartedTree,
        streams: dict[int, Stream],
        began: float,
        selector: selectors.BaseSelector,
        gone: int,
    ) -> None:
        killed_at = 0.0
        next_sample = began
        while True:
            ready = {key.fd for key, _ in selector.select(self._pause_s(began, next_sample))}
            for descriptor in ready & set(streams):
                if _drain(descriptor, streams[descriptor]) == 0:
                    selector.unregister(descriptor)
            if gone in ready:
                return
            now = time.monotonic()
            if self._wake_r in ready:
                os.read(self._wake_r, 64)
            worked_s = self._worked_s(now - began)
            is_late = worked_s > self._limits.wall_s
            if self._stands_since:
                next_sample = now + self._tick_s
            elif now >= next_sample or is_late or any(s.is_flood for s in streams.values()):
                self._sample(launched, streams, worked_s)
                next_sample = time.monotonic() + self._tick_s
            if self._reason is not None:
                killed_at = killed_at or now
                if self._cgroup is not None:
                    self._cgroup.forbid_forks()
                launched.end()
                if now - killed_at > _GONE_S:
                    raise SandboxError(
                        f"process {launched.pid} is still there {_GONE_S:g} s after it was killed",
                        hint="it hangs in the kernel; look at its /proc/PID/stack",
                    )

    def _worked_s(self, since_s: float) -> float:
        """Of so long since it began, without what it was made to stand still."""
        with self._lock:
            standing_s = time.monotonic() - self._stands_since if self._stands_since else 0.0
            return since_s - self._stood_s - standing_s

    def _pause_s(self, began: float, next_sample: float) -> float:
        """How long the watcher may sleep if nothing happens."""
        if self._reason is not None:
            return TICK_S
        ends = began + self._limits.wall_s + self._stood_s
        due = (next_sample if self._stands_since else min(next_sample, ends)) - time.monotonic()
        return max(due, 0.001)

    def _sample(self, launched: StartedTree, streams: dict[int, Stream], wall_s: float) -> None:
        if self._reason is not None:
            return
        members = launched.members()
        used = tree.usage(members)
        if time.monotonic() >= self._next_count:
            used = used._replace(temporary_bytes=launched.temporary_bytes(members))
            self._next_count = time.monotonic() + GUARDED_TICK_S
        self._usage = used
        self._peak = max(self._peak, used.resident_bytes)
        found = find_exceeded(self._limits, used, self._cgroup)
        if found is None and wall_s > self._limits.wall_s:
            found = End.WALL, f"still running after {self._limits.wall_s:g} s"
        if found is None and any(stream.is_flood for stream in streams.values()):
            most = FLOOD_FACTOR * self._limits.output_bytes
            found = End.OUTPUT, f"more than {most} bytes written to one stream"
        with self._lock:
            self._reason = self._reason or found

    def _tell(self, ending: Ending, out: Stream, err: Stream, wall_s: float) -> Outcome:
        oomed = find_exceeded(self._limits, tree.TreeUsage(0, 0.0, 0), self._cgroup)
        peak = max(self._peak, ending.peak_bytes)
        if self._cgroup is not None:
            peak = max(peak, self._cgroup.peak_bytes())
        number = os.WTERMSIG(ending.status) if os.WIFSIGNALED(ending.status) else 0
        if number == signal.SIGXCPU:
            oomed = oomed or (End.CPU, f"more than {self._limits.cpu_s:g} s in one process")
        dropped = [
            f"{stream.total - len(stream.kept)} bytes of {name} not kept"
            for name, stream in (("stdout", out), ("stderr", err))
            if stream.total > len(stream.kept)
        ]
        natural = (End.SIGNALLED, ending.detail) if number else (End.EXITED, ending.detail)
        end, why = self._reason or oomed or natural
        return Outcome(
            end=end,
            code=number or os.WEXITSTATUS(ending.status),
            stdout=bytes(out.kept),
            stderr=bytes(err.kept),
            wall_s=wall_s,
            cpu_s=max(ending.cpu_s, self._usage.cpu_s),
            peak_bytes=peak,
            detail="; ".join([part for part in (why, *dropped) if part]),
        )


def _with_words(error: SandboxError, stderr: int) -> SandboxError:
    """The error with what the jail's own program wrote, which often names the cause."""
    os.set_blocking(stderr, False)
    said = Stream(2000)
    _drain(stderr, said)
    words = said.kept.decode(errors="replace").strip()
    return SandboxError(f"{error}: {words}" if words else str(error), hint=error.hint)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(OSError):  # it has ended
            os.kill(pid, number)


def _drain(descriptor: int, stream: Stream) -> int:
    """Reads what is there, at most 1 MiB so that a flood cannot hold the watcher; 0: the end."""
    read = 0
    while read < 1 << 20:
        try:
            chunk = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return read or -1
        if not chunk:
            return read
        stream.take(chunk)
        read += len(chunk)
    return read
