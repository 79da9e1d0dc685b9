"""The allow-lists as bytes, on both machines: each call is made, answered or trapped."""

from __future__ import annotations

import errno
import signal

import pytest

from kernelwright.sandbox.isolation.allow_list import (
    NATIVE,
    PYTHON,
    AllowList,
    build_allow_filter,
)
from kernelwright.sandbox.isolation.calls import MACHINES, machine_of, split_names
from kernelwright.tests.sandbox.isolation.test_seccomp import ALLOW, ARCH, KILL, REFUSED, decide

TRAPPED = 0x00030000
TIERS = {"native": NATIVE, "python": PYTHON}
WITH_ARGUMENTS = {"clone", "madvise", "prctl", "fcntl", "ioctl", "prlimit64", "rt_sigaction"}
SUCCESSORS = {
    "open": "openat",
    "stat": "newfstatat",
    "lstat": "newfstatat",
    "access": "faccessat",
    "readlink": "readlinkat",
    "pipe": "pipe2",
    "dup2": "dup3",
    "unlink": "unlinkat",
    "rmdir": "unlinkat",
    "mkdir": "mkdirat",
    "rename": "renameat",
    "poll": "ppoll",
    "select": "pselect6",
    "getpgrp": "getpgid",
    "time": "gettimeofday",
    # Of the processor that has it.
    "arch_prctl": "prctl",
}
"""What aarch64 lacks, by what stands there in its place."""
NEVER = split_names(
    "rt_sigtimedwait rt_sigpending rt_sigsuspend signalfd4 io_setup io_submit",
    "io_uring_setup fadvise64 readahead process_madvise userfaultfd mlock mlock2",
    "mlockall membarrier mincore msync cachestat epoll_create1 epoll_pwait",
    "inotify_init1 timer_create timer_settime timerfd_create setitimer ptrace",
    "process_vm_readv pidfd_getfd pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo",
    "tkill seccomp bpf unshare setns mount io_uring_enter splice vmsplice shmget",
    "mq_open pkey_alloc",
)


def answered(number: int) -> int:
    return 0x00050000 | number


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("tier", TIERS)
def test_each_call_is_made_answered_or_trapped(machine: str, tier: str) -> None:
    allowed, kind = TIERS[tier], machine_of(machine)
    rules = build_allow_filter(allowed, machine)
    assert len(rules) < 32_768
    for name, number in kind.numbers.items():
        if number < 0 or name in WITH_ARGUMENTS:
            continue
        found = decide(rules, ARCH[machine], number)
        if name in allowed.needed:
            assert found == ALLOW, name
        elif name in allowed.answered:
            assert found == answered(allowed.answered[name]), name
        else:
            assert found == TRAPPED, name
    assert decide(rules, ARCH[machine], kind.highest + 1) == answered(errno.ENOSYS)
    assert decide(rules, 0x40000003, kind.numbers["read"]) == KILL
    if kind.has_x32:
        assert decide(rules, ARCH[machine], 0x40000000) == answered(errno.ENOSYS)


@pytest.mark.parametrize("allowed", TIERS.values(), ids=TIERS)
def test_every_name_has_a_number_on_both_machines(allowed: AllowList) -> None:
    first, second = (machine_of(name).numbers for name in ("x86_64", "aarch64"))
    assert allowed.needed.isdisjoint(allowed.answered)
    assert allowed.needed >= WITH_ARGUMENTS
    for name in (*allowed.needed, *allowed.answered):
        assert first[name] >= 0
        if second[name] < 0 and name in allowed.needed:
            assert SUCCESSORS[name] in allowed.needed
            assert second[SUCCESSORS[name]] >= 0


@pytest.mark.parametrize("allowed", TIERS.values(), ids=TIERS)
def test_what_would_tell_of_being_stopped_or_work_unseen_is_on_no_list(allowed: AllowList) -> None:
    assert allowed.needed.isdisjoint(NEVER)
    assert allowed.answered.keys().isdisjoint(NEVER)
    assert set(NEVER) <= machine_of().numbers.keys()


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("tier", TIERS)
def test_arguments_are_looked_at(machine: str, tier: str) -> None:
    numbers = machine_of(machine).numbers
    rules = build_allow_filter(TIERS[tier], machine)

    def says(name: str, *arguments: int) -> int:
        return decide(rules, ARCH[machine], numbers[name], *arguments)

    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE):
        assert says("rt_sigaction", number) == REFUSED
    assert says("rt_sigaction", signal.SIGCONT) == says("rt_sigaction", signal.SIGSYS) == REFUSED
    assert says("rt_sigaction", signal.SIGABRT) == says("rt_sigaction", signal.SIGINT) == ALLOW
    for advice in (4, 8, 15, 16):  # what allocators give
        assert says("madvise", 0, 4096, advice) == ALLOW
    for advice in (1, 2, 3, 9, 12, 14, 18, 20, 21, 22, 23, 25):
        assert says("madvise", 0, 4096, advice) == REFUSED
    assert says("clone", 0x003D0F00) == ALLOW
    process = TRAPPED if tier == "native" else REFUSED
    assert says("clone", 17) == says("clone", 0x10010000) == process
    assert says("clone3") == answered(errno.ENOSYS)
    assert (says("prlimit64", 0), says("prlimit64", 4711)) == (ALLOW, REFUSED)
    assert (says("prctl", 15), says("prctl", 22), says("prctl", 41)) == (ALLOW, REFUSED, REFUSED)
    for command in (0, 1, 2, 3, 4, 1030):
        assert says("fcntl", 3, command) == ALLOW
    for command in (6, 7, 8, 10, 37, 1024, 1026, 1033):  # locks, owners, signals, leases, seals
        assert says("fcntl", 3, command) == REFUSED
    assert (says("ioctl", 0, 0x5401), says("ioctl", 0, 0x5412)) == (ALLOW, answered(errno.ENOTTY))
    for name in ("sched_setattr", "sched_setscheduler", "setpriority"):
        assert says(name) == REFUSED
    for name in ("mbind", "get_mempolicy", "set_mempolicy"):
        assert says(name) == answered(errno.ENOSYS)
