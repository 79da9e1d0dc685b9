"""Tables of records: of the H200 that was recorded, and of one that was made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kernelwright.benchmarks.contact import figures

RECORD = Path(__file__).parents[2] / "benchmarks" / "records" / "h200-2026-11-27.jsonl"
REGISTERS = "launch__registers_per_thread"


def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORD.read_text().splitlines()]


def as_found(line: dict[str, Any], emulated: dict[str, float]) -> dict[str, dict[str, Any]]:
    return {"emulated it": {"emulated": True, "found": {**line, "emulated": emulated}}}


def test_counts_of_a_device_stand_beside_the_emulated_ones_of_the_longest_launch() -> None:
    line = max(recorded(), key=lambda each: len(each.get("launches", ())))
    launches = line["launches"]
    assert len(launches) > 1
    longest = max(launches, key=lambda launch: launch["figures"][figures.TIME])
    counted = longest["figures"][REGISTERS]
    table = figures.emulation(as_found(line, {"registers": counted / 2}))
    assert "| registers of a thread | 1 | 0 | 0 | 2.00 |" in table
    assert any(f"| {counted / 2:.4g} | {counted:.4g} | 2.00 |" in row for row in table)
    same = figures.emulation(as_found(line, {"registers": counted}))
    assert "| registers of a thread | 1 | 1 | 0 | 1.00 |" in same


def test_a_figure_that_only_one_side_has_is_not_compared() -> None:
    line = recorded()[0]
    table = figures.emulation(as_found(line, {}))
    assert not any(line["family"] in row for row in table)
    assert not any("within 5 %" in row for row in table)


def test_none_beside_some_is_never_near() -> None:
    line = recorded()[0]
    line["launches"][0]["figures"][figures.COUNTED["bank conflicts of shared loads"][1]] = 3.0
    table = figures.emulation(as_found(line, {"shared_load_bank_conflicts": 0.0}))
    assert "| bank conflicts of shared loads | 1 | 0 | 1 |  |" in table


def test_runs_of_a_problem_are_one_row() -> None:
    runs = {
        str(number): {
            "problem": "softmax",
            "language": "cuda",
            "workload": "4096x1024",
            "median": median,
            "low": median - 0.01,
            "noise": 0.02,
            "us": 13.0,
            "is_credited": median > 1.04,
        }
        for number, median in enumerate((0.99, 1.0, 1.05))
    }
    row = figures.fairness(runs)[-2]
    assert row == (
        "| softmax | 4096x1024 | cuda | 3 | 1 | 1.040 | 1.000 | 0.990–1.050 | 0.020 | 13.0 |"
    )
