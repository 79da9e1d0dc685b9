"""Baselines of cupy, over a stand-in of it that works on the CPU: no device is at hand here."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
import scipy.sparse

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import BaselineCall, Family

WITH_CUPY = [
    name
    for name in registry.names()
    if any(b.requires == "cupy" for b in registry.get(name).baselines)
]


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The few names that are used, over the same memory as torch's tensors."""
    modules = {
        name: types.ModuleType(name)
        for name in ("cupy", "cupyx", "cupyx.scipy", "cupyx.scipy.sparse")
    }
    for name, given in {
        "from_dlpack": lambda tensor: tensor.numpy(),
        "matmul": np.matmul,
        "copyto": np.copyto,
    }.items():
        setattr(modules["cupy"], name, given)
    modules["cupyx.scipy.sparse"].csr_matrix = scipy.sparse.csr_matrix  # type: ignore[attr-defined]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


def test_products_have_one() -> None:
    assert {"gemm", "spmm_csr", "spmv_csr"} <= set(WITH_CUPY)


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("name", WITH_CUPY)
def test_it_answers_from_what_the_call_holds_now(name: str) -> None:
    problem = registry.get(name)
    structure = problem.structure(problem.workload("tiny"))
    rng = np.random.default_rng(1)
    inputs = dict(structure.arrays) | dict(problem.values(structure, Family.NORMAL, rng))
    outputs = {t.name: np.full(t.extent(structure.axes), np.nan, t.dtype) for t in problem.outputs}
    baseline = next(b for b in problem.baselines if b.requires == "cupy")
    compute = baseline.prepare(BaselineCall(structure.axes, inputs, outputs))
    for name_, array in problem.values(structure, Family.NORMAL, rng).items():
        inputs[name_][...] = array
    compute()
    given = {t.name: inputs[t.name] for t in problem.inputs if not t.is_index}
    for output, expected in problem.oracle(structure, given).items():
        np.testing.assert_allclose(outputs[output], expected.value, rtol=1e-3, atol=1e-3)


def test_it_is_for_gpus_only() -> None:
    baseline = next(b for b in registry.get("gemm").baselines if b.requires == "cupy")
    assert [place for place in ("", "cpu", "cuda") if baseline.runs_on(place)] == ["cuda"]
    scipy_ = next(b for b in registry.get("spmm_csr").baselines if b.requires == "scipy")
    assert scipy_.runs_on("")
    assert not scipy_.runs_on("cuda")
