"""How long a candidate for a GPU takes to build, against a PyTorch extension with the same kernel.

    python benchmarks/build.py [--builds 15] [--target sm_90] [--extensions 1]

Prints medians from source to cubin, start of the jailed compiler and reading of its result
included, and their ratio to the extension, all taken in one run on this machine. Every source is
new to the cache. Where torch has CUDA headers the extension is built by torch.utils.cpp_extension;
where it has none, by what that would run: a C++ compiler for the binding and, beside it where there
is one, nvcc for the kernel.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kernelwright.errors import KernelwrightError, PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.features import features
from kernelwright.kernelbench.problem import Structure
from kernelwright.kernelbench.targets import Architecture, architecture
from kernelwright.sandbox.builders import cuda, toolchain
from kernelwright.sandbox.builders.compiler import find_compiler
from kernelwright.sandbox.builders.model import DeviceBuilt
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.plan import PlanFault, parse, resolve

LEAST_RATIO = 20.0
"""What a build must be faster by than an extension."""
MOST_S = {"CUDA C++": 0.2, "Triton": 1.0}
"""What a build may take on two cores."""

KERNEL = """\
extern "C" __global__ void softmax(int M, int N, const float* x, float* y) {
  __shared__ float part[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float* row = x + (size_t)blockIdx.x * N;
  float top = -3.4e38f, sum = 0;
  for (int i = threadIdx.x; i < N; i += blockDim.x) top = fmaxf(top, row[i]);
  for (int s = 16; s; s /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, s));
  if (lane == 0) part[warp] = top;
  __syncthreads();
  for (int w = 0; w < blockDim.x / 32; ++w) top = fmaxf(top, part[w]);
  __syncthreads();
  for (int i = threadIdx.x; i < N; i += blockDim.x) sum += expf(row[i] - top);
  for (int s = 16; s; s /= 2) sum += __shfl_xor_sync(~0u, sum, s);
  if (lane == 0) part[warp] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) sum += part[w];
  for (int i = threadIdx.x; i < N; i += blockDim.x)
    y[(size_t)blockIdx.x * N + i] = expf(row[i] - top) / sum;
}
"""
TRITON = '''\
"""
---
[[launch]]
kernel = "softmax"
grid = ["M"]
args = ["x", "y", "M", "N"]
constexpr = {BLOCK = "next_pow2(N)"}
---
"""
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, M, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * N + at, mask=at < N, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * N + at, e / tl.sum(e, 0), mask=at < N)
'''
BINDING = """\
#include <torch/extension.h>
void launch_softmax(int M, int N, const float* x, float* y);
torch::Tensor softmax(torch::Tensor x) {
  auto y = torch::empty_like(x);
  launch_softmax(x.size(0), x.size(1), x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("softmax", &softmax); }
"""
LAUNCHER = (
    KERNEL
    + """\
void launch_softmax(int M, int N, const float* x, float* y) { softmax<<<M, 256>>>(M, N, x, y); }
"""
)


def timed(builds: int, build: Callable[[int], object]) -> float:
    """Median seconds of so many builds; the first, which warms the machine up, is left out."""
    seconds = []
    for number in range(builds + 1):
        start = time.perf_counter()
        result = build(number)
        seconds.append(time.perf_counter() - start)
        if not isinstance(result, DeviceBuilt) and not hasattr(result, "device"):
            sys.exit(f"a kernel did not build: {result}")
    return statistics.median(seconds[1:])


def cuda_seconds(workshop: Workshop, chip: Architecture, builds: int) -> float:
    """Source to cubin of CUDA C++."""
    return timed(
        builds,
        lambda number: cuda.build(workshop, f"{KERNEL}// {number}\n", ("softmax",), chip),
    )


def triton_seconds(workshop: Workshop, chip: Architecture, builds: int) -> float:
    """Source to cubin of Triton, with its compiler warm."""
    if importlib.util.find_spec("triton") is None:
        raise PrerequisiteError("triton is not installed", hint="pip install triton")
    from kernelwright.sandbox.builders.triton import TritonBuilder, TritonRequest

    problem = registry.get("softmax")
    structure = Structure({"M": 4096, "N": 1000})

    def build(number: int) -> object:
        source = f"{TRITON}# {number}\n"
        plan = parse(source, "triton")
        assert not isinstance(plan, PlanFault), plan
        launches = resolve(plan, problem, structure.axes, features(structure), chip)
        assert not isinstance(launches, PlanFault), launches
        return builder.build(TritonRequest(source, problem, (structure,), plans=(launches,)))

    with TritonBuilder(workshop, chip) as builder:
        return timed(builds, build)


def extension_seconds(chip: Architecture, folder: Path) -> tuple[float, str]:
    """Seconds of one build of the extension, and how it was built."""
    (folder / "binding.cpp").write_text(BINDING)
    (folder / "kernel.cu").write_text(LAUNCHER)
    if _torch_builds_cuda():
        return _seconds(_by_torch(chip, folder)), "torch.utils.cpp_extension"
    commands = [_binding_command(folder)]
    how = "the C++ compiler for the binding"
    try:
        nvcc = toolchain.find_nvcc().path
        commands.append(
            [
                str(nvcc),
                f"-arch={chip.build_name}",
                "-c",
                str(folder / "kernel.cu"),
                "-o",
                str(folder / "kernel.o"),
            ]
        )
        how += ", nvcc for the kernel, side by side"
    except PrerequisiteError:
        how += " alone (no nvcc here)"
    return _seconds(*commands), how


def _torch_builds_cuda() -> bool:
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import torch.utils.cpp_extension as e; import torch; "
            "print(bool(torch.version.cuda and e.CUDA_HOME))",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() == "True"


def _by_torch(chip: Architecture, folder: Path) -> list[str]:
    capability = f"{chip.capability // 10}.{chip.capability % 10}"
    return [
        "env",
        f"TORCH_CUDA_ARCH_LIST={capability}",
        f"TORCH_EXTENSIONS_DIR={folder}",
        sys.executable,
        "-c",
        "import torch.utils.cpp_extension as e; e.load('softmax_extension', "
        f"['{folder}/binding.cpp', '{folder}/kernel.cu'], is_python_module=False)",
    ]


def _binding_command(folder: Path) -> list[str]:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise PrerequisiteError("torch is not installed", hint="pip install torch")
    headers = Path(spec.origin).parent / "include"
    includes = [headers, headers / "torch/csrc/api/include", sysconfig.get_path("include")]
    return [
        str(find_compiler().path),
        "-std=c++17",
        "-O3",
        "-fPIC",
        "-DTORCH_EXTENSION_NAME=softmax_extension",
        *(f"-I{folder}" for folder in includes),
        "-c",
        str(folder / "binding.cpp"),
        "-o",
        str(folder / "binding.o"),
    ]


def _seconds(*commands: list[str]) -> float:
    start = time.perf_counter()
    running = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    for process in running:
        _, words = process.communicate()
        if process.returncode != 0:
            sys.exit(f"the extension did not build: {words[-2000:]}")
    return time.perf_counter() - start


def main() -> None:
    """Measures all sides and prints the table; exit status 1 where a limit was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--builds", type=int, default=15)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--extensions", type=int, default=1)
    asked = parser.parse_args()
    chip, jail = architecture(asked.target), choose()
    medians: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(jail, Path(folder) / "cache")
        for name, measure in (("CUDA C++", cuda_seconds), ("Triton", triton_seconds)):
            try:
                medians[name] = measure(workshop, chip, asked.builds)
            except KernelwrightError as error:
                print(f"{name}: not measured: {error}")
        taken = []
        for number in range(asked.extensions):
            place = Path(folder) / f"extension{number}"
            place.mkdir()
            taken.append(extension_seconds(chip, place))
    extension = statistics.median(seconds for seconds, _ in taken)
    print(
        f"source to cubin for {chip.build_name}, {asked.builds} builds, "
        f"{len(os.sched_getaffinity(0))} CPUs, jail {jail.name}"
    )
    print(f"  {'PyTorch extension':18s} {extension:8.3f} s  ({taken[0][1]})")
    missed = False
    for name, seconds in medians.items():
        ratio = extension / seconds
        print(f"  {name:18s} {seconds:8.3f} s  {ratio:6.0f} times faster")
        missed |= seconds > MOST_S[name] or ratio < LEAST_RATIO
    sys.exit(1 if missed or not medians else 0)


if __name__ == "__main__":
    main()
