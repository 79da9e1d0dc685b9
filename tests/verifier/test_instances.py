"""Several calls at a time: each in a thread bound to its share of the CPUs, and timed together."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.manner import Manner
from kernelwright.kernelbench.problem import Family
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.sandbox.run.crew import Crew
from kernelwright.tests.verifier.sources import CPP, PYTHON
from kernelwright.tests.verifier.stands import is_as_expected, look, opened, task
from kernelwright.traces.records import Depth, Status, Verdict
from kernelwright.verifier.baselines.process import BaselineProcess
from kernelwright.verifier.clock.laying import lay_items
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.stands.stand import Stand
from kernelwright.verifier.truth.trials import make_item

CPUS = tuple(sorted(os.sched_getaffinity(0)))
SHARE = len(CPUS) // 2
HEAD = "#include <omp.h>\n#include <sched.h>\n"
IS_BOUND = f"""
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    const bool is_bound = CPU_COUNT(&cpus) == {SHARE}, is_timed = omp_get_max_threads() == {SHARE};
"""
KEEPS = CPP.replace(
    "    for (long i",
    """    static float* volatile kept;
    kept = y;
    for (volatile long spin = 0; spin < 400000;) spin = spin + 1;
    y = kept;
    for (long i""",
)
"""Keeps for a while in memory that all calls share where its answer belongs."""
two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="two calls at a time take two CPUs")


def asked(cache: Path, instances: int = 2, target: str = "cpu") -> Task:
    of = task(cache, target)
    workload = of.workload.called_in(Manner(instances=instances))
    return of.model_copy(update={"workload": workload})


@pytest.fixture(scope="module")
def stand(shared_cache: Path) -> Iterator[Stand]:
    opened_stand = opened(asked(shared_cache))
    yield opened_stand
    opened_stand.close()


def judged(
    stand: Stand, source: str, depth: Depth = Depth.SCREEN, language: str = "cpp"
) -> Verdict:
    return look(stand, Order(source=source, language=language, protocol=depth))


@two_cpus
@pytest.mark.slow
@pytest.mark.parametrize(("source", "language"), [(CPP % "", "cpp"), (PYTHON, "python")])
def test_two_at_a_time_are_judged_and_timed(stand: Stand, source: str, language: str) -> None:
    found = judged(stand, source, Depth.FULL, language)
    is_as_expected(found, Status.VERIFIED)
    assert found.measurement is not None
    assert found.measurement.workload == "tiny@x2"


@two_cpus
def test_each_has_its_share_of_the_cpus(stand: Stand) -> None:
    """Where it is timed; where it is only tried a call has all threads, so that races show."""
    bound = judged(stand, HEAD + CPP % f"{IS_BOUND} if (is_timed && !is_bound) __builtin_trap();")
    is_as_expected(bound, Status.SCREENED)
    crashed = judged(stand, HEAD + CPP % f"{IS_BOUND} if (is_timed) __builtin_trap();")
    assert crashed.status is Status.CRASHED
    assert "2 calls at a time" in str(crashed.reasons)


@two_cpus
def test_who_keeps_a_calls_own_where_all_see_it_is_wrong(stand: Stand, shared_cache: Path) -> None:
    alone = opened(task(shared_cache))
    try:
        is_as_expected(judged(alone, KEEPS % ""), Status.SCREENED)
    finally:
        alone.close()
    found = judged(stand, KEEPS % "")
    assert found.status is Status.INCORRECT


@two_cpus
def test_floor_and_bounds_are_of_all_calls(stand: Stand, shared_cache: Path) -> None:
    prepared = stand.wait_prepared()
    alone = opened(task(shared_cache))
    try:
        one = alone.wait_prepared()
    finally:
        alone.close()
    assert prepared.bounds is not None
    assert one.bounds is not None
    assert prepared.bounds.bytes == 2 * one.bounds.bytes
    assert prepared.bounds.flops == 2 * one.bounds.flops
    assert stand.facts["cpus"] == SHARE


@two_cpus
def test_a_baseline_answers_all_calls_of_a_turn(tmp_path: Path) -> None:
    problem = registry.get("spmm_csr")
    structure = problem.structure(problem.workload("tiny"))
    rng = np.random.default_rng(0)
    workshop = Workshop(BareJail(), tmp_path, CPUS)
    process = BaselineProcess(workshop, problem, structure, slots=3, instances=2)
    try:
        assert process.prepare(("torch eager", "scipy"), rng)[1] == {}
        for name in ("torch eager", "scipy"):
            slots = process.slots[1:]
            items = [make_item(problem, structure, Family.NORMAL, rng) for _ in slots]
            calls = list(zip(items, slots, strict=True))
            assert process.call(name, slots, lambda calls=calls: lay_items(calls)) > 0
            for item, slot in calls:
                for output, expected in item.expected.items():
                    np.testing.assert_allclose(
                        slot.outputs[output], expected.value, rtol=1e-3, atol=1e-4
                    )
    finally:
        process.close()


def test_more_than_there_are_cpus_and_a_gpu_are_refused(shared_cache: Path) -> None:
    with pytest.raises(UsageError, match=rf"{len(CPUS)} can be used"):
        opened(asked(shared_cache, len(CPUS) + 1))
    with pytest.raises(UsageError, match=r"'tiny@x2' has 2 calls at a time, and sm_90 makes one"):
        opened(asked(shared_cache, 2, "sm_90"))


@two_cpus
def test_a_crew_works_at_the_same_time_and_tells_what_fails() -> None:
    before = os.sched_getaffinity(0)
    crew, meeting = Crew(2, CPUS), threading.Barrier(2, timeout=60.0)
    places: list[set[int]] = []

    def meet() -> None:
        meeting.wait()
        places.append(os.sched_getaffinity(0))

    def fail() -> None:
        raise ValueError("no answer")

    try:
        for _ in range(3):
            crew.work([meet, meet])
        assert sorted(map(len, places)) == [SHARE] * 6
        assert not set.intersection(*places)
        with pytest.raises(ValueError, match="no answer"):
            crew.work([lambda: None, fail])
    finally:
        os.sched_setaffinity(0, before)
