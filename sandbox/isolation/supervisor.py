# SPDX-License-Identifier: Apache-2.0
"""The harness's side of `supervised.py`: starts it, hands over its order, hears how the job ended.

It does not decide what a job is refused; `landlock` and `bare` write that into the order.
"""

from __future__ import annotations

import marshal
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import SandboxError
from . import tree
from .job import Ending, Streams
from .limits import Rlimit
from .temporary import TemporaryFolder

_SCRIPT = Path(__file__).with_name("supervised.py")
_START_S = 30.0
"""A loaded machine may take seconds to start an interpreter."""


@dataclass(frozen=True)
class SupervisedOrder:
    """What `supervised.py` is to do to the command before it runs."""

    command: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    fds: tuple[int, ...]
    cpus: tuple[int, ...]
    rlimits: tuple[Rlimit, ...]
    cgroup: tuple[str, ...] = ()
    uid: int = -1
    search: bool = False
    landlock: int = 0
    """The Landlock version to use; 0: none."""
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    """Folders whose files can be read and written, and no file made: the names of threads."""
    seccomp: bytes = b""
    temporary: str = ""
    """A folder to remove at the end with what is in it."""

    def pack(self) -> bytes:
        """The order as the supervisor reads it."""
        return marshal.dumps({name: _to_list(value) for name, value in vars(self).items()}, 4)


def _to_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@dataclass
class SupervisedLaunch:
    """A supervisor and the job below it (a `job.Launched`)."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    pid: int
    temporary: TemporaryFolder | None = None
    is_ending: bool = False
    known: dict[int, str] = field(default_factory=dict)
    """Processes seen below the supervisor, with their start times, should it ever vanish."""

    @property
    def anchor(self) -> int:
        """The supervisor's pid."""
        return self.process.pid

    def members(self) -> list[int]:
        """The processes of the job that are alive."""
        alive = list(tree.descendants(self.anchor))
        for pid in alive:
            self.known.setdefault(pid, tree.start_time(pid))
        return alive

    def temporary_bytes(self, members: Iterable[int]) -> int:
        """What these processes keep in the folder that `launch` made for them."""
        return self.temporary.held_bytes(members) if self.temporary else 0

    def end(self) -> None:
        """Asks the supervisor to kill the tree; once is enough, it does not read on."""
        if not self.is_ending:
            self.is_ending = True
            with suppress(OSError):
                self.control.send(b"k")

    def reap(self) -> Ending:
        """What the supervisor reported; it has exited."""
        _, _, used = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        words = b""
        with suppress(OSError):
            words = self.control.recv(4096)
        self.control.close()
        if not words:
            self._kill_known()
            if self.temporary:
                self.temporary.remove()
            return Ending(signal.SIGKILL, used.ru_utime + used.ru_stime, 0, "its supervisor died")
        report = marshal.loads(words)
        return Ending(report["status"], report["cpu"], report["rss"])

    def _kill_known(self) -> None:
        for pid, started in self.known.items():
            if started and tree.start_time(pid) == started:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


def launch(order: SupervisedOrder, streams: Streams) -> SupervisedLaunch:
    """Starts a supervisor and the job, with a folder for temporary files where it names none.

    Raises:
        SandboxError: the supervisor could not do what the order asks, or could not execute.
    """
    folder = None if "TMPDIR" in order.env else TemporaryFolder.make(order.uid)
    try:
        return _launch(order if folder is None else _with_folder(order, folder), streams, folder)
    except BaseException:
        if folder:
            folder.remove()
        raise


def _with_folder(order: SupervisedOrder, folder: TemporaryFolder) -> SupervisedOrder:
    path = str(folder.path)
    return replace(
        order, temporary=path, env={**order.env, "TMPDIR": path}, writable=(*order.writable, path)
    )


def _launch(
    order: SupervisedOrder, streams: Streams, folder: TemporaryFolder | None
) -> SupervisedLaunch:
    # Packets keep their borders: a short job's ending may lie right behind its pid.
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SCRIPT), str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=streams.stdout,
            stderr=streams.stderr,
            pass_fds=(theirs.fileno(), *order.fds),
            env={},
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the harness, which then ends its jobs.
        )
    ours.settimeout(_START_S)
    answer: dict[str, Any] = {"error": "the supervisor did not answer"}
    try:
        ours.send(order.pack())
        if words := ours.recv(4096):
            answer = marshal.loads(words)
    except OSError as error:
        answer = {"error": f"the supervisor did not answer: {error}"}
    if "error" in answer:
        ours.close()
        process.kill()
        process.wait()
        raise SandboxError(
            f"the jail could not start {order.command[0]}: {answer['error']}",
            hint="check that the command and every readable path exist and may be read by others",
        )
    ours.settimeout(1.0)
    return SupervisedLaunch(process, ours, answer["pid"], folder)
