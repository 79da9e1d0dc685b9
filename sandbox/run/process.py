# SPDX-License-Identifier: Apache-2.0
"""One runner process: started in a jail, called by frames and a gate, measured from outside.

It turns whatever goes wrong inside into a RunFault with the status the candidate gets. It knows no
problem, no expected value and no language: what differs between languages is in its Program.

The runner says READY before any code of the candidate is in it. What fails until then is our own
failure; what comes after, whatever it looks like, is the candidate's.
"""

from __future__ import annotations

import re
import secrets
import statistics
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import NamedTuple, Self

from ...errors import SandboxError
from ...traces.records import Status
from ..builders.workshop import Workshop
from ..frames import (
    Frame,
    FrameError,
    FrameKind,
    Received,
    has_more,
    now_ns,
    receive,
    receive_patiently,
    send,
)
from ..isolation.calls import name_call
from ..isolation.model import End, Job, Limits, Outcome
from .begun import Begun, Plane
from .gate import Coverage
from .program import Program
from .starting import begin
from .threads import Used

CLEAN_CALLS = 15
"""Empty calls before the candidate is loaded: what the runner itself takes here."""
HEAP_PATTERN = 0x3E
"""Memory that is asked for holds its complement, as floats -24.2 and as an index far below zero;
memory that was given back holds floats of 0.19."""
_STATUS = {
    End.WALL: Status.TIMED_OUT,
    End.CPU: Status.TIMED_OUT,
    End.MEMORY: Status.RESOURCE,
    End.OUTPUT: Status.RESOURCE,
    End.PROCESSES: Status.RESOURCE,
    End.TEMPORARY: Status.RESOURCE,
}
_REASON_CHARACTERS = 300
REFUSED_CALL = 99
"""The exit status of who made a system call that is on no list; `refused_call.hpp` has the same."""
_REFUSED = re.compile(rb"^refused system call +(\d{1,9})$", re.M)


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
    """The runner's own time from the opening of the gate until it answers: a claim."""
    wall_ns: int
    """From the opening of the gate to the kernel's stamp on the answer."""
    cpu_ns: int
    """CPU time of the whole process from the gate until it was stopped after its answer."""
    ahead_ns: int = 0
    """CPU time from its stop behind the answer before until the gate opened."""
    busiest_ns: int = 0
    """CPU time of the one thread that took most, from the gate until the process was stopped."""
    choice: int = 0
    """Which words of the outputs were to be summed; told as the gate opened."""
    told_sum: int = 0
    """The runner's sum over them as it answered."""
    host_ns: int = 0
    """A device runner's claim by the host's clock, where `claimed_ns` is by the device's events."""
    waited_ns: int = 0
    """How long one of its threads was ready, and others had the CPUs, since its stop behind the
    answer before; the longest of all threads."""


def cpu_ns(pid: int) -> int:
    """CPU time of all threads of another process so far (clock_getcpuclockid(3))."""
    return time.clock_gettime_ns((~pid << 3) | 2)


class Runner:
    """A started runner. Use as a context manager: leaving kills its whole process tree."""

    def __init__(
        self,
        workshop: Workshop,
        program: Program,
        plane: Plane,
        *,
        limits: Limits,
        begun: Begun | None = None,
        empty_calls: int = CLEAN_CALLS,
        fills_heap: bool = False,
        write: Callable[[], None] | None = None,
        hear: Callable[[str], None] | None = None,
    ) -> None:
        """Starts it and loads the candidate.

        Args:
            begun: Its process, of this program on this memory; None: it begins now.
            empty_calls: How many tell what the runner itself takes, where its calls are timed.
            fills_heap: Whether heap memory that nobody has set holds what shows in an answer. It
                takes time.
            write: Writes as much as there is to write before a call, for the empty calls that tell
                what the runner itself takes.
            hear: Is told, once the process has ended, what it wrote.

        Raises:
            RunFault: the candidate could not be loaded, or left.
            SandboxError: the jail or our own runner failed.
        """
        self._program = program
        self._hear_words = hear
        self._empty_calls = empty_calls if program.is_timed else 1
        self._pid = 0
        self._cpu_mark = 0
        self.cpus = max(1, len(workshop.cpus))
        self.overhead_us = program.overhead_us
        self._alone = self._beside = Timed(0, 0, 0)
        if begun is not None:
            self._begun = begun
        elif program.waiting is not None:
            self._begun = program.waiting.take(program, plane)
        else:
            self._begun = begin(workshop, program, plane, limits=limits)
        self._channel, self._gate, self._job = (
            self._begun.channel,
            self._begun.gate,
            self._begun.job,
        )
        try:
            self._await_ready(write)
            self._load(program.load_timeout_s, HEAP_PATTERN if fills_heap else 0)
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

    @property
    def pid(self) -> int:
        """Our runner's process, as this machine numbers it."""
        return self._pid

    @property
    def job(self) -> Job:
        """The jail that it runs in."""
        return self._job

    @property
    def clean(self) -> Timed:
        """What an empty call took before the candidate was loaded: beside threads that sleep,
        where there are any now, since stopping and waking them takes time."""
        return self._beside if self._gate.threads > 1 else self._alone

    @property
    def coverage(self) -> Coverage:
        """What the last call left out; nothing where the program may leave nothing out."""
        return self._gate.coverage if self._program.may_leave_out else Coverage()

    def close(self) -> Outcome:
        """Kills the process tree and gives everything back. May be called twice."""
        self._channel.close()
        outcome = self._job.kill()
        self._gate.close()
        self._begun.folder.cleanup()
        if self._hear_words:
            self._hear_words(_words(outcome))
        return outcome

    def expect(self, table: bytes) -> None:
        """Says what calls are given behind their tensors, for who times their launches."""

    def warm(self) -> None:
        """From now on a cache of its own holds the inputs of a call, for who has one and clears it.
        Others find there what was written last."""

    def ping(self, first: int = 0, count: int = 0, *, timeout_s: float = 5.0) -> None:
        """Names slots that calls will run: a Python runner makes their tensors now."""
        self._hear(FrameKind.PONG, self._say(FrameKind.PING, first, count), timeout_s)
        self._cpu_mark = self._cpu_now()

    def call(
        self,
        slot: int,
        *,
        timeout_s: float,
        release: Callable[[], None] | None = None,
        together: int = 1,
    ) -> Timed:
        """Runs one placed slot, or so many from it on at a time, each by an instance of its own;
        `release` writes their inputs. Raises RunFault."""
        if together == 1:
            return self._serve(FrameKind.CALL, slot, timeout_s, release)
        doing = f"in {together} calls at a time"
        return self._serve(FrameKind.TOGETHER, slot, timeout_s, release, doing, more=together)

    def repeat(
        self, slot: int, times: int, *, timeout_s: float, release: Callable[[], None]
    ) -> Timed:
        """As `call`, of so many calls one after the other, with one answer. Raises RunFault."""
        doing = f"in {times} calls"
        return self._serve(FrameKind.CALL, slot, timeout_s, release, doing, more=times - 1)

    def prepare(self, slot: int, *, timeout_s: float, release: Callable[[], None]) -> Timed:
        """Has a plan made of a slot's pattern, which `release` writes; measured as a call is.

        The sum that it gives is over the plan. Raises RunFault.
        """
        doing = "while it prepared a pattern"
        return self._serve(FrameKind.PREPARE, slot, timeout_s, release, doing)

    def _serve(
        self,
        kind: FrameKind,
        slot: int,
        timeout_s: float,
        release: Callable[[], None] | None,
        while_doing: str = "",
        more: int = 0,
    ) -> Timed:
        """One request that is answered behind the gate.

        The runner is stopped from one answer until the inputs of the next call are written. Then it
        is woken and told what to call, and watches the gate; the referee takes the time and opens
        it. Neither clock is the runner's, and nobody has to wake up in between. CPU time ahead of
        the gate and behind it are told apart.
        """
        gate, choice, nonce = self._gate, secrets.randbits(32), _draw_nonce()
        frozen = gate.freeze(self._cpu_now)
        gate.take_usage()
        if release:
            release()
        gate.thaw(lambda: self._send(Frame(kind, nonce, slot, more)))
        opened = self._cpu_now()
        start, started = now_ns(), time.perf_counter_ns()
        gate.open(nonce, choice)
        busy: list[Used] = []

        def stood_s() -> float:
            busy.append(gate.take_usage())
            return busy[-1].waited_ns / 1e9

        done = self._hear(FrameKind.DONE, nonce, timeout_s, stood_s, while_doing=while_doing)
        elapsed = time.perf_counter_ns() - started
        after = gate.freeze(self._cpu_now)
        busy.append(gate.take_usage())
        busiest, waited = (sum(each) for each in zip(*busy, strict=True))
        ahead, woken = max(0, opened - self._cpu_mark), max(0, opened - frozen)
        spent = max(0, after - opened)
        self._cpu_mark = after
        wall = done.sent_ns - start
        # Where somebody sets the time of day meanwhile, the other clock counts.
        wall = wall if 0 < wall <= elapsed else elapsed
        claimed, told_sum = max(done.frame.first, 1), done.frame.second
        # What came before the gate opened is charged as such.
        busiest = max(0, busiest - woken)
        return Timed(claimed, wall, spent, ahead, busiest, choice, told_sum, waited_ns=waited)

    def _load(self, timeout_s: float, pattern: int) -> None:
        nonce = self._say(FrameKind.LOAD, pattern)
        self._hear(FrameKind.READY, nonce, timeout_s, while_doing="while it was loaded")
        self._cpu_mark = self._cpu_now()

    def _say(self, kind: FrameKind, first: int = 0, count: int = 0) -> int:
        nonce = _draw_nonce()
        self._send(Frame(kind, nonce, first, count))
        self._gate.release()
        return nonce

    def _send(self, frame: Frame) -> None:
        try:
            send(self._channel, frame)
        except FrameError as error:
            raise self._fault(error, 0.0) from error

    def _hear(
        self,
        expected: FrameKind,
        nonce: int,
        timeout_s: float,
        stood_s: Callable[[], float] = lambda: 0.0,
        *,
        while_doing: str = "",
    ) -> Received:
        """The answer that is due; `stood_s`: as for receive_patiently."""
        try:
            answer = receive_patiently(self._channel, timeout_s, stood_s)
        except FrameError as error:
            raise self._fault(error, timeout_s, while_doing) from error
        frame = answer.frame
        if frame.kind == FrameKind.REFUSED and expected is FrameKind.READY:
            raise self._end(
                Status.BUILD_FAILED, "the built artefact cannot be loaded", tells_why=True
            )
        if frame.kind != expected or frame.nonce != nonce or has_more(self._channel):
            raise self._end(
                Status.PROTOCOL_ERROR,
                f"the runner answered with frame {frame.kind} where {expected.name} was due, or "
                "with more than one frame",
            )
        return answer

    def _cpu_now(self) -> int:
        try:
            return cpu_ns(self._pid)
        except OSError:
            return self._cpu_mark

    def _await_ready(self, write: Callable[[], None] | None) -> None:
        """Until our own runner is up, and what it takes by itself. Raises SandboxError."""
        timeout_s = self._program.start_timeout_s
        try:
            try:
                answer = receive(self._channel, timeout_s)
            except FrameError as error:
                raise self._fault(error, timeout_s) from error
            if answer.frame.kind != FrameKind.READY:
                kind = answer.frame.kind
                raise SandboxError(f"the runner began with frame {kind} instead of READY")
            self._pid = self._job.pid
            self._gate.watch(self._pid)
            if self._cpu_now() == self._cpu_mark == 0:
                raise SandboxError(f"the CPU clock of the runner (pid {self._pid}) cannot be read")
            self._cpu_mark = self._cpu_now()
            self._measure_empty(timeout_s, write)
        except RunFault as fault:
            raise SandboxError(
                f"the runner did not start: {fault.reason}: {fault.log.strip()[-400:]}"
            ) from fault

    def _measure_empty(self, timeout_s: float, write: Callable[[], None] | None) -> None:
        many = self._program.instances
        empty = partial(self.call, 0, timeout_s=timeout_s, release=write, together=many)

        def measure() -> Timed:
            return _summarise([empty() for _ in range(self._empty_calls)])

        self._alone = measure()
        self.ping(timeout_s=timeout_s)
        self._beside = measure()

    def _fault(self, error: FrameError, timeout_s: float, while_doing: str = "") -> RunFault:
        if error.is_late:
            where = while_doing or "in one call"
            return self._end(Status.TIMED_OUT, f"no answer within {timeout_s:.1f} s {where}")
        if not error.is_closed:
            return self._end(Status.PROTOCOL_ERROR, f"{error}, in place of a frame")
        ended = self._job.wait(2.0)
        if ended.end is End.SIGNALLED:
            return RunFault(
                Status.CRASHED,
                f"the process died of {_signal_name(ended.code)} {while_doing}".strip(),
                _words(ended),
            )
        if ended.end in _STATUS:
            return RunFault(_STATUS[ended.end], ended.detail or str(ended.end), _words(ended))
        if ended.code == REFUSED_CALL and (found := _REFUSED.search(ended.stderr[-4096:])):
            made = f"it made the system call {name_call(int(found[1]))} {while_doing}".strip()
            return RunFault(Status.CRASHED, f"{made}, which kernels do not need", _words(ended))
        known = self._program.exits.get(ended.code)
        if known:
            reason = f"{known} {_last_line(ended)}"
        else:
            reason = f"the process left by itself with exit status {ended.code}"
        if status := self._program.statuses.get(ended.code):
            return RunFault(status, reason, _words(ended))
        return RunFault(Status.CRASHED, f"{reason} {while_doing}".strip(), _words(ended))

    def _end(self, status: Status, reason: str, *, tells_why: bool = False) -> RunFault:
        """Kills the job; a limit that it met meanwhile is the better reason."""
        ended = self._job.kill()
        if ended.end in _STATUS and status is Status.TIMED_OUT:
            status, reason = _STATUS[ended.end], ended.detail or reason
        if tells_why and (why := _last_line(ended)):
            reason = f"{reason}: {why}"
        return RunFault(status, reason, _words(ended))


def _summarise(empty: list[Timed]) -> Timed:
    """What empty calls take; of what varies and is charged, what three of four do not exceed."""
    last = (3 * len(empty)) // 4
    return Timed(
        0,
        min(one.wall_ns for one in empty),
        statistics.median_low(one.cpu_ns for one in empty),
        sorted(one.ahead_ns for one in empty)[last],
        statistics.median_low(one.busiest_ns for one in empty),
    )


def _draw_nonce() -> int:
    return secrets.randbits(32) or 1


def _signal_name(number: int) -> str:
    import signal

    if number == signal.SIGSYS:
        # It holds the signal back that would have told which one.
        return "SIGSYS, for a system call that kernels do not need"
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
