# SPDX-License-Identifier: Apache-2.0
"""The allow-lists: which system calls a candidate may make on the CPUs, by its tier.

They come from traces of honest candidates (OpenMP, threads, exceptions, sanitizers, the recipes;
torch, numpy, scipy, TorchScript, Triton's interpreter) and were then looked through by hand: each
group says what it is for. A call that is on no list is trapped: it is not made, and the process
leaves with a status that says which one it was (`run/refused_call.hpp`). Some calls are answered
with an error instead, because libraries try them and go on without.

Absent on purpose: handlers for SIGCONT and every way to wait for a signal, by which a process
would learn that it was stopped; asynchronous input and output, timers and readahead, by which the
kernel would work while a candidate is not charged; advice on memory beyond what allocators give;
mincore and msync, which tell where memory ends.
"""

from __future__ import annotations

import errno
import signal
from collections.abc import Mapping
from dataclasses import dataclass

from . import bpf
from .calls import Machine, machine_of, split_names
from .seccomp import CLONE_THREAD, EXECS, FAULTS, FORKS, MARKS, NAMESPACES, OF_ONE_TASK

_BOTH = {
    "memory": "brk mmap munmap mprotect mremap madvise",
    "threads": "clone set_robust_list rseq futex exit gettid sched_yield getcpu",
    "how many threads, and where": "sched_getaffinity sched_setaffinity sysinfo prctl prlimit64"
    " getrlimit arch_prctl sched_getparam sched_getscheduler sched_get_priority_max"
    " sched_get_priority_min getpriority",
    # restart_syscall is how a wait goes on after the process was stopped.
    "waiting": "nanosleep clock_nanosleep restart_syscall",
    "leaving, and being ended by abort": "exit_group tgkill getpid rt_sigaction rt_sigprocmask"
    " rt_sigreturn sigaltstack",
    "clocks that have no fast way here": "clock_gettime clock_getres gettimeofday time getrusage"
    " times",
    "random_device, hash tables": "getrandom",
    "frames, words, libraries that are loaded late": "read write readv writev pread64 pwrite64"
    " lseek open openat close stat fstat lstat newfstatat statx readlink readlinkat access"
    " faccessat faccessat2 getcwd fcntl ioctl dup unlink unlinkat ftruncate",
    # AddressSanitizer asks by a pipe whether an address can be read.
    "sanitizers": "pipe pipe2",
}
_PYTHON = {
    "files for temporary use, imports": "getdents64 mkdir mkdirat rmdir rename renameat renameat2"
    " dup2 dup3 statfs fstatfs umask",
    "who and where am I": "uname getuid geteuid getgid getegid getgroups getresuid getresgid"
    " getppid getpgid getpgrp getsid",
    "what subprocess and queues do around nothing": "wait4 poll ppoll select pselect6",
}

_NEWER = split_names(
    "clone3 close_range openat2 futex_waitv futex_wait futex_wake map_shadow_stack mseal"
)
"""libc has an older way for each; clone3 takes its flags by pointer, which no filter can read."""
_PLACEMENT = split_names(
    "mbind set_mempolicy get_mempolicy set_mempolicy_home_node move_pages migrate_pages"
)
"""NUMA libraries take this for a kernel without NUMA."""
_TURNS = ("setpriority", "ioprio_set", *OF_ONE_TASK)
"""Longer or more turns on a CPU than who it is timed beside; thread libraries go on without."""
_TRIED = split_names(
    "socket socketpair connect kill link linkat symlink symlinkat flock memfd_create"
)
"""By what Python imports or runs at its end: the user's name, locks of a cache, shared memory."""
_COPIED = split_names(
    "sendfile copy_file_range getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr"
)
"""By shutil, which has another way."""

_ADVICE = (0, 4, 8, 15, 16, 17, 102, 103)
"""NORMAL, DONTNEED, FREE, NOHUGEPAGE, DONTDUMP, DODUMP, GUARD_INSTALL, GUARD_REMOVE."""
_OF_ITSELF = (3, 15, 16, 23, 30, 51, 56, 64, 0x53564D41)
"""Of prctl: PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_CAPBSET_READ, PR_GET_TIMERSLACK,
PR_SVE_GET_VL, PR_GET_TAGGED_ADDR_CTRL, PR_SME_GET_VL, PR_SET_VMA."""
_OF_DESCRIPTORS = (0, 1, 2, 3, 4, 1030)
"""Of fcntl: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC."""
_OF_FILES = (0x5401, 0x5413, 0x541B, 0x5450, 0x5451)
"""Of ioctl: TCGETS, TIOCGWINSZ, FIONREAD, FIONCLEX, FIOCLEX; others find that it is no terminal."""
_KEPT = (*FAULTS, signal.SIGCONT, signal.SIGSYS)
"""Signals without a handler of the candidate's: of faults, of being woken, of a refused call."""


@dataclass(frozen=True)
class AllowList:
    """What the processes of one tier may call."""

    needed: frozenset[str]
    answered: Mapping[str, int]
    """Calls that are not made and fail with this error."""
    refusal: bytes
    """What becomes of a clone that makes no thread."""


def _answers(*names: str, number: int = errno.EPERM) -> dict[str, int]:
    return dict.fromkeys(names, number)


_ANSWERED = {
    **_answers(*_NEWER, *_PLACEMENT, number=errno.ENOSYS),
    **_answers(*_TURNS),
}
NATIVE = AllowList(frozenset(split_names(*_BOTH.values())), _ANSWERED, bpf.TRAP)
"""C++, its build with sanitizers, and CUDA that is emulated."""
PYTHON = AllowList(
    frozenset(split_names(*_BOTH.values(), *_PYTHON.values())),
    {
        **_ANSWERED,
        **_answers(*_TRIED, *FORKS, *EXECS, *MARKS, "perf_event_open"),
        **_answers(*_COPIED, number=errno.EOPNOTSUPP),
    },
    bpf.answer(),
)
"""Host code, and Triton's interpreter. Processes are refused by an error here: half of what can be
imported looks for a program and goes on without, and what needs one is told why (`contract.py`)."""


def build_allow_filter(allowed: AllowList, machine: str = "") -> bytes:
    """The filter as an array of `struct sock_filter`.

    Args:
        machine: as `platform.machine()` says it; empty: this one.

    Raises:
        PrerequisiteError: there is no table for this machine.
    """
    kind = machine_of(machine)
    rules = bpf.begin(kind.audit_arch, has_x32=kind.has_x32)
    bodies = _argument_rules(allowed)
    plain = allowed.needed - bodies.keys()
    rules += b"".join(bpf.on_call(nr, bpf.ALLOW) for nr in kind.list_numbers(plain))
    rules += b"".join(_on_existing(kind, name, body) for name, body in bodies.items())
    for name, number in allowed.answered.items():
        rules += _on_existing(kind, name, bpf.answer(number))
    # What is newer than the table libraries try before an older way.
    return rules + bpf.on_calls_beyond(kind.highest, bpf.answer(errno.ENOSYS)) + bpf.TRAP


def _on_existing(kind: Machine, name: str, body: bytes) -> bytes:
    number = kind.numbers[name]
    return bpf.on_call(number, body) if number >= 0 else b""


def _argument_rules(allowed: AllowList) -> dict[str, bytes]:
    """Calls that are needed with some arguments only."""
    refused = bpf.answer()
    return {
        "clone": bpf.flags(bpf.ARG0, none=NAMESPACES, all_of=CLONE_THREAD, refused=allowed.refusal),
        "madvise": bpf.one_of(bpf.ARG2, _ADVICE, refused),
        "prctl": bpf.one_of(bpf.ARG0, _OF_ITSELF, refused),
        "fcntl": bpf.one_of(bpf.ARG1, _OF_DESCRIPTORS, refused),
        "ioctl": bpf.one_of(bpf.ARG1, _OF_FILES, bpf.answer(errno.ENOTTY)),
        "prlimit64": bpf.one_of(bpf.ARG0, (0,), refused),
        "rt_sigaction": bpf.none_of(bpf.ARG0, _KEPT, refused),
    }
