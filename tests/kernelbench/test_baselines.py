"""Every baseline computes the problem, writes into the given memory, and sees new values there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import (
    Arrays,
    Baseline,
    BaselineCall,
    Expected,
    Family,
    Problem,
    Structure,
)

Gates = Callable[[Problem, Arrays, dict[str, Expected], Family], list[str]]
CallFor = Callable[[Problem, Structure], BaselineCall]
ALL = [
    (name, b.name)
    for name in registry.names()
    for b in registry.get(name).baselines
    if b.runs_on("")
]
PLAIN = [pair for pair in ALL if pair[1] != "torch.compile"]
COMPILED = [pair for pair in ALL if pair[1] == "torch.compile"]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small calls on a loaded machine: threads would only wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _baseline(problem: Problem, name: str) -> Baseline:
    return next(b for b in problem.baselines if b.name == name)


def _prepare(baseline: Baseline, call: BaselineCall) -> Callable[[], None]:
    """What computes; of a prepared one with what it makes of the values first."""
    try:
        thunk: Any = baseline.prepare(call)
    except ImportError as error:
        pytest.skip(str(error))

    def refresh_and_call() -> None:
        thunk.refresh()
        thunk()

    return refresh_and_call if baseline.is_prepared else thunk


def _assert_right(
    problem: Problem, baseline: Baseline, structure: Structure, call: BaselineCall, gates: Gates
) -> None:
    rng = np.random.default_rng(1)
    compute = _prepare(baseline, call)
    for family in problem.families:
        inputs = problem.values(structure, family, rng)
        for name, array in inputs.items():
            call.inputs[name][...] = array
        before = {name: array.copy() for name, array in call.inputs.items()}
        for array in call.outputs.values():
            array.fill(np.nan)
        with np.errstate(invalid="ignore"):
            compute()
        truth = problem.oracle(structure, inputs)
        found = gates(problem, call.outputs, truth, family)
        assert not found, (structure.axes, family, found)
        for name, array in call.inputs.items():
            assert np.array_equal(array, before[name], equal_nan=True), f"{name} was changed"


@pytest.mark.parametrize(("name", "baseline"), PLAIN)
def test_baseline_is_right_on_small_structures(
    name: str, baseline: str, gates: Gates, call_for: CallFor
) -> None:
    problem = registry.get(name)
    tiny = problem.structure(problem.workload("tiny"))
    some = itertools.islice(problem.variations(tiny, np.random.default_rng(2)), 6)
    for structure in (tiny, *some):
        call = call_for(problem, structure)
        _assert_right(problem, _baseline(problem, baseline), structure, call, gates)


@pytest.mark.parametrize(("name", "baseline"), PLAIN)
def test_baseline_is_right_on_adversarial_workloads(
    name: str, baseline: str, gates: Gates, call_for: CallFor
) -> None:
    problem = registry.get(name)
    for workload in problem.workloads:
        if workload.kind == "adversarial":
            structure = problem.structure(workload)
            call = call_for(problem, structure)
            _assert_right(problem, _baseline(problem, baseline), structure, call, gates)


@pytest.mark.parametrize(("name", "baseline"), PLAIN)
def test_baseline_works_on_read_only_inputs(
    name: str, baseline: str, gates: Gates, call_for: CallFor
) -> None:
    problem = registry.get(name)
    structure = problem.structure(problem.workload("tiny"))
    call = call_for(problem, structure)
    inputs = problem.values(structure, Family.NORMAL, np.random.default_rng(3))
    for key, array in inputs.items():
        call.inputs[key][...] = array
    for array in call.inputs.values():
        array.flags.writeable = False
    _prepare(_baseline(problem, baseline), call)()
    truth = problem.oracle(structure, inputs)
    assert not gates(problem, call.outputs, truth, Family.NORMAL)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "baseline"), COMPILED)
def test_compiled_baseline_is_right(
    name: str, baseline: str, gates: Gates, call_for: CallFor
) -> None:
    problem = registry.get(name)
    for workload in ("tiny", problem.workloads[-1].name):
        structure = problem.structure(problem.workload(workload))
        call = call_for(problem, structure)
        _assert_right(problem, _baseline(problem, baseline), structure, call, gates)
