"""What prompts tell of the timed workload: figures of the referee, and none where it has none."""

from __future__ import annotations

from dataclasses import replace

from kernelwright.agents.prompting.workload import workload
from kernelwright.kernelbench.locality import locality
from kernelwright.kernelbench.registry import get
from kernelwright.tests.agents.brains.answers import situation
from kernelwright.traces.preparation import Bounds, Preparation

MEASURED = Bounds(
    floor_us=156.2,
    roof="float32 multiply-adds",
    gather_us=341.0,
    gathers="B, 45.4 MB from the last-level cache",
    source="measured here",
)


def told(problem: str = "spmm_csr", prepared: Preparation | None = None) -> str:
    now = situation(problem)
    found = get(problem)
    structure = found.structure(found.workload("tiny"))
    facts = {**now.facts, **locality(structure)}
    return workload(replace(now, facts=facts, prepared=prepared), "tiny: small")


def test_baselines_and_bounds_are_told_in_microseconds() -> None:
    text = told(prepared=Preparation(baseline_us={"torch eager": 812.4}, bounds=MEASURED))
    assert "torch eager 812.4 us" in text
    assert "Floor of a call: 156.2 us (float32 multiply-adds; measured here)" in text
    assert "(B, 45.4 MB from the last-level cache) takes 341 us" in text


def test_a_data_sheet_is_said_to_be_one() -> None:
    bounds = MEASURED.model_copy(update={"source": "H200, data sheet", "is_modelled": True})
    assert "modelled by H200, data sheet" in told(prepared=Preparation(bounds=bounds))


def test_gathers_that_bind_nobody_are_not_told() -> None:
    bounds = MEASURED.model_copy(update={"gather_us": 10.0})
    assert "Fetching" not in told(prepared=Preparation(bounds=bounds))


def test_the_pattern_has_quantiles_and_locality() -> None:
    text = told()
    assert "nine of ten" in text
    assert "of 64 rows in a row" in text
    assert "Of a window of 16 rows a column in use has 1.18 entries." in text
    assert "Floor" not in text
    assert "baselines" not in text


def test_a_dense_problem_has_no_pattern() -> None:
    assert "diagonal" not in told("softmax")
