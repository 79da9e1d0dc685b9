# SPDX-License-Identifier: Apache-2.0
"""The jail without namespaces: Landlock, a system-call filter and, for root, a uid of its own.

It works inside containers that refuse user namespaces. It has no private /tmp, no pid namespace and
no network namespace: sockets are refused by the filter, files by Landlock, daemons are caught by
the supervisor. TMPDIR names a folder that is the job's own and is removed with it.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import stat
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path

from ...errors import KernelwrightError
from . import cgroup, temporary
from .command import check_paths, checked_command
from .job import WatchedJob
from .limits import rlimits, shared_uid_processes
from .model import Confinement, End, Job, Limits
from .seccomp import build_filter
from .supervisor import SupervisedOrder, launch

_CREATE_RULESET, _VERSION_FLAG = 444, 1

SYSTEM_READABLE = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
)
"""What a dynamically linked program or a compiler needs, where it exists."""

SYSTEM_WRITABLE = ("/dev/null", "/dev/zero")

_OWN_PROCESS = ("/proc/self", "/proc/stat", "/proc/filesystems", "/proc/modules", "/proc/sys/vm")
"""What a driver's library reads beside: the supervisor opens it as the job's own process."""

_NOBODY = 65534
_FIRST_UID, _UIDS = 1_800_000_000, 1 << 20
"""Root gives every job its own uid from here: far from people's and services' accounts."""

_serial = itertools.count()


@lru_cache(maxsize=1)
def abi() -> int:
    """The kernel's Landlock version; 0 where it has none or refuses it."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)))


def job_uid() -> int:
    """The uid for the next job, -1 where this process cannot change it."""
    if os.geteuid() != 0:
        return -1
    wanted = _FIRST_UID + (os.getpid() * 64 + next(_serial)) % _UIDS
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        inside, _, count = (int(field) for field in line.split())
        if inside <= wanted < inside + count:
            return wanted
    return _NOBODY


def is_open_to_others(path: Path) -> bool:
    """Whether a stranger may read `path`: every folder above can be passed and it can be read."""
    full = path.resolve()
    if any(not folder.stat().st_mode & stat.S_IXOTH for folder in full.parents):
        return False
    mode = full.stat().st_mode
    needed = stat.S_IROTH | (stat.S_IXOTH if full.is_dir() else 0)
    return mode & needed == needed


def _keep_existing(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(path for path in paths if os.path.exists(path))


class LandlockJail:
    """A `model.Jail` that needs no namespace."""

    name = "landlock"

    def is_available(self) -> str | None:
        """None where a program really ran inside, else the reason."""
        if abi() == 0:
            return "this kernel has no Landlock, or refuses it"
        try:
            outcome = self.start(["true"], Confinement(), Limits(wall_s=20.0)).wait()
        except KernelwrightError as error:
            return str(error)
        if (outcome.end, outcome.code) != (End.EXITED, 0):
            words = outcome.stderr.decode(errors="replace").strip()
            return f"a trial run ended by {outcome.end} {outcome.code}: {words or outcome.detail}"
        return None

    def start(self, command: Sequence[str], confinement: Confinement, limits: Limits) -> Job:
        """Starts the command confined. As root, writable folders are handed to the job's uid.

        Raises:
            SandboxError: a path does not exist, or the confinement could not be put into force.
        """
        full = checked_command(command)
        uid = job_uid()
        check_paths(confinement)
        named = (*confinement.readable, *confinement.writable, confinement.cwd, Path(full[0]))
        named = (*named, temporary.parent())
        search = uid >= 0 and not all(is_open_to_others(path) for path in named)
        if uid >= 0:
            for folder in confinement.writable:
                # With what an earlier job of another uid has left there.
                for path in (folder, *folder.rglob("*")):
                    os.chown(path, uid, uid, follow_symlinks=False)
        group = cgroup.make(limits)
        order = SupervisedOrder(
            command=full,
            env=dict(confinement.env),
            cwd=str(confinement.cwd),
            fds=confinement.pass_fds,
            cpus=confinement.cpus,
            rlimits=tuple(rlimits(limits, _processes(uid, limits))),
            cgroup=group.doors if group else (),
            uid=uid,
            search=search,
            landlock=abi(),
            readable=(
                *_keep_existing(SYSTEM_READABLE),
                *map(str, confinement.readable),
                *(_keep_existing(_OWN_PROCESS) if confinement.devices else ()),
            ),
            writable=(*_keep_existing(SYSTEM_WRITABLE), *map(str, confinement.writable)),
            devices=tuple(map(str, confinement.devices)),
            named=("/proc/self/task",) if confinement.devices else (),
            # A user's own processes, the baselines among them, would let themselves be pinned.
            seccomp=build_filter(
                may_fork=confinement.may_fork,
                may_exec=True,
                may_mark=confinement.may_mark,
                may_pin=uid >= _FIRST_UID,
                may_meet=bool(confinement.devices),
            ),
        )
        return WatchedJob(partial(launch, order), limits, group)


def _processes(uid: int, limits: Limits) -> int:
    """RLIMIT_NPROC: exact for a uid of its own, else on top of what the user runs already."""
    return limits.processes if uid >= _FIRST_UID else shared_uid_processes(limits)
