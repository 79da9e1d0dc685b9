"""Kernels that are wrong for some sizes or values alone are refused, whichever those are."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import CPP
from kernelwright.kernelbench.skeleton import skeleton
from kernelwright.tests.sampling import one_in
from kernelwright.traces.records import Depth, Status

ROWS: list[dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("sizes.toml").read_text("utf-8")
)["row"]
TRIED = one_in(3, ROWS)
CHECKS = (
    "correct on",
    "same data at a new address",
    "one element changed",
    "other patterns of the same sizes",
    "determinism under load",
    "fenced memory",
    "a timed call was wrong",
)
"""Trials of any kind, which draw shapes, patterns and values of their own."""


@pytest.mark.slow
@pytest.mark.parametrize("row", TRIED, ids=[row["name"] for row in TRIED])
def test_a_kernel_that_is_wrong_for_some_sizes_is_refused(court: Any, row: dict[str, str]) -> None:
    right = skeleton(registry.get(row["problem"]), CPP)
    assert right.count(row["find"]) == 1
    wrong = right.replace(row["find"], row["put"])
    verdict = court.judge(
        wrong, row["problem"], Depth.FULL, expected=(Status.INCORRECT,), workload="tiny"
    )
    assert verdict.status is Status.INCORRECT
    assert any(word in verdict.reasons[0] for word in CHECKS), verdict.reasons
