# SPDX-License-Identifier: Apache-2.0
"""What the canary is let loose on: a secret, a folder, a listener, a bystander, a variable.

It sets them up so that only the jail stands between the program and them (files open to everybody),
and looks afterwards at what became of them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

_PLANTED = "KERNELWRIGHT_CANARY_SECRET"


@dataclass(frozen=True)
class SeenOutside:
    """What was seen from outside."""

    token: str
    """The secret; whoever tells it has read it."""
    was_written: bool
    was_overwritten: bool
    """The file that was no job's to write has other contents, or other attributes."""
    was_connected: bool
    was_hindered: bool
    """The bystander had fewer CPUs or a lower priority afterwards."""
    survivors: int
    """Processes of the canary that were alive after its job had ended."""
    outside_uid: int | None
    """The uid of the command as the kernel accounts it to us; None: it could not be seen."""
    own_uid: int
    capabilities: int
    """The effective capabilities of the command, in its user namespace."""
    in_user_namespace: bool


class CanaryScene:
    """A context: set up on entry, gone on exit."""

    ENV: ClassVar[dict[str, str]] = {"CANARY_ALLOWED": "yes"}
    """The whole environment that the canary may have."""

    def __init__(self, canary: Path) -> None:
        self._canary = canary
        self._token = secrets.token_hex(16)
        self._marker = secrets.token_hex(16)
        self._was_connected = False
        self._survivors = -1
        self._outside_uid: int | None = None
        self._capabilities = 0
        self._in_user_namespace = False

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="kernelwright-canary-"))
        self._folder.chmod(0o755)
        self._secret = self._folder / "secret"
        self._secret.write_text(self._token)
        self._secret.chmod(0o644)
        self._outside = self._folder / "outside"
        self._outside.mkdir()
        self._outside.chmod(0o777)
        self._victim = self._folder / "victim"
        self._victim.write_text("whole")
        self._victim.chmod(0o666)
        self._victim_was = self._victim.stat()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._abstract = socket.socket(socket.AF_UNIX)
        self._abstract.bind("\0" + self._marker)
        self._abstract.listen()
        self.ours, self.theirs = socket.socketpair()
        os.environ[_PLANTED] = self._token
        self._bystander = subprocess.Popen(
            [str(self._canary), "stand", "by"],
            stdin=subprocess.PIPE,
            env={_PLANTED: self._token},
        )
        self._scheduled = self._scheduling()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.environ.pop(_PLANTED, None)
        for one in (self._listener, self._abstract, self.ours, self.theirs):
            one.close()
        self._bystander.kill()
        self._bystander.communicate()
        for pid in self._list_survivors():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def arguments(self) -> list[str]:
        """What `canary look` is told to attack."""
        return [
            str(self._secret),
            str(self._outside),
            str(self._victim),
            str(self._listener.getsockname()[1]),
            self._marker,
            str(self._bystander.pid),
            str(self.theirs.fileno()),
            self._marker,
        ]

    def look_at(self, pid: int) -> None:
        """Reads who the running command is, by the kernel's account."""
        with suppress(OSError):
            status = dict(
                line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
            )
            self._outside_uid = int(status["Uid"].split()[0])
            self._capabilities = int(status["CapEff"], 16)
        with suppress(OSError):
            theirs = os.readlink(f"/proc/{pid}/ns/user")
            self._in_user_namespace = theirs != os.readlink("/proc/self/ns/user")

    def look_after(self) -> None:
        """Once the job is said to be over: who of it is alive, and who knocked."""
        deadline = time.monotonic() + 0.05
        while self._list_survivors() and time.monotonic() < deadline:
            time.sleep(0.005)
        self._survivors = len(self._list_survivors())
        self._was_connected = _was_knocked(self._listener) or _was_knocked(self._abstract)

    def collect_findings(self) -> SeenOutside:
        """The findings."""
        return SeenOutside(
            token=self._token,
            was_written=any(self._outside.iterdir()),
            was_overwritten=self._victim.read_text() != "whole" or self._is_marked(),
            was_connected=self._was_connected,
            was_hindered=self._scheduling() != self._scheduled,
            survivors=self._survivors,
            outside_uid=self._outside_uid,
            own_uid=os.getuid(),
            capabilities=self._capabilities,
            in_user_namespace=self._in_user_namespace,
        )

    def _is_marked(self) -> bool:
        """Whether somebody changed the victim's mode, owner, times or attributes."""
        was, now = self._victim_was, self._victim.stat()
        # Reading it changes the time of access and nothing else.
        marked = [(s.st_mode, s.st_uid, s.st_mtime_ns, s.st_ctime_ns) for s in (was, now)]
        return marked[0] != marked[1]

    def _scheduling(self) -> tuple[set[int], int]:
        """The bystander's CPUs and its nice value."""
        pid = self._bystander.pid
        return os.sched_getaffinity(pid), os.getpriority(os.PRIO_PROCESS, pid)

    def _list_survivors(self) -> list[int]:
        """Processes with our marker on their command line; zombies have none."""
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                with suppress(OSError):
                    if self._marker.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                        found.append(int(name))
        return found


def _was_knocked(listener: socket.socket) -> bool:
    listener.setblocking(False)
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True
