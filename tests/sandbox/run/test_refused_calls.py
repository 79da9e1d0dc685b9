"""System calls of candidates: honest ones are made in every jail, others end it by name."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.sandbox.builders import cpp, python
from kernelwright.sandbox.builders.model import BuildVariant, Built
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.calls import machine_of
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.isolation.model import Jail
from kernelwright.sandbox.plan.model import Launches
from kernelwright.sandbox.run.host_code import host_program
from kernelwright.sandbox.run.native import native_program
from kernelwright.sandbox.run.once import CallInputs, play
from kernelwright.sandbox.run.process import RunFault
from kernelwright.sandbox.run.program import Program
from kernelwright.tests.sandbox.isolation.conftest import KINDS, made
from kernelwright.traces.records import Status

pytestmark = pytest.mark.jail

PROBLEM = registry.get("bias_gelu")
SIGNATURE = """
extern "C" void bias_gelu(int M, int N, const float* x, const float* bias, float* y)"""

CALLS = f"""#include <cerrno>
#include <csignal>
#include <unistd.h>
#include <sys/syscall.h>
{SIGNATURE} {{
    if (N == 2) {{
        sigset_t refused;
        sigemptyset(&refused);
        sigaddset(&refused, SIGSYS);
        pthread_sigmask(SIG_BLOCK, &refused, nullptr);
    }}
    y[0] = syscall(M, 0, 0, 0, 0, 0, 0) == -1 ? errno : 0;
}}
"""
"""Makes the call whose number is its first axis; of two columns, with SIGSYS held back."""

HONEST = f"""#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iostream>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>
#include <omp.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
{SIGNATURE} {{
    float found = 0;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : found)
    for (int i = 0; i < M; ++i) found += x[i];
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 4; ++i)
#pragma omp task
        std::this_thread::yield();
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 1 + std::thread::hardware_concurrency(); ++i)
        threads.emplace_back([] {{ std::this_thread::sleep_for(std::chrono::microseconds(5)); }});
    for (auto& one : threads) one.join();
    found += std::async(std::launch::async, [] {{ return 1.0f; }}).get();
    std::mutex lock;
    std::condition_variable never;
    std::unique_lock held(lock);
    never.wait_for(held, std::chrono::microseconds(5));
    std::free(std::realloc(std::calloc(1, 64 << 20), 128 << 20));
    void* scratch = mmap(nullptr, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(scratch, 1 << 20, MADV_DONTNEED);
    scratch = mremap(scratch, 1 << 20, 2 << 20, MREMAP_MAYMOVE);
    mprotect(scratch, 4096, PROT_READ);
    munmap(scratch, 2 << 20);
    try {{
        throw std::runtime_error("words");
    }} catch (const std::exception& error) {{
        std::cerr << error.what() << std::endl;
    }}
    volatile unsigned drawn = std::random_device()();
    volatile long asked = sysconf(_SC_NPROCESSORS_ONLN) + sysconf(_SC_PHYS_PAGES) + sched_getcpu();
    if (FILE* file = std::tmpfile()) {{
        std::fputs("words", file);
        std::fclose(file);
    }}
    y[0] = found;
}}
"""

CONTINUED = f"""#include <csignal>
#include <cerrno>
#include <unistd.h>
#include <sys/syscall.h>
{SIGNATURE} {{
    struct sigaction action {{}};
    action.sa_handler = [](int) {{}};
    y[0] = sigaction(M, &action, nullptr) == 0 ? 0 : errno;
}}
"""

IN_PYTHON = """
import ctypes
import os
import torch

LIBC = ctypes.CDLL(None, use_errno=True)


def run(M, N, x, bias, y):
    if N == 3:
        return y.fill_(honest())
    failed = LIBC.syscall(ctypes.c_long(M), *[ctypes.c_long(0)] * 6) == -1
    y.fill_(ctypes.get_errno() if failed else 0)


def honest():
    import concurrent.futures, logging, tempfile, threading, time
    import numpy, scipy.sparse

    numpy.linalg.inv(numpy.random.rand(256, 256) @ numpy.random.rand(256, 256))
    scipy.sparse.csr_matrix(numpy.eye(8)) @ numpy.ones(8 << 0)
    torch.randn(256, 256) @ torch.randn(256, 256)
    torch.jit.script(torch.nn.Linear(8, 8))(torch.randn(2, 8))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: time.sleep(0.001), range(4)))
    threading.Event().wait(0.001)
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/a", "w") as file:
            file.write("words")
        os.rename(folder + "/a", folder + "/b")
    logging.warning("words")
    os.cpu_count(), os.getpid(), os.urandom(4)
    return 1.0
"""

TRAPPED = (
    *("rt_sigtimedwait", "rt_sigpending", "rt_sigsuspend", "signalfd4", "io_setup", "io_submit"),
    *("io_uring_setup", "fadvise64", "readahead", "process_madvise", "userfaultfd", "mlock"),
    *("mlockall", "membarrier", "mincore", "msync", "epoll_create1", "epoll_pwait", "setitimer"),
    *("inotify_init1", "timer_create", "timerfd_create", "ptrace", "process_vm_readv", "seccomp"),
    *("perf_event_open", "socket", "clone", "execve", "kill", "fchmodat", "flock", "memfd_create"),
    *("shmget", "mq_open", "unshare", "setns", "mount", "bpf", "tkill", "rt_tgsigqueueinfo"),
    *("sync", "fsync", "getppid", "pidfd_open", "pidfd_send_signal", "splice"),
)
ANSWERED = {
    **dict.fromkeys(("mbind", "get_mempolicy", "clone3", "mseal"), errno.ENOSYS),
    **dict.fromkeys(("setpriority", "sched_setattr", "sched_setscheduler"), errno.EPERM),
    "gettid": 0,
    "sched_yield": 0,
}
ANSWERED_IN_PYTHON = {
    **dict.fromkeys(("socket", "clone", "execve", "kill", "flock", "fchmodat"), errno.EPERM),
    "mbind": errno.ENOSYS,
}


@pytest.fixture(scope="module")
def workshop(shared_cache: Path) -> Workshop:
    return Workshop(choose("auto"), shared_cache, tuple(os.sched_getaffinity(0)))


@pytest.fixture(params=sorted(KINDS))
def jail(request: pytest.FixtureRequest) -> Jail:
    return made(request.param)


def native(workshop: Workshop, source: str, *, sanitized: bool = False) -> Program:
    variant = BuildVariant.SANITIZED if sanitized else BuildVariant.RELEASE
    built = cpp.build(workshop, source, cpp.prototype(PROBLEM), PROBLEM.name, variant=variant)
    assert isinstance(built, Built), built
    return native_program(workshop, built, sanitized=sanitized)


def hosted(workshop: Workshop) -> Program:
    module = python.check(IN_PYTHON, PROBLEM)
    assert isinstance(module, python.Module), module
    return host_program(workshop, module.built, PROBLEM, module.entry)


def played(workshop: Workshop, program: Program, rows: int, columns: int = 1) -> float:
    """What it answers first, given ones."""
    axes = {"M": rows, "N": columns}
    inputs = {one.name: np.ones(one.extent(axes), one.dtype) for one in PROBLEM.inputs}
    call = CallInputs(PROBLEM, axes, inputs, Launches((), ()))
    limits = program.limits(wall_s=120.0, cpu_s=120.0, memory_bytes=4 << 30)
    answer = play(workshop, program, call, limits=limits, timeout_s=60.0)
    return float(answer.outputs["y"].flat[0])


def refused(work: Callable[[], float]) -> str:
    with pytest.raises(RunFault) as fault:
        work()
    assert fault.value.status is Status.CRASHED
    return fault.value.reason


def number(name: str) -> int:
    return machine_of().numbers[name]


@pytest.mark.parametrize("sanitized", [False, True], ids=["plain", "sanitized"])
def test_an_honest_kernel_runs_in_every_jail(workshop: Workshop, jail: Jail, sanitized) -> None:
    program = native(workshop, HONEST, sanitized=sanitized)
    inside = Workshop(jail, workshop.folder, workshop.cpus)
    assert played(inside, program, 5) == 6.0


@pytest.mark.slow
def test_honest_host_code_runs_in_every_jail(workshop: Workshop, jail: Jail) -> None:
    inside = Workshop(jail, workshop.folder, workshop.cpus)
    assert played(inside, hosted(workshop), 1, 3) == 1.0


@pytest.mark.parametrize("name", TRAPPED)
def test_a_refused_call_ends_a_kernel_and_is_named(workshop: Workshop, name: str) -> None:
    reason = refused(lambda: played(workshop, native(workshop, CALLS), number(name)))
    assert reason == f"it made the system call {name}, which kernels do not need"


def test_a_refused_call_is_named_in_every_jail(workshop: Workshop, jail: Jail) -> None:
    inside = Workshop(jail, workshop.folder, workshop.cpus)
    for sanitized in (False, True):
        program = native(workshop, CALLS, sanitized=sanitized)
        reason = refused(lambda program=program: played(inside, program, number("mlock")))
        assert reason == "it made the system call mlock, which kernels do not need"


@pytest.mark.parametrize("name", ANSWERED)
def test_what_libraries_try_is_answered(workshop: Workshop, name: str) -> None:
    assert played(workshop, native(workshop, CALLS), number(name)) == ANSWERED[name]


def test_who_holds_the_signal_back_is_ended_by_it(workshop: Workshop) -> None:
    reason = refused(lambda: played(workshop, native(workshop, CALLS), number("mlock"), 2))
    assert reason == "the process died of SIGSYS, for a system call that kernels do not need"


def test_nobody_handles_being_woken_faults_and_refused_calls(workshop: Workshop) -> None:
    program = native(workshop, CONTINUED)
    kept = (signal.SIGCONT, signal.SIGSYS, signal.SIGSEGV, signal.SIGBUS)
    assert {played(workshop, program, one) for one in kept} == {errno.EPERM}
    assert played(workshop, program, signal.SIGUSR1) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["epoll_create1", "fadvise64", "mlock", "rt_sigtimedwait", "timerfd_create", "sync"]
)
def test_a_refused_call_ends_host_code_and_is_named(workshop: Workshop, name: str) -> None:
    reason = refused(lambda: played(workshop, hosted(workshop), number(name)))
    assert reason == f"it made the system call {name}, which kernels do not need"


@pytest.mark.slow
def test_what_host_code_tries_is_answered(workshop: Workshop) -> None:
    found = {name: played(workshop, hosted(workshop), number(name)) for name in ANSWERED_IN_PYTHON}
    assert found == ANSWERED_IN_PYTHON
