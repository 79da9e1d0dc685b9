# SPDX-License-Identifier: Apache-2.0
"""A warm builder process in its jail: asked for a build, it forks one; see `triton_on_cpu/zygote`.

One build at a time. What a build leaves in the workplace is removed before the next one, and a
process that does not answer in time is killed with everything below it. It knows no compiler.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from ...errors import SandboxError
from ..isolation.bubblewrap import BubblewrapJail
from ..isolation.landlock import LandlockJail, abi, job_uid
from ..isolation.model import Confinement, End, Limits, Outcome
from ..triton_on_cpu.outside import readable_paths, start_command
from .workshop import Workshop

START_S = 120.0
"""torch and Triton take seconds to import, many on a busy machine."""
BUILD_S = 60.0
LIFE_S = 86_400.0
LIMITS = Limits(
    # One build's CPU time is limited in its own process.
    wall_s=LIFE_S,
    cpu_s=64 * LIFE_S,
    memory_bytes=4 << 30,
    file_bytes=64 << 20,
    processes=64,
    open_files=256,
    output_bytes=1 << 20,
)

_PRIVATE = {BubblewrapJail.name: ("/dev/shm", "/tmp")}
"""Folders that only the jail sees, beside that for temporary files, which may lie in one."""
_SCOPES_SIGNALS = 6
"""The version of Landlock that keeps signals inside."""
_SHARED_UIDS = (-1, 65534)
"""A job's uid where it is the user's own, or that of nobody in particular."""
UNSWEPT = 71
"""The exit status of a process that could not end what a build had left running."""
_LINE_BYTES = 1 << 16


class LeftBehind(NamedTuple):
    """What a build has left: how it ended, and its folder, which stays until the next build."""

    folder: int
    """A descriptor: the folder's name may stand for something else by now."""
    status: int
    """As wait(2) gives it."""
    seconds: float

    def read(self, name: str, limit: int) -> bytes | None:
        """The bytes of a regular file of at most `limit` bytes; None for anything else."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = os.open(name, flags, dir_fd=self.folder)
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > limit:
                return None
            return file.read(limit + 1)


class StoppedError(Exception):
    """The process is gone, or was killed; the outcome says why."""

    def __init__(self, outcome: Outcome, seconds: float) -> None:
        super().__init__(outcome.detail or str(outcome.end))
        self.outcome = outcome
        self.seconds = seconds


class WarmProcess:
    """One zygote. Use as a context manager, from one thread at a time."""

    def __init__(
        self,
        workshop: Workshop,
        settings: Mapping[str, Any],
        *,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = BUILD_S,
    ) -> None:
        """Starts it; `await_ready` says when it can build, each time within `timeout_s`.

        Args:
            environment: Variables beside its own, for Triton.
        """
        self._timeout_s = timeout_s
        self._outer = tempfile.TemporaryDirectory(
            prefix="kernelwright-triton-", ignore_cleanup_errors=True
        )
        self._place = Path(self._outer.name) / secrets.token_hex(8)
        self._place.mkdir()
        if os.geteuid() == 0:
            # A jail may drop root; the folder is reachable only by those who know its name.
            os.chmod(self._outer.name, 0o711)
            self._place.chmod(0o777)
        self._channel, theirs = socket.socketpair()
        self._held = b""
        self.is_lasting = _signals_stay_inside(workshop.jail.name)
        """Whether it may serve another build: nothing of the last one can be left."""
        self._folder = -1
        self.is_used = False
        self.facts: dict[str, Any] = {}
        told = {
            **settings,
            "keep": [str(path) for path in readable_paths()],
            "private": _PRIVATE.get(workshop.jail.name, ()),
            "may_sweep": self.is_lasting,
        }
        command = [
            *start_command("zygote"),
            str(theirs.fileno()),
            str(self._place),
            json.dumps(told),
        ]
        confinement = Confinement(
            readable=readable_paths(),
            writable=(self._place,),
            pass_fds=(theirs.fileno(),),
            env={**_environment(), **(environment or {})},
            cwd=self._place,
        )
        try:
            self._job = workshop.jail.start(command, confinement, LIMITS)
        finally:
            theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def await_ready(self) -> None:
        """Until it has imported everything. Raises SandboxError."""
        if self.facts:
            return
        try:
            self.facts = self._answer(START_S)
        except StoppedError as stopped:
            words = stopped.outcome.stderr.decode(errors="replace").strip()[-400:]
            raise SandboxError(
                f"the Triton builder did not start: {stopped}: {words}",
                hint="try `python -c 'import torch, triton'` in this environment",
            ) from stopped

    def build(self, files: Mapping[str, bytes]) -> LeftBehind:
        """Forks a build on these files. The process is of no more use after an exception.

        Raises:
            StoppedError: the build was ended, or ended this process.
            SandboxError: this process failed by itself.
        """
        self.await_ready()
        started = time.monotonic()
        self.is_used = True
        self._clear()
        folder = self._place / secrets.token_hex(8)
        folder.mkdir()
        if os.geteuid() == 0:
            folder.chmod(0o777)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        self._folder = os.open(folder, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            self._channel.sendall(json.dumps({"folder": folder.name}).encode() + b"\n")
        except OSError as error:
            raise StoppedError(self._job.kill(), time.monotonic() - started) from error
        try:
            answer = self._answer(self._timeout_s)
        except StoppedError as stopped:
            _blame(stopped.outcome)
            raise
        return LeftBehind(self._folder, int(answer["status"]), time.monotonic() - started)

    def close(self) -> None:
        """Kills the whole tree and gives everything back. May be called twice."""
        self._channel.close()
        self._job.kill()
        self._forget()
        self._outer.cleanup()

    def _forget(self) -> None:
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    def _clear(self) -> None:
        self._forget()
        for entry in self._place.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)

    def _answer(self, timeout_s: float) -> dict[str, Any]:
        """The next line of the zygote, which runs no candidate's code."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._held:
            self._channel.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                part = self._channel.recv(4096)
            except TimeoutError:
                late = self._job.kill()
                outcome = late if late.end is not End.KILLED else _late_outcome(late, timeout_s)
                raise StoppedError(outcome, timeout_s) from None
            except OSError:
                part = b""
            if not part or len(self._held) > _LINE_BYTES:
                raise StoppedError(self._job.wait(2.0), timeout_s - deadline + time.monotonic())
            self._held += part
        line, _, self._held = self._held.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found


def _blame(outcome: Outcome) -> None:
    """Raises SandboxError where no limit, signal or flood of processes has ended the process.

    Its words are its own: a build's go elsewhere.
    """
    if outcome.end is End.EXITED and outcome.code != UNSWEPT:
        words = outcome.stderr.decode(errors="replace").strip()[-400:]
        raise SandboxError(f"the Triton builder left with status {outcome.code}: {words}")


def _late_outcome(outcome: Outcome, timeout_s: float) -> Outcome:
    return Outcome(
        End.WALL,
        outcome.code,
        outcome.stdout,
        outcome.stderr,
        outcome.wall_s,
        outcome.cpu_s,
        outcome.peak_bytes,
        f"not done within {timeout_s:g} s",
    )


def _signals_stay_inside(mechanism: str) -> bool:
    """Whether a signal to everybody reaches only the job of a jail of this name."""
    if mechanism == BubblewrapJail.name:
        return True
    if mechanism != LandlockJail.name:
        return False
    return abi() >= _SCOPES_SIGNALS or job_uid() not in _SHARED_UIDS


def _environment() -> dict[str, str]:
    """The whole environment; a build adds its own folders."""
    return {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        # A sum of products is rounded once, as nvcc and NVRTC do it unless told otherwise.
        "TRITON_DEFAULT_FP_FUSION": "1",
        "TRITON_DUMP_PTXAS_LOG": "1",
    }
