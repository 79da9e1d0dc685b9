"""Ten mistakes that CUDA code is known for: each is caught without a GPU, its clean twin passes.

Mistake and twin are built as `eval` builds them, for the device and for the emulation.

A source holds both: the twin is what its lines say after `// right:`. What catches a mistake is
one or more of

    answer      the gates, under one of three schedules
    fault       the process ended: divergent threads, a crash beside a tensor
    sanitizers  the build with ASan and UBSan
    race        the access build, on shared memory
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "sandbox" / "cuda_on_cpu"))

from emulation import LIMITS, TIMEOUT_S, Machine, machine_in

from kernelwright.kernelbench import registry, targets
from kernelwright.kernelbench.problem import Arrays, Family, Problem, Structure
from kernelwright.sandbox.builders.model import EmulatedVariant
from kernelwright.sandbox.run.memory_access import examine
from kernelwright.sandbox.run.once import CallInputs, play
from kernelwright.sandbox.run.process import RunFault
from kernelwright.tests.sampling import one_in
from kernelwright.verifier.stands.cuda_candidate import CudaCandidate
from kernelwright.verifier.stands.gpu_candidates import GpuGround
from kernelwright.verifier.truth import gates
from kernelwright.verifier.truth.trials import make_item

HERE = Path(__file__).parent / "cuda_bugs"
BUGS = {
    "missing_barrier": ("softmax", {"race"}),
    "off_by_one_store": ("rmsnorm", {"sanitizers"}),
    "wrong_shuffle_mask": ("spmv_csr", {"fault"}),
    "shared_race": ("spmv_csr", {"race"}),
    "uninitialised_sum": ("gemm", {"answer"}),
    "wrong_stride": ("gemm", {"answer", "sanitizers"}),
    "missing_mask": ("bias_gelu", {"sanitizers"}),
    "index_overflow": ("bias_gelu", {"sanitizers"}),
    "missing_tail": ("layernorm", {"answer"}),
    "wrong_identity": ("gspmm_reduce", {"answer"}),
}
"""The problem that each is a candidate for, and what must catch it at the least."""

SHAPES = 3
LARGEST_BYTES = 1 << 18
"""Of a hidden shape: every build of it is emulated several times."""


def twin(source: str) -> str:
    """The source with its mistakes put right."""
    return re.sub(r"^(\s*).*// right: (.*)$", r"\1\2", source, flags=re.M)


def structures(problem: Problem) -> list[Structure]:
    """The tiny workload and some hidden shapes, the same each time."""
    tiny = next(w for w in problem.workloads if w.kind == "tiny")
    drawn = (
        shape
        for shape in problem.variations(problem.structure(tiny), np.random.default_rng(7))
        if problem.bytes_moved(shape.axes) <= LARGEST_BYTES
    )
    return [problem.structure(tiny), *(next(drawn) for _ in range(SHAPES))]


class Trial:
    """One source of one problem, on a few shapes, in every build."""

    def __init__(self, machine: Machine, problem: Problem, source: str) -> None:
        self.machine, self.problem = machine, problem
        tiny = problem.structure(problem.workload("tiny"))
        ground = GpuGround(machine.workshop, problem, targets.architecture("sm_90"), tiny)
        self.candidate = CudaCandidate.build(ground, source, seed=11)

    def catchers(self) -> set[str]:
        found: set[str] = set()
        rng = np.random.default_rng(9)
        for structure in structures(self.problem):
            item = make_item(self.problem, structure, Family.NORMAL, rng)
            call = CallInputs(
                self.problem,
                structure.axes,
                {**structure.arrays, **item.inputs},
                self.candidate.resolve_launches(structure),
            )
            found |= {why for why in self.run(call, item) if why}
        return found

    def run(self, call: CallInputs, item: Any) -> Iterator[str]:
        for schedule in self.candidate.schedules:
            yield self.answer(call, item, EmulatedVariant.PLAIN, schedule)
        yield self.answer(call, item, EmulatedVariant.ASAN, "order")
        yield self.race(call, item)

    def answer(self, call: CallInputs, item: Any, variant: EmulatedVariant, schedule: str) -> str:
        program = self.candidate.variant(variant, schedule)
        try:
            answer = play(self.machine.workshop, program, call, limits=LIMITS, timeout_s=TIMEOUT_S)
        except RunFault as fault:
            return "sanitizers" if re.search(r"Sanitizer|runtime error", fault.log) else "fault"
        return "" if self.is_right(answer.outputs, item) else "answer"

    def race(self, call: CallInputs, item: Any) -> str:
        try:
            report = examine(
                self.machine.workshop,
                self.candidate.build_variant(EmulatedVariant.ACCESS),
                call,
                limits=LIMITS,
                timeout_s=TIMEOUT_S,
            )
        except RunFault:
            return "fault"
        if report.races:
            return "race"
        return "" if self.is_right(report.outputs, item) else "answer"

    def is_right(self, outputs: Arrays, item: Any) -> bool:
        checks = [
            check
            for name, expected in item.expected.items()
            for check in gates.check_output(
                name, outputs[name], expected, self.problem.precision, item.family, poison=None
            )
        ]
        return gates.first_failure(checks) is None


@pytest.fixture(scope="module")
def machine(shared_cache: Path) -> Machine:
    return machine_in(shared_cache)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_mistake_is_caught(machine: Machine, name: str) -> None:
    problem, expected = registry.get(BUGS[name][0]), BUGS[name][1]
    source = (HERE / f"{name}.cu").read_text("utf-8")
    caught = Trial(machine, problem, source).catchers()
    print(name, "caught by", *sorted(caught))
    assert expected <= caught, caught


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(4, BUGS))
def test_its_twin_is_not(machine: Machine, name: str) -> None:
    source = twin((HERE / f"{name}.cu").read_text("utf-8"))
    assert Trial(machine, registry.get(BUGS[name][0]), source).catchers() == set()


def test_every_source_has_its_row_and_says_what_is_wrong() -> None:
    assert sorted(path.stem for path in HERE.iterdir()) == sorted(BUGS)
    for path in HERE.iterdir():
        source = path.read_text("utf-8")
        assert "---*/\n// " in source
        assert twin(source) != source
