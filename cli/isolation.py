# SPDX-License-Identifier: Apache-2.0
"""The isolation matrix in words: what a kernel cannot do here, and what it costs where it can.

Pure: it turns what the canary measured into findings. What closes each row is known from the jails;
whether it does is only ever said of what was measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ..traces.records import CAPABILITIES, UNATTENDED_MINIMUM, Capability, Enforcement, Isolation


class Grade(StrEnum):
    """How a row bears on a run."""

    FINE = "fine"
    WEAK = "weak"
    """Told, and no hindrance."""
    MISSING = "missing"
    """Nothing runs unattended without it."""


@dataclass(frozen=True)
class MachineTraits:
    """What the remedies depend on."""

    is_root: bool
    has_bubblewrap: bool
    """Whether its program is installed, whether it works or not."""


@dataclass(frozen=True)
class TableLine:
    """One row in words."""

    grade: Grade
    text: str
    fix: str = ""


@dataclass(frozen=True)
class _Row:
    deed: str
    """Goes on from `a kernel here cannot …`."""
    loss: str
    """What is lost where it can."""
    means: dict[str, str]
    """What closes it, by jail."""


_SECCOMP = "system-call filter (seccomp)"
_ROWS = {
    "fs_read": _Row(
        "read files it was not given",
        "it sees whatever your user may read, keys and other people's results included",
        {"bubblewrap": "mount namespace", "landlock": "Landlock"},
    ),
    "fs_write": _Row(
        "write outside its own folder",
        "it can change or delete your files, and plant programs that run later",
        {"bubblewrap": "mount namespace", "landlock": "Landlock"},
    ),
    "net": _Row(
        "open network connections",
        "it can send away what it reads and fetch what it likes",
        {"bubblewrap": f"{_SECCOMP}, network namespace", "landlock": _SECCOMP},
    ),
    "ptrace": _Row(
        "look into other processes or signal them",
        "it could read the right answers out of the referee, and its verdict proves less",
        {"bubblewrap": f"{_SECCOMP}, pid namespace", "landlock": f"{_SECCOMP}, Landlock"},
    ),
    "kill_tree": _Row(
        "outlive its deadline, not even as a daemon",
        "what it leaves running disturbs every later timing",
        {
            "bubblewrap": "pid namespace",
            "landlock": "subreaper and sweep",
            "bare": "subreaper and sweep",
        },
    ),
    "pids": _Row(
        "start processes without end",
        "a fork bomb can bring this machine to a standstill",
        {
            "bubblewrap": "control group or RLIMIT_NPROC",
            "landlock": "control group or RLIMIT_NPROC",
            "bare": "control group or RLIMIT_NPROC",
        },
    ),
    "mem": _Row(
        "take more memory than it is allowed",
        "it can take memory faster than it is looked at, and other programs may be killed for it",
        {"bubblewrap": "control group", "landlock": "control group", "bare": "control group"},
    ),
    "env": _Row(
        "see your environment variables",
        "API keys and tokens in your environment are open to it",
        {
            "bubblewrap": "cleared environment",
            "landlock": "cleared environment",
            "bare": "cleared environment",
        },
    ),
    "uid": _Row(
        "act as your user",
        "what your user may do elsewhere on this machine, it may try; the other rows must hold",
        {"bubblewrap": "user namespace", "landlock": "a uid of its own"},
    ),
}

_POLLED = (
    "run as root where control groups can be made (not in a container that mounts them "
    "read-only); until then usage is polled"
)
_ALLOW_NAMESPACES = (
    "bubblewrap is installed and does not work: allow unprivileged user namespaces "
    "(sysctl kernel.unprivileged_userns_clone=1; on Ubuntu "
    "kernel.apparmor_restrict_unprivileged_userns=0; in Docker another seccomp profile)"
)
_INSTALL = "apt-get install bubblewrap (or dnf, pacman)"


def lines(isolation: Isolation, machine: MachineTraits) -> Iterator[TableLine]:
    """The whole matrix: a sentence on all of it, then one on each row."""
    lacking = isolation.lacking
    if lacking:
        yield TableLine(
            Grade.MISSING,
            f"{isolation.mechanism}, tried with a hostile program: kernels that nobody read do "
            f"not run here, because {', '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} "
            "not enforced",
            f"{_better_jail(isolation.mechanism, machine)}; or accept it, for kernels that you "
            "trust: --accept-weak-isolation",
        )
    else:
        yield TableLine(
            Grade.FINE,
            f"{isolation.mechanism}, tried with a hostile program: all that unattended runs need "
            "is enforced",
        )
    for name in CAPABILITIES:
        yield _line(name, isolation.capabilities.get(name), isolation.mechanism, machine)


def _line(name: str, found: Capability | None, mechanism: str, machine: MachineTraits) -> TableLine:
    row = _ROWS[name]
    bad = Grade.MISSING if name in UNATTENDED_MINIMUM else Grade.WEAK
    if found is None:
        text = f"whether a kernel here can {_word_undone(row)} was not measured; then {row.loss}"
        return TableLine(bad, text, _remedy(name, mechanism, machine))
    if found.state is Enforcement.ENFORCED:
        means = row.means.get(mechanism, mechanism)
        how = found.how.removeprefix(f"{means}: ")
        tried = f"; when tried: {how}" if how else ""
        return TableLine(Grade.FINE, f"a kernel here cannot {row.deed} ({means}{tried})")
    how = f" ({found.how})" if found.how else ""
    if found.state is Enforcement.PARTIAL:
        text = f"a kernel here is only partly kept from this: to {_word_undone(row)}{how}"
    else:
        text = f"a kernel here can {_word_undone(row)}{how}"
    return TableLine(bad, f"{text}; lost: {row.loss}", _remedy(name, mechanism, machine))


def _word_undone(row: _Row) -> str:
    return row.deed.replace(", not even as a daemon", ", as a daemon")


def _remedy(name: str, mechanism: str, machine: MachineTraits) -> str:
    if name in ("mem", "pids"):
        return _POLLED
    if name == "uid" and mechanism == "bubblewrap":
        # Outside its user namespace it keeps the harness's uid, without any capability.
        return (
            "none is needed: it has no capability and the other rows hold; as root, "
            "--jail landlock gives each kernel a uid of its own"
        )
    if name == "uid" and mechanism == "landlock" and not machine.is_root:
        return f"{_better_jail(mechanism, machine)}, for a user namespace"
    return _better_jail(mechanism, machine)


def _better_jail(mechanism: str, machine: MachineTraits) -> str:
    if mechanism == "bare":
        return "leave out --jail bare, so that bubblewrap or Landlock is used"
    if mechanism == "bubblewrap":
        return "update bubblewrap and the kernel; --jail landlock is the other choice"
    return _ALLOW_NAMESPACES if machine.has_bubblewrap else _INSTALL
