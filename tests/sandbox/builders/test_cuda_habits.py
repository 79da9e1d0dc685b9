"""What CUDA sources lean on out of habit: NVRTC and the emulation build it alike."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.builders import cuda, emulated, shims, toolchain
from kernelwright.sandbox.builders.model import BuildFailed, Built, DeviceBuilt, Unsupported
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.model import Jail
from kernelwright.tests.sandbox.builders.cuda_habits import BARE, HEADERS, OF_CUDA, OF_STD, Habit

NO_TENSORS: Any = SimpleNamespace(axes={}, tensors=[])
CUDA_HEADERS = (
    "cooperative_groups.h",
    "cooperative_groups/reduce.h",
    "cooperative_groups/scan.h",
    "cuda_fp16.h",
    "cuda_bf16.h",
    "mma.h",
    "cuda_pipeline.h",
    "cuda/std/limits",
    "cuda/std/type_traits",
    "cuda/std/cstdint",
    "math_constants.h",
)


@pytest.fixture(autouse=True)
def _needs_nvrtc() -> None:
    try:
        toolchain.find_nvrtc()
    except PrerequisiteError as error:
        pytest.skip(str(error))


def kernel(habit: Habit, name: str = "k") -> str:
    return (
        f"{habit.declarations}\n"
        f'extern "C" __global__ void {name}(const float* __restrict__ x, float* __restrict__ y,'
        f" int n) {{\nint i = threadIdx.x;\n{habit.statements}\n}}\n"
    )


def including(*names: str) -> str:
    return "".join(f"#include <{name}>\n" for name in names)


class Both:
    """The two builds of a candidate."""

    def __init__(self, cache: Path, jail: Jail) -> None:
        self.workshop = Workshop(jail, cache)

    def device(self, source: str, kernels: tuple[str, ...]) -> DeviceBuilt | BuildFailed:
        return cuda.build(self.workshop, source, kernels, architecture("sm_90"))

    def emulated(self, source: str, kernels: tuple[str, ...]) -> Built | BuildFailed | Unsupported:
        return emulated.build(self.workshop, source, NO_TENSORS, kernels, architecture="sm_90")

    def assert_taken(self, source: str, *kernels: str) -> None:
        on_device = self.device(source, kernels or ("k",))
        assert isinstance(on_device, DeviceBuilt), on_device
        on_cpu = self.emulated(source, kernels or ("k",))
        assert isinstance(on_cpu, Built), on_cpu


@pytest.fixture
def both(shared_cache: Path, any_jail: Jail) -> Both:
    return Both(shared_cache, any_jail)


def joined(rows: Mapping[str, Habit]) -> tuple[str, tuple[str, ...]]:
    """One source with a kernel for each row."""
    names = tuple(f"k{i}" for i in range(len(rows)))
    return "\n".join(map(kernel, rows.values(), names)), names


@pytest.mark.slow
def test_what_nvcc_has_without_an_include(both: Both) -> None:
    rows = {name: habit for name, habit in BARE.items() if name != "own definitions"}
    source, names = joined(rows)
    both.assert_taken(source, *names)
    both.assert_taken(kernel(BARE["own definitions"]))


def test_headers_named_needlessly(both: Both) -> None:
    habit = Habit("using namespace std;", "y[i] = x[i] + max(n, 1);")
    both.assert_taken(including(*HEADERS) + kernel(habit))


def test_headers_of_cuda_and_what_they_declare(both: Both) -> None:
    source, names = joined(OF_CUDA)
    both.assert_taken(including(*CUDA_HEADERS) + source, *names)


def test_the_rest_of_std_with_its_headers(both: Both) -> None:
    """As far as the CCCL of this toolkit has it: 13.0 has no <cuda/std/algorithm>."""
    tool = toolchain.find_nvrtc()
    rows = {
        name: habit
        for name, habit in OF_STD.items()
        if tool.bundles_headers
        or any((folder / "cuda" / "std" / name).exists() for folder in tool.includes)
    }
    assert rows
    source, names = joined(rows)
    both.assert_taken(including(*OF_STD) + source, *names)


def test_nvcc_takes_what_nvrtc_takes(shared_cache: Path, any_jail: Jail) -> None:
    try:
        toolchain.find_nvcc()
    except PrerequisiteError as error:
        pytest.skip(str(error))
    rows = {name: habit for name, habit in BARE.items() if name not in ("own definitions", "once")}
    source, names = joined(rows)
    needless = including("torch/extension.h", "ATen/ATen.h", "c10/cuda/CUDAGuard.h", "vector")
    found = cuda.build(
        Workshop(any_jail, shared_cache),
        needless + source,
        names,
        architecture("sm_90"),
        compiler="nvcc",
    )
    assert isinstance(found, DeviceBuilt), found


def test_block_algorithms_of_cub_build_for_a_device(both: Both) -> None:
    source = including("cub/cub.cuh") + kernel(
        Habit(
            "",
            """\
using Sum = cub::BlockReduce<float, 128>; __shared__ typename Sum::TempStorage room;
y[i] = Sum(room).Sum(x[i]);""",
        )
    )
    assert isinstance(both.device(source, ("k",)), DeviceBuilt)
    on_cpu = both.emulated(source, ("k",))
    assert isinstance(on_cpu, Unsupported)
    assert "line 5: a library of device code" in on_cpu.reasons[0]


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (
            'asm volatile("discard.global.L2 [%0], 128;" :: "l"(x));',
            "inline PTX: discard.global.L2",
        ),
        ("cooperative_groups::this_grid().sync();", "let the plan launch the rest"),
    ],
)
def test_what_only_a_device_has_is_told_with_its_line(
    statements: str, words: str, both: Both
) -> None:
    source = including("cooperative_groups.h") + kernel(Habit("", statements))
    assert isinstance(both.device(source, ("k",)), DeviceBuilt)
    on_cpu = both.emulated(source, ("k",))
    assert isinstance(on_cpu, Unsupported)
    assert on_cpu.reasons[0].startswith("line 5: ")
    assert words in on_cpu.reasons[0]


def test_lines_are_those_of_the_source(both: Both) -> None:
    source = including("cstdint", "torch/extension.h", "cuda_runtime.h") + "\n\n\nfloat a = b;\n"
    failed = both.device(source, ("k",))
    assert isinstance(failed, BuildFailed)
    assert 'error at line 7: identifier "b" is undefined' in failed.reason
    on_cpu = both.emulated(source, ("k",))
    assert isinstance(on_cpu, Unsupported)
    assert "line 7:" in on_cpu.reasons[0]


def test_names_of_headers_stay_in_their_folder() -> None:
    names = ("a/b.h", "../up.h", "/etc/passwd", "a/../b", "c//d", "./e", "x" * 200)
    assert list(shims.list_included(including(*names))) == ["a/b.h"]


def test_headers_of_cccl_are_read_only_for_what_the_prelude_lacks() -> None:
    plain = including("tuple") + "std::size_t n = std::max(1, 2);"
    assert shims.headers(plain, ())[b"tuple"] == b"#pragma once\n\n"
    for more in ("std::tuple<int> t;", "using namespace std;", "namespace s = std;"):
        assert b"cuda/std/tuple" in shims.headers(plain + more, ())[b"tuple"]
