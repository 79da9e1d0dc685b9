"""What the static profile says of kernels whose order is known; writes docs/results/static.md.

    python benchmarks/static_profiles.py [--target sm_90] [--output docs/results/static.md]

Nothing is measured and no GPU is needed: the figures are the compiler's and the model's. Each group
does the same work, the worst first.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.arithmetic import arithmetic_of
from kernelwright.kernelbench.products import device_of
from kernelwright.kernelbench.targets import Architecture, architecture
from kernelwright.sandbox.builders import cuda
from kernelwright.sandbox.builders.model import DeviceBuilt
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.plan.model import Launch, Launches
from kernelwright.sandbox.run.memory_access import Accesses, LaunchCount
from kernelwright.traces.records import Profile
from kernelwright.verifier.profile.executed import Counts
from kernelwright.verifier.profile.static import static_profile

N = 1 << 24
SIDE = 2048
COLUMNS = (
    ("registers", "registers", ".0f"),
    ("spills (B)", "spill_stores", ".0f"),
    ("shared (B)", "shared_bytes", ".0f"),
    ("blocks/SM", "blocks_per_sm", ".0f"),
    ("occupancy", "occupancy", ".0%"),
    ("load (B)", "load_bytes", ".3g"),
    ("roofline (µs)", "roofline_us", ",.1f"),
    ("modelled (µs)", "modelled_us", ",.1f"),
)


class Row(NamedTuple):
    """One kernel, named k, with its launch and the work of its group."""

    group: str
    name: str
    source: str
    grid: int
    block: int
    flops: float
    moved: float
    counts: Counts | None = None


_HEAD = 'extern "C" __global__ void'
_INDEX = "blockIdx.x * blockDim.x + threadIdx.x"
STRIDED = f"""{_HEAD} k(int n, const float* x, float* y) {{
  for (int i = {_INDEX}; i < n; i += gridDim.x * blockDim.x) y[i] = 2 * x[i];
}}"""
SCALAR = f"""{_HEAD} k(int n, const float* x, float* y) {{
  int i = {_INDEX};
  if (i < n) y[i] = 2 * x[i];
}}"""
VECTOR = f"""{_HEAD} k(int n, const float4* x, float4* y) {{
  int i = {_INDEX};
  if (i < n / 4) {{ float4 v = x[i]; v.x *= 2; v.y *= 2; v.z *= 2; v.w *= 2; y[i] = v; }}
}}"""
NAIVE = f"""{_HEAD} k(int n, const float* A, const float* B, float* C) {{
  int x = blockIdx.x % (n / 16) * 16 + threadIdx.x % 16;
  int y = blockIdx.x / (n / 16) * 16 + threadIdx.x / 16;
  float s = 0;
  for (int j = 0; j < n; ++j)
    s += A[y * n + j] * B[j * n + x];
  C[y * n + x] = s;
}}"""
TILED = f"""{_HEAD} k(int n, const float* A, const float* B, float* C) {{
  __shared__ float a[16][16], b[16][17];
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  int row = blockIdx.x / (n / 16) * 16 + y, column = blockIdx.x % (n / 16) * 16 + x;
  float s = 0;
  for (int j = 0; j < n; j += 16) {{
    a[y][x] = A[row * n + j + x];
    b[y][x] = B[(j + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) s += a[y][i] * b[i][x];
    __syncthreads();
  }}
  C[row * n + column] = s;
}}"""
TRANSPOSE = f"""{_HEAD} k(int n, const float* x, float* y) {{
  int i = blockIdx.x % (n / 32) * 32 + threadIdx.x % 32;
  int j = blockIdx.x / (n / 32) * 8 + threadIdx.x / 32;
  y[(size_t)i * n + j] = x[(size_t)j * n + i];
}}"""
WIDE = f"""{_HEAD} BOUNDS k(int n, const float* x, float* y) {{
  float a[64];
  int t = {_INDEX};
#pragma unroll
  for (int j = 0; j < 64; ++j) a[j] = x[t + j];
  for (int i = 0; i < n; ++i) {{
    float v = x[i];
#pragma unroll
    for (int j = 0; j < 64; ++j) a[j] = a[j] * a[(j * 7 + 1) % 64] + v;
  }}
  float s = 0;
#pragma unroll
  for (int j = 0; j < 64; ++j) s += a[j];
  y[t] = s;
}}"""


def columns_stored() -> Counts:
    """What an emulation of the naive transpose counts on line 4: each lane has a sector."""
    store = Accesses(4, "global", "write", 4, 8, 256, 8 * 32, 8 * 4, 0, 0, 0)
    launch = LaunchCount(kernel=0, blocks=1, counted=1, warps=8, longest=1.0, accesses=(store,))
    return Counts("one block", (launch,), is_subject=False)


def rows() -> Iterator[Row]:
    """The kernels, group by group."""
    for name, source, grid in (
        ("one float at a time, 8 blocks", STRIDED, 8),
        ("one float a thread", SCALAR, N // 256),
        ("one float at a time, 1,056 blocks", STRIDED, 1056),
        ("float4", VECTOR, N // 1024),
    ):
        yield Row("y = 2x, 64 MiB", name, source, grid, 256, N, 8.0 * N)
    for name, counts in (
        ("stores a column", columns_stored()),
        ("the same if nothing was counted", None),
    ):
        yield Row("transpose, 64 MiB", name, TRANSPOSE, N // 256, 256, 0.0, 8.0 * N, counts)
    flops, moved = 2.0 * SIDE**3, 12.0 * SIDE**2
    for name, source in (("from global memory", NAIVE), ("tiles of 16 × 16 in shared", TILED)):
        yield Row("product, 2,048³", name, source, (SIDE // 16) ** 2, 256, flops, moved)
    for name, bounds in (
        ("registers forced to 32", "__launch_bounds__(1024, 2)"),
        ("registers as needed", ""),
    ):
        source = WIDE.replace("BOUNDS", bounds)
        yield Row("64 values a thread", name, source, 1056, 256, 1e10, 1e8)


def profiled(workshop: Workshop, row: Row, chip: Architecture) -> Profile:
    """The static profile of one row."""
    built = cuda.build(workshop, row.source, ("k",), chip)
    if not isinstance(built, DeviceBuilt):
        sys.exit(f"{row.name}: {built.reason}")
    launch = Launch(0, (row.grid, 1, 1), (row.block, 1, 1))
    return static_profile(
        workshop,
        built,
        Launches(("k",), (launch,)),
        flops=row.flops,
        moved=row.moved,
        arithmetic=arithmetic_of(registry.get("gemm")),
        device=device_of(chip.name),
        counts=row.counts,
    )


def page(chip: Architecture) -> str:
    """The table."""
    device = device_of(chip.name)
    heads = ["work", "kernel", *(head for head, _, _ in COLUMNS), "bound by"]
    lines = [
        "# Static profiles",
        "",
        f"`make static`: kernels for `{chip.build_name}`, modelled for "
        f"{device.name if device else 'no device'}. Nothing here was measured.",
        "",
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
    ]
    jail = choose()
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(jail, Path(folder))
        for row in rows():
            found = profiled(workshop, row, chip)
            told = next((r for r in found.remarks if "bound by" in r), "")
            figures = [format(found.get(name) or 0.0, form) for _, name, form in COLUMNS]
            lines.append(
                "| "
                + " | ".join([row.group, row.name, *figures, told.rpartition("bound by ")[2]])
                + " |"
            )
    return "\n".join([*lines, ""])


def main() -> None:
    """Writes the page and prints it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--output", type=Path, default=Path("docs/results/static.md"))
    asked = parser.parse_args()
    text = page(architecture(asked.target))
    asked.output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
