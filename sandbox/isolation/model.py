# SPDX-License-Identifier: Apache-2.0
"""What a jail is asked for and what it gives back. The mechanisms stand beside this file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Limits:
    """Hard limits of one job. A job that meets one is ended, and its Outcome says which."""

    wall_s: float = 30.0
    cpu_s: float = 60.0
    memory_bytes: int = 4 << 30
    """Resident memory of the whole tree, by cgroup where there is one, else polled."""
    file_bytes: int = 64 << 20
    temporary_bytes: int = 256 << 20
    """All of its folder for temporary files: its size where it is a tmpfs, else polled."""
    locked_bytes: int | None = 64 << 10
    """Memory that it may lock; None: as much as we may."""
    processes: int = 64
    open_files: int = 64
    output_bytes: int = 1 << 20
    """stdout and stderr each: what is kept; a job may write 16 times that before it is ended."""


@dataclass(frozen=True)
class Confinement:
    """What a job may see and touch; everything else is closed to it."""

    readable: tuple[Path, ...] = ()
    """Files and folders to read and execute, at the same paths inside."""
    writable: tuple[Path, ...] = ()
    """Folders to write, at the same paths inside."""
    devices: tuple[Path, ...] = ()
    """Device nodes to open for reading and writing and to control, at the same paths inside.

    Where there are any, the job may also do what the CUDA driver's library insists on as it starts
    (error 304 otherwise): bind a local socket, and name its threads by /proc/self/task/*/comm.
    """
    pass_fds: tuple[int, ...] = ()
    """Descriptors inherited under their numbers; all others are closed."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The whole environment: an allow-list, nothing is inherited.

    Without a TMPDIR of the caller's the jail adds one: an empty folder that only this job sees or
    may write, and that is gone with the job.
    """
    cpus: tuple[int, ...] = ()
    """CPUs to pin to; empty: all of the parent's."""
    may_fork: bool = True
    """False: seccomp denies new processes (threads stay allowed)."""
    may_mark: bool = True
    """False: seccomp denies changing modes, owners, times and attributes of any file, and locks;
    for what is no compiler. In the jail `landlock` nothing else keeps a job from those of its
    user's files."""
    cwd: Path = Path("/")


class End(StrEnum):
    """Why a job ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    WALL = "wall clock"
    CPU = "cpu time"
    MEMORY = "memory"
    OUTPUT = "output"
    PROCESSES = "processes"
    TEMPORARY = "temporary files"
    KILLED = "killed by the harness"


@dataclass(frozen=True)
class Outcome:
    """How a job ended. Its words are untrusted bytes."""

    end: End
    code: int = 0
    """Exit status, or the signal's number."""
    stdout: bytes = b""
    stderr: bytes = b""
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0
    detail: str = ""
    """For people: which limit, with its figure."""


class Job(Protocol):
    """A running job. Its owner must call `kill` or `wait` before letting go of it."""

    @property
    def pid(self) -> int:
        """The pid, in our pid namespace, of the process that runs the command itself."""

    def poll(self) -> Outcome | None:
        """The outcome if the whole tree is gone, else None; enforces polled limits."""

    def wait(self, timeout_s: float | None = None) -> Outcome:
        """Waits for the end (at most the wall limit), kills the tree, says how it ended."""

    def stand(self) -> None:
        """Has the whole process tree stand still, at no cost of its time, until `go_on`."""

    def go_on(self) -> None:
        """Has it go on, if it stands still."""

    def kill(self) -> Outcome:
        """Kills the whole process tree, daemons included, and waits until it is gone."""


class Jail(Protocol):
    """One isolation mechanism."""

    name: str

    def is_available(self) -> str | None:
        """None where it works on this machine as this user, else the reason (really tried)."""

    def start(self, command: Sequence[str], confinement: Confinement, limits: Limits) -> Job:
        """Starts the command without a shell. Raises SandboxError if the jail itself fails."""
