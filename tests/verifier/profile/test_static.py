"""Static profiles of kernels that are really built: what they say, and in which order they rank."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.arithmetic import Arithmetic, arithmetic_of
from kernelwright.kernelbench.products import device_of
from kernelwright.kernelbench.targets import ARCHITECTURES, architecture
from kernelwright.sandbox.builders import disassembler, toolchain
from kernelwright.sandbox.builders.cuda import build
from kernelwright.sandbox.builders.model import DeviceBuilt
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.model import Jail
from kernelwright.sandbox.plan.model import (
    ZERO_FILL,
    Argument,
    ArgumentKind,
    Launch,
    Launches,
    Scratch,
)
from kernelwright.sandbox.run.memory_access import Accesses, LaunchCount
from kernelwright.tests.verifier.profile.bench import STRICT, Bench, N
from kernelwright.traces.records import Level, Profile
from kernelwright.verifier.profile.executed import Counts
from kernelwright.verifier.profile.model import LAUNCH_US
from kernelwright.verifier.profile.rates import DeviceRates
from kernelwright.verifier.profile.static import static_profile


def counted(line: int, waste: float, *operations: str, space: str = "global") -> Counts:
    """One block of another workload, whose accesses on a line take so much over their ideal."""
    accesses = tuple(
        Accesses(
            line, space, operation, 4, 100, 3200, int(400 * waste), 400, int(100 * waste), 100, 0
        )
        for operation in operations
    )
    count = LaunchCount(kernel=0, blocks=1, counted=1, warps=1, longest=1.0, accesses=accesses)
    return Counts("tiny", (count,), is_subject=False)


def modelled(profile: Profile) -> float:
    found = profile.get("modelled_us")
    assert found is not None
    return found


SCALAR = """extern "C" __global__ void k(int n, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}"""
VECTOR = """extern "C" __global__ void k(int n, const float4* x, float4* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 4) { float4 v = x[i]; v.x *= 2; v.y *= 2; v.z *= 2; v.w *= 2; y[i] = v; }
}"""
STRIDED = """extern "C" __global__ void k(int n, const float* x, float* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = 2 * x[i];
}"""
WIDE = """extern "C" __global__ void BOUNDS k(int n, const float* x, float* y) {
  float a[64];
  int t = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
  for (int j = 0; j < 64; ++j) a[j] = x[t + j];
  for (int i = 0; i < n; ++i) {
    float v = x[i];
#pragma unroll
    for (int j = 0; j < 64; ++j) a[j] = a[j] * a[(j * 7 + 1) % 64] + v;
  }
  float s = 0;
#pragma unroll
  for (int j = 0; j < 64; ++j) s += a[j];
  y[t] = s;
}"""
NAIVE = """extern "C" __global__ void k(int n, const float* A, const float* B, float* C) {
  int x = blockIdx.x % (n / 16) * 16 + threadIdx.x % 16;
  int y = blockIdx.x / (n / 16) * 16 + threadIdx.x / 16;
  float s = 0;
  for (int j = 0; j < n; ++j) s += A[y * n + j] * B[j * n + x];
  C[y * n + x] = s;
}"""
TILED = """extern "C" __global__ void k(int n, const float* A, const float* B, float* C) {
  __shared__ float a[16][16], b[16][17];
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  int row = blockIdx.x / (n / 16) * 16 + y, column = blockIdx.x % (n / 16) * 16 + x;
  float s = 0;
  for (int j = 0; j < n; j += 16) {
    a[y][x] = A[row * n + j + x];
    b[y][x] = B[(j + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) s += a[y][i] * b[i][x];
    __syncthreads();
  }
  C[row * n + column] = s;
}"""


def test_wider_accesses_rank_first(bench: Bench) -> None:
    scalar, vector = bench.profile(SCALAR, N // 256), bench.profile(VECTOR, N // 1024)
    assert modelled(vector) < modelled(scalar)
    assert scalar.get("load_bytes") == scalar.get("store_bytes") == 4
    assert vector.get("load_bytes") == vector.get("store_bytes") == 16


@pytest.mark.parametrize(
    ("name", "tflops", "words"),
    [
        ("gemm", 67, "fp32"),
        ("gemm_f16", 989, "fp16 on tensor cores"),
        ("gemm_tf32x3", 165, "tf32 on tensor cores, 3 products for one"),
        ("gemm_int8", 1979, "int8 on tensor cores"),
        ("bias_gelu_f16", 67, "fp32"),
    ],
)
def test_the_roofline_is_of_the_policys_arithmetic(
    name: str, tflops: float, words: str, bench: Bench
) -> None:
    """On an H200, by its data sheet."""
    work = {"flops": 1e12, "moved": 1e6, "arithmetic": arithmetic_of(registry.get(name))}
    found = bench.profile(SCALAR, N // 256, **work)
    assert found.get("peak_tflops") == tflops
    assert found.get("roofline_us") == pytest.approx(1e6 / tflops)
    (told,) = (m for m in found.metrics if m.name == "peak_tflops")
    assert (told.unit, told.level) == (f"TFLOP/s, {words}", Level.MODELLED)
    assert any(f"TFLOP/s ({words}; policy" in remark for remark in found.remarks)


def test_without_a_peak_of_its_arithmetic_the_roofline_is_of_bytes(bench: Bench) -> None:
    whole = Arithmetic("exact-integers", main=(), is_product=True)
    found = bench.profile(SCALAR, N // 256, flops=1e12, arithmetic=whole)
    assert found.get("roofline_us") == pytest.approx(8 * N / 4800e3)
    assert found.get("peak_tflops") is None
    assert any("roofline_us is of bytes alone: of exact-integers" in r for r in found.remarks)


def test_a_tiny_grid_ranks_last(bench: Bench) -> None:
    full, tiny = bench.profile(STRIDED, 1056), bench.profile(STRIDED, 8)
    assert modelled(tiny) > 5 * modelled(full)
    assert any("bound by latency" in remark for remark in tiny.remarks)


def test_spills_cost_time_and_are_told(bench: Bench) -> None:
    work = {"flops": 1e10, "moved": 1e8}
    clean = bench.profile(WIDE.replace("BOUNDS", ""), 1056, **work)
    spilled = bench.profile(WIDE.replace("BOUNDS", "__launch_bounds__(1024, 2)"), 1056, **work)
    assert clean.get("spill_stores") == 0
    assert (spilled.get("spill_stores") or 0) > 0
    assert (spilled.get("local_in_loops") or 0) > 0
    assert modelled(spilled) > modelled(clean)
    (said,) = (remark for remark in spilled.remarks if " spills " in remark)
    assert "under the cap of its launch bounds, in loops most at line" in said
    assert said.count(",") <= 3, "at most three lines"
    assert any("the most that its launch bounds leave" in remark for remark in spilled.remarks)
    assert not any("launch bounds" in remark for remark in clean.remarks)
    low = (clean.get("occupancy") or 0, spilled.get("occupancy") or 0)
    assert low[0] < low[1], "the spills bought occupancy, and the model must not be fooled by it"


def test_tiles_in_shared_memory_beat_none(bench: Bench) -> None:
    n = 2048
    work = {"flops": 2.0 * n**3, "moved": 12.0 * n * n}
    naive = bench.profile(NAIVE, (n // 16) ** 2, **work)
    tiled = bench.profile(TILED, (n // 16) ** 2, **work)
    assert modelled(tiled) < 0.6 * modelled(naive)
    assert (tiled.get("barriers") or 0) > 0
    assert tiled.get("shared_bytes") == (16 * 16 + 16 * 17) * 4


def test_counted_sectors_and_wavefronts_refine_it(bench: Bench) -> None:
    plain = bench.profile(SCALAR, N // 256)
    same = bench.profile(SCALAR, N // 256, counts=counted(3, 1, "read", "write"))
    stores = bench.profile(SCALAR, N // 256, counts=counted(3, 8, "write"))
    scattered = bench.profile(SCALAR, N // 256, counts=counted(3, 8, "read", "write"))
    elsewhere = bench.profile(SCALAR, N // 256, counts=counted(1, 8, "read", "write"))
    assert modelled(same) == modelled(plain) == modelled(elsewhere)
    assert modelled(scattered) > 2 * modelled(plain)
    assert modelled(scattered) > modelled(stores) > modelled(plain)
    n = 512
    work = {"flops": 2.0 * n**3, "moved": 12.0 * n * n}
    tiled = bench.profile(TILED, (n // 16) ** 2, **work)
    by_bank = counted(10, 16, "read", space="shared")
    conflicts = bench.profile(TILED, (n // 16) ** 2, counts=by_bank, **work)
    assert modelled(conflicts) > 3 * modelled(tiled)
    naive = bench.profile(NAIVE, (n // 16) ** 2, **work)
    # The sixteen lanes of a row of threads read one element of A together.
    shared = bench.profile(NAIVE, (n // 16) ** 2, counts=counted(5, 0.4, "read"), **work)
    assert modelled(shared) < modelled(naive)


SYNCS = """extern "C" __global__ void __launch_bounds__(256) k(int n, const float* x, float* y) {
  __shared__ float s[256];
  for (int i = 0; i < n; ++i) {
    s[threadIdx.x] = x[i * 256 + threadIdx.x];
    __syncwarp();
    float v = s[threadIdx.x ^ 1];
    __syncthreads();
    y[i * 256 + threadIdx.x] = v;
  }
}"""


SHUFFLES = """extern "C" __global__ void k(int n, const float* x, float* y) {
  float v = x[threadIdx.x];
  for (int i = 0; i < int(x[blockIdx.x * 8 + threadIdx.x / 32]); ++i)
    v += __shfl_xor_sync(0xffffffffu, v, 1);
  y[threadIdx.x] = v;
}"""


def test_barriers_are_those_of_blocks(bench: Bench) -> None:
    blocks, warps = bench.profile(SYNCS, 1000), bench.profile(SHUFFLES, 1000)
    assert (blocks.get("barriers") or 0) > 0
    # A shuffle in a loop whose trips are data brings the compiler's own WARPSYNC along.
    assert warps.get("barriers") == 0
    assert (warps.get("warp_syncs") or 0) > 0


@pytest.mark.parametrize("source", [STRIDED, NAIVE, TILED, SYNCS, SHUFFLES])
def test_a_loop_has_no_more_instructions_than_the_kernel(source: str, bench: Bench) -> None:
    found = bench.profile(source, 1024)
    inside, all_of_them = found.get("loop_instructions"), found.get("instructions")
    assert inside is not None
    assert all_of_them is not None
    assert 0 < inside <= all_of_them


def test_more_room_on_an_sm_is_no_advice_where_the_grid_has_no_blocks_for_it(
    bench: Bench,
) -> None:
    source = WIDE.replace("BOUNDS", "__launch_bounds__(1024)")
    full, small = (bench.profile(source, blocks, 1024) for blocks in (1000, 100))
    assert any("would give" in remark for remark in full.remarks), full.remarks
    assert not any("would give" in remark for remark in small.remarks)
    (told,) = (remark for remark in small.remarks if "are resident at once" in remark)
    assert "not binding" in told
    assert "limited by" not in told
    assert (small.get("waves") or 0) < 1 < (full.get("waves") or 0)


def test_a_modelled_time_adds_up(bench: Bench) -> None:
    found = bench.profile(TILED, 1024, flops=2.0 * 512**3, moved=12.0 * 512**2)
    terms = [m.value for m in found.metrics if re.fullmatch(r"model_\w+_us", m.name)]
    work = math.pow(sum(term**4 for term in terms), 0.25)
    assert found.get("launching_us") == pytest.approx(LAUNCH_US)
    assert modelled(found) == pytest.approx(work + LAUNCH_US)
    assert any(f"({work:.3g} of work and 2.5 of launching)" in r for r in found.remarks)


def test_an_address_that_lanes_share_is_no_narrow_access(bench: Bench) -> None:
    def told(*, lanes: int, sectors: int) -> bool:
        access = Accesses(5, "global", "read", 4, 100, lanes, sectors, sectors, 100, 100, 0)
        count = LaunchCount(0, blocks=1, counted=1, warps=1, longest=1.0, accesses=(access,))
        found = bench.profile(NAIVE, 1024, counts=Counts("tiny", (count,), is_subject=False))
        return any("less than eight bytes" in remark for remark in found.remarks)

    assert told(lanes=3200, sectors=400)
    assert not told(lanes=3200, sectors=100)


def test_bank_conflicts_have_their_price(bench: Bench) -> None:
    access = Accesses(10, "shared", "read", 4, 1000, 32_000, 0, 0, 16_000, 1000, 0)
    count = LaunchCount(0, blocks=1024, counted=64, warps=8, longest=1.0, accesses=(access,))
    counts = Counts("whole", (count,), is_subject=True)
    work = {"flops": 2.0 * 512**3, "moved": 12.0 * 512**2}
    found = bench.profile(TILED, 1024, counts=counts, **work)
    (said,) = (remark for remark in found.remarks if "bank conflicts" in remark)
    # 15,000 turns too many in each of 16 samples; 8 of 1024 blocks on the fullest SM.
    cost_us = 15_000 * 16 * 8 / 1024 / machine_hertz() * 1e6
    assert f"{cost_us:.2g} µs of model_load_store_us" in said
    assert (found.get("executed_instructions") or 0) > (found.get("executed_shared") or 0) > 0
    elsewhere = Counts("tiny", (count,), is_subject=False)
    guessed = bench.profile(TILED, 1024, counts=elsewhere, **work)
    assert not any("model_load_store_us" in remark for remark in guessed.remarks)
    assert guessed.get("executed_instructions") is None


def machine_hertz() -> float:
    device = device_of("sm_90")
    assert device is not None
    return DeviceRates(architecture("sm_90"), device).hertz


BUSY = """extern "C" __global__ void k(int n, const float* x, float* y) {
  float v = x[threadIdx.x], w = v + 1;
  for (int i = 0; i < n; ++i) v = v * w + 1;
  y[threadIdx.x] = v;
}"""


def test_waiting_is_told_with_what_it_rests_on(bench: Bench) -> None:
    waiting, busy = bench.profile(STRIDED, 8), bench.profile(BUSY, 1056, flops=1e11, moved=1e6)
    (said,) = (remark for remark in waiting.remarks if remark.startswith("model_latency_us"))
    assert "1 wave of blocks" in said
    assert "loads wait 600 cycles" in said
    assert not any(remark.startswith("model_latency_us") for remark in busy.remarks)


def test_what_a_profile_says(bench: Bench) -> None:
    found = bench.profile(SCALAR, N // 256)
    levels = {metric.name: metric.level for metric in found.metrics}
    assert levels["registers"] is levels["occupancy"] is levels["bytes"] is Level.STATIC
    assert levels["modelled_us"] is levels["roofline_us"] is Level.MODELLED
    assert found.get("occupancy") == 1
    assert found.get("limit_warps") == found.get("blocks_per_sm") == 8
    assert found.get("roofline_us") == pytest.approx(8 * N / 4800e3)
    assert 0 < (found.get("roofline_share") or 0) < 1
    assert any("no measurement" in remark and "H200" in remark for remark in found.remarks)
    assert any("occupancy 100%" in remark for remark in found.remarks)
    assert len({metric.name for metric in found.metrics}) == len(found.metrics)


@pytest.mark.parametrize("chip", ["sm_75", "sm_80", "sm_100", "sm_120"])
def test_other_architectures(chip: str, bench: Bench) -> None:
    scalar = bench.profile(SCALAR, N // 256, chip=chip)
    vector = bench.profile(VECTOR, N // 1024, chip=chip)
    assert modelled(vector) < modelled(scalar)
    floor = scalar.get("roofline_us")
    assert floor is not None
    assert floor < modelled(vector)


def test_without_a_data_sheet_no_time(bench: Bench) -> None:
    assert device_of("sm_121") is None
    assert "sm_121" in ARCHITECTURES
    found = bench.profile(SCALAR, N // 256, chip="sm_121")
    assert found.get("modelled_us") is None
    assert found.get("registers")
    assert any("no data sheet is known for sm_121" in remark for remark in found.remarks)


def test_what_does_not_fit_has_no_time(bench: Bench) -> None:
    found = bench.profile(SCALAR, 64, shared=300 << 10)
    assert found.get("modelled_us") is None
    assert found.get("blocks_per_sm") == 0
    assert any("not even one block" in remark for remark in found.remarks)


def test_without_a_disassembler_the_rest_is_told(bench: Bench, tmp_path: Path) -> None:
    built = bench.built(SCALAR)
    # A disassembler that is there and cannot read any cubin.
    broken = tmp_path / "bin" / "nvdisasm"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'not supported' >&2\nexit 1\n")
    broken.chmod(0o755)
    launches = Launches(("k",), (Launch(0, (64, 1, 1), (256, 1, 1)),))
    found = static_profile(
        replace(bench.workshop, folder=tmp_path),
        built,
        launches,
        flops=N,
        moved=8 * N,
        arithmetic=STRICT,
        device=device_of("sm_90"),
        home=tmp_path,
    )
    assert found.get("registers")
    assert found.get("instructions") is None
    assert modelled(found) > 0
    assert any("no instructions are known" in remark for remark in found.remarks)


def test_every_launch_costs(bench: Bench) -> None:
    fill = Launch(
        ZERO_FILL,
        arguments=(Argument(ArgumentKind.TENSOR, 1), Argument(ArgumentKind.INTEGER, 4 * N)),
    )
    once = Launch(0, (N // 256, 1, 1), (256, 1, 1))
    built = bench.built(SCALAR)
    times = []
    for plan in ((once,), (fill, once), (fill, once, once)):
        found = static_profile(
            bench.workshop,
            built,
            Launches(("k",), plan),
            flops=N,
            moved=8 * N,
            arithmetic=STRICT,
            device=device_of("sm_90"),
        )
        assert found.get("launches") == len(plan)
        times.append(modelled(found))
    assert times[1] - times[0] > LAUNCH_US + 4 * N / 4800e3
    assert times[2] - times[1] > LAUNCH_US
    only = static_profile(
        bench.workshop,
        built,
        Launches(("k",), (fill,)),
        flops=0,
        moved=4 * N,
        arithmetic=STRICT,
        device=device_of("sm_90"),
    )
    assert modelled(only) > 4 * N / 4800e3


def test_scratch_is_traffic(bench: Bench) -> None:
    launch = Launch(0, (N // 1024, 1, 1), (256, 1, 1))
    built = bench.built(VECTOR)
    times = [
        modelled(
            static_profile(
                bench.workshop,
                built,
                Launches(("k",), (launch,), scratch),
                flops=N,
                moved=8 * N,
                arithmetic=STRICT,
                device=device_of("sm_90"),
            )
        )
        for scratch in (
            (),
            (Scratch("partial", "float32", (N,)),),
            (Scratch("partial", "bfloat16", (2 * N,)),),
        )
    ]
    assert times[1] > 1.5 * times[0]
    assert times[2] == times[1]


def test_listings_come_from_the_jail_and_are_kept(jail: Jail, tmp_path: Path) -> None:
    try:
        toolchain.find_nvdisasm()
        toolchain.find_nvrtc()
    except PrerequisiteError as error:
        pytest.skip(str(error))
    workshop = Workshop(jail, tmp_path)
    built = build(workshop, SCALAR, ("k",), architecture("sm_90"))
    assert isinstance(built, DeviceBuilt)
    text = disassembler.disassemble(workshop, built.cubins[0])
    assert "LDG.E" in text
    assert "candidate.cu" in text
    assert text == disassembler.disassemble(workshop, built.cubins[0])
