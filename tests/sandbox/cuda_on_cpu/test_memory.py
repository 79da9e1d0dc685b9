"""Sectors and wavefronts are what the rules of the hardware say, line by line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emulated_operators import spmm
from emulation import Case, Machine, Step

from kernelwright.sandbox.plan.model import Scratch
from kernelwright.sandbox.run import memory_access
from kernelwright.sandbox.run.memory_access import Accesses, AccessReport

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
        source,
        ("transpose",),
        {"x": np.arange(n * n, dtype=np.float32).reshape(n, n)},
        {"y": ("float32", (n, n))},
        (Step((n // 32, n // 32), (32, 8), (n, "x", "y")),),
    )


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
        # Lanes that read what one beside them reads, or the next but one, share a phase.
        ("float4", 16, "threadIdx.x / 8", 16, 2),
        ("float4", 16, "threadIdx.x % 2", 16, 2),
        ("float4", 16, "threadIdx.x % 4", 16, 4),
        ("double", 8, "threadIdx.x % 2 * 32", 8, 2),
        ("double", 8, "threadIdx.x % 4 * 16", 8, 8),
        ("unsigned char", 1, "threadIdx.x ^ 1", 1, 1),
        ("float", 4, "threadIdx.x * 2 % 64", 4, 2),
    ],
)
def test_every_width(
    machine: Machine, dtype: str, size: int, index: str, sectors: int, wavefronts: int
) -> None:
    x = np.arange(64 * size, dtype=np.uint8)
    case = Case(
        WIDTHS.format(type=dtype, index=index),
        ("k",),
        {"x": x},
        {"y": ("uint8", (64 * size,))},
        (Step(1, 64, ("x", "y")),),
    )
    report = machine.report(case)
    load = of(report, "global", "read")
    assert (load.bytes, load.sectors_per_request) == (size, sectors)
    assert load.ideal_sectors == load.sectors
    assert of(report, "shared", "read").wavefronts_per_request == wavefronts


@pytest.mark.parametrize("vector", ["float4", "Pack"])
def test_a_vector_is_one_access_whatever_becomes_of_its_elements(
    machine: Machine, vector: str
) -> None:
    source = """
      struct alignas(16) Pack { float x, y, z, w; };
      __device__ VECTOR load(const float* from) { return *reinterpret_cast<const VECTOR*>(from); }
      __global__ void k(const float* x, float* y) {
        __shared__ alignas(16) float s[128];
        float sum = 0;
        for (int i = 0; i < 2; ++i) {
          const VECTOR a = load(x + 128 * i + 4 * threadIdx.x);
          sum += a.x * a.y + a.z * a.w;
        }
        for (int i = 0; i < 4; ++i) s[32 * i + threadIdx.x] = sum;
        __syncwarp();
        const VECTOR c = load(s + 4 * threadIdx.x);
        y[threadIdx.x] = c.x + c.y + c.z * c.w;
      }""".replace("VECTOR", vector)
    case = Case(
        source,
        ("k",),
        {"x": np.ones(256, np.float32)},
        {"y": ("float32", (32,))},
        (Step(1, 32, ("x", "y")),),
    )
    report = machine.report(case)
    assert (report.outputs["y"] == 4 + 4 + 16).all()
    load, read = of(report, "global", "read"), of(report, "shared", "read")
    assert (load.bytes, load.requests, load.sectors) == (16, 2, load.ideal_sectors)
    assert (read.bytes, read.requests, read.wavefronts) == (16, 1, read.ideal_wavefronts)


def test_a_loop_is_counted_turn_by_turn(machine: Machine) -> None:
    source = """
      __global__ void k(int n, const float* x, float* y) {
        float sum = 0;
        for (int i = 0; i < n; ++i) sum += x[threadIdx.x * n + i];
        y[threadIdx.x] = sum;
      }"""
    case = Case(
        source,
        ("k",),
        {"x": np.ones(32 * 8, np.float32)},
        {"y": ("float32", (32,))},
        (Step(1, 32, (8, "x", "y")),),
    )
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


def test_a_part_of_the_blocks_stands_for_all(machine: Machine) -> None:
    case = transpose(NAIVE, n=1024)
    (whole,) = machine.report(case).launches
    assert (whole.blocks, whole.counted, whole.warps, whole.scale) == (1024, 1024, 8192, 1)
    report = machine.report(case, budget=100_000)
    (part,) = report.launches
    # Of 2,048 accesses in each block; some blocks are run between two looks at their number.
    assert 48 < part.counted < 200
    assert part.scale == 1024 / part.counted
    for of_part, of_whole in zip(part.accesses, whole.accesses, strict=True):
        assert of_part.requests * part.scale == of_whole.requests
        assert of_part.sectors * part.scale == of_whole.sectors
    # They are spread over the grid: every sixteenth of the columns of blocks has some.
    written = np.isfinite(report.outputs["y"]).reshape(16, 64, 1024).any(axis=(1, 2))
    assert written.all()
    again = machine.report(case, budget=100_000)
    assert again.launches == report.launches


STEPS = """
__global__ void first(int n, TYPE* starts) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  if (i < n) starts[i] = i;
}
__global__ void second(int n, const TYPE* starts, float* y) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  if (i < n) y[i] = starts[n - 1 - i];
}
"""


@pytest.mark.parametrize(("dtype", "is_made"), [("int32", True), ("float32", False)])
def test_indices_of_later_launches_are_made_though_nobody_watches(
    machine: Machine, dtype: str, is_made: bool
) -> None:
    n, name = 32 * 256, {"int32": "int", "float32": "float"}[dtype]
    case = Case(
        STEPS.replace("TYPE", name),
        ("first", "second"),
        {"x": np.zeros(1, np.float32)},
        {"y": ("float32", (n,))},
        (Step(n // 32, 32, (n, "starts")), Step(n // 32, 32, (n, "starts", "y"), kernel=1)),
        (Scratch("starts", dtype, (n,)),),
    )
    report = machine.report(case, budget=32)
    assert [(one.kernel, one.counted) for one in report.launches] == [(0, 16), (1, 16)]
    right = report.outputs["y"] == np.arange(n)[::-1]
    # Sums that are missing are let be, and some of the other end were not made.
    assert bool(right.sum() == 16 * 32) is is_made
    whole = machine.report(case)
    assert [one.counted for one in whole.launches] == [256, 256]
    assert (whole.outputs["y"] == np.arange(n)[::-1]).all()


@pytest.mark.parametrize(("dtype", "size"), [("bfloat16", 2), ("float8_e4m3fn", 1)])
def test_scratch_of_types_that_numpy_lacks(machine: Machine, dtype: str, size: int) -> None:
    source = """
      __global__ void k(int n, unsigned char* kept, float* y) {
        kept[threadIdx.x] = threadIdx.x;
        __syncthreads();
        y[threadIdx.x] = kept[n - 1 - threadIdx.x];
      }"""
    n = 32 * size
    case = Case(
        source,
        ("k",),
        {"x": np.zeros(1, np.float32)},
        {"y": ("float32", (n,))},
        (Step(1, n, (n, "kept", "y")),),
        (Scratch("kept", dtype, (32,)),),
    )
    assert (machine.report(case).outputs["y"] == np.arange(n)[::-1]).all()


def test_what_a_block_reads_again_comes_from_l1(machine: Machine) -> None:
    source = """
      __global__ void k(int times, const float* x, float* y) {
        float sum = 0;
        for (int i = 0; i < times; ++i) {
          sum += x[threadIdx.x];
          __syncwarp();
        }
        y[blockIdx.x * 32 + threadIdx.x] = sum;
      }"""
    case = Case(
        source,
        ("k",),
        {"x": np.ones(32, np.float32)},
        {"y": ("float32", (96,))},
        (Step(3, 32, (10, "x", "y")),),
    )
    report = machine.report(case)
    load, store = of(report, "global", "read"), of(report, "global", "write")
    assert (load.sectors, store.sectors) == (3 * 10 * 4, 3 * 4)
    # Each block begins with an empty one; what is written goes through.
    assert (load.from_l2, store.from_l2) == (3 * 4, 3 * 4)


def test_the_warp_with_the_most_work_is_told(machine: Machine) -> None:
    source = """
      __global__ void k(const float* x, float* y) {
        const int warp = threadIdx.x / 32;
        float sum = 0;
        for (int i = 0; i <= 9 * (warp == 3); ++i) sum += x[i * 32 + threadIdx.x % 32];
        y[threadIdx.x] = sum;
      }"""
    case = Case(
        source,
        ("k",),
        {"x": np.ones(320, np.float32)},
        {"y": ("float32", (128,))},
        (Step(1, 128, ("x", "y")),),
    )
    (launch,) = machine.report(case).launches
    # Two requests in three of the warps, eleven in the last one.
    assert launch.longest == 11 / ((2 + 2 + 2 + 11) / 4)


LAUNCH = {
    "what": "launch",
    "launch": 0,
    "kernel": 0,
    "blocks": 4,
    "counted": 4,
    "warps": 4,
    "requests": 8,
    "longest": 2,
}
PLACE = {"code": 1, "line": 2, "kind": "read"}
RACE = {
    "what": "race",
    "first": PLACE,
    "second": PLACE,
    "threads": [0, 1],
    "blocks": [0, 0],
    "launch": 0,
    "buffer": 0,
    "is_weak": 0,
    "is_flight": 0,
    "count": 1,
}


@pytest.mark.parametrize("line", [LAUNCH, RACE])
def test_lines_of_a_report_that_are_whole_are_taken(line: dict[str, object]) -> None:
    assert memory_access._is_sound(line)


@pytest.mark.parametrize(
    "line",
    [
        "launch",
        [],
        {},
        {"what": "launch"},
        {"what": "global"},
        {**LAUNCH, "what": "other"},
        {**LAUNCH, "blocks": -1},
        {**LAUNCH, "warps": "4"},
        {**LAUNCH, "requests": True},
        {**LAUNCH, "longest": 1e9},
        {**LAUNCH, "counted": 1 << 70},
        {**LAUNCH, "what": ["launch"]},
        {**RACE, "threads": [0]},
        {**RACE, "threads": 3},
        {**RACE, "first": None},
        {**RACE, "second": {**PLACE, "kind": "jump"}},
        {**RACE, "second": {**PLACE, "line": None}},
    ],
)
def test_what_a_candidate_writes_into_its_report_harms_nobody(line: object) -> None:
    assert not memory_access._is_sound(line)


FRAGMENTS = """#include <mma.h>
using namespace nvcuda;
__global__ void square(const __half* x, float* y) {
  __shared__ __half s[16 * 24];
  for (int i = threadIdx.x; i < 256; i += 64) s[i / 16 * 24 + i % 16] = x[i];
  BARRIER;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  wmma::load_matrix_sync(a, s, 24);
  wmma::load_matrix_sync(b, s, 24);
  wmma::mma_sync(sum, a, b, sum);
  wmma::store_matrix_sync(y + threadIdx.x / 32 * 256, sum, 16, wmma::mem_row_major);
}
"""


def fragments(barrier: str) -> Case:
    values = np.random.default_rng(1).integers(-4, 5, (16, 16)).astype(np.float16)
    return Case(
        FRAGMENTS.replace("BARRIER", barrier),
        ("square",),
        {"x": values},
        {"y": ("float32", (2, 16, 16))},
        (Step(1, 64, ("x", "y")),),
    )


def test_fragments_are_loaded_and_stored_on_the_lines_that_say_so(machine: Machine) -> None:
    case = fragments("__syncthreads()")
    report = machine.report(case)
    x = case.inputs["x"].astype(np.float32)
    assert (report.outputs["y"] == x @ x).all()
    moved = {
        a.line: (a.space, a.operation, a.requests * a.bytes)
        for a in report.accesses
        if a.line in (11, 12, 14)
    }
    # Of each of two warps 32 lanes with 8 elements of 2 bytes, and of 4.
    assert moved == {
        11: ("shared", "read", 2 * 16),
        12: ("shared", "read", 2 * 16),
        14: ("global", "write", 2 * 32),
    }
    assert not report.races


def test_a_fragment_that_is_loaded_too_early_is_a_race_with_both_lines(machine: Machine) -> None:
    races = machine.report(fragments("")).races
    told = {frozenset(race.lines) for race in races}
    assert told <= {frozenset((5, 11)), frozenset((5, 12))}
    assert told
