# SPDX-License-Identifier: Apache-2.0
"""The campaign's end of the referee: starts the process and asks it.

The referee gets an allow-list of the environment, so that API keys of the campaign never reach it
or anything below it.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from ... import errors
from ...errors import KernelwrightError, SandboxError
from ...kernelbench.languages import tier_of
from ...sandbox.isolation.ending import end_tree
from ...sandbox.run.starting import ASLEEP
from ...traces.preparation import Preparation
from ...traces.records import Counting, Isolation, Status, Verdict, candidate_id
from ..request import Counted, Order, Outlook, Task
from .held_press import HeldPress
from .wire import COUNT, PREPARE, Closed, receive, send

ENVIRONMENT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "XDG_CACHE_HOME",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "LD_LIBRARY_PATH",
)
"""What the referee may know of the user's environment."""


_LOOK_S = 0.1
"""How often who waits for the preparation looks whether it is still wanted."""


class Ended(SandboxError):
    """The referee process is gone; nobody knows how the evaluation would have come out."""


class RefereeProcess:
    """A running referee; a verifier.request.Referee."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._sending = threading.Lock()
        self._start()

    def _start(self) -> None:
        begun = time.monotonic()
        self._is_preparing = False
        self._prepared: Preparation | None = None
        self._channel, theirs = socket.socketpair()
        held = HeldPress()
        try:
            self._process = self._launch(theirs)
        except BaseException:
            self._channel.close()
            held.release()
            raise
        finally:
            theirs.close()
        try:
            held.release()
            hello = self._ask(self._task.model_dump(mode="json"))
        except BaseException:
            self.kill()
            self.close()
            raise
        self.isolation = Isolation.model_validate(hello["isolation"])
        self.facts: dict[str, float] = dict(hello["facts"])
        self.is_emulated = bool(hello["is_emulated"])
        told = hello["counting"]
        self.counting = Counting.model_validate(told) if told else None
        self._started_s = time.monotonic() - begun

    def _launch(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        known = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        return subprocess.Popen(
            [sys.executable, "-m", "kernelwright.verifier.process.referee", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**known, **ASLEEP},
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is KeyboardInterrupt:
            self.kill()
        self.close()

    @property
    def pid(self) -> int:
        """The referee's process."""
        return self._process.pid

    def prepare(self, is_wanted: Callable[[], bool] = lambda: True) -> Preparation | None:
        """See verifier.request.Referee."""
        if self._prepared is not None:
            return self._prepared.model_copy(update={"seconds": {}})
        begun = time.monotonic()
        if not self._is_preparing:
            self._order({PREPARE: True})
            self._is_preparing = True
        while not select.select([self._channel], [], [], _LOOK_S)[0]:
            if not is_wanted():
                return None
        answer = self._receive()
        self._is_preparing = False
        found = Preparation.model_validate(answer["preparation"])
        waited_for = "baselines" if found.baselines or found.missing else "inputs"
        seconds = {"referee": self._started_s, waited_for: time.monotonic() - begun}
        self._prepared = found.model_copy(update={"seconds": seconds})
        return self._prepared

    def evaluate(self, order: Order) -> Verdict:
        """See verifier.request.Referee.

        A referee that dies in the middle is started anew and asked once more. If it dies again the
        candidate gets a verdict that says so, and the campaign goes on with the next one.
        """
        try:
            return self._evaluate(order)
        except Ended:
            self.close()
            self._start()
        try:
            return self._evaluate(order)
        except Ended as error:
            self.close()
            self._start()
            return _unknown_verdict(self._task, order, str(error))

    def count(self, order: Order) -> Counted:
        """See verifier.request.Referee. Of a referee that dies meanwhile nothing is counted."""
        begun = time.monotonic()
        try:
            answer = self._ask({COUNT: order.model_dump(mode="json")})
        except Ended as error:
            self.close()
            self._start()
            return Counted(reason=str(error), took_s=time.monotonic() - begun)
        return Counted.model_validate(answer["counted"])

    def foresee(self, orders: Sequence[Order]) -> None:
        """See verifier.request.Referee."""
        # Whether the referee is gone is for the next evaluation to find out.
        with contextlib.suppress(Closed):
            self._send(Outlook(foreseen=tuple(orders)).model_dump(mode="json"))

    def _evaluate(self, order: Order) -> Verdict:
        return Verdict.model_validate(self._ask(order.model_dump(mode="json"))["verdict"])

    def kill(self) -> None:
        """Ends the referee and everything below it now, whatever it is doing."""
        if self._process.poll() is None:
            end_tree(self._process.pid)

    def close(self) -> None:
        """Ends the referee; candidates and baselines die with it. May be called twice."""
        self._channel.close()
        if self._is_preparing:
            self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10.0)
        if self._process.poll() is None:
            self.kill()
            self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        self._order(message)
        answer = self._receive()
        # Nobody waited for the end of the preparation: its answer came first.
        if self._is_preparing and "preparation" in answer:
            self._is_preparing = False
            answer = self._receive()
        return answer

    def _order(self, message: dict[str, Any]) -> None:
        try:
            self._send(message)
        except Closed as error:
            raise self._ended_error(error) from error

    def _receive(self) -> dict[str, Any]:
        try:
            answer = receive(self._channel)
        except Closed as error:
            raise self._ended_error(error) from error
        if "error" in answer:
            raise _error_from(answer)
        return answer

    def _ended_error(self, error: Closed) -> Ended:
        return Ended(
            f"the referee process ended ({error}): {self._last_words()}",
            hint="run it again; if it happens twice, report it with this message",
        )

    def _send(self, message: dict[str, Any]) -> None:
        with self._sending:
            send(self._channel, message)

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(3.0)
        if self._process.poll() is None or self._process.stderr is None:
            return "no word from it"
        lines = self._process.stderr.read().decode("utf-8", "replace").strip().splitlines()
        return (lines[-1] if lines else f"exit status {self._process.returncode}")[:500]


def _error_from(answer: dict[str, Any]) -> KernelwrightError:
    """The referee's error, as the class that was raised there."""
    kind = getattr(errors, str(answer["error"]), None)
    if isinstance(kind, type) and issubclass(kind, KernelwrightError):
        return kind(answer["message"], hint=answer["hint"])
    last = answer["trace"].strip().splitlines()
    where = last[-3].strip() if len(last) >= 3 else ""
    return SandboxError(f"the referee failed: {answer['error']}: {answer['message']} ({where})")


def _unknown_verdict(task: Task, order: Order, reason: str) -> Verdict:
    return Verdict(
        candidate=candidate_id(order.source),
        problem=task.problem,
        workload=task.workload.name,
        language=order.language,
        target=task.target,
        tier=tier_of(order.language),
        protocol=order.protocol,
        status=Status.HARNESS_ERROR,
        reasons=(f"{reason}; it ended twice while it evaluated this candidate",),
    )


def open_referee(task: Task) -> RefereeProcess:
    """Starts a referee for a task. Raises what stands in the way (errors.py)."""
    return RefereeProcess(task)
