"""One runner process: started in a jail, called by frames, measured from outside.

It turns whatever goes wrong inside into a RunFault with the status the candidate gets. It knows no
problem and no expected value.
"""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from ...errors import SandboxError
from ...traces.records import Status
from ..frames import Frame, FrameError, Kind, has_more, receive, send
from ..isolation.model import Confinement, End, Jail, Job, Limits, Outcome
from ..isolation.seccomp import build_filter
from .binary import runner_binary

START_TIMEOUT_S = 10.0
_STATUS = {
    End.WALL: Status.TIMED_OUT,
    End.CPU: Status.TIMED_OUT,
    End.MEMORY: Status.RESOURCE,
    End.OUTPUT: Status.RESOURCE,
    End.PROCESSES: Status.RESOURCE,
}


class RunFault(Exception):
    """The candidate's process did not do what it was asked; carries the status that follows."""

    def __init__(self, status: Status, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.log = log


class Timed(NamedTuple):
    """What one CALL took, in nanoseconds."""

    claimed_ns: int
    """The runner's own sum over its calls: a claim."""
    wall_ns: int
    """The referee's clock around the round trip."""
    cpu_ns: int
    """CPU time of the whole process, by the kernel's accounting."""


@dataclass(frozen=True)
class Plane:
    """The shared memory handed to a process: descriptors it may keep, and their sizes."""

    input_fd: int
    output_fd: int
    input_bytes: int
    output_bytes: int


def thread_environment(cpus: int) -> dict[str, str]:
    """Threads of either side: as many as CPUs, bound, and asleep when they wait (gpu.md §7)."""
    return {
        "OMP_NUM_THREADS": str(cpus),
        "OMP_PROC_BIND": "close",
        "OMP_PLACES": "cores",
        "OMP_WAIT_POLICY": "passive",
        "OMP_DYNAMIC": "false",
        "GOMP_SPINCOUNT": "0",
        "KMP_BLOCKTIME": "0",
        "MKL_NUM_THREADS": str(cpus),
        "OPENBLAS_NUM_THREADS": str(cpus),
    }


def cpu_ns(pid: int) -> int:
    """CPU time of all threads of another process so far (clock_getcpuclockid(3))."""
    return time.clock_gettime_ns((~pid << 3) | 2)


class Runner:
    """A started runner. Use as a context manager: leaving kills its whole process tree."""

    def __init__(
        self,
        jail: Jail,
        artefact: bytes,
        plane: Plane,
        *,
        cpus: tuple[int, ...],
        limits: Limits,
        cache_dir: Path,
        environment: Mapping[str, str] | None = None,
        seccomp: bool = True,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kw-run-", ignore_cleanup_errors=True)
        self._job: Job | None = None
        self._pid = 0
        self._cpu_mark = 0
        folder = Path(self._folder.name)
        os.chmod(folder, 0o755)
        library = folder / "candidate.so"
        library.write_bytes(artefact)
        library.chmod(0o755)
        ours, theirs = socket.socketpair()
        self._channel = ours
        filter_fd = _filter_fd(seccomp)
        fds = (theirs.fileno(), plane.input_fd, plane.output_fd, filter_fd)
        program = runner_binary(cache_dir)
        command = [
            str(program), str(fds[0]), str(fds[1]), str(plane.input_bytes), str(fds[2]),
            str(plane.output_bytes), str(fds[3]), str(library),
        ]  # fmt: skip
        confinement = Confinement(
            readable=(program, folder),
            pass_fds=fds,
            env={**thread_environment(len(cpus)), **(environment or {})},
            cpus=cpus,
            may_mark=False,
        )
        try:
            self._job = jail.start(command, confinement, limits)
        finally:
            theirs.close()
            os.close(filter_fd)
        self._await_ready()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> Outcome | None:
        """Kills the process tree and gives everything back. May be called twice."""
        self._channel.close()
        outcome = self._job.kill() if self._job else None
        self._folder.cleanup()
        return outcome

    def ping(self, timeout_s: float = 5.0) -> int:
        """Nanoseconds of an empty round trip."""
        return self._exchange(Kind.PING, 0, 0, timeout_s).wall_ns

    def call(self, first: int, count: int = 1, *, timeout_s: float) -> Timed:
        """Runs `count` placed slots from `first`. Raises RunFault."""
        return self._exchange(Kind.CALL, first, count, timeout_s)

    def idle_ns(self) -> int:
        """CPU time the process spent since its last answer, when it had nothing to do."""
        return self._cpu_now() - self._cpu_mark

    def _exchange(self, kind: Kind, first: int, count: int, timeout_s: float) -> Timed:
        nonce = secrets.randbits(32)
        before = self._cpu_now()
        try:
            start = time.perf_counter_ns()
            send(self._channel, Frame(kind, nonce, first, count))
            answer = receive(self._channel, timeout_s)
            wall = time.perf_counter_ns() - start
        except FrameError as error:
            raise self._fault(error, timeout_s) from error
        after = self._cpu_now()
        self._cpu_mark = after
        expected = Kind.PONG if kind is Kind.PING else Kind.DONE
        if answer.kind != expected or answer.nonce != nonce or has_more(self._channel):
            raise self._end(
                Status.PROTOCOL_ERROR,
                f"the runner answered with frame {answer.kind} where {expected.name} was due, or "
                "with more than one frame",
            )
        return Timed(answer.first, wall, after - before)

    def _cpu_now(self) -> int:
        try:
            return cpu_ns(self._pid)
        except OSError:
            return self._cpu_mark

    def _await_ready(self) -> None:
        assert self._job is not None
        try:
            answer = receive(self._channel, START_TIMEOUT_S)
        except FrameError as error:
            fault = self._fault(error, START_TIMEOUT_S, while_doing="while it was loaded")
            self.close()
            raise fault from error
        if answer.kind == Kind.REFUSED:
            fault = self._end(Status.BUILD_FAILED, "the built artefact cannot be loaded")
            self.close()
            raise fault
        self._pid = self._job.pid
        if self._cpu_now() == self._cpu_mark == 0:
            raise SandboxError(f"the CPU clock of the runner (pid {self._pid}) cannot be read")
        self._cpu_mark = self._cpu_now()

    def _fault(self, error: FrameError, timeout_s: float, while_doing: str = "") -> RunFault:
        assert self._job is not None
        if error.is_late:
            where = while_doing or "in one call"
            return self._end(Status.TIMED_OUT, f"no answer within {timeout_s:.1f} s {where}")
        ended = self._job.wait(2.0)
        if ended.end is End.SIGNALLED:
            return RunFault(
                Status.CRASHED,
                f"the process died of {_signal_name(ended.code)} {while_doing}".strip(),
                _words(ended),
            )
        if ended.end in _STATUS:
            return RunFault(_STATUS[ended.end], ended.detail or str(ended.end), _words(ended))
        if ended.code in (96, 97):
            raise SandboxError(f"the runner could not start: {_words(ended)[:400]}")
        return RunFault(
            Status.CRASHED,
            f"the process left by itself with exit status {ended.code} {while_doing}".strip(),
            _words(ended),
        )

    def _end(self, status: Status, reason: str) -> RunFault:
        """Kills the job; a limit that it met meanwhile is the better reason."""
        assert self._job is not None
        ended = self._job.kill()
        if ended.end in _STATUS and status is Status.TIMED_OUT:
            status, reason = _STATUS[ended.end], ended.detail or reason
        return RunFault(status, reason, _words(ended))


def _filter_fd(wanted: bool) -> int:
    fd = os.memfd_create("kw-filter", 0)
    if wanted:
        os.write(fd, build_filter(may_fork=False, may_exec=False))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _words(outcome: Outcome) -> str:
    text = (outcome.stderr or outcome.stdout)[:16384].decode("utf-8", "replace")
    return "".join(c if c in "\n\t" or c.isprintable() else "?" for c in text)
