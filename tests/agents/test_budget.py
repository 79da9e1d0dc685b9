"""Caps that hold, and values that cannot be caps."""

from __future__ import annotations

import math

import pytest

from kernelwright.agents.books.budget import Budget, check_limits
from kernelwright.errors import UsageError
from kernelwright.tests.agents.played import Clock


def test_without_limits_nothing_stops() -> None:
    budget = Budget({}, clock=Clock())
    assert budget.compute_remaining(10**9) == (math.inf, math.inf)
    assert budget.why_stopped(10**9) is None


def test_evaluations_are_capped_exactly() -> None:
    budget = Budget({"evaluations": 3}, clock=Clock())
    assert [budget.why_stopped(n) for n in range(5)] == [
        None,
        None,
        None,
        "evaluations",
        "evaluations",
    ]


def test_a_fraction_buys_no_evaluation() -> None:
    assert Budget({"evaluations": 0.5}, clock=Clock()).why_stopped(0) == "evaluations"


def test_seconds_count_over_processes() -> None:
    clock = Clock()
    budget = Budget({"seconds": 10}, spent_s=4.0, clock=clock)
    assert budget.compute_remaining(0).seconds == 6.0
    clock.now += 5.5
    assert budget.spent_s == 9.5
    assert budget.why_stopped(0) is None
    clock.now += 0.5
    assert budget.why_stopped(0) == budget.why_out_of_time() == "seconds"


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_a_limit_that_limits_nothing_is_refused(value: float) -> None:
    with pytest.raises(UsageError, match="'seconds' must be a positive number"):
        check_limits({"seconds": value})


def test_an_unknown_limit_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no limit named 'euro'") as caught:
        check_limits({"euro": 5})
    assert "evaluations, seconds" in caught.value.hint
