"""What comes between timed calls: cold calls are swept for and paused, warm ones follow another."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.machine import caches
from kernelwright.kernelbench.manner import Manner, Timing
from kernelwright.kernelbench.problem import Family
from kernelwright.traces.records import Depth, Status
from kernelwright.traces.wording import FILLS_CACHE
from kernelwright.verifier.clock import pace as paces
from kernelwright.verifier.clock.pace import Pace
from kernelwright.verifier.clock.timing import MAX_BATCH, Rounds, Series, batch_for, sample_block
from kernelwright.verifier.request import Order
from kernelwright.verifier.truth.trials import Item, make_item


def test_nothing_comes_between_calls_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paces.time, "sleep", lambda _s: pytest.fail("it rests"))
    for timing in (Timing.USUAL, Timing.OFFLINE):
        Pace(Manner(timing), (0,)).rest()


def test_caches_are_swept_from_each_cpu_and_pauses_vary(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    swept: list[tuple[set[int], int]] = []
    monkeypatch.setattr(paces.time, "sleep", slept.append)
    monkeypatch.setattr(
        paces, "_sweep", lambda memory: swept.append((os.sched_getaffinity(0), memory.nbytes))
    )
    cpus = tuple(sorted(os.sched_getaffinity(0)))[:2]
    cold = Pace(Manner(Timing.SERVER), cpus)
    for _ in range(20):
        cold.rest()
    cold.close()
    assert len(set(slept)) == 20
    assert 0 < min(slept) <= max(slept) <= paces.LONGEST_PAUSE_S
    assert sorted(map(str, (cpu for cpu, _ in swept))) == sorted(str({c}) for c in cpus * 20)
    largest = max((cache.bytes for cache in caches()), default=0)
    assert sum(size for _, size in swept[: len(cpus)]) >= largest


def test_a_sweep_writes_all_of_its_memory() -> None:
    memory = np.zeros(1000, np.uint64)
    paces._sweep(memory)
    assert (memory == 1).all()


def test_calls_in_a_sample() -> None:
    assert batch_for(1.0, 8) == batch_for(1.0, 8, Pace()) == 8
    assert batch_for(1.0, 8, Pace(Manner(Timing.OFFLINE))) == 7
    assert batch_for(1.0, MAX_BATCH, Pace(Manner(Timing.SERVER))) == 1
    assert batch_for(1.0, 9, Pace(Manner(instances=2))) == 4
    assert batch_for(1.0, 9, Pace(Manner(Timing.OFFLINE, 2))) == 3


class Noting:
    """A side that notes how many calls a turn has."""

    name, waited = "noting", 0.0

    def __init__(self) -> None:
        self.turns: list[tuple[int, int]] = []

    def take(self, items: list[Item], first: int) -> float:
        self.turns.append((len(items), first))
        return 1.0


@pytest.mark.parametrize(("timing", "sizes"), [("", {1, 2, 3}), ("offline", {2, 3, 4})])
def test_a_turn_begins_with_a_call_that_does_not_count(timing: str, sizes: set[int]) -> None:
    problem, rng, side = registry.get("softmax"), np.random.default_rng(1), Noting()
    structure = problem.structure(problem.workload("tiny"))
    series = Series(batch=3, pace=Pace(Manner(Timing(timing))))
    sample_block(
        series,
        side,
        [],
        lambda n: [make_item(problem, structure, Family.NORMAL, rng) for _ in range(n)],
        4,
        Rounds(40, budget_s=60.0),
        rng,
    )
    assert {count for count, _ in side.turns} == sizes
    assert all(first + count <= 4 for count, first in side.turns)


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.parametrize("mode", [Timing.OFFLINE, Timing.SERVER])
def test_a_kernel_is_judged_in_each_mode(court, mode: Timing) -> None:
    source = (Path(__file__).parent / "seven" / "honest.cpp").read_text()
    order = Order(source=source, language="cpp", protocol=Depth.FULL)
    verdict = court.referee("spmm_csr", f"tiny@{mode}").evaluate(order)
    assert verdict.status is Status.VERIFIED, verdict.reasons
    assert verdict.measurement is not None
    assert verdict.measurement.workload == f"tiny@{mode}"
    share = verdict.measurement.cache_share
    assert (share is None) is (mode is Timing.SERVER)
    assert share is None or 0 < share < FILLS_CACHE[0]


def test_where_nothing_is_timed_no_mode_can_be_asked_for(court) -> None:
    with pytest.raises(UsageError, match=r"sm_90 is emulated here: nothing is timed"):
        court.emulated("softmax", "cuda", "tiny@server")
