"""One runner process: started in a jail, called by frames, measured from outside.

It turns whatever goes wrong inside into a RunFault with the status the candidate gets. It knows no
problem, no expected value and no language: what differs between languages is in its Program.

The runner says READY before any code of the candidate is in it. What fails until then is our own
failure; what comes after, whatever it looks like, is the candidate's.
"""

from __future__ import annotations

import os
import secrets
import socket
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from ...errors import SandboxError
from ...traces.records import Status
from ..frames import Frame, FrameError, Kind, has_more, receive, send
from ..isolation.model import Confinement, End, Jail, Job, Limits, Outcome
from ..isolation.seccomp import build_filter
from .program import Descriptors, Program

CLEAN_PINGS = 9
"""Round trips before the candidate is loaded; their median is what one costs here."""
_STATUS = {
    End.WALL: Status.TIMED_OUT,
    End.CPU: Status.TIMED_OUT,
    End.MEMORY: Status.RESOURCE,
    End.OUTPUT: Status.RESOURCE,
    End.PROCESSES: Status.RESOURCE,
}
_ANSWER = {
    Kind.PING: Kind.PONG, Kind.UPLOAD: Kind.PONG, Kind.FETCH: Kind.PONG, Kind.CALL: Kind.DONE,
    Kind.REPLAY: Kind.DONE, Kind.LOAD: Kind.READY,
}  # fmt: skip
_COPY_S = 30.0
"""What copying the slots of a call to a device or back may take beyond the deadline of the call."""
_REASON_CHARACTERS = 300


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
    host_ns: int = 0
    """A device runner's claim by the host's clock, where `claimed_ns` is by the device's events."""


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
        program: Program,
        plane: Plane,
        *,
        cpus: tuple[int, ...],
        limits: Limits,
        seccomp: bool = True,
    ) -> None:
        """Starts it and loads the candidate.

        Raises:
            RunFault: the candidate could not be loaded, or left.
            SandboxError: the jail or our own runner failed.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="kw-run-", ignore_cleanup_errors=True)
        self._program = program
        self._job: Job | None = None
        self._pid = 0
        self._cpu_mark = 0
        self._clean = Timed(0, 0, 0)
        self._dry_ns = 0
        folder = self._filled_folder()
        ours, theirs = socket.socketpair()
        self._channel = ours
        filter_fd = _filter_fd(seccomp)
        given = Descriptors(
            theirs.fileno(), plane.input_fd, plane.input_bytes,
            plane.output_fd, plane.output_bytes, filter_fd,
        )  # fmt: skip
        confinement = Confinement(
            readable=(*program.readable, folder),
            devices=program.devices,
            pass_fds=(given.control, given.inputs, given.outputs, given.filter),
            env={**thread_environment(len(cpus)), **program.environment},
            cpus=cpus,
            may_mark=False,
        )
        try:
            self._job = jail.start(program.command(given, folder), confinement, limits)
        finally:
            theirs.close()
            os.close(filter_fd)
        try:
            self._await_ready()
            self._exchange(
                Kind.LOAD, 0, 0, program.load_timeout_s, while_doing="while it was loaded"
            )
        except BaseException:
            self.close()
            raise

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

    def ping(self, first: int = 0, count: int = 0, *, timeout_s: float = 5.0) -> int:
        """Nanoseconds of an empty round trip; names the slots that the next call will run.

        A Python runner makes their tensors then, once for each place in memory; a device runner
        does all that a call does but the launches. Where the Program limits pings, a slow one
        counts as that limit.
        """
        wall = self._exchange(Kind.PING, first, count, timeout_s).wall_ns
        self._dry_ns = wall
        limit = self._program.ping_limit * self._clean.wall_ns
        return min(wall, int(limit)) if limit else wall

    def call(
        self, first: int, count: int = 1, *, timeout_s: float, as_graph: bool = False
    ) -> Timed:
        """Runs `count` placed slots from `first`. Raises RunFault.

        On a device each slot is copied there right before its own call, so that no call finds the
        inputs of a later one; the round trips beyond the first are taken off, each as long as the
        last ping. As one CUDA graph the slots are all there at once.
        """
        if not self._program.has_own_memory:
            return self._exchange(Kind.CALL, first, count, timeout_s)
        if as_graph:
            return self._on_device(Kind.REPLAY, first, count, timeout_s)
        calls = [
            self._on_device(Kind.CALL, slot, 1, timeout_s) for slot in range(first, first + count)
        ]
        total = Timed(*(sum(column) for column in zip(*calls, strict=True)))
        return total._replace(wall_ns=max(1, total.wall_ns - (count - 1) * self._dry_ns))

    def _on_device(self, kind: Kind, first: int, count: int, timeout_s: float) -> Timed:
        self._exchange(Kind.UPLOAD, first, count, timeout_s + _COPY_S)
        timed = self._exchange(kind, first, count, timeout_s)
        self._exchange(Kind.FETCH, first, count, timeout_s + _COPY_S)
        return timed

    def idle_ns(self) -> int:
        """CPU time the process spent since its last call, when it had nothing but pings to do.

        What waking up takes, and twice what a ping took before the candidate was loaded, is left
        out. Asked right before a call it also shows work that was done ahead of it, on inputs that
        were already there.
        """
        allowed = 2 * self._clean.cpu_ns + int(self._program.idle_cpu_us * 1e3)
        return max(0, self._cpu_now() - self._cpu_mark - allowed)

    def _filled_folder(self) -> Path:
        folder = Path(self._folder.name)
        folder.chmod(0o755)
        for name, content in self._program.files.items():
            file = folder / name
            file.write_bytes(content)
            file.chmod(0o755)
        return folder

    def _exchange(
        self, kind: Kind, first: int, count: int, timeout_s: float, while_doing: str = ""
    ) -> Timed:
        nonce = secrets.randbits(32)
        before = self._cpu_now()
        try:
            start = time.perf_counter_ns()
            send(self._channel, Frame(kind, nonce, first, count))
            answer = receive(self._channel, timeout_s)
            wall = time.perf_counter_ns() - start
        except FrameError as error:
            raise self._fault(error, timeout_s, while_doing) from error
        after = self._cpu_now()
        if kind is not Kind.PING or self._program.has_own_memory:
            self._cpu_mark = after
        if answer.kind == Kind.REFUSED and kind is Kind.LOAD:
            raise self._end(
                Status.BUILD_FAILED, "the built artefact cannot be loaded", tells_why=True
            )
        expected = _ANSWER[kind]
        if answer.kind != expected or answer.nonce != nonce or has_more(self._channel):
            raise self._end(
                Status.PROTOCOL_ERROR,
                f"the runner answered with frame {answer.kind} where {expected.name} was due, or "
                "with more than one frame",
            )
        # A claim of nothing at all would break every ratio that is made of it.
        host = answer.second if self._program.has_own_memory else 0
        return Timed(max(answer.first, 1), wall, after - before, host)

    def _cpu_now(self) -> int:
        try:
            return cpu_ns(self._pid)
        except OSError:
            return self._cpu_mark

    def _await_ready(self) -> None:
        """Until our own runner is up, and what a round trip to it costs. Raises SandboxError."""
        assert self._job is not None
        timeout_s = self._program.start_timeout_s
        try:
            try:
                answer = receive(self._channel, timeout_s)
            except FrameError as error:
                raise self._fault(error, timeout_s) from error
            if answer.kind != Kind.READY:
                raise SandboxError(f"the runner began with frame {answer.kind} instead of READY")
            self._pid = self._job.pid
            if self._cpu_now() == self._cpu_mark == 0:
                raise SandboxError(f"the CPU clock of the runner (pid {self._pid}) cannot be read")
            pings = [self._exchange(Kind.PING, 0, 0, timeout_s) for _ in range(CLEAN_PINGS)]
        except RunFault as fault:
            raise SandboxError(
                f"the runner did not start: {fault.reason}: {fault.log.strip()[-400:]}"
            ) from fault
        self._clean = Timed(
            0,
            statistics.median_low(ping.wall_ns for ping in pings),
            statistics.median_low(ping.cpu_ns for ping in pings),
        )

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
        known = self._program.exits.get(ended.code)
        if known:
            reason = f"{known} {_last_line(ended)}"
        else:
            reason = f"the process left by itself with exit status {ended.code}"
        status = self._program.statuses.get(ended.code, Status.CRASHED)
        return RunFault(status, f"{reason} {while_doing}".strip(), _words(ended))

    def _end(self, status: Status, reason: str, *, tells_why: bool = False) -> RunFault:
        """Kills the job; a limit that it met meanwhile is the better reason."""
        assert self._job is not None
        ended = self._job.kill()
        if ended.end in _STATUS and status is Status.TIMED_OUT:
            status, reason = _STATUS[ended.end], ended.detail or reason
        if tells_why and (why := _last_line(ended)):
            reason = f"{reason}: {why}"
        return RunFault(status, reason, _words(ended))


def _filter_fd(wanted: bool) -> int:
    fd = os.memfd_create("kw-filter", 0)
    if wanted:
        os.write(fd, build_filter(may_fork=False, may_exec=False, may_catch=False))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _words(outcome: Outcome) -> str:
    return _clean((outcome.stderr or outcome.stdout)[:16384])


def _last_line(outcome: Outcome) -> str:
    """The last line on stderr, which is the candidate's and only told."""
    lines = _clean(outcome.stderr[-4096:]).strip().splitlines()
    return lines[-1][:_REASON_CHARACTERS].replace("\t", " ") if lines else ""


def _clean(said: bytes) -> str:
    text = said.decode("utf-8", "replace")
    return "".join(c if c in "\n\t" or c.isprintable() else "?" for c in text)
