"""The filter as bytes: decided by a small interpreter, so that each machine's table is tried."""

from __future__ import annotations

import errno
import re
import signal
import struct
import subprocess

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.isolation import build_filter
from kernelwright.sandbox.isolation.calls import machine_of, name_call

ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSED = 0x00050000 | errno.EPERM
ABSENT = 0x00050000 | errno.ENOSYS
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS = {
    "x86_64": {
        "read": 0,
        "socket": 41,
        "socketpair": 53,
        "clone": 56,
        "fork": 57,
        "execve": 59,
        "execveat": 322,
        "ioctl": 16,
        "ptrace": 101,
        "unshare": 272,
        "prlimit64": 302,
        "shmget": 29,
        "msgget": 68,
        "mq_open": 240,
        "setpriority": 141,
        "sched_setscheduler": 144,
        "sched_setaffinity": 203,
        "fcntl": 72,
        "flock": 73,
        "rt_sigaction": 13,
        "madvise": 28,
        "sched_setattr": 314,
    },
    "aarch64": {
        "read": 63,
        "socket": 198,
        "socketpair": 199,
        "clone": 220,
        "execve": 221,
        "execveat": 281,
        "ioctl": 29,
        "ptrace": 117,
        "unshare": 97,
        "prlimit64": 261,
        "shmget": 194,
        "msgget": 186,
        "mq_open": 180,
        "setpriority": 140,
        "sched_setscheduler": 119,
        "sched_setaffinity": 122,
        "fcntl": 25,
        "flock": 32,
        "rt_sigaction": 134,
        "madvise": 233,
        "sched_setattr": 274,
    },
}


def decide(rules: bytes, arch: int, nr: int, arg0: int = 0, arg1: int = 0, arg2: int = 0) -> int:
    """Runs the filter as the kernel does."""
    memory = {0: nr, 4: arch, 16: arg0, 24: arg1, 32: arg2}
    program = list(struct.iter_unpack("=HBBI", rules))
    at, register = 0, 0
    while True:
        code, if_true, if_false, value = program[at]
        at += 1
        if code == 0x20:
            register = memory[value]
        elif code == 0x06:
            return int(value)
        else:
            holds = {
                0x15: register == value,
                0x35: register >= value,
                0x25: register > value,
                0x45: bool(register & value),
            }[code]
            at += if_true if holds else if_false


@pytest.mark.parametrize("machine", sorted(ARCH))
def test_the_table_has_the_numbers_of_each_machine(machine: str) -> None:
    numbers = machine_of(machine).numbers
    assert {name: numbers[name] for name in CALLS[machine]} == CALLS[machine]
    existing = [number for number in numbers.values() if number >= 0]
    assert len(existing) == len(set(existing)) > 300


def test_the_table_agrees_with_this_machines_headers() -> None:
    """What newer headers know besides is no mistake."""
    program = subprocess.run(
        ["g++", "-E", "-dM", "-x", "c++", "-include", "sys/syscall.h", "/dev/null"],
        capture_output=True,
        text=True,
        check=True,
    )
    told = dict(re.findall(r"^#define __NR_(\w+) (\d+)$", program.stdout, re.M))
    known = machine_of().numbers
    assert len(told) > 250
    assert {name: int(number) for name, number in told.items() if name in known} == {
        name: number for name, number in known.items() if name in told
    }
    assert name_call(int(told["mlock"])) == "mlock"
    assert name_call(99_999) == "number 99999"


@pytest.mark.parametrize("machine", sorted(ARCH))
@pytest.mark.parametrize("may_exec", [True, False])
@pytest.mark.parametrize("may_fork", [True, False])
def test_the_filter_decides_as_told(machine: str, may_fork: bool, may_exec: bool) -> None:
    rules = build_filter(may_fork=may_fork, may_exec=may_exec, machine=machine)
    calls = CALLS[machine]

    def says(name: str, arg0: int = 0, arg1: int = 0) -> int:
        return decide(rules, ARCH[machine], calls[name], arg0, arg1)

    assert says("read") == ALLOW
    assert says("socket", 1) == says("socket", 2) == says("ptrace") == says("unshare") == REFUSED
    assert (says("socketpair", 1), says("socketpair", 2)) == (ALLOW, REFUSED)
    assert (says("ioctl", 0, 0x5401), says("ioctl", 0, 0x5412)) == (ALLOW, REFUSED)
    assert (says("prlimit64", 0), says("prlimit64", 4711)) == (ALLOW, REFUSED)
    assert {says(name) for name in ("shmget", "msgget", "mq_open")} == {REFUSED}
    assert (says("setpriority", 0, 0), says("setpriority", 0, 4711)) == (ALLOW, REFUSED)
    assert says("setpriority", 2, 0) == REFUSED  # all processes of the user
    assert says("sched_setscheduler") == says("sched_setaffinity", 4711) == ALLOW
    assert says("sched_setscheduler", 4711) == REFUSED
    assert says("clone", 0x003D0F00) == ALLOW
    assert says("clone", 17) == (ALLOW if may_fork else REFUSED)
    assert says("clone", 0x10000000 | 0x00010000) == REFUSED
    assert says("execve") == says("execveat") == (ALLOW if may_exec else REFUSED)
    assert decide(rules, ARCH[machine], 435) == ABSENT
    assert decide(rules, 0x40000003, calls["read"]) == KILL
    if machine == "x86_64":
        assert says("fork") == (ALLOW if may_fork else REFUSED)
        assert decide(rules, ARCH[machine], 0x40000000) == ABSENT


@pytest.mark.parametrize("machine", sorted(ARCH))
@pytest.mark.parametrize("may_mark", [True, False])
def test_files_may_be_left_unmarked(machine: str, may_mark: bool) -> None:
    rules = build_filter(may_fork=True, may_exec=True, may_mark=may_mark, machine=machine)
    for nr in {"x86_64": (76, 90, 188, 268, 280, 452), "aarch64": (45, 53, 5, 88, 452)}[machine]:
        assert decide(rules, ARCH[machine], nr) == (ALLOW if may_mark else REFUSED)
    fcntl, flock = CALLS[machine]["fcntl"], CALLS[machine]["flock"]
    for command in (6, 7, 37, 38):  # locks
        found = decide(rules, ARCH[machine], fcntl, 3, command)
        assert found == (ALLOW if may_mark else REFUSED)
    assert decide(rules, ARCH[machine], flock, 3, 2) == (ALLOW if may_mark else REFUSED)
    for command in (1, 2, 3, 4, 1030):  # flags, and a new descriptor
        assert decide(rules, ARCH[machine], fcntl, 3, command) == ALLOW
    for command in (1024, 1026):  # leases and notifications
        assert decide(rules, ARCH[machine], fcntl, 3, command) == REFUSED


@pytest.mark.parametrize("machine", sorted(ARCH))
@pytest.mark.parametrize("may_catch", [True, False])
def test_faults_may_be_left_uncaught(machine: str, may_catch: bool) -> None:
    rules = build_filter(may_fork=False, may_exec=False, may_catch=may_catch, machine=machine)
    call = CALLS[machine]["rt_sigaction"]
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE):
        found = decide(rules, ARCH[machine], call, number)
        assert found == (ALLOW if may_catch else REFUSED)
    for number in (signal.SIGINT, signal.SIGABRT, signal.SIGTERM, signal.SIGUSR1):
        assert decide(rules, ARCH[machine], call, number) == ALLOW


@pytest.mark.parametrize("machine", sorted(ARCH))
def test_pinning_may_be_made_to_do_nothing(machine: str) -> None:
    rules = build_filter(may_fork=False, may_exec=True, may_pin=False, machine=machine)
    nothing_and_success = 0x00050000
    call = CALLS[machine]["sched_setaffinity"]
    assert decide(rules, ARCH[machine], call, 4711) == nothing_and_success


@pytest.mark.parametrize("machine", sorted(ARCH))
def test_local_sockets_may_be_allowed(machine: str) -> None:
    rules = build_filter(may_fork=False, may_exec=True, may_meet=True, machine=machine)
    call = CALLS[machine]["socket"]
    found = [decide(rules, ARCH[machine], call, family) for family in (1, 2, 10, 16, 17)]
    assert found == [ALLOW, REFUSED, REFUSED, REFUSED, REFUSED]


def test_a_machine_without_a_table_is_a_prerequisite_error() -> None:
    with pytest.raises(PrerequisiteError, match="riscv64"):
        build_filter(may_fork=True, may_exec=True, machine="riscv64")
