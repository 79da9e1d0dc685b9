"""CUDA kernels in public styles, judged as `eval FILE --target sm_90` judges them without a device:
on the tiny workload, which only says for how large a launch the profile is drawn up.

`cuda.toml` has a row for each file of `cuda/`: the problem, and what must be said.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from kernelwright.tests.court import Court
from kernelwright.tests.sampling import one_in

HERE = Path(__file__).parent
ROWS = tomllib.loads((HERE / "cuda.toml").read_text("utf-8"))
PROBLEMS = 8
"""The styles must spread over so many problems at the least."""


def source(name: str) -> str:
    return (HERE / "cuda" / f"{name}.cu").read_text("utf-8")


def test_each_kernel_has_its_row_and_names_its_style() -> None:
    assert sorted(file.stem for file in (HERE / "cuda").iterdir()) == sorted(ROWS)
    assert len({row["problem"] for row in ROWS.values()}) >= PROBLEMS
    for name in ROWS:
        assert "---*/\n// Style: " in source(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(5, ROWS))
def test_a_public_style_is_judged(name: str, court: Court) -> None:
    row = ROWS[name]
    verdict = court.look(source(name), row["problem"], "cuda")
    assert verdict.status == row["status"], verdict.reasons
    assert row.get("words", "") in "; ".join(verdict.reasons)
