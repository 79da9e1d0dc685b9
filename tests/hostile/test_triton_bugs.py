"""Mistakes that Triton kernels are made with: each is caught without a GPU, its clean twin is not.

Each row says for which problem it is written, and what must be said of the mistake.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Problem, Structure
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.tests.interpreting import interpreted
from kernelwright.tests.sampling import one_in
from kernelwright.traces.records import Status

HERE = Path(__file__).parent / "triton_bugs"


class Row(NamedTuple):
    problem: str
    status: Status
    words: str


BUGS = {
    "index_overflow": Row("bias_gelu", Status.CRASHED, "reads out of bounds"),
    "lost_update": Row("gemm", Status.CRASHED, "in no order: use atomics"),
    "missing_barrier": Row("softmax", Status.CRASHED, "in no order: use atomics"),
    "missing_mask": Row("bias_gelu", Status.CRASHED, "writes out of bounds"),
    "missing_mask_on_load": Row("bias_gelu", Status.CRASHED, "reads out of bounds"),
    "missing_tail": Row("rmsnorm", Status.INCORRECT, "y[0, 128]"),
    "off_by_one_store": Row("spmv_csr", Status.CRASHED, "writes out of bounds"),
    "reduced_precision": Row("gemm", Status.INCORRECT, "G1 condition-scaled error"),
    "uninitialised_accumulator": Row("gemm", Status.INCORRECT, "C[0, 0]"),
    "wrong_identity": Row("softmax", Status.INCORRECT, "G1 condition-scaled error"),
    "wrong_program_id": Row("gemm", Status.INCORRECT, "C["),
    "wrong_stride": Row("gemm", Status.CRASHED, "out of bounds"),
}
TALL = "129x65x257"
SHORT = 600
"""No axis is longer: an interpreter takes a millisecond for each program."""


def structures(problem: Problem) -> list[Structure]:
    """The tiny workload, one without symmetry, and two hidden shapes."""
    tiny = problem.structure(problem.workload("tiny"))
    drawn = problem.variations(tiny, np.random.default_rng(3))
    more = [problem.structure(w) for w in problem.workloads if w.name == TALL]
    short = (each for each in drawn if max(each.axes.values()) <= SHORT)
    return [tiny, *more, *islice(short, 2)]


def source(kind: str, name: str) -> str:
    return (HERE / kind / f"{name}.py").read_text("utf-8")


def test_every_mistake_has_its_twin_and_its_row() -> None:
    for kind in ("bug", "clean"):
        assert {file.stem for file in (HERE / kind).glob("*.py")} == set(BUGS)
    for name in BUGS:
        assert source("bug", name) != source("clean", name)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_mistake_is_caught(name: str) -> None:
    row = BUGS[name]
    problem = registry.get(row.problem)
    ran = interpreted(source("bug", name), problem, structures(problem), choose())
    assert ran.status is row.status, ran
    assert row.words in ran.reason


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(4, BUGS))
def test_its_twin_is_accepted(name: str) -> None:
    row = BUGS[name]
    problem = registry.get(row.problem)
    tried = structures(problem)
    ran = interpreted(source("clean", name), problem, tried, choose())
    assert ran.status is None, (ran.reason, ran.log[-2000:])
    assert ran.right == 3 * len(tried)
