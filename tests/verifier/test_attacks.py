"""Kernels that turn on what runs them: each ends as its status, and the referee goes on.

They compute the right answer and then attack, so that nothing but the attack decides.
"""

from __future__ import annotations

from typing import Any

import pytest

from kernelwright.traces.records import Status

pytestmark = [pytest.mark.slow, pytest.mark.timed]

HONEST = """
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {
            float sum = 0;
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }
    attack(B);
}
"""
NOTHING = "static void attack(const float*) {}" + HONEST

ATTACKS = {
    "closes every descriptor": (
        """#include <unistd.h>
static void attack(const float*) { for (int fd = 0; fd < 1024; ++fd) close(fd); }""",
        Status.CRASHED,
    ),
    "puts something else in the channel's place": (
        """#include <fcntl.h>
#include <unistd.h>
static void attack(const float*) {
    const int other = open("/dev/null", O_RDWR);
    for (int fd = 3; fd < other; ++fd) dup2(other, fd);
}""",
        Status.CRASHED,
    ),
    "stops itself": (
        """#include <signal.h>
static void attack(const float*) { raise(SIGSTOP); }""",
        Status.TIMED_OUT,
    ),
    "signals everybody": (
        """#include <signal.h>
#include <unistd.h>
static void attack(const float*) {
    static bool once;
    if (once) return;
    once = true;
    for (int pid = 1; pid < 70000; ++pid) if (pid != getpid()) kill(pid, SIGTERM);
    kill(-1, SIGKILL);
}""",
        Status.CRASHED,
    ),
    "sends descriptors up the channel": (
        """#include <cstring>
#include <sys/socket.h>
static void attack(const float*) {
    for (int fd = 3; fd < 64; ++fd) {
        char byte = 0, room[CMSG_SPACE(sizeof fd)] = {};
        iovec one{&byte, 1};
        msghdr message{};
        message.msg_iov = &one;
        message.msg_iovlen = 1;
        message.msg_control = room;
        message.msg_controllen = sizeof room;
        cmsghdr* head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
        sendmsg(fd, &message, MSG_NOSIGNAL);
    }
}""",
        Status.CRASHED,
    ),
    "leaves between two calls": (
        """#include <pthread.h>
#include <unistd.h>
static void* leave(void*) { usleep(100000); _exit(0); }
static void attack(const float*) {
    static bool once;
    pthread_t thread;
    if (!once) once = pthread_create(&thread, nullptr, leave, nullptr) == 0;
    usleep(20000);
}""",
        Status.CRASHED,
    ),
    "writes its inputs through its own memory file": (
        """#include <fcntl.h>
#include <unistd.h>
static void attack(const float* B) {
    const int memory = open("/proc/self/mem", O_RDWR);
    const float other = B[0] + 1;
    if (memory >= 0 && pwrite(memory, &other, sizeof other, (off_t)B) > 0) _exit(9);
    close(memory);
}""",
        Status.SCREENED,
    ),
    "makes its inputs writable": (
        """#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>
static void attack(const float* B) {
    auto* page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(B) & ~4095ul);
    if (mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0) _exit(9);
}""",
        Status.SCREENED,
    ),
}


SLOW = ("stops itself",)
"""Ends with its deadline."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in ATTACKS]
)
def test_an_attack_ends_as_its_status(court: Any, name: str) -> None:
    attack, status = ATTACKS[name]
    verdict = court.judge(attack + HONEST, expected=(status,))
    assert verdict.status is status, verdict.reasons
    assert court.judge(NOTHING).status is Status.SCREENED
