"""Kernels that are wrong for some sizes alone are refused, whichever those are."""

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
    Path(__file__).with_name("sizes.toml").read_text("utf-8")
)["row"]


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_a_kernel_that_is_wrong_for_some_sizes_is_refused(court: Any, row: dict[str, str]) -> None:
    right = skeleton(registry.get(row["problem"]), CPP)
    assert right.count(row["find"]) == 1
    wrong = right.replace(row["find"], row["put"])
    verdict = court.judge(
        wrong, row["problem"], Depth.FULL, expected=(Status.INCORRECT,), workload="tiny"
    )
    assert verdict.status is Status.INCORRECT
    assert any("correct on" in reason for reason in verdict.reasons), verdict.reasons
