"""MKL's inspector-executor as a baseline: right, and never older than the values."""

from __future__ import annotations

from importlib import metadata

import numpy as np
import pytest

from kernelwright.kernelbench import mkl_calls, registry
from kernelwright.kernelbench.problem import Baseline, BaselineCall, Family, Problem, Structure
from kernelwright.verifier.truth import gates

NAME = "MKL prepared"
PROBLEMS = ("spmm_csr", "spmv_csr")


def baseline_of(problem: Problem) -> Baseline:
    return next(each for each in problem.baselines if each.name == NAME)


def call_on(problem: Problem, structure: Structure, rng: np.random.Generator) -> BaselineCall:
    inputs = problem.values(structure, Family.NORMAL, rng)
    outputs = {t.name: np.full(t.extent(structure.axes), 7, t.dtype) for t in problem.outputs}
    return BaselineCall(structure.axes, {**structure.arrays, **inputs}, outputs)


def assert_right(problem: Problem, structure: Structure, call: BaselineCall) -> None:
    for name, expected in problem.oracle(structure, call.inputs).items():
        checks = gates.check_output(
            name, call.outputs[name], expected, problem.precision, Family.NORMAL, poison=None
        )
        assert gates.first_failure(checks) is None


@pytest.fixture
def mkl() -> None:
    try:
        mkl_calls._library()
    except ImportError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("mkl")
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("workload", ["tiny", "hub-33"])
def test_it_is_right_and_as_new_as_the_values(name: str, workload: str) -> None:
    problem, rng = registry.get(name), np.random.default_rng(2)
    workloads = {each.name for each in problem.workloads}
    structure = problem.structure(problem.workload(workload if workload in workloads else "tiny"))
    call = call_on(problem, structure, rng)
    handle = baseline_of(problem).prepare(call)
    handle()
    assert_right(problem, structure, call)
    for key, array in problem.values(structure, Family.UNIFORM, rng).items():
        call.inputs[key][...] = array
    handle.refresh()
    handle()
    assert_right(problem, structure, call)


@pytest.mark.parametrize("name", PROBLEMS)
def test_without_the_wheel_it_says_how_to_get_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(_name: str) -> None:
        raise metadata.PackageNotFoundError

    problem, rng = registry.get(name), np.random.default_rng(0)
    call = call_on(problem, problem.structure(problem.workload("tiny")), rng)
    monkeypatch.setattr(mkl_calls.metadata, "files", absent)
    mkl_calls._library.cache_clear()
    try:
        with pytest.raises(ImportError, match=r"pip install 'kernelwright\[mkl\]'"):
            baseline_of(problem).prepare(call)
    finally:
        mkl_calls._library.cache_clear()


@pytest.mark.parametrize("name", registry.names())
def test_what_is_prepared_runs_on_cpus_alone(name: str) -> None:
    prepared = [each for each in registry.get(name).baselines if each.is_prepared]
    assert [each.name for each in prepared] == ([NAME] if name in PROBLEMS else [])
    assert all(each.runs_on("") and not each.runs_on("cuda:0") for each in prepared)
