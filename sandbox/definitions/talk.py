# SPDX-License-Identifier: Apache-2.0
"""A process of ours that runs a user's file in a jail, and the questions that it is asked.

Whatever the file does wrong is the user's to mend: a UsageError with its line. Nothing that comes
back is executed.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np

from ...errors import SandboxError, UsageError
from ..builders.workshop import Workshop
from ..interpreter import FLAGS, drop_nested_paths, homes, interpreter
from ..isolation.model import Confinement, Job, Limits, Outcome
from ..run.host_code import packages
from ..run.starting import thread_environment
from .wire import Message, WireError, receive, send

START_S, ANSWER_S = 120.0, 120.0
"""Until it is up, and until it answers."""
LIMITS = Limits(
    # It lives as long as the referee does; each answer has a deadline of its own.
    wall_s=30 * 86_400.0,
    cpu_s=30 * 86_400.0,
    memory_bytes=16 << 30,
    processes=256,
    open_files=256,
)
_HOUSE = Path(__file__).resolve().parents[2]
ROOMS = (
    "__init__.py", "version.py", "config.py", "errors.py", "extras.py", "syntax.py", "kernelbench",
    "sandbox", "traces", "verifier",
)  # fmt: skip
"""What of our house programs in such jails import."""
_START = Path(__file__).with_name("start.py")
_WORDS = 400


def house_command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module of ours in a jail. Raises PrerequisiteError."""
    folders = os.pathsep.join(str(folder) for folder in packages())
    return [str(interpreter()), *FLAGS, str(_START), str(_HOUSE), folders, module, *arguments]


def house_paths() -> tuple[Path, ...]:
    """What a jail must show for it. Raises PrerequisiteError."""
    rooms = [path for name in ROOMS if (path := _HOUSE / name).exists()]
    return drop_nested_paths(interpreter(), *homes(), *packages(), *rooms)


class Talk:
    """One such process. Thread-safe: one question at a time."""

    def __init__(self, workshop: Workshop, module: str, place: str) -> None:
        """Starts it.

        Args:
            module: of ours; it gets the number of its socket, and says that it is ready.
            place: what the user's file is called in an error.

        Raises:
            SandboxError: the jail failed, or our module did.
        """
        self.place = place
        self.lock = threading.RLock()
        self._ended = ""
        self._channel, theirs = socket.socketpair()
        confinement = Confinement(
            readable=house_paths(),
            pass_fds=(theirs.fileno(),),
            env={**thread_environment(len(workshop.cpus)), "PYTHONDONTWRITEBYTECODE": "1"},
            cpus=workshop.cpus,
            may_fork=False,
            may_mark=False,
        )
        with theirs:
            try:
                command = house_command(module, str(theirs.fileno()))
                self._job: Job = workshop.jail.start(command, confinement, LIMITS)
            except BaseException:
                self._channel.close()
                raise
        try:
            self._await_ready()
        except BaseException:
            self.close()
            raise

    def ask(
        self,
        function: str,
        message: Message,
        arrays: Sequence[np.ndarray] = (),
        most_bytes: int = 0,
    ) -> tuple[Message, list[np.ndarray]]:
        """The answer, with at most so many bytes of arrays.

        Args:
            function: what of the file is asked, for an error.

        Raises:
            UsageError: the file fails, ends its process, or takes too long.
        """
        with self.lock:
            if self._ended:
                raise UsageError(self._ended, hint=_hint(function))
            self._channel.settimeout(ANSWER_S)
            try:
                send(self._channel, message, arrays)
                answer, found = receive(self._channel, most_bytes)
            except TimeoutError:
                self._end(function, f"it gave no answer within {ANSWER_S:g} s")
            except (WireError, OSError) as error:
                self._end(function, str(error))
        if "why" in answer:
            why, line = str(answer["why"])[:_WORDS], int(answer.get("line") or 0)
            self.refuse(function, why, line, str(answer.get("hint") or "")[:_WORDS])
        return answer, found

    def refuse(self, function: str, why: str, line: int = 0, hint: str = "") -> NoReturn:
        """Raises UsageError for what the file gave, with what to do where that is known."""
        place = f"{self.place}:{line}" if line else self.place
        raise UsageError(f"{place}: {function}: {why}", hint=hint or _hint(function))

    def close(self) -> Outcome:
        """Ends the process. May be called twice."""
        self._channel.close()
        return self._job.kill()

    def _await_ready(self) -> None:
        self._channel.settimeout(START_S)
        try:
            receive(self._channel, 0)
        except (WireError, OSError) as error:
            raise SandboxError(
                f"the process for {self.place} did not start ({error}): "
                f"{_last_line(self._job.kill()) or 'no words'}"
            ) from error

    def _end(self, function: str, why: str) -> NoReturn:
        """The process is of no use any more."""
        outcome = self._job.kill()
        detail = "" if outcome.detail == outcome.end else outcome.detail
        how = f"{outcome.end} {detail or outcome.code or ''}".strip()
        self._ended = f"{self.place}: {function}: {why} ({how})"
        if last := _last_line(outcome):
            self._ended += f": {last}"
        raise UsageError(self._ended, hint=_hint(function))


def _last_line(outcome: Outcome) -> str:
    lines = outcome.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:_WORDS] if lines else ""


def _hint(function: str) -> str:
    what = "that file" if function == "runs" else f"{function} in that file"
    return f"mend {what}; it runs in a jail: without files, network or processes"
