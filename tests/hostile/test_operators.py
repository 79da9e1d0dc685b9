"""Kernels that are wrong in what is particular to an operator are refused as they are screened."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import CPP
from kernelwright.kernelbench.skeleton import skeleton
from kernelwright.traces.records import Depth, Status

ROWS: list[dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("operators.toml").read_text("utf-8")
)["row"]


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_a_kernel_that_computes_something_near_is_refused(court: Any, row: dict[str, str]) -> None:
    right = skeleton(registry.get(row["problem"]), CPP)
    assert right.count(row["find"]) == 1
    wrong = right.replace(row["find"], row["put"])
    verdict = court.judge(
        wrong, row["problem"], Depth.SCREEN, expected=(Status.INCORRECT,), workload="tiny"
    )
    assert verdict.status is Status.INCORRECT
    assert "correct on" in verdict.reasons[0], verdict.reasons
