# SPDX-License-Identifier: Apache-2.0
"""The jail that confines nothing: limits, an own process group and a subreaper, no more.

It is for people who accept that: code runs as this user, sees its files and may use the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from . import cgroup
from .command import checked_command
from .job import WatchedJob
from .limits import rlimits, shared_uid_processes
from .model import Confinement, Job, Limits
from .seccomp import build_filter
from .supervisor import SupervisedOrder, launch


class BareJail:
    """A `model.Jail` without confinement."""

    name = "bare"

    def is_available(self) -> str | None:
        """Always: it needs nothing."""
        return None

    def start(self, command: Sequence[str], confinement: Confinement, limits: Limits) -> Job:
        """Starts the command under its limits. Raises SandboxError if that fails."""
        full = checked_command(command)
        group = cgroup.make(limits)
        may_meet = bool(confinement.devices)
        rules = build_filter(may_fork=False, may_exec=True, may_meet=may_meet)
        order = SupervisedOrder(
            command=full,
            env=dict(confinement.env),
            cwd=str(confinement.cwd),
            fds=confinement.pass_fds,
            cpus=confinement.cpus,
            rlimits=tuple(rlimits(limits, shared_uid_processes(limits))),
            cgroup=group.doors if group else (),
            seccomp=b"" if confinement.may_fork else rules,
        )
        return WatchedJob(partial(launch, order), limits, group)
