"""Cheats that the referee must see through, each a minimal kernel (verification.md §1)."""

from __future__ import annotations

import pytest

from kernelwright.traces.records import Depth, Status

SIGNATURE = """\
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C)"""
COMPUTE = """
static void honest(int M, int N, const int* indptr, const int* indices, const float* values,
                   const float* B, float* C) {
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {
            float sum = 0;
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }
}
"""
CALL = "honest(M, N, indptr, indices, values, B, C);"

HALF = """
#include <cstdint>
static float cut(float x) {
    union { float f; uint32_t u; } v{x};
    v.u &= 0xffffe000u;  // the mantissa of a half
    return v.f;
}
"""

ATTEMPTS = 3

CHEATS = {
    "never writes": (f"{SIGNATURE} {{}}", Status.INCORRECT),
    "zeros": (
        f"{SIGNATURE} {{ for (long i = 0; i < (long)M * N; ++i) C[i] = 0; }}",
        Status.INCORRECT,
    ),
    "partial work": (
        f"{COMPUTE}{SIGNATURE} {{ M = M > 8 ? 8 : M; {CALL} }}",
        Status.INCORRECT,
    ),
    "NaN everywhere": (
        f"#include <cmath>\n{SIGNATURE} {{ for (long i = 0; i < (long)M * N; ++i) C[i] = NAN; }}",
        Status.INCORRECT,
    ),
    "half precision": (
        f"""{HALF}{SIGNATURE} {{
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {{
            float sum = 0;
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                sum += cut(values[p]) * cut(B[(long)indices[p] * N + n]);
            C[(long)i * N + n] = sum;
        }}
}}""",
        Status.INCORRECT,
    ),
    "cache keyed by shape": (
        f"""#include <cstring>
#include <map>
#include <vector>
{COMPUTE}
static std::map<long, std::vector<float>> kept;
{SIGNATURE} {{
    auto& answer = kept[((long)M << 32) ^ ((long)N << 16) ^ nnz];
    if (answer.empty()) {{ {CALL} answer.assign(C, C + (long)M * N); return; }}
    std::memcpy(C, answer.data(), answer.size() * sizeof(float));
}}""",
        Status.INCORRECT,
    ),
    "honest for ten calls": (
        f"{COMPUTE} static int calls; {SIGNATURE} {{ if (calls++ < 10) {{ {CALL} }} }}",
        Status.INCORRECT,
    ),
    "writes its inputs": (
        f"{COMPUTE}{SIGNATURE} {{ {CALL} const_cast<float*>(B)[0] = 0; }}",
        Status.CRASHED,
    ),
    "starts a program": (
        f"""#include <unistd.h>
{COMPUTE}{SIGNATURE} {{ {CALL} if (fork() >= 0 || execl("/bin/true", "true", nullptr) == 0)
    C[0] = 1e30f; else _exit(7); }}""",
        Status.CRASHED,
    ),
    "forges an answer": (
        f"""#include <unistd.h>
#include <cstdint>
{COMPUTE}{SIGNATURE} {{ {CALL}
    struct {{ uint32_t kind, nonce; uint64_t a, b; }} frame{{3, 0, 1, 1}};
    for (int fd = 3; fd < 64; ++fd) if (write(fd, &frame, sizeof frame) > 0) break; }}""",
        Status.PROTOCOL_ERROR,
    ),
    "leaves with status 0": (
        f"#include <unistd.h>\n{SIGNATURE} {{ _exit(0); }}",
        Status.CRASHED,
    ),
    "acts while it is loaded": (
        f"""#include <unistd.h>
__attribute__((constructor)) static void early() {{ _exit(0); }}
{COMPUTE}{SIGNATURE} {{ {CALL} }}""",
        Status.CRASHED,
    ),
    "leaves as if our runner had failed": (
        f"#include <unistd.h>\n{SIGNATURE} {{ _exit(97); }}",
        Status.CRASHED,
    ),
    "fails as it is loaded, as if our runner had": (
        f"""#include <unistd.h>
__attribute__((constructor)) static void early() {{ _exit(97); }}
{COMPUTE}{SIGNATURE} {{ {CALL} }}""",
        Status.CRASHED,
    ),
    "works on in a thread": (
        f"""#include <pthread.h>
#include <unistd.h>
{COMPUTE}
struct Job {{ int M, N; const int *indptr, *indices; const float *values, *B; float* C; }};
static void* later(void* raw) {{
    auto* j = static_cast<Job*>(raw);
    usleep(2000);
    honest(j->M, j->N, j->indptr, j->indices, j->values, j->B, j->C);
    delete j;
    return nullptr;
}}
{SIGNATURE} {{
    pthread_t thread;
    pthread_create(&thread, nullptr, later, new Job{{M, N, indptr, indices, values, B, C}});
    pthread_detach(thread);
}}""",
        Status.INCORRECT,
    ),
    "wrong signature": (
        'extern "C" void spmm_csr(float* C, const float* B) {}',
        Status.BUILD_FAILED,
    ),
    "no entry point": ("int unrelated() { return 1; }", Status.BUILD_FAILED),
    "reads a file at compile time": (
        f'#include "/etc/passwd"\n{COMPUTE}{SIGNATURE} {{ {CALL} }}',
        Status.BUILD_FAILED,
    ),
}


SEEN_BY_CLOCKS = ("works on in a thread",)
"""Answers late: where this process waits for its turn as long, the answer is there."""


def marks(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.timed] if name in SEEN_BY_CLOCKS else []


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in CHEATS])
def test_a_cheat_gets_its_status(court, name):
    source, status = CHEATS[name]
    verdict = court.judge(source, expected=(status,))
    assert verdict.status is status, verdict.reasons
    assert verdict.reasons


@pytest.mark.timed
def test_hidden_threads_are_seen_by_their_cpu_time(court):
    source = f"""#include <pthread.h>
{COMPUTE}
static volatile bool started;
static void* spin(void*) {{ for (;;) asm volatile(""); return nullptr; }}
{SIGNATURE} {{
    if (!started) {{
        started = true;
        pthread_t thread;
        pthread_create(&thread, nullptr, spin, nullptr);
    }}
    {CALL}
}}"""
    # On a machine that is busy with other things a spinning thread gets few turns.
    for _ in range(ATTEMPTS):
        verdict = court.judge(source, expected=(Status.SUSPECT,))
        if verdict.status is Status.SUSPECT:
            break
    assert verdict.status is Status.SUSPECT
    assert "CPU time" in verdict.reasons[0]


@pytest.mark.timed
def test_a_candidate_cannot_lie_about_the_time(court):
    """Overwrites the clock that the runner reads, so that its claims are a hundredth."""
    source = f"""#include <cstdint>
#include <time.h>
{COMPUTE}
static void burn() {{ for (volatile long i = 0; i < 2000000; i = i + 1) {{}} }}
extern "C" int clock_gettime(clockid_t, struct timespec* t) noexcept {{
    static long ns;
    t->tv_sec = 1; t->tv_nsec = ns += 10;
    return 0;
}}
{SIGNATURE} {{ burn(); {CALL} }}"""
    verdict = court.judge(source, protocol=Depth.SCREEN, expected=(Status.SUSPECT,))
    measured = verdict.measurement
    # Where the runner's own clock cannot be replaced, the claim is true and slow.
    if measured is None:
        assert verdict.status is Status.SUSPECT
        assert "two clocks" in verdict.reasons[0]
    else:
        assert measured.candidate.median_us > 500.0
