# SPDX-License-Identifier: Apache-2.0
"""The system-call filter: which calls a jailed program is refused, as classic BPF bytes.

It knows the numbers of two machines (x86-64, aarch64) and builds a `struct sock_filter` array; it
does not install it. bubblewrap takes the bytes from a descriptor, the supervisor and the C++ runner
pass them to prctl(PR_SET_SECCOMP).

Everything not listed is allowed: the filter narrows what a mount namespace or Landlock cannot see
(sockets, tracing, namespaces, System V IPC, the scheduling of other processes, the wide parts of
the kernel); it is not an allow-list.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable
from typing import NamedTuple

from ...errors import PrerequisiteError

_LD_ABS, _JEQ, _JGE, _JSET, _AND, _RET = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NR, _ARCH, _ARG0, _ARG1, _ARG2 = 0, 4, 16, 24, 32

CLONE_THREAD = 0x00010000
_NAMESPACES = 0x7E020000
"""CLONE_NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET."""

_X32_BIT = 0x40000000
_AF_UNIX = 1
_TERMINAL_INJECTION = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX type into a shared terminal."""
_LEASES = (1024, 1026)
"""F_SETLEASE and F_NOTIFY: who opens a leased file waits, for up to 45 s, until it is let go."""
_LOCKS = (6, 7, 37, 38)
"""F_SETLK, F_SETLKW and the same two for open file descriptions."""
_LARGE_PAGES = (14, 25)
"""MADV_HUGEPAGE and MADV_COLLAPSE."""
_FAULTS = (4, 7, 8, 11)
"""SIGILL, SIGBUS, SIGFPE, SIGSEGV."""


class _Machine(NamedTuple):
    audit_arch: int
    has_x32: bool
    denied: dict[str, int]
    clone: int
    clone3: int
    ioctl: int
    fcntl: int
    flock: int
    madvise: int
    rt_sigaction: int
    socket: int
    socketpair: int
    prlimit64: int
    setpriority: int
    ioprio_set: int
    sched_setaffinity: int
    of_one_task: tuple[int, ...]
    """sched_setparam, sched_setscheduler, sched_setattr: 0 in the first argument is the caller."""
    forks: tuple[int, ...]
    execs: tuple[int, ...]
    marks: tuple[int, ...]
    """Modes, owners, times and attributes of files by path or descriptor, and truncate."""
    alarms: tuple[int, ...]
    """Timers that interrupt whoever runs as they end."""


_SHARED_NEW = {
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "quotactl_fd": 443,
}
"""Calls that have one number on every machine."""

_SHARED_MARKS = (452, 463, 466, 469)
"""fchmodat2, setxattrat, removexattrat, file_setattr."""

_X86_64 = _Machine(
    audit_arch=0xC000003E,
    has_x32=True,
    denied=_SHARED_NEW
    | {
        "ptrace": 101,
        "syslog": 103,
        "acct": 163,
        "chroot": 161,
        "mount": 165,
        "umount2": 166,
        "swapon": 167,
        "swapoff": 168,
        "reboot": 169,
        "sethostname": 170,
        "setdomainname": 171,
        "iopl": 172,
        "ioperm": 173,
        "init_module": 175,
        "delete_module": 176,
        "quotactl": 179,
        "pivot_root": 155,
        "settimeofday": 164,
        "adjtimex": 159,
        "clock_settime": 227,
        "clock_adjtime": 305,
        "kexec_load": 246,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "unshare": 272,
        "setns": 308,
        "perf_event_open": 298,
        "fanotify_init": 300,
        "name_to_handle_at": 303,
        "open_by_handle_at": 304,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "kcmp": 312,
        "finit_module": 313,
        "kexec_file_load": 320,
        "bpf": 321,
        "userfaultfd": 323,
        # Outlive their maker and belong to all of the user's processes; kernels need none of them.
        "shmget": 29,
        "shmat": 30,
        "shmctl": 31,
        "semget": 64,
        "semop": 65,
        "semctl": 66,
        "semtimedop": 220,
        "msgget": 68,
        "msgsnd": 69,
        "msgrcv": 70,
        "msgctl": 71,
        "mq_open": 240,
        "mq_unlink": 241,
    },
    clone=56,
    clone3=435,
    ioctl=16,
    fcntl=72,
    flock=73,
    madvise=28,
    rt_sigaction=13,
    socket=41,
    socketpair=53,
    prlimit64=302,
    setpriority=141,
    ioprio_set=251,
    sched_setaffinity=203,
    of_one_task=(142, 144, 314),
    forks=(57, 58),
    execs=(59, 322),
    marks=(
        76,
        90,
        91,
        92,
        93,
        94,
        132,
        188,
        189,
        190,
        197,
        198,
        199,
        235,
        260,
        261,
        268,
        280,
        *_SHARED_MARKS,
    ),
    alarms=(37, 38, 222, 223, 283, 286),
)

_AARCH64 = _Machine(
    audit_arch=0xC00000B7,
    has_x32=False,
    denied=_SHARED_NEW
    | {
        "ptrace": 117,
        "syslog": 116,
        "acct": 89,
        "chroot": 51,
        "mount": 40,
        "umount2": 39,
        "swapon": 224,
        "swapoff": 225,
        "reboot": 142,
        "sethostname": 161,
        "setdomainname": 162,
        "init_module": 105,
        "delete_module": 106,
        "quotactl": 60,
        "pivot_root": 41,
        "settimeofday": 170,
        "adjtimex": 171,
        "clock_settime": 112,
        "clock_adjtime": 266,
        "kexec_load": 104,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "unshare": 97,
        "setns": 268,
        "perf_event_open": 241,
        "fanotify_init": 262,
        "name_to_handle_at": 264,
        "open_by_handle_at": 265,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "kcmp": 272,
        "finit_module": 273,
        "kexec_file_load": 294,
        "bpf": 280,
        "userfaultfd": 282,
        "shmget": 194,
        "shmat": 196,
        "shmctl": 195,
        "semget": 190,
        "semop": 193,
        "semctl": 191,
        "semtimedop": 192,
        "msgget": 186,
        "msgsnd": 189,
        "msgrcv": 188,
        "msgctl": 187,
        "mq_open": 180,
        "mq_unlink": 181,
    },
    clone=220,
    clone3=435,
    ioctl=29,
    fcntl=25,
    flock=32,
    madvise=233,
    rt_sigaction=134,
    socket=198,
    socketpair=199,
    prlimit64=261,
    setpriority=140,
    ioprio_set=30,
    sched_setaffinity=122,
    of_one_task=(118, 119, 274),
    forks=(),
    execs=(221, 281),
    marks=(5, 6, 7, 14, 15, 16, 45, 52, 53, 54, 55, 88, *_SHARED_MARKS),
    alarms=(103, 107, 110, 85, 86),
)

_MACHINES = {"x86_64": _X86_64, "aarch64": _AARCH64}


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refuse(number: int = errno.EPERM) -> bytes:
    return _op(_RET, _ERRNO | number)


def _on_call(nr: int, body: bytes) -> bytes:
    """`body` where the call is `nr`; it must end in a return. Needs the number in the register."""
    return _op(_JEQ, nr, 0, len(body) // 8) + body


def _clone_rules(machine: _Machine, *, may_fork: bool) -> bytes:
    # clone3 takes its flags by pointer, which a filter cannot read; ENOSYS makes libc use clone.
    rules = _on_call(machine.clone3, _refuse(errno.ENOSYS))
    if may_fork:
        body = _op(_LD_ABS, _ARG0) + _op(_JSET, _NAMESPACES, 0, 1) + _refuse() + _op(_RET, _ALLOW)
        return rules + _on_call(machine.clone, body)
    body = _op(_LD_ABS, _ARG0)
    body += _op(_JSET, _NAMESPACES, 1, 0) + _op(_JSET, CLONE_THREAD, 1, 0)
    body += _refuse() + _op(_RET, _ALLOW)
    rules += _on_call(machine.clone, body)
    return rules + b"".join(_on_call(nr, _refuse()) for nr in machine.forks)


def _argument_rules(calls: _Machine, *, may_meet: bool) -> bytes:
    """Calls that are allowed with some arguments only."""
    local_only = _op(_LD_ABS, _ARG0) + _op(_JEQ, _AF_UNIX, 1, 0) + _refuse() + _op(_RET, _ALLOW)
    rules = _on_call(calls.socketpair, local_only)
    rules += _on_call(calls.socket, local_only if may_meet else _refuse())
    # Without a uid of its own a job could have its supervisor ended by a limit on CPU time, and
    # could slow down the baselines that it is timed against.
    own_only = _op(_LD_ABS, _ARG0) + _op(_JEQ, 0, 1, 0) + _refuse() + _op(_RET, _ALLOW)
    rules += b"".join(_on_call(nr, own_only) for nr in (calls.prlimit64, *calls.of_one_task))
    nobody_else = _op(_LD_ABS, _ARG1) + _op(_JEQ, 0, 1, 0) + _refuse() + own_only
    rules += _on_call(calls.setpriority, nobody_else)
    rules += _on_call(calls.ioprio_set, _refuse())
    return rules + _on_call(calls.ioctl, _none_of(_ARG1, _TERMINAL_INJECTION))


def _none_of(argument: int, values: Iterable[int]) -> bytes:
    """Refuses where the low half of the argument is one of the values."""
    refused = b"".join(_op(_JEQ, value, 0, 1) + _refuse() for value in values)
    return _op(_LD_ABS, argument) + refused + _op(_RET, _ALLOW)


def _file_rules(calls: _Machine, *, may_mark: bool) -> bytes:
    """What can be done to a file by a descriptor that may only read it."""
    if may_mark:
        return _on_call(calls.fcntl, _none_of(_ARG1, _LEASES))
    rules = _on_call(calls.fcntl, _none_of(_ARG1, _LEASES + _LOCKS))
    return rules + b"".join(_on_call(nr, _refuse()) for nr in (calls.flock, *calls.marks))


def build_filter(
    *,
    may_fork: bool,
    may_exec: bool,
    may_mark: bool = True,
    may_pin: bool = True,
    may_catch: bool = True,
    may_alarm: bool = True,
    may_tune: bool = True,
    may_meet: bool = False,
    machine: str = "",
) -> bytes:
    """The filter as an array of `struct sock_filter` (8 bytes each).

    Args:
        may_fork: False also denies new processes; threads stay allowed.
        may_exec: False also denies execve and execveat, so it can only be installed by the program
            itself, after it was started.
        may_mark: False denies changing modes, owners, times and attributes of files and locking
            them, which Landlock does not see; linkers need it.
        may_pin: False makes sched_setaffinity do nothing and say that it did. Thread libraries pin
            their threads by number, and a filter cannot tell these from other processes.
        may_catch: False denies handlers for the signals of a wrong access or instruction, which
            would let a program try an address and go on. A handler that is there stays.
        may_alarm: False denies timers. Hundreds of them that end while somebody else is timed would
            slow that one down, and cost the time of nobody who set them.
        may_tune: False denies choosing the length of its own turns on a CPU, and large pages:
            who is timed beside it has neither.
        may_meet: True allows local sockets that others can find, as the CUDA driver makes one.
        machine: as `platform.machine()` says it; empty: this one.

    Raises:
        PrerequisiteError: there is no table for this machine.
    """
    name = machine or platform.machine()
    if name not in _MACHINES:
        raise PrerequisiteError(
            f"there is no system-call filter for the machine '{name}'",
            hint=f"run on one of: {', '.join(sorted(_MACHINES))}",
        )
    calls = _MACHINES[name]
    rules = _op(_LD_ABS, _ARCH) + _op(_JEQ, calls.audit_arch, 1, 0) + _op(_RET, _KILL_PROCESS)
    rules += _op(_LD_ABS, _NR)
    if calls.has_x32:
        rules += _op(_JGE, _X32_BIT, 0, 1) + _refuse(errno.ENOSYS)
    if not may_tune:
        rules += b"".join(_on_call(nr, _refuse()) for nr in calls.of_one_task)
        rules += _on_call(calls.madvise, _none_of(_ARG2, _LARGE_PAGES))
    rules += _clone_rules(calls, may_fork=may_fork) + _argument_rules(calls, may_meet=may_meet)
    rules += _file_rules(calls, may_mark=may_mark)
    if not may_catch:
        rules += _on_call(calls.rt_sigaction, _none_of(_ARG0, _FAULTS))
    if not may_pin:
        rules += _on_call(calls.sched_setaffinity, _refuse(0))
    denied = [*calls.denied.values()]
    denied += () if may_exec else calls.execs
    denied += () if may_alarm else calls.alarms
    rules += b"".join(_on_call(nr, _refuse()) for nr in denied)
    return rules + _op(_RET, _ALLOW)
