"""CUDA kernels in public styles, judged as `eval FILE --target sm_90` judges them without a device.

`cuda.toml` has a row for each file of `cuda/`: the problem, and what must be said.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.sandbox.build import toolchain
from kernelwright.traces.records import Protocol
from kernelwright.verifier.client import open_referee
from kernelwright.verifier.request import Order, Task

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


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        toolchain.find_nvrtc()
    except PrerequisiteError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("styles")
    folder.chmod(0o755)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_a_public_style_is_judged(name: str, cache: Path) -> None:
    row = ROWS[name]
    problem = registry.get(row["problem"])
    task = Task(
        problem=problem.name,
        workload=registry.workload_for(problem),
        target="sm_90",
        devices=(),
        cache_dir=str(cache),
    )
    with open_referee(task) as referee:
        verdict = referee.evaluate(
            Order(source=source(name), language="cuda", protocol=Protocol.FULL)
        )
    assert verdict.status == row["status"], verdict.reasons
    assert row.get("words", "") in "; ".join(verdict.reasons)
