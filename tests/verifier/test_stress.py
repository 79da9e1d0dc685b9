"""Repeats under load, and the protocol for the record."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kernelwright.sandbox.run.process import cpu_ns
from kernelwright.traces.records import Depth, Status
from kernelwright.verifier.checks import stress

pytestmark = pytest.mark.timed

SIGNATURE = """\
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C)"""


def test_every_cpu_is_busy_and_nothing_is_left():
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    with stress.keep_busy(cpus) as pids:
        assert len(pids) == len(cpus)
        for pid, cpu in zip(pids, cpus, strict=True):
            assert os.sched_getaffinity(pid) == {cpu}
            before, deadline = cpu_ns(pid), time.monotonic() + 60
            while cpu_ns(pid) == before:
                assert time.monotonic() < deadline
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_load_ends_where_the_checks_raise():
    pids: list[int] = []

    def fail() -> None:
        with stress.keep_busy((min(os.sched_getaffinity(0)),)) as found:
            pids.extend(found)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert len(pids) == 1
    assert not Path(f"/proc/{pids[0]}").exists()


def test_a_kernel_that_fails_on_repeats_is_incorrect(court):
    """Right on the same data seven times running, which is more than any other check asks for."""
    source = f"""
#include <cstdint>
#include <cstring>
static uint64_t last;
static int same;
static void mix(uint64_t& mark, const float* at, long count) {{
    for (long i = 0; i < count; ++i) {{
        uint32_t bits;
        std::memcpy(&bits, at + i, 4);
        mark = (mark ^ bits) * 1099511628211u;
    }}
}}
{SIGNATURE} {{
    uint64_t mark = 1469598103934665603u;
    mix(mark, values, nnz);
    mix(mark, B, (long)K * N);
    same = mark == last ? same + 1 : 0;
    last = mark;
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {{
            float sum = same < 7 ? 0.0f : 1.0f;
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }}
}}"""
    assert stress.LEAST >= 8
    verdict = court.judge(source, protocol=Depth.FULL)
    assert verdict.status is Status.INCORRECT, verdict.reasons
    assert verdict.reasons[0].startswith("determinism under load: repeat 8 with")


def test_a_kernel_that_is_wrong_in_one_of_many_calls_in_a_row_is_incorrect(court):
    """As a rare race is: on the same data, and behind more calls than any other check makes."""
    source = f"""
static const float* last;
static float begin;
static int same;
{SIGNATURE} {{
    same = B == last && B[0] == begin ? same + 1 : 0;
    last = B;
    begin = B[0];
    #pragma omp parallel for
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {{
            float sum = same % 67 == 66 ? 1.0f : 0.0f;
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }}
}}"""
    verdict = court.judge(source, protocol=Depth.FULL)
    assert verdict.status is Status.INCORRECT, verdict.reasons
    assert verdict.reasons[0].startswith(f"{stress.IN_A_ROW}: repeat ")


@pytest.mark.slow
def test_answers_that_differ_within_the_gates_are_told(court):
    """Every other call sums from the end: right, and not the same in the last bits."""
    source = f"""
static int calls;
{SIGNATURE} {{
    const bool turned = ++calls % 2;
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {{
            float sum = 0;
            const int first = indptr[i], count = indptr[i + 1] - first;
            for (int k = 0; k < count; ++k) {{
                const int p = turned ? first + count - 1 - k : first + k;
                sum += values[p] * B[(long)indices[p] * N + n];
            }}
            C[(long)i * N + n] = sum;
        }}
}}"""
    verdict = court.judge(source, protocol=Depth.FULL)
    found = [check for check in verdict.checks if check.name == stress.NAME]
    assert [check.passed for check in found] == [True, True], verdict.reasons
    assert len({check.workload for check in found}) == 2
    for check in found:
        assert 0 < check.figure < 2
        assert "differ by up to" in check.detail
    assert verdict.seconds["load"] > 0
