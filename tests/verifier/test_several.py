"""Verdicts of several workloads together, and a referee that judges on each."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.packs import workload_of
from kernelwright.tests.traces.conftest import started
from kernelwright.tests.verifier.sources import CPP
from kernelwright.traces.grouped_checks import group_checks
from kernelwright.traces.records import (
    CHAMPION,
    Check,
    Depth,
    Measurement,
    Speedup,
    Status,
    Timing,
    Verdict,
)
from kernelwright.traces.view.words import word_parts
from kernelwright.verifier.process.panel import Panel
from kernelwright.verifier.process.several import BEST_OF_EACH, join_measurements, join_verdicts
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.truth.asked_sizes import AskedSizes
from kernelwright.verifier.truth.trials import Stage, plan


def measured(workload: str, us: float, ratio: Speedup, **more: Speedup) -> Measurement:
    def timing(at: float) -> Timing:
        return Timing(median_us=at, low_us=at, high_us=at)

    return Measurement(
        workload=workload,
        candidate=timing(us),
        baselines={"torch": timing(us * ratio.median), "slow": timing(us * ratio.median * 2)},
        speedup={"torch": ratio, "slow": ratio, **more},
        best_baseline="torch",
        floor_us=1.0,
        pairs=10,
    )


def test_the_score_is_the_weighted_geometric_mean() -> None:
    one = measured("a", 10, Speedup(median=2, low=1.9, high=2.1))
    other = measured("b", 1000, Speedup(median=0.5, low=0.45, high=0.55))
    together = join_measurements("both", [one, other], [3, 1])
    assert together.headline is not None
    assert together.headline.median == pytest.approx((2**3 * 0.5) ** 0.25)
    assert together.candidate.median_us == pytest.approx((10**3 * 1000) ** 0.25)
    assert together.best_baseline == BEST_OF_EACH
    assert set(together.speedup) == {BEST_OF_EACH, "torch", "slow"}


def test_its_interval_holds_the_truth_as_often_as_theirs() -> None:
    """Of 2,000 draws with 95 % intervals on three workloads of unequal weights."""
    rng, weights, held = np.random.default_rng(5), [1.0, 2.0, 5.0], 0
    truth = np.array([1.3, 0.8, 2.0])
    off = np.array([0.02, 0.1, 0.05])
    for _ in range(2000):
        seen = np.log(truth) + rng.normal(0, off)
        ends = zip(np.exp(seen), np.exp(seen - 1.96 * off), np.exp(seen + 1.96 * off), strict=True)
        found = [measured("w", 10, Speedup(median=m, low=a, high=b)) for m, a, b in ends]
        ratio = join_measurements("all", found, weights).speedup[BEST_OF_EACH]
        held += ratio.low <= math.exp(np.dot(weights, np.log(truth)) / sum(weights)) <= ratio.high
    assert 0.935 < held / 2000 < 0.965


def test_the_champion_is_compared_where_it_was_timed_on_all() -> None:
    even = Speedup(median=1, low=0.9, high=1.1)
    beside = measured("a", 10, even, **{CHAMPION: even})
    assert CHAMPION in join_measurements("x", [beside, beside], [1, 1]).speedup
    assert CHAMPION not in join_measurements("x", [beside, measured("b", 1, even)], [1, 1]).speedup


def verdict(workload: str, status: Status = Status.SCREENED, reason: str = "") -> Verdict:
    even = Speedup(median=1, low=0.9, high=1.1)
    return Verdict(
        candidate="c",
        problem="softmax",
        workload=workload,
        language="cpp",
        target="cpu",
        protocol=Depth.SCREEN,
        status=status,
        reasons=(reason,) if reason else (),
        measurements=() if reason else (measured(workload, 5, even),),
        seconds={"build": 1.0},
    )


def test_what_fails_on_one_workload_fails_and_says_where() -> None:
    bad = verdict("large", Status.INCORRECT, "wrong in row 3")
    found = join_verdicts("both", [verdict("small"), bad], [1, 1])
    assert (found.status, found.workload) == (Status.INCORRECT, "both")
    assert found.reasons == ("on large: wrong in row 3",)
    assert found.measurements == ()
    assert found.seconds == {"build": 2.0}


def test_a_pass_shows_each_workload_behind_all_together() -> None:
    found = join_verdicts("both", [verdict("small"), verdict("large")], [1, 1])
    assert [each.workload for each in found.measurements] == ["both", "small", "large"]
    assert found.measurement is found.measurements[0]


@pytest.fixture
def task(shared_cache: Path) -> Task:
    problem = registry.get("bias_gelu")
    return Task(
        problem=problem.name,
        workload=workload_of(problem, axes=["M=33,N=65:3", "M=2,N=700"]),
        cache_dir=str(shared_cache),
        baselines=("torch eager",),
    )


@pytest.mark.timed
def test_a_referee_judges_on_every_workload(task: Task) -> None:
    panel = Panel.open(task)
    try:
        assert panel.wait_prepared().baselines == ("torch eager",)
        found = panel.evaluate(Order(source=CPP % "", language="cpp"))
        wrong = panel.evaluate(Order(source=CPP % "if (N == 700) y[3] += 1;", language="cpp"))
    finally:
        panel.close()
    assert found.status is Status.SCREENED, found.reasons
    assert [each.workload for each in found.measurements] == ["2 sizes", "M=33,N=65", "M=2,N=700"]
    assert wrong.status is Status.INCORRECT
    assert wrong.reasons[0].startswith("on M=2,N=700: ")


def test_hidden_sizes_lie_between_those_that_are_asked_for() -> None:
    problem = registry.get("softmax")
    asked = AskedSizes.between(workload_of(problem, axes=["M=8,N=64", "M=512,N=1024"]))
    assert asked is not None
    rng = np.random.default_rng(3)
    drawn = [s.axes for _ in range(50) for _, s in asked.draw(problem, Depth.CONFIRM, rng)]
    assert len(drawn) == 300
    assert all(8 <= axes["M"] <= 512 and 64 <= axes["N"] <= 1024 for axes in drawn)
    assert len({axes["M"] for axes in drawn}) > 80
    assert len(asked.draw(problem, Depth.SCREEN, rng)) == 1


def test_a_sparse_pattern_keeps_its_rows_between_the_widths() -> None:
    problem = registry.get("spmm_csr")
    asked = AskedSizes.between(workload_of(problem, "tiny", axes=["N=4", "N=64"]))
    assert asked is not None
    _, structure = asked.draw(problem, Depth.SCREEN, np.random.default_rng(3))[0]
    assert structure.axes["M"] == 1000
    assert 4 <= structure.axes["N"] <= 64


def test_nothing_lies_between_sizes_that_are_alike() -> None:
    problem = registry.get("softmax")
    assert AskedSizes.between(workload_of(problem, "tiny")) is None
    assert AskedSizes.between(workload_of(problem, axes=["M=8,N=64", "M=9,N=64"])) is None


def test_every_screening_tries_one_of_them(task: Task) -> None:
    problem = registry.get(task.problem)
    asked = AskedSizes.between(task.workload)
    stage = Stage(problem, problem.structure(task.workload.first), "first", (), asked=asked)
    names = [trial.name for trial in plan(stage, Depth.SCREEN, np.random.default_rng(1))]
    assert sum(name.startswith("between your sizes") for name in names) == 1


def test_many_checks_of_one_kind_are_one_row_and_a_failed_one_is_its_own() -> None:
    def check(name: str, figure: float, *, passed: bool = True) -> Check:
        return Check(name=name, figure=figure, limit=1.0, passed=passed)

    checks = (check("correct on a", 0.1), check("correct on b", 0.7), check("guard bands", 0.0))
    rows = list(group_checks((*checks, check("correct on c", 2.0, passed=False))))
    assert [row.name for row in rows] == ["correct (2 times)", "guard bands", "correct on c"]
    assert rows[0].check.figure == 0.7
    assert len(list(group_checks(checks, is_full=True))) == 3


def test_a_page_says_what_several_workloads_are() -> None:
    workload = workload_of(registry.get("softmax"), axes=["M=8,N=64:3", "M=512,N=1024"])
    spec = workload.model_dump(mode="json")
    several = started("softmax").model_copy(update={"workload_spec": spec})
    assert word_parts(several) == ": M=8,N=64 75%; M=512,N=1024 25%"
    assert word_parts(started("softmax")) == ""
