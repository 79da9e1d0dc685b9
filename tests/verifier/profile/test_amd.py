"""The static profile of AMD's code objects: really built kernels, read in their assembly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.arithmetic import arithmetic_of
from kernelwright.kernelbench.problem import Problem, Structure
from kernelwright.kernelbench.products import device_of
from kernelwright.kernelbench.targets import Vendor, architecture
from kernelwright.sandbox.builders.triton import TritonBuilder, TritonBuilt, TritonRequest
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.traces.records import Level, Profile
from kernelwright.verifier.profile import amd_listing
from kernelwright.verifier.profile.chains import count_chained
from kernelwright.verifier.profile.classes import OpClass
from kernelwright.verifier.profile.mix import flops_of, kind_of, mix_of, width_of
from kernelwright.verifier.profile.occupancy import Demand, occupancy
from kernelwright.verifier.profile.sass import Instruction
from kernelwright.verifier.profile.static import static_profile
from kernelwright.verifier.profile.tensor_cores import element_of, multiply_adds

HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
SOFTMAX = (
    HEAD
    + """def softmax(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * N + at, mask=at < N, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * N + at, e / tl.sum(e, 0), mask=at < N)


def run(M, N, x, y):
    softmax[(M,)](x, y, N, BLOCK=triton.next_power_of_2(N), num_warps=4)
"""
)
PRODUCT = (
    HEAD
    + """def product(A, B, C, M, N, K):
    i = (tl.program_id(0) * 64 + tl.arange(0, 64))[:, None]
    j = (tl.program_id(1) * 64 + tl.arange(0, 64))[None, :]
    total = tl.zeros([64, 64], tl.float32)
    for start in range(0, K, 32):
        k = start + tl.arange(0, 32)
        a = tl.load(A + i * K + k[None, :], mask=(i < M) & (k[None, :] < K), other=0.0)
        b = tl.load(B + k[:, None] * N + j, mask=(k[:, None] < K) & (j < N), other=0.0)
        total = tl.dot(a, b, total)
    tl.store(C + i * N + j, total, mask=(i < M) & (j < N))


def run(M, N, K, A, B, C):
    product[(triton.cdiv(M, 64), triton.cdiv(N, 64))](A, B, C, M, N, K, num_warps=4)
"""
)
MOST_WAVES = {"gfx942": 8, "gfx1201": 16}
"""Of a SIMD: who asks for all of them gets the fewest registers."""
GEMM, SMALL = registry.get("gemm_f16"), {"M": 256, "N": 256, "K": 256}


class Made(NamedTuple):
    """A built candidate and its profile."""

    built: TritonBuilt
    profile: Profile

    def figure(self, name: str) -> float:
        return next(m.value for m in self.profile.metrics if m.name == name)


class Bench(NamedTuple):
    """Builds and profiles for one target."""

    workshop: Workshop
    builder: TritonBuilder

    def make(self, source: str, problem: Problem, axes: dict[str, int]) -> Made:
        found = self.builder.build(TritonRequest(source, problem, (Structure(axes),)))
        assert isinstance(found, TritonBuilt), found
        profile = static_profile(
            self.workshop,
            found.device,
            found.launches[0],
            flops=problem.flops(axes),
            moved=problem.bytes_moved(axes),
            arithmetic=arithmetic_of(problem),
            device=device_of(self.builder.architecture.name),
        )
        return Made(found, profile)


@pytest.fixture(scope="module", params=["gfx942", "gfx1201"])
def bench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    try:
        workshop = Workshop(choose("auto"), tmp_path_factory.mktemp("cache"))
    except PrerequisiteError as error:
        pytest.skip(f"no jail works here: {error}")
    with TritonBuilder(workshop, architecture(request.param)) as builder:
        yield Bench(workshop, builder)


def test_a_softmax_is_read(bench: Bench) -> None:
    made = bench.make(SOFTMAX, registry.get("softmax"), {"M": 4096, "N": 1024})
    assert made.figure("block_threads") == 4 * bench.builder.architecture.warp
    assert made.figure("load_bytes") == made.figure("store_bytes") == 16
    assert made.figure("special_functions") > 0
    assert made.figure("barriers") >= 2
    assert made.figure("tensor_instructions") == made.figure("spill_stores") == 0
    assert made.figure("occupancy") == 1
    assert made.figure("scalar_registers") > 0
    times = [m for m in made.profile.metrics if m.name in ("modelled_us", "roofline_us")]
    assert [m.level for m in times] == [Level.MODELLED, Level.MODELLED]
    assert made.figure("modelled_us") > made.figure("roofline_us") > 0
    assert any("no device of AMD's was compared" in r for r in made.profile.remarks)
    assert not any("no instructions are known" in r for r in made.profile.remarks)


def test_a_product_is_of_matrix_cores(bench: Bench) -> None:
    made = bench.make(PRODUCT, GEMM, SMALL)
    of_cdna = bench.builder.architecture.name == "gfx942"
    name = "v_mfma_f32_" if of_cdna else "v_wmma_f32_16x16x16_f16"
    assert any(name in remark for remark in made.profile.remarks)
    assert made.figure("tensor_fp16") == made.figure("tensor_instructions") > 0
    assert made.figure("tensor_work_share") == 1
    # What the loop's instructions do in one pass is the tile's product.
    (code,) = made.built.device.cubins
    listing = amd_listing.listings(code.listing)["product"]
    inside = [i for i, loop in listing.counted if loop and kind_of(i) is OpClass.TENSOR]
    assert 4 * sum(map(multiply_adds, inside)) == 64 * 64 * 32


def test_spills_are_told_and_cost_time(bench: Bench) -> None:
    axes, waves = {"M": 65536, "N": 4096}, MOST_WAVES[bench.builder.architecture.name]
    crowded = SOFTMAX.replace("num_warps=4", f"num_warps=1, waves_per_eu={waves}")
    made = bench.make(crowded, registry.get("softmax"), axes)
    (facts,) = made.built.device.kernels
    assert facts.registers <= bench.builder.architecture.registers.most
    assert made.figure("spill_stores") > 0
    assert made.figure("local_accesses") > 0
    assert made.figure("stack_bytes") > 0
    roomy = SOFTMAX.replace("num_warps=4", "num_warps=1, waves_per_eu=1")
    lean = bench.make(roomy, registry.get("softmax"), axes)
    assert lean.figure("spill_stores") == 0
    assert made.figure("modelled_us") > lean.figure("modelled_us")


def test_registers_allow_as_many_wavefronts_as_the_compiler_says(bench: Bench) -> None:
    chip = bench.builder.architecture
    sources = ((SOFTMAX, registry.get("softmax"), {"M": 64, "N": n}) for n in (256, 8192, 16384))
    for source, problem, axes in (*sources, (PRODUCT, GEMM, SMALL)):
        built = bench.make(source, problem, axes).built
        (facts,), (code,) = built.device.kernels, built.device.cubins
        found = re.search(r"^; Occupancy: (\d+)", code.listing, re.MULTILINE)
        assert found is not None
        demand = Demand(chip.warp * chip.registers.parts, facts.registers, 0, chip.warp)
        wide = replace(chip, max_blocks=1024)
        assert occupancy(demand, wide).warps == chip.registers.parts * int(found[1])


def told(name: str, operands: str = "") -> Instruction:
    return Instruction(0, name, operands, vendor=Vendor.AMD)


@pytest.mark.parametrize(
    ("name", "kind", "width", "flops"),
    [
        ("global_load_dwordx4", OpClass.LOAD, 16, 0),
        ("global_load_d16_hi_b16", OpClass.LOAD, 2, 0),
        ("buffer_load_b32", OpClass.LOAD, 4, 0),
        ("global_store_b128", OpClass.STORE, 16, 0),
        ("global_load_lds_dwordx4", OpClass.ASYNC, 16, 0),
        ("global_atomic_add_f32", OpClass.ATOMIC, 4, 0),
        ("ds_read2_b64", OpClass.SHARED, 16, 0),
        ("ds_read_b64_tr_b16", OpClass.SHARED, 8, 0),
        ("ds_bpermute_b32", OpClass.WARP, 4, 0),
        ("scratch_store_dwordx2", OpClass.LOCAL, 8, 0),
        ("s_barrier_signal", OpClass.BARRIER, 4, 0),
        ("s_barrier_wait", OpClass.CONTROL, 4, 0),
        ("s_add_i32", OpClass.SCALAR, 4, 0),
        ("v_fma_f32", OpClass.FP32, 4, 2),
        ("v_pk_fma_f32", OpClass.FP32, 4, 4),
        ("v_add_f32_dpp", OpClass.FP32, 4, 1),
        ("v_cmp_gt_f32_e64", OpClass.FP32, 4, 0),
        ("v_exp_f32_e32", OpClass.SPECIAL, 4, 1),
        ("v_cvt_f32_f16_e32", OpClass.CONVERT, 4, 0),
        ("v_fma_f64", OpClass.FP64, 8, 2),
        ("v_lshl_add_u64", OpClass.INTEGER, 8, 0),
        ("v_mov_b32_e32", OpClass.OTHER, 4, 0),
    ],
)
def test_what_an_instruction_is(name: str, kind: OpClass, width: int, flops: float) -> None:
    found = told(name)
    assert (kind_of(found), flops_of(found)) == (kind, flops)
    if kind in (OpClass.LOAD, OpClass.STORE, OpClass.ASYNC, OpClass.SHARED, OpClass.LOCAL):
        assert width_of(found) == width


def test_of_a_pair_both_count() -> None:
    pair = told("v_dual_fmac_f32", "v1, v2, v3 :: v_dual_add_f32 v4, v5, v6")
    assert flops_of(pair) == 3


@pytest.mark.parametrize(
    ("name", "element", "done"),
    [
        ("v_mfma_f32_32x32x8_f16", "fp16", 8192),
        ("v_mfma_f32_32x32x4_2b_bf16", "bf16", 8192),
        ("v_mfma_f32_16x16x8_xf32", "tf32", 2048),
        ("v_mfma_f32_16x16x32_bf8_fp8", "fp8", 8192),
        ("v_mfma_i32_32x32x16_i8", "int8", 16384),
        ("v_mfma_f64_16x16x4_f64", "fp64", 1024),
        ("v_wmma_f32_16x16x16_bf16", "bf16", 4096),
        ("v_wmma_i32_16x16x16_iu8", "int8", 4096),
    ],
)
def test_what_a_matrix_instruction_multiplies(name: str, element: str, done: int) -> None:
    found = told(name)
    assert kind_of(found) is OpClass.TENSOR
    assert (element_of(found), multiply_adds(found)) == (element, done)
    assert flops_of(found) == 2 * done / (64 if "mfma" in name else 32)


CODE = """
	.type	k,@function
k:
	.loc	1 3 1                           ; candidate.py:3:1
	v_mov_b32_e32 v1, 0
.LBB0_1:                                ; =>This Inner Loop Header: Depth=1
	.loc	2 9 1                           ; standard.py:9:1 @[ candidate.py:7:5 ]
	global_load_dword v2, v[4:5], off
	s_waitcnt vmcnt(0)
	global_load_dword v6, v[2:3], off       ; of what was loaded
	v_add_f32_e32 v1, v6, v1
	s_cbranch_scc1 .LBB0_1
	s_endpgm
.Lfunc_end0:
"""


def test_an_assembly_has_loops_lines_and_chains_of_loads() -> None:
    (listing,) = amd_listing.listings(CODE).values()
    assert [(loop.first, loop.last, loop.depth) for loop in listing.loops] == [(1, 5, 1)]
    assert [i.line for i in listing.instructions] == [3, 7, 7, 7, 7, 7, 7]
    assert mix_of(listing).in_loops[OpClass.LOAD] == 2
    assert mix_of(listing).scalar_lines == (7,)
    assert count_chained(listing.instructions) == {1: 1, 3: 2}
