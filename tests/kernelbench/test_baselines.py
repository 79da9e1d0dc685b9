"""Every baseline computes the problem, writes into the given memory, and sees new values there."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.kernelbench import compiled_calls, registry
from kernelwright.kernelbench.policies import name_in
from kernelwright.kernelbench.problem import (
    Arrays,
    Baseline,
    BaselineCall,
    Expected,
    Family,
    Problem,
    Structure,
)
from kernelwright.tests.sampling import at_most, some_of
from kernelwright.verifier.truth.gates import check_output, first_failure

Gates = Callable[[Problem, Arrays, dict[str, Expected], Family], list[str]]
CallFor = Callable[[Problem, Structure], BaselineCall]
ALL = [
    (name, b.name)
    for name in registry.names()
    for b in registry.get(name).baselines
    if b.runs_on("")
]
PLAIN = [pair for pair in ALL if pair[1] != "torch.compile"]
COMPILED = [name for name, baseline in ALL if baseline == "torch.compile"]
ROUNDED_BETWEEN = (
    "elementwise_chain",
    "layernorm_backward",
    "lowrank_key_rope_gemm",
    "monarch_mm",
)
"""Problems of which torch's own functions round halves between two steps, or add them up in halves:
the referee leaves these out, and holds a kernel in halves against torch.compile alone."""
NARROW = [
    (problem.name, baseline.name)
    for name in registry.names()
    if name not in ROUNDED_BETWEEN
    for problem in [registry.get(name_in(name, each)) for each in registry.get(name).policies]
    for baseline in problem.baselines
    if baseline.runs_on("") and baseline.name != "torch.compile"
]
TINY_TOO = some_of(COMPILED, lambda name: name == "sddmm_csr")
"""Problems are compiled for their last workload, of odd and long axes, some of them in a sample;
there a dense and a sparse one for a small workload as well."""
COMPILED_FOR = [
    *((name, registry.get(name).workloads[-1].name) for name in at_most(4, COMPILED)),
    *((name, "tiny") for name in COMPILED if name in TINY_TOO),
]


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
            array.fill(np.nan if array.dtype.kind == "f" else 85)
        with np.errstate(invalid="ignore"):
            compute()
        truth = problem.oracle(structure, inputs)
        found = gates(problem, call.outputs, truth, family)
        assert not found, (structure.axes, family, found)
        for name, array in call.inputs.items():
            assert array.tobytes() == before[name].tobytes(), f"{name} was changed"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "baseline"), at_most(24, PLAIN))
def test_baseline_is_right_on_small_structures(
    name: str, baseline: str, gates: Gates, call_for: CallFor
) -> None:
    problem = registry.get(name)
    tiny = problem.structure(problem.workload("tiny"))
    some = itertools.islice(problem.variations(tiny, np.random.default_rng(2)), 6)
    for structure in (tiny, *some):
        call = call_for(problem, structure)
        _assert_right(problem, _baseline(problem, baseline), structure, call, gates)


@pytest.mark.parametrize(("name", "baseline"), at_most(24, PLAIN))
def test_baseline_is_right_on_adversarial_workloads(
    name: str, baseline: str, gates: Gates, call_for: CallFor
) -> None:
    problem = registry.get(name)
    for workload in problem.workloads:
        if workload.kind == "adversarial":
            structure = problem.structure(workload)
            call = call_for(problem, structure)
            _assert_right(problem, _baseline(problem, baseline), structure, call, gates)


@pytest.mark.parametrize("name", ROUNDED_BETWEEN)
def test_where_one_rounds_between_another_is_there(name: str) -> None:
    for policy in registry.get(name).policies:
        narrow = registry.get(name_in(name, policy))
        assert "torch.compile" in {baseline.name for baseline in narrow.baselines}


@pytest.mark.parametrize(("name", "baseline"), at_most(24, NARROW))
def test_baseline_is_right_in_other_precisions(name: str, baseline: str, call_for: CallFor) -> None:
    """By the referee's own gates and question: a library that adds up halves in halves is left out
    as a kernel that does it is refused, and where it is the only one no kernel can be judged."""
    problem = registry.get(name)
    for workload in problem.workloads:
        if workload.kind in ("tiny", "adversarial"):
            structure = problem.structure(workload)
            call = call_for(problem, structure)
            compute = _prepare(_baseline(problem, baseline), call)
            values = problem.values(structure, Family.UNIFORM, np.random.default_rng(1))
            for key, array in values.items():
                call.inputs[key][...] = array
            compute()
            for output, expected in problem.oracle(structure, values).items():
                checks = check_output(
                    output,
                    call.outputs[output],
                    expected,
                    problem.precision,
                    Family.UNIFORM,
                    poison=None,
                )
                assert first_failure(checks) is None, (workload.name, output)


ON_SEALED_INPUTS = """
import mmap, sys
import numpy as np
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import BaselineCall, Family

def place(array, protection):
    fd = os.memfd_create("inputs")
    os.truncate(fd, max(1, array.nbytes))
    os.pwrite(fd, array.tobytes(), 0)
    shared = mmap.mmap(fd, max(1, array.nbytes), mmap.MAP_SHARED, protection)
    return np.frombuffer(shared, array.dtype, array.size).reshape(array.shape)

import os
problem = registry.get(sys.argv[1])
structure = problem.structure(problem.workload("tiny"))
values = problem.values(structure, Family.NORMAL, np.random.default_rng(3))
given = {**structure.arrays, **values}
sealed = {name: place(array, mmap.PROT_READ) for name, array in given.items()}
outputs = {t.name: np.zeros(t.extent(structure.axes), t.dtype) for t in problem.outputs}
for baseline in problem.baselines:
    if baseline.name in sys.argv[2:]:
        print(baseline.name, flush=True)
        baseline.prepare(BaselineCall(structure.axes, sealed, outputs))()
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", at_most(8, registry.names()))
def test_a_baseline_that_does_not_say_so_writes_no_input(name: str) -> None:
    problem = registry.get(name)
    quiet = [b for b in PLAIN if b[0] == name and not _baseline(problem, b[1]).writes_inputs]
    names = [baseline for _, baseline in quiet if not _baseline(problem, baseline).is_prepared]
    done = subprocess.run(
        [sys.executable, "-c", ON_SEALED_INPUTS, name, *names],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert done.stdout.splitlines() == names


@pytest.fixture
def compiler_kept(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it makes lies where referees of this run find it, for as many threads as theirs."""
    import torch

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(shared_cache / "inductor"))
    monkeypatch.setattr(compiled_calls, "_folders", [shared_cache / "compiled"])
    torch.set_num_threads(len(os.sched_getaffinity(0)))


@pytest.mark.slow
@pytest.mark.usefixtures("_one_thread", "compiler_kept")
@pytest.mark.parametrize(("name", "workload"), COMPILED_FOR)
def test_compiled_baseline_is_right(
    name: str, workload: str, gates: Gates, call_for: CallFor
) -> None:
    problem = registry.get(name)
    structure = problem.structure(problem.workload(workload))
    call = call_for(problem, structure)
    _assert_right(problem, _baseline(problem, "torch.compile"), structure, call, gates)
