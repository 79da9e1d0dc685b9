"""The rule Judge: one bottleneck, one change, and hints that exist in the recipe."""

from __future__ import annotations

import pytest

from kernelwright.agents.brains.rules import RuleJudge
from kernelwright.agents.roles import Member, Situation
from kernelwright.kernelbench.recipe import Recipe
from kernelwright.tests.agents.played import FACTS, problem, recipe, verdict_with
from kernelwright.traces.records import (
    Advice,
    Check,
    Metric,
    Profile,
    Status,
    Timing,
    Verdict,
)

ROW = recipe(
    "row-balanced",
    vector=("native", "half"),
    width=(1, 2, 4),
    schedule=("static", "dynamic"),
    threads=(0, 1, 2),
    prefetch=(0, 4, 8),
    stream=(0, 1),
)
NNZ = recipe("nnz-balanced", width=(1, 2, 4), pieces=(1, 2))
SITUATION = Situation(problem=problem(), target="cpu", language="cpp", facts=FACTS, round=3, seed=0)


LONG = Timing(median_us=1000.0, low_us=990.0, high_us=1010.0)
SHORT = Timing(median_us=40.0, low_us=39.0, high_us=41.0)


def timed(metrics: dict[str, float], **measured: object) -> Verdict:
    verdict = verdict_with(1.0)
    usual = {"candidate": LONG}
    measurement = verdict.measurements[0].model_copy(update=usual | measured)
    profile = Profile(metrics=tuple(Metric(name=k, value=v) for k, v in metrics.items()))
    return verdict.model_copy(update={"measurements": (measurement,), "profile": profile})


def diagnose(
    verdict: Verdict,
    of: Recipe = ROW,
    recipes: tuple[Recipe, ...] = (ROW, NNZ),
    source: str = "",
    **knobs: int | str,
) -> Advice:
    member = Member(
        candidate="c",
        number=1,
        source=source,
        language="cpp",
        family=of.family,
        knobs={**of.first_knobs(), **knobs},
        verdict=verdict,
    )
    return RuleJudge(recipes).diagnose(member, SITUATION)


GOOD = {"vectorised_loops": 3.0, "vector_bytes": 64.0, "imbalance": 1.0, "cpu_utilisation": 0.95}


@pytest.mark.parametrize(
    ("metrics", "measured", "bottleneck", "hints"),
    [
        ({}, {"roofline": 0.3, "candidate": SHORT}, "call overhead", {"threads": [1, 2]}),
        ({}, {"roofline": 0.9}, "at the roofline", {"stream": [1]}),
        (
            {"imbalance": 1.5, "cpu_utilisation": 0.6},
            {"roofline": 0.3},
            "load imbalance",
            {"family": "nnz-balanced", "schedule": ["dynamic"]},
        ),
        (
            {"cpu_utilisation": 0.5},
            {"roofline": 0.3},
            "idle cores",
            {"schedule": ["dynamic"]},
        ),
        (
            {"vectorised_loops": 0.0, "vector_bytes": 0.0},
            {"roofline": 0.3},
            "not vectorised",
            {"width": [2, 4]},
        ),
        (
            {"vector_bytes": 32.0},
            {"roofline": 0.3},
            "narrow vectors",
            {"width": [2, 4]},
        ),
        ({}, {"roofline": 0.2}, "waiting for memory", {"prefetch": [4, 8], "width": [2, 4]}),
        (
            {"hot_loop_us": 800.0, "hot_port_cycles": 1.0, "hot_chain_cycles": 4.0},
            {"roofline": 0.2},
            "latency of its own sums",
            {"width": [2, 4]},
        ),
        (
            {"hot_loop_us": 800.0, "hot_spills": 24.0, "hot_loads": 32.0, "hot_stores": 8.0},
            {"roofline": 0.2},
            "registers spilled in the hot loop",
            {},
        ),
        (
            {"hot_loop_us": 800.0, "hot_port_cycles": 4.0, "hot_chain_cycles": 4.1},
            {"roofline": 0.2},
            "instructions of its hot loop",
            {
                "prefetch": [4],
                "schedule": ["dynamic"],
                "stream": [1],
                "threads": [1],
                "vector": ["half"],
                "width": [2],
            },
        ),
        # What the loop would take is little of what the call takes: no port is to blame.
        (
            {"hot_loop_us": 200.0, "hot_port_cycles": 1.0, "hot_chain_cycles": 4.0},
            {"roofline": 0.2},
            "waiting for memory",
            {"prefetch": [4, 8], "width": [2, 4]},
        ),
    ],
)
def test_each_rule_names_its_bottleneck_and_its_knobs(
    metrics: dict[str, float],
    measured: dict[str, object],
    bottleneck: str,
    hints: dict[str, object],
) -> None:
    advice = diagnose(timed(GOOD | metrics, **measured))
    assert advice.candidate == "c"
    assert advice.bottleneck == bottleneck
    assert advice.hints == hints
    assert advice.change


def test_advice_never_goes_the_wrong_way() -> None:
    narrow = timed(GOOD | {"vector_bytes": 32.0})
    assert diagnose(narrow, vector="half").hints["vector"] == ["native"]
    idle = timed(GOOD | {"cpu_utilisation": 0.4})
    assert diagnose(idle, threads=1).hints["threads"] == [0]
    short = timed(GOOD, candidate=SHORT)
    assert diagnose(short, threads=2).hints == {"threads": [1]}
    assert diagnose(short, threads=1).hints == {}


def test_hand_written_vectors_are_not_taken_for_scalar_code() -> None:
    verdict = timed(GOOD | {"vectorised_loops": 0.0, "vector_bytes": 0.0}, roofline=0.6)
    assert diagnose(verdict).bottleneck == "not vectorised"
    written = "typedef float V __attribute__((vector_size(64)));"
    assert diagnose(verdict, source=written).bottleneck == "between compute and memory"


def test_where_nothing_stands_out_the_neighbours_are_named() -> None:
    advice = diagnose(timed(GOOD, roofline=0.6))
    assert advice.bottleneck == "between compute and memory"
    assert advice.hints["width"] == [2]
    assert advice.hints["prefetch"] == [4]


def test_a_family_that_deals_out_non_zeros_is_not_blamed_for_uneven_rows() -> None:
    advice = diagnose(timed(GOOD | {"imbalance": 3.0, "cpu_utilisation": 0.5}), NNZ)
    assert advice.bottleneck == "idle cores"


def test_uneven_rows_do_not_matter_while_every_core_is_busy() -> None:
    advice = diagnose(timed(GOOD | {"imbalance": 3.0}, roofline=0.6))
    assert advice.bottleneck != "load imbalance"


def test_without_a_balanced_family_smaller_pieces_are_the_change() -> None:
    metrics = GOOD | {"imbalance": 1.5, "cpu_utilisation": 0.5}
    advice = diagnose(timed(metrics), recipes=(ROW,))
    assert advice.bottleneck == "load imbalance"
    assert advice.hints == {"schedule": ["dynamic"]}


def test_utilisation_is_worked_out_from_cpu_time_where_the_profile_lacks_it() -> None:
    advice = diagnose(timed({}, cpu_us=1100.0, threads=2, roofline=0.5))
    assert advice.bottleneck == "idle cores"
    assert advice.rests_on == {"cpu_utilisation": pytest.approx(0.55)}


def test_without_any_metric_it_still_says_something() -> None:
    assert diagnose(timed({}), recipes=()).bottleneck == "between compute and memory"


@pytest.mark.parametrize("status", [s for s in Status if not s.is_pass])
def test_every_failure_is_named_with_its_check(status: Status) -> None:
    failed = Check(name="G1 error", passed=False, figure=7.5, limit=1.0, detail="y[3]")
    advice = diagnose(verdict_with(None, status=status).model_copy(update={"checks": (failed,)}))
    assert "G1 error = 7.5, limit 1 (y[3])" in advice.change
    assert advice.rests_on == {"G1 error": 7.5}
    assert advice.hints == {}
    without = diagnose(verdict_with(None, status=status))
    assert without.change.endswith("wrong")
    assert without.bottleneck == advice.bottleneck
