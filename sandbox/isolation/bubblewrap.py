# SPDX-License-Identifier: Apache-2.0
"""The jail of choice: the system's bwrap gives the job own mount, pid, network and user namespaces.

The job sees /usr and what its Confinement lists, a private /tmp, its own /proc and a minimal /dev.
Inside it is uid 65534; outside that is the uid of the harness, without any capability. bwrap adds
PWD to the environment.

bwrap waits at its block descriptor until rlimits, CPUs and control group of its init are set; the
command inherits them. Killing that init makes the kernel kill everything in the namespace.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import termios
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...errors import KernelwrightError, SandboxError
from . import cgroup, tree
from .command import check_paths, checked_command
from .job import Ending, Streams, WatchedJob
from .limits import kernel_version, rlimits
from .model import Confinement, End, Job, Limits
from .seccomp import build_filter

_SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SYSTEM_FILES = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
)

_SHM_BYTES = 256 << 20
"""Room in the private /dev/shm."""

TEMPORARY = "/tmp/own"
"""A job's own folder for temporary files; beside it may lie what the job reads, as an installation
below /tmp."""

_INSIDE_UID = "65534"
_NPROC_PER_NAMESPACE = (5, 14)
"""Since this kernel RLIMIT_NPROC counts within a user namespace, not over all of the user's."""

_SET_UP_S = 20.0
"""How long bwrap may take to set up, a few milliseconds on an idle machine."""


def _mounts(confinement: Confinement, temporary_bytes: int) -> list[str]:
    arguments = ["--ro-bind", "/usr", "/usr"]
    for folder in _SYSTEM_FOLDERS:
        if os.path.islink(folder):
            arguments += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            arguments += ["--ro-bind", folder, folder]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    # The init is bwrap itself, with the job's uid: through its memory a job could run programs.
    arguments += ["--perms", "0555", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1"]
    if os.geteuid() == 0:
        # Outside, the job is uid 0 then, which may write these settings without a capability.
        arguments += ["--ro-bind", "/proc/sys", "/proc/sys"]
    for folder, size in (("/dev/shm", _SHM_BYTES), ("/tmp", temporary_bytes)):
        arguments += ["--perms", "1777", "--size", str(size), "--tmpfs", folder]
    arguments += ["--perms", "0700", "--dir", TEMPORARY]
    for file in _SYSTEM_FILES:
        arguments += ["--ro-bind-try", file, file]
    # A folder inside another must be mounted after it; of one named twice the writable one wins.
    wanted = [(path, "--ro-bind") for path in confinement.readable]
    wanted += [(path, "--bind") for path in confinement.writable]
    for path, how in sorted(wanted, key=lambda one: len(one[0].parts)):
        arguments += [how, str(path), str(path)]
    for node in confinement.devices:
        arguments += ["--dev-bind", str(node), str(node)]
    # What bwrap makes these of has no size of its own, and its pages belong to nobody's account.
    return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/"]


def _kernels_own() -> list[str]:
    """Covers all of /proc but the processes, whose threads have names to be written."""
    arguments = []
    for entry in sorted(os.scandir("/proc"), key=lambda entry: entry.name):
        if not entry.name.isdigit() and not entry.is_symlink():
            arguments += ["--ro-bind-try", entry.path, entry.path]
    return arguments


def _arguments(
    command: Sequence[str],
    confinement: Confinement,
    temporary_bytes: int,
    info: int,
    block: int,
    rules: int,
) -> list[str]:
    arguments = [
        "--unshare-user",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        "--uid",
        _INSIDE_UID,
        "--gid",
        _INSIDE_UID,
        "--hostname",
        "jail",
        "--cap-drop",
        "ALL",
        "--info-fd",
        str(info),
        "--block-fd",
        str(block),
        "--seccomp",
        str(rules),
    ]
    for name, value in {"TMPDIR": TEMPORARY, **confinement.env}.items():
        arguments += ["--setenv", name, value]
    arguments += _mounts(confinement, temporary_bytes)
    # For a harness that is root the files of /proc/sys would open: their owner is the job's uid
    # outside, and bwrap covers only what its own access check calls writable.
    if not confinement.devices:
        arguments += ["--remount-ro", "/proc"]
    elif os.geteuid() == 0:
        arguments += _kernels_own()
    return [*arguments, "--chdir", str(confinement.cwd), "--", *command]


@dataclass
class BubblewrapLaunch:
    """A bwrap and the namespace below it (a `job.Launched`)."""

    process: subprocess.Popen[bytes]
    init: int
    init_started: str
    pid: int

    @property
    def anchor(self) -> int:
        """The pid of bwrap itself, outside the namespaces."""
        return self.process.pid

    def members(self) -> list[int]:
        """The processes of the job that are alive; bwrap's own init is one of them."""
        return list(tree.descendants(self.process.pid))

    def temporary_bytes(self, members: Iterable[int]) -> int:  # noqa: ARG002
        """None that would count: they lie in a tmpfs, which has its size."""
        return 0

    def end(self) -> None:
        """Kills the init of the pid namespace and with it everything inside."""
        with suppress(OSError):
            if self.init_started and tree.start_time(self.init) == self.init_started:
                os.kill(self.init, signal.SIGKILL)
            else:
                # Not Popen.kill, which may collect the process and its figures.
                os.kill(self.anchor, signal.SIGKILL)

    def reap(self) -> Ending:
        """Collects bwrap; it passes the command's status on, a signal as 128 + its number."""
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = status
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0
        if 128 < code < 128 + signal.NSIG:
            status = code - 128
        # ru_maxrss is of no use here: it starts at the size of the process that spawned bwrap.
        return Ending(status, used.ru_utime + used.ru_stime, 0)


def _check_inside(program: Path, confinement: Confinement) -> None:
    """Refuses beforehand what bwrap would only tell as the exit of a job."""
    roots = [Path("/usr"), *map(Path, _SYSTEM_FOLDERS)]
    roots += [*confinement.readable, *confinement.writable]
    missing = [
        path
        for path in (program, program.resolve())
        if not any(path.is_relative_to(root) for root in roots)
    ]
    cwd, above = confinement.cwd, [Path(TEMPORARY), *roots]
    # The folders above a given path are there too, if empty.
    if not any(cwd.is_relative_to(root) or root.is_relative_to(cwd) for root in above):
        missing.append(cwd)
    if missing:
        raise SandboxError(
            f"{missing[0]} would not be there inside the jail",
            hint="add it, or a folder above it, to what the job may read",
        )


def _wait_until_set_up(init: int, block: int) -> None:
    """Until bwrap has taken the byte that lets it go on, which it does after its last mount."""
    unread = bytearray(4)
    deadline = time.monotonic() + _SET_UP_S
    while time.monotonic() < deadline:
        fcntl.ioctl(block, termios.FIONREAD, unread)
        if not any(unread):
            return
        if not tree.start_time(init):
            raise ValueError("it ended while it set up the jail")
        time.sleep(0.0002)
    raise ValueError(f"it was not done within {_SET_UP_S:g} s")


def _command_pid(init: int) -> int:
    """The process below the init; the init itself where the command was over before it was seen."""
    deadline = time.monotonic() + _SET_UP_S
    while time.monotonic() < deadline:
        if found := tree.children(init):
            return found[0]
        if not tree.start_time(init):
            break
        time.sleep(0.0001)
    return init


def _prepare(
    init: int, confinement: Confinement, limits: Limits, group: cgroup.Cgroup | None
) -> None:
    """Sets what the command will inherit from the init, which waits meanwhile."""
    processes = limits.processes if kernel_version() >= _NPROC_PER_NAMESPACE else None
    for door in group.doors if group else ():
        Path(door).write_text(str(init))
    if confinement.cpus:
        os.sched_setaffinity(init, confinement.cpus)
    for which, soft, hard in rlimits(limits, processes):
        resource.prlimit(init, which, (soft, hard))


def _launch(
    program: str,
    command: Sequence[str],
    confinement: Confinement,
    limits: Limits,
    group: cgroup.Cgroup | None,
    streams: Streams,
) -> BubblewrapLaunch:
    info_r, info_w = os.pipe()
    block_r, block_w = os.pipe()
    rules = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    try:
        allowed = build_filter(
            may_fork=confinement.may_fork,
            may_exec=True,
            may_mark=confinement.may_mark,
            may_meet=bool(confinement.devices),
        )
        os.write(rules, allowed)
        os.lseek(rules, 0, os.SEEK_SET)
        process = subprocess.Popen(
            [
                program,
                *_arguments(command, confinement, limits.temporary_bytes, info_w, block_r, rules),
            ],
            stdin=subprocess.DEVNULL,
            stdout=streams.stdout,
            stderr=streams.stderr,
            pass_fds=(info_w, block_r, rules, *confinement.pass_fds),
            env={},
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the harness, which then ends its jobs.
        )
        os.close(info_w)
        info_w = -1
        try:
            init = _read_init(info_r)
            _prepare(init, confinement, limits, group)
            launch = BubblewrapLaunch(process, init, tree.start_time(init), init)
            os.write(block_w, b"g")
            _wait_until_set_up(init, block_r)
            launch.pid = _command_pid(init)
        except (OSError, ValueError) as error:
            process.kill()
            process.wait()
            raise SandboxError(f"bwrap did not set up its namespaces: {error}") from error
        return launch
    finally:
        for descriptor in (info_r, info_w, block_r, block_w, rules):
            if descriptor >= 0:
                os.close(descriptor)


def _read_init(info: int) -> int:
    """The pid that bwrap tells: one small JSON object, then its end closes or it waits."""
    words = b""
    while not words.rstrip().endswith(b"}"):
        chunk = os.read(info, 4096)
        if not chunk:
            raise ValueError("it ended before it told its pid")
        words += chunk
    return int(json.loads(words)["child-pid"])


class BubblewrapJail:
    """A `model.Jail` over bwrap."""

    name = "bubblewrap"

    def __init__(self) -> None:
        self._program = shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")

    def is_available(self) -> str | None:
        """None where a program really ran inside, else the reason."""
        if self._program is None:
            return "bwrap is not installed"
        try:
            outcome = self.start(["true"], Confinement(), Limits(wall_s=20.0)).wait()
        except KernelwrightError as error:
            return str(error)
        if (outcome.end, outcome.code) != (End.EXITED, 0):
            words = outcome.stderr.decode(errors="replace").strip()
            return f"a trial run ended by {outcome.end} {outcome.code}: {words or outcome.detail}"
        return None

    def start(self, command: Sequence[str], confinement: Confinement, limits: Limits) -> Job:
        """Starts the command in fresh namespaces. Raises SandboxError if bwrap fails."""
        if self._program is None:
            raise SandboxError("bwrap is not installed", hint="install the package bubblewrap")
        full = checked_command(command)
        check_paths(confinement)
        _check_inside(Path(full[0]), confinement)
        group = cgroup.make(limits)
        launch = partial(_launch, self._program, full, confinement, limits, group)
        return WatchedJob(launch, limits, group)
