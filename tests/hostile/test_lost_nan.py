"""CUDA kernels that lose a NaN in a part of a long row, and are right in short ones.

Each is refused in emulation, and its twin passes.
A source holds both: the twin is what its lines say after `// right:`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelwright.tests.court import Court
from kernelwright.tests.sampling import one_in
from kernelwright.traces.records import Depth, Status

HERE = Path(__file__).parent / "lost_nan"
PROBLEMS = {
    "gemm_deep_sums": "gemm",
    "layernorm_tail": "layernorm",
    "rmsnorm_second_half": "rmsnorm",
    "softmax_idle_threads": "softmax",
}
LOOKS = 4
"""Of so many evaluations one refuses it, at least: of those that were counted, 27 of 27 did of the
others, and 9 of 10 of the layer norm, which only loses what lies in its last tile."""


def source(name: str) -> str:
    return (HERE / f"{name}.cu").read_text("utf-8")


def test_every_source_has_its_row_and_its_twin() -> None:
    assert sorted(path.stem for path in HERE.iterdir()) == sorted(PROBLEMS)
    for name in PROBLEMS:
        assert "// right: " in source(name)


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(4, PROBLEMS))
def test_it_is_refused_and_its_twin_is_not(court: Court, name: str) -> None:
    for _ in range(LOOKS):
        verdict = court.look(source(name), PROBLEMS[name], "cuda")
        if verdict.status is Status.INCORRECT:
            break
    assert verdict.status is Status.INCORRECT
    assert "nan is right" in " ".join(verdict.reasons)
    twin = re.sub(r"^(\s*).*// right: (.*)$", r"\1\2", source(name), flags=re.M)
    verdict = court.look(twin, PROBLEMS[name], "cuda")
    assert verdict.status is Status.SCREENED, verdict.reasons


@pytest.mark.slow
def test_a_screening_refuses_what_loses_any_of_a_long_row(court: Court) -> None:
    verdict = court.look(source("softmax_idle_threads"), "softmax", "cuda", Depth.SCREEN)
    assert verdict.status is Status.INCORRECT
    assert "nan is right" in " ".join(verdict.reasons)
