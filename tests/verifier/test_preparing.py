"""Candidates that make a plan of a pattern: when they do, what lies there then, what is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Arrays, Family, Structure
from kernelwright.sandbox.run.arena import Arena, Extra, footprint, room
from kernelwright.sandbox.run.gate import Coverage
from kernelwright.sandbox.run.process import Timed
from kernelwright.traces.records import Depth, Measurement, Status, Timing
from kernelwright.verifier.clock import amortised
from kernelwright.verifier.clock.drawn_words import sum_outputs
from kernelwright.verifier.clock.plans import PATIENCE
from kernelwright.verifier.clock.timed_sides import CandidateSide
from kernelwright.verifier.failure import Failed
from kernelwright.verifier.request import Order
from kernelwright.verifier.truth.trials import Item, make_item

HONEST = Path(__file__).parent.parent / "honest" / "native" / "spmm_prepared_rows_by_length.cpp"
EMPTY = Timed(0, 1_000, 2_000, 4_000, 5_000)
PLAN_BYTES = 4096
SLOTS = 2


def pattern_of(arrays: Arrays) -> np.ndarray:
    return np.concatenate([arrays["indptr"], arrays["indices"]])


class Preparer:
    """A runner's end that makes a plan of the number of its request, and notes what it finds."""

    clean = EMPTY
    cpus = 2
    overhead_us = 0.0
    coverage = Coverage()

    def __init__(self) -> None:
        self.side: CandidateSide | None = None
        self.asked: list[str] = []
        self.patterns: list[np.ndarray] = []
        self.deadlines: list[float] = []
        self.spoil: Callable[[int], None] = lambda _: None
        self.spoil_call: Callable[[int], None] = lambda _: None

    def expect(self, table: bytes) -> None:
        pass

    def ping(self, first: int = 0, count: int = 0) -> None:
        pass

    def prepare(self, slot: int, *, timeout_s: float, release: Callable[[], None]) -> Timed:
        assert self.side is not None
        release()
        held = self.side.slots[slot]
        assert held.plan is not None
        assert set(held.plan) == {0xFF}
        assert np.isnan(held.inputs["values"]).all()
        assert np.isnan(held.inputs["B"]).all()
        self.patterns.append(pattern_of(held.inputs))
        held.plan.view(np.uint32)[...] = len(self.asked)
        self.spoil(slot)
        self.asked.append("prepare")
        self.deadlines.append(timeout_s)
        told = sum_outputs({"plan": held.plan}, 7)
        return Timed(50_000, 60_000, 70_000, choice=7, told_sum=told)

    def call(
        self, slot: int, *, timeout_s: float, release: Callable[[], None], together: int
    ) -> Timed:
        assert self.side is not None
        assert together == 1
        release()
        held = self.side.slots[slot]
        assert np.array_equal(pattern_of(held.inputs), self.patterns[-1])
        for output in held.outputs.values():
            output.fill(1.0)
        self.spoil_call(slot)
        self.asked.append("call")
        self.deadlines.append(timeout_s)
        return Timed(50_000, 60_000, 70_000, choice=7, told_sum=sum_outputs(held.outputs, 7))


@pytest.fixture
def target() -> Structure:
    problem = registry.get("spmm_csr")
    return problem.structure(problem.workload("tiny"))


@pytest.fixture
def scene(target: Structure) -> Iterator[tuple[CandidateSide, Preparer]]:
    problem, rng = registry.get("spmm_csr"), np.random.default_rng(1)
    extra = Extra(plan=PLAN_BYTES)
    sizes = [SLOTS * (size + room(extra)) + 8192 for size in footprint(problem, target.axes)]
    with Arena(*sizes) as arena:
        runner = Preparer()
        side = CandidateSide(
            "candidate",
            runner,  # type: ignore[arg-type]
            arena,
            problem,
            rng,
            timeout_s=1.0,
            extra=lambda _: extra,
        )
        runner.side = side
        side.place(target, SLOTS)
        yield side, runner
        side.answers().clear()
        side.slots.clear()


def items_on(*structures: Structure) -> list[Item]:
    rng = np.random.default_rng(2)
    return [make_item(registry.get("spmm_csr"), s, Family.NORMAL, rng) for s in structures]


def test_a_pattern_is_prepared_where_it_is_new_at_its_slot(scene, target) -> None:
    side, runner = scene
    twin = next(registry.get("spmm_csr").twins(target, np.random.default_rng(3)))
    at_one = items_on(target, target, twin, twin, target)
    for item in at_one:
        side.take([item], 0)
    fresh, kept = ["prepare", "call"], ["call"]
    assert runner.asked == [*fresh, *kept, *fresh, *kept, *fresh]
    others = pattern_of(twin.arrays)
    assert [np.array_equal(each, others) for each in runner.patterns] == [False, True, False]
    side.take(items_on(target), 1)
    assert runner.asked[-2:] == fresh
    assert len(side.plans.us) == 3, "those of the pattern that was placed"
    side.place(target, SLOTS)
    assert side.plans.us == []
    side.take(items_on(target), 0)
    assert runner.asked[-2:] == fresh


def test_the_values_of_a_call_are_not_there_as_its_pattern_is_prepared(scene, target) -> None:
    """`Preparer.prepare` looks: also where the call before was given the very same values."""
    side, runner = scene
    twin = next(registry.get("spmm_csr").twins(target, np.random.default_rng(3)))
    (item,) = items_on(target)
    side.take([item], 0)
    side.take([Item(item.problem, twin, item.inputs, item.family)], 0)
    assert runner.asked == ["prepare", "call"] * 2


def test_preparing_may_take_ten_times_as_long_as_a_call(scene, target) -> None:
    side, runner = scene
    side.take(items_on(target), 0)
    assert runner.deadlines == [PATIENCE, 1.0]


@pytest.mark.parametrize("where", ["before the plan", "after the plan", "after C"])
def test_what_is_beside_the_plan_is_watched_as_it_is_made(scene, target, where: str) -> None:
    side, runner = scene

    def spoil(slot: int) -> None:
        dict(side._arena.guards(side.slots[slot]))[where][-1] ^= 1

    runner.spoil = spoil
    with pytest.raises(Failed, match=f"prepared wrongly: guard bands.*{where}"):
        side.take(items_on(target), 0)


def test_what_is_beside_the_plan_is_watched_in_calls(scene, target) -> None:
    side, runner = scene

    def spoil(slot: int) -> None:
        dict(side._arena.guards(side.slots[slot]))["after the plan"][0] ^= 1

    runner.spoil_call = spoil
    with pytest.raises(Failed, match=r"a timed call was wrong: guard bands.*after the plan"):
        side.take(items_on(target), 0)


def test_a_call_that_writes_into_the_plan_is_wrong(scene, target) -> None:
    side, runner = scene

    def spoil(slot: int) -> None:
        side.slots[slot].plan.view(np.uint32)[...] += 1

    runner.spoil_call = spoil
    with pytest.raises(Failed, match="the plan as it was prepared"):
        side.take(items_on(target), 0)


def measured(own_us: float, **others_us: float) -> Measurement:
    def timing(us: float) -> Timing:
        return Timing(median_us=us, low_us=us, high_us=us)

    names = {name.replace("_", " "): timing(us) for name, us in others_us.items()}
    return Measurement(workload="w", candidate=timing(own_us), baselines=names)


@pytest.mark.parametrize(
    ("found", "pays"),
    [
        (measured(100, torch_eager=400, scipy=500), 3),
        (measured(100, torch_eager=400, MKL_prepared=150), 3),
        (measured(100, torch_eager=100), None),
        (measured(100, torch_eager=90, scipy=500), None),
        (measured(100, MKL_prepared=150), None),
        (measured(100), None),
    ],
)
def test_it_pays_against_the_fastest_that_prepares_nothing(
    found: Measurement, pays: int | None
) -> None:
    told = amortised.add_preparing(found, [800, 812, 9000], registry.get("spmm_csr"))
    assert told.prepare_us == 812
    assert told.pays_after_calls == pays
    assert amortised.add_preparing(found, [], registry.get("spmm_csr")) == found


def test_a_record_from_before_says_nothing_of_it() -> None:
    found = measured(100, torch_eager=400)
    old = found.model_dump(exclude={"prepare_us", "pays_after_calls"})
    assert Measurement.model_validate(old) == found


@pytest.mark.slow
@pytest.mark.timed
def test_a_champion_prepares_as_well(court) -> None:
    source = HONEST.read_text("utf-8")
    order = Order(source=source, language="cpp", protocol=Depth.CONFIRM, champion=source)
    verdict = court.referee("spmm_csr").evaluate(order)
    assert verdict.status is Status.VERIFIED, verdict.reasons
    assert verdict.measurement is not None
    assert "champion" in verdict.measurement.speedup
    assert verdict.measurement.prepare_us


@pytest.mark.parametrize(
    ("size", "status", "words"),
    [
        ("4 * M - 4 * nnz", Status.BUILD_FAILED, "must not be negative"),
        ("4 * M * nnz", Status.RESOURCE, "16 times what a call moves"),
        ("4 * rows", Status.BUILD_FAILED, "rows"),
    ],
)
def test_a_plan_that_cannot_be_is_told_before_anything_runs(
    court, size: str, status: Status, words: str
) -> None:
    source = HONEST.read_text("utf-8").replace("4 * M", size, 1)
    verdict = court.judge(source)
    assert verdict.status is status
    assert words in verdict.reasons[0]
    assert verdict.checks == ()


def test_a_plan_for_a_problem_without_a_pattern_is_unsupported(court) -> None:
    verdict = court.judge(HONEST.read_text("utf-8"), "softmax")
    assert verdict.status is Status.UNSUPPORTED
    assert "no index inputs" in verdict.reasons[0]
