# SPDX-License-Identifier: Apache-2.0
"""The deny-list: which system calls every jailed program is refused, as classic BPF bytes.

bubblewrap takes the bytes from a descriptor, the supervisor and the runners pass them to the
kernel. Everything not listed is allowed: this filter narrows what a mount namespace or Landlock
cannot see (sockets, tracing, namespaces, System V IPC, the scheduling of other processes, the wide
parts of the kernel). It is all there is for compilers, which need what nobody has listed, and for
the process beside a device, since what a driver's library calls as it starts nobody has traced yet.
Whoever runs a candidate on the CPUs puts the list of `allow_list.py` on top of it.
"""

from __future__ import annotations

import errno

from . import bpf
from .calls import Machine, machine_of, split_names

CLONE_THREAD = 0x00010000
NAMESPACES = 0x7E020000
"""CLONE_NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET."""
FAULTS = (4, 7, 8, 11)
"""SIGILL, SIGBUS, SIGFPE, SIGSEGV."""
OF_ONE_TASK = ("sched_setparam", "sched_setscheduler", "sched_setattr")
"""0 in the first argument is the caller."""
_AF_UNIX = 1
_TERMINAL_INJECTION = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX type into a shared terminal."""
_LEASES = (1024, 1026)
"""F_SETLEASE and F_NOTIFY: who opens a leased file waits, for up to 45 s, until it is let go."""
_LOCKS = (6, 7, 37, 38)
"""F_SETLK, F_SETLKW and the same two for open file descriptions."""

_DENIED = split_names(
    "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd perf_event_open userfaultfd bpf",
    "chroot mount umount2 pivot_root open_tree move_mount fsopen fsconfig fsmount fspick",
    "mount_setattr unshare setns name_to_handle_at open_by_handle_at fanotify_init",
    "swapon swapoff reboot sethostname setdomainname iopl ioperm acct syslog quotactl quotactl_fd",
    "init_module finit_module delete_module kexec_load kexec_file_load add_key request_key keyctl",
    "settimeofday adjtimex clock_settime clock_adjtime ioprio_set",
    "io_uring_setup io_uring_enter io_uring_register",
)
_OUTLIVING = split_names(
    "shmget shmat shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl",
    "mq_open mq_unlink",
)
"""Outlive their maker and belong to all of the user's processes; kernels need none of them."""
FORKS = ("fork", "vfork")
EXECS = ("execve", "execveat")
MARKS = split_names(
    "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat",
    "setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat",
    "file_setattr truncate",
)
"""Modes, owners, times and attributes of files by path or descriptor, and truncate."""
ALARMS = split_names(
    "alarm setitimer timer_create timer_settime timerfd_create timerfd_settime",
)
"""Timers that interrupt whoever runs as they end."""


def build_filter(
    *,
    may_fork: bool,
    may_exec: bool,
    may_mark: bool = True,
    may_pin: bool = True,
    may_catch: bool = True,
    may_alarm: bool = True,
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
        may_meet: True allows local sockets that others can find, as the CUDA driver makes one.
        machine: as `platform.machine()` says it; empty: this one.

    Raises:
        PrerequisiteError: there is no table for this machine.
    """
    kind = machine_of(machine)
    rules = bpf.begin(kind.audit_arch, has_x32=kind.has_x32)
    rules += _clone_rules(kind, may_fork=may_fork) + _argument_rules(kind, may_meet=may_meet)
    rules += _file_rules(kind, may_mark=may_mark)
    if not may_catch:
        rules += _on(kind, "rt_sigaction", bpf.none_of(bpf.ARG0, FAULTS, bpf.answer()))
    if not may_pin:
        rules += _on(kind, "sched_setaffinity", bpf.answer(0))
    denied = [*_DENIED, *_OUTLIVING]
    denied += () if may_mark else ("flock", *MARKS)
    denied += () if may_fork else FORKS
    denied += () if may_exec else EXECS
    denied += () if may_alarm else ALARMS
    rules += b"".join(bpf.on_call(nr, bpf.answer()) for nr in kind.list_numbers(denied))
    return rules + bpf.ALLOW


def _on(kind: Machine, name: str, body: bytes) -> bytes:
    return bpf.on_call(kind.numbers[name], body)


def _clone_rules(kind: Machine, *, may_fork: bool) -> bytes:
    # clone3 takes its flags by pointer, which a filter cannot read; ENOSYS makes libc use clone.
    rules = _on(kind, "clone3", bpf.answer(errno.ENOSYS))
    needed = 0 if may_fork else CLONE_THREAD
    body = bpf.flags(bpf.ARG0, none=NAMESPACES, all_of=needed, refused=bpf.answer())
    return rules + _on(kind, "clone", body)


def _argument_rules(kind: Machine, *, may_meet: bool) -> bytes:
    """Calls that are allowed with some arguments only."""
    local_only = bpf.one_of(bpf.ARG0, (_AF_UNIX,), bpf.answer())
    rules = _on(kind, "socketpair", local_only)
    rules += _on(kind, "socket", local_only if may_meet else bpf.answer())
    # Without a uid of its own a job could have its supervisor ended by a limit on CPU time, and
    # could slow down the baselines that it is timed against.
    own_only = bpf.one_of(bpf.ARG0, (0,), bpf.answer())
    rules += b"".join(_on(kind, name, own_only) for name in ("prlimit64", *OF_ONE_TASK))
    rules += _on(kind, "setpriority", bpf.both_zero(bpf.ARG0, bpf.ARG1, bpf.answer()))
    return rules + _on(kind, "ioctl", bpf.none_of(bpf.ARG1, _TERMINAL_INJECTION, bpf.answer()))


def _file_rules(kind: Machine, *, may_mark: bool) -> bytes:
    """What can be done to a file by a descriptor that may only read it."""
    refused = _LEASES if may_mark else _LEASES + _LOCKS
    return _on(kind, "fcntl", bpf.none_of(bpf.ARG1, refused, bpf.answer()))
