"""Sectors and wavefronts are what the rules of the hardware say, line by line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emulated_cases import spmm
from emulation import Case, Machine, Step

from kernelwright.sandbox.run.access import Accesses, AccessReport

NAIVE = """
__global__ void transpose(int n, const float* x, float* y) {
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    y[column * n + row + i] = x[(row + i) * n + column];
}
"""
TILED = """
__global__ void transpose(int n, const float* x, float* y) {
  __shared__ float s[32][32 + PAD];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    s[threadIdx.y + i][threadIdx.x] =
      x[(row + i) * n + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    y[(row + i) * n + column] =
      s[threadIdx.x][threadIdx.y + i];
}
"""


def transpose(source: str, n: int = 64) -> Case:
    return Case(
        source, ("transpose",), {"x": np.arange(n * n, dtype=np.float32).reshape(n, n)},
        {"y": ("float32", (n, n))}, (Step((n // 32, n // 32), (32, 8), (n, "x", "y")),),
    )  # fmt: skip


def of(report: AccessReport, space: str, operation: str) -> Accesses:
    (found,) = [a for a in report.accesses if (a.space, a.operation) == (space, operation)]
    return found


def test_the_naive_transpose_stores_a_sector_for_each_element(machine: Machine) -> None:
    case = transpose(NAIVE)
    report = machine.report(case)
    assert (report.outputs["y"] == case.inputs["x"].T).all()
    load, store = of(report, "global", "read"), of(report, "global", "write")
    assert load.line == store.line == 5
    assert load.requests == store.requests == 4 * 4 * 8
    assert (load.lanes, load.bytes) == (load.requests * 32, 4)
    assert (load.sectors_per_request, store.sectors_per_request) == (4, 32)
    assert load.ideal_sectors == load.sectors
    assert store.ideal_sectors == store.sectors / 8
    assert (load.buffers, store.buffers) == (("x",), ("y",))


@pytest.mark.parametrize(("pad", "wavefronts"), [(0, 32), (1, 1), (2, 2), (4, 4)])
def test_a_padded_tile_has_no_conflicts(machine: Machine, pad: int, wavefronts: int) -> None:
    case = transpose(f"#define PAD {pad}" + TILED)
    report = machine.report(case)
    assert (report.outputs["y"] == case.inputs["x"].T).all()
    assert of(report, "global", "read").sectors_per_request == 4
    assert of(report, "global", "write").sectors_per_request == 4
    assert of(report, "shared", "write").wavefronts_per_request == 1
    read = of(report, "shared", "read")
    assert read.line == 12
    assert read.wavefronts_per_request == wavefronts
    assert read.ideal_wavefronts == read.requests
    assert report.races == ()


WIDTHS = """
__global__ void k(const {type}* x, {type}* y) {{
  __shared__ {type} s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[{index}];
}}
"""


@pytest.mark.parametrize(
    ("dtype", "size", "index", "sectors", "wavefronts"),
    [
        ("float", 4, "threadIdx.x ^ 1", 4, 1),
        ("float", 4, "0", 4, 1),
        ("float2", 8, "threadIdx.x ^ 1", 8, 2),
        ("float4", 16, "threadIdx.x ^ 1", 16, 4),
        ("double", 8, "threadIdx.x % 2 * 32", 8, 4),
        ("unsigned char", 1, "threadIdx.x ^ 1", 1, 1),
        ("float", 4, "threadIdx.x * 2 % 64", 4, 2),
    ],
)
def test_every_width(
    machine: Machine, dtype: str, size: int, index: str, sectors: int, wavefronts: int
) -> None:
    x = np.arange(64 * size, dtype=np.uint8)
    case = Case(
        WIDTHS.format(type=dtype, index=index), ("k",), {"x": x}, {"y": ("uint8", (64 * size,))},
        (Step(1, 64, ("x", "y")),),
    )  # fmt: skip
    report = machine.report(case)
    load = of(report, "global", "read")
    assert (load.bytes, load.sectors_per_request) == (size, sectors)
    assert load.ideal_sectors == load.sectors
    assert of(report, "shared", "read").wavefronts_per_request == wavefronts


def test_a_loop_is_counted_turn_by_turn(machine: Machine) -> None:
    source = """
      __global__ void k(int n, const float* x, float* y) {
        float sum = 0;
        for (int i = 0; i < n; ++i) sum += x[threadIdx.x * n + i];
        y[threadIdx.x] = sum;
      }"""
    case = Case(source, ("k",), {"x": np.ones(32 * 8, np.float32)}, {"y": ("float32", (32,))},
                (Step(1, 32, (8, "x", "y")),))  # fmt: skip
    load = of(machine.report(case), "global", "read")
    assert (load.requests, load.sectors_per_request) == (8, 32)


SPMM = """
extern "C" __global__ void spmm(int m, int n, const int* __restrict__ indptr,
                                const int* __restrict__ indices,
                                const float* __restrict__ values, const float* __restrict__ B,
                                float* __restrict__ C) {
  int row = {row}, column = {column};
  if (row >= m) return;
  float sum = 0.0f;
  for (int p = indptr[row]; p < indptr[row + 1]; ++p) sum += values[p] * B[indices[p] * n + column];
  C[row * n + column] = sum;
}
"""


def test_the_ladder_of_spmm_asks_for_less_at_each_step(machine: Machine) -> None:
    best = spmm(200)
    (step,) = best.case.steps
    by_warp = {"row": "blockIdx.x", "column": "blockIdx.y * 32 + threadIdx.x"}
    by_thread = {"row": "blockIdx.x * 32 + threadIdx.x", "column": "blockIdx.y"}
    cases = []
    for place, grid in ((by_thread, (7, 64)), (by_warp, step.grid)):
        source = SPMM.replace("{row}", place["row"]).replace("{column}", place["column"])
        cases.append(replace(best.case, source=source, steps=(replace(step, grid=grid),)))
    requests, sectors, of_b = [], [], []
    for case in (*cases, best.case):
        report = machine.report(case)
        np.testing.assert_allclose(report.outputs["C"], best.expected["C"], atol=1e-4)
        accesses = [a for a in report.accesses if a.space == "global"]
        (loads_of_b,) = [a for a in accesses if a.buffers == ("B",)]
        of_b.append(loads_of_b.sectors_per_request)
        requests.append(sum(a.requests for a in accesses))
        sectors.append(sum(a.sectors for a in accesses))
    # How often pointers are read again is the compiler's choice; the factors are not.
    assert requests[0] > 1.5 * requests[1] > 3 * requests[2]
    assert sectors[0] > 10 * sectors[1] > 12 * sectors[2]
    assert of_b[0] > 15
    assert of_b[1:] == [4, 4]
