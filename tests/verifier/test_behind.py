"""Work behind the answer: the process is stopped there, and what it did until then is charged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelwright.traces.records import Depth
from kernelwright.verifier.clock.clocks import BUSIEST_LIMIT_US, COLD, Clocks
from kernelwright.verifier.stands import sides
from kernelwright.verifier.stands.programs import build_program

HOOK = Path(__file__).parent.parent / "hostile" / "native" / "C07_answers_as_inputs_come.cpp"
"""Whose first part points the runner's own calls of a function at another one."""
LATE = """
#include <time.h>
static uint64_t spent() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}
static ssize_t late(int fd, const void* bytes, size_t size) {
    const ssize_t put = syscall(SYS_write, fd, bytes, size);
    Frame frame;
    if (size != sizeof frame) return put;
    std::memcpy(&frame, bytes, sizeof frame);
    if (frame.kind == 3) for (const uint64_t end = spent() + 20000000; spent() < end;) {}
    return put;
}
extern "C" void spmm_csr(int M, int N, int, int, const int*, const int*, const float*, const float*,
                         float* C) {
    [[maybe_unused]] static const bool once = put("write", reinterpret_cast<void*>(&late));
    std::memset(C, 0, sizeof(float) * M * N);
}
"""


@pytest.mark.slow
def test_who_works_behind_the_answer_is_stopped_there_and_pays(session_for) -> None:
    session = session_for("spmm_csr")
    source = HOOK.read_text().split("static const float* given")[0] + LATE
    program = build_program(session, source, "cpp")
    rng, clocks = np.random.default_rng(1), Clocks()
    with (
        sides.arena_for(session) as arena,
        sides.start_side(session, Depth.SCREEN, "candidate", program, arena, rng) as side,
    ):
        side.place(session.stage.target, 2)
        runner = side._runner
        runner.call(0, timeout_s=20.0)
        for _ in range(5):
            timed = runner.call(1, timeout_s=20.0)
            counted = clocks.add(timed, runner.clean, runner.cpus)
            # Whatever it did until it was stopped, by one thread.
            assert counted >= timed.busiest_ns / 1e3 - COLD * BUSIEST_LIMIT_US
            assert timed.busiest_ns > timed.cpu_ns / runner.cpus
    # It had 20 ms to do and went on with that as it was woken, ahead of the gate.
    assert np.median(clocks.busiest_us) < 15_000
    assert np.median(clocks.ahead_us) > 5_000
