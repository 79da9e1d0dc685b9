"""Kernels that misread codes, or make others, are refused."""

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
    Path(__file__).with_name("codes.toml").read_text("utf-8")
)["row"]


def test_every_problem_with_codes_has_a_row() -> None:
    coded = {name for name in registry.names() if registry.get(name).codes}
    assert coded <= {row["problem"] for row in ROWS}


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_a_kernel_that_takes_codes_for_others_is_refused(court: Any, row: dict[str, str]) -> None:
    """What a screening does not see, which has few families, a whole evaluation does."""
    right = skeleton(registry.get(row["problem"]), CPP)
    assert right.count(row["find"]) == 1
    wrong = right.replace(row["find"], row["put"])
    for protocol in (Depth.SCREEN, Depth.FULL):
        verdict = court.judge(
            wrong, row["problem"], protocol, expected=(Status.INCORRECT,), workload="tiny"
        )
        if not verdict.status.is_pass:
            break
    assert verdict.status is Status.INCORRECT, (verdict.reasons, verdict.log)
