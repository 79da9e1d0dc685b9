"""docs/launch-plans.md: its examples are plans, its figures those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kernelwright
from kernelwright.kernelbench import registry, targets
from kernelwright.kernelbench.features import SPARSE_FEATURES
from kernelwright.sandbox import front_matter, source_text
from kernelwright.sandbox.plan import grammar, limits
from kernelwright.sandbox.plan.dialects import DIALECTS
from kernelwright.sandbox.plan.expressions import FUNCTIONS
from kernelwright.sandbox.plan.parse import MAX_EXTENTS, MAX_LAUNCHES, MAX_SCRATCH
from kernelwright.tests.sandbox.plan.conftest import Bench

TEXT = (Path(kernelwright.__file__).parent / "docs" / "launch-plans.md").read_text("utf-8")


def example(fence: str) -> str:
    (block,) = re.findall(rf"^```{fence}\n(.*?)^```$", TEXT, re.S | re.M)
    return str(block)


@pytest.mark.parametrize(("workload", "kernels"), [("tiny", [-1, 0]), ("long", [-1, 1, 2])])
def test_the_example_in_cuda(workload: str, kernels: list[int], spmm: Bench) -> None:
    bench = spmm
    if workload == "long":
        longer = spmm.problem.workload("tiny").model_copy(
            update={"generator": {"law": "degree", "rows": 100, "nnz": 5000, "cv": 0.1}}
        )
        bench = Bench(spmm.problem, spmm.problem.structure(longer))
    launches = bench.launches(example("cuda"))
    assert [launch.kernel for launch in launches.launches] == kernels


@pytest.mark.parametrize("name", ["tiny", "1024x4096"])
def test_the_example_in_triton(name: str) -> None:
    problem = registry.get("rmsnorm")
    workload = problem.workload(name)
    launches = Bench(problem, problem.structure(workload)).launches(example("python"), "triton")
    (special,) = launches.specialisations
    assert special.num_warps == (8 if workload.axes["N"] > 1024 else 4)


def test_the_figures_are_those_of_the_code() -> None:
    for figure in (
        f"{front_matter.MATTER_CHARACTERS:,}\ncharacters",
        f"{source_text.SOURCE_BYTES:,} bytes",
        f"at most {grammar.MAX_TOKENS} words and signs, nested at most {grammar.MAX_NESTING} deep",
        f"{MAX_LAUNCHES} launches",
        f"| {targets.MAX_THREADS_PER_BLOCK}; at most 1024, 1024 and 64 in x, y and z |",
        f"1 to {targets.MAX_GRID[0]}, {targets.MAX_GRID[1]} and {targets.MAX_GRID[2]} in",
        f"{targets.MAX_REGISTERS_PER_THREAD} of a thread, {targets.REGISTERS_PER_SM} of a block",
        f"| {targets.MAX_PARAMETER_BYTES} bytes together",
        f"{MAX_SCRATCH} buffers of at most {MAX_EXTENTS} extents, {limits.MAX_SCRATCH_BYTES} bytes",
        *(f"`{name}(" for name in FUNCTIONS),
        *(f"`{name}`" for name in SPARSE_FEATURES),
    ):
        assert figure in TEXT
    assert targets.MAX_BLOCK == (1024, 1024, 64)


@pytest.mark.parametrize("name", targets.ARCHITECTURES)
def test_the_shared_memory_of_every_architecture(name: str) -> None:
    (row,) = [line for line in TEXT.split("\n") if line.startswith("| shared memory of a block")]
    said = re.search(rf"`{name}`.*?\b(\d{{5,}})", row)
    assert said is not None
    assert int(said[1]) == targets.ARCHITECTURES[name].shared_per_block


def test_the_keys_are_those_of_the_code() -> None:
    for key in {key for dialect in DIALECTS.values() for key in dialect.keys}:
        assert f"`{key}`" in TEXT
