"""From scores to figures: what is counted, and how sure one may be of it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.cli import standings
from kernelwright.compare.summary import WorkflowScores, estimate, summarise
from kernelwright.tests.compare.held import PROBLEMS, bench, score

PAIRS = [(problem, seed) for problem in PROBLEMS for seed in range(2)]


def arms(first: list[float], second: list[float]) -> tuple[WorkflowScores, WorkflowScores]:
    """Two workflows with these credited speed-ups on the four pairs."""
    planned = bench(workflows=("forge", "refine"))
    scores = [
        score(workflow, *pair, credited)
        for workflow, found in (("forge", first), ("refine", second))
        for pair, credited in zip(PAIRS, found, strict=True)
    ]
    one, other = summarise(planned, reversed(scores))
    return one, other


def test_fast_p_counts_credited_speedups_above_p() -> None:
    one, _ = arms([0.0, 1.0, 1.5, 2.5], [0.0, 0.0, 0.0, 0.0])
    assert one.correct == 0.75
    assert one.fast == {0.0: 0.75, 1.0: 0.5, 1.5: 0.25, 2.0: 0.25}


def test_no_winner_counts_as_nought_and_never_as_missing() -> None:
    one, _ = arms([0.0, 2.0, 0.0, 4.0], [0.0, 0.0, 0.0, 0.0])
    assert one.median.value == 1.0
    assert one.geometric_mean.value == 0.0
    assert one.among_verified is not None
    assert one.among_verified.value == pytest.approx(math.sqrt(8))


def test_nobody_verified_leaves_figures_of_nought() -> None:
    one, other = arms([0.0] * 4, [0.0] * 4)
    assert (one.correct, one.median, one.among_verified) == (0.0, (0.0, 0.0, 0.0), None)
    assert other.difference == (0.0, 0.0, 0.0)


def test_the_difference_is_paired() -> None:
    # Between the pairs the speed-ups differ by far more than between the arms.
    one, other = arms([1.0, 9.0, 2.0, 30.0], [1.5, 9.5, 2.5, 30.5])
    assert one.difference is None
    assert other.difference == (0.5, 0.5, 0.5)


def test_an_interval_needs_more_than_one_campaign() -> None:
    planned = bench(workflows=("forge",), problems=("softmax",), seeds=1)
    (arm,) = summarise(planned, [score("forge", "softmax", 0, 1.7)])
    assert arm.median == (1.7, None, None)
    standings.document(planned, [arm])


def test_the_interval_speaks_for_problems_first() -> None:
    """Two seeds that agree say little where the problems do not."""
    alike = np.array([[1.0, 1.0], [3.0, 3.0]])
    found = estimate(alike, lambda values: values.mean(axis=-1))
    assert (found.low, found.high) == (1.0, 3.0)


@given(st.lists(st.floats(0.0, 50.0), min_size=4, max_size=4))
def test_an_interval_holds_its_figure(found: list[float]) -> None:
    one, _ = arms(found, [1.0, 1.0, 1.0, 1.0])
    for figure in (one.median, one.geometric_mean, one.among_verified):
        if figure is not None:
            assert figure.low is not None
            assert figure.high is not None
            assert figure.low <= figure.value <= figure.high


def test_the_curve_is_the_mean_of_the_campaigns_stairs() -> None:
    planned = bench(workflows=("forge",), problems=("softmax",), limits={"seconds": 10.0})
    early = score("forge", "softmax", 0, 2.0, at=1.0)
    late = score("forge", "softmax", 1, 4.0, at=3.0)
    (arm,) = summarise(planned, [early, late])
    assert arm.anytime == {"seconds": [(0.0, 0.0), (1.0, 1.0), (3.0, 3.0)]}


def test_the_document_is_json_and_the_tables_name_every_arm() -> None:
    planned = bench(workflows=("forge", "refine"))
    both = list(arms([0.0, 1.0, 1.5, 2.5], [1.0, 1.0, 1.0, 1.0]))
    told = json.loads(json.dumps(standings.document(planned, both), allow_nan=False))
    assert [arm["workflow"] for arm in told["arms"]] == ["forge", "refine"]
    assert told["arms"][0]["fast"] == {"0": 0.75, "1": 0.5, "1.5": 0.25, "2": 0.25}
    assert told["arms"][1]["difference_to_first"]["value"] == pytest.approx(-0.25)
    assert told["arms"][0]["per_kernel"]["usd"] == pytest.approx(1.0)
    assert len(told["arms"][0]["campaigns"]) == 4
    found, cost, words = standings.tables(planned, both)
    assert not isinstance(found, str)
    assert not isinstance(cost, str)
    assert list(found.columns[0].cells) == ["forge", "refine"]
    assert cost.row_count == 2
    assert "Δ is the mean paired difference to forge" in str(words)
