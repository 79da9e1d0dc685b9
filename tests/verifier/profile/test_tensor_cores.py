"""Tensor cores in code that is really built: types, shapes, shares, times, and where unused."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.arithmetic import arithmetic_of
from kernelwright.kernelbench.products import device_of
from kernelwright.tests.verifier.profile.bench import Bench
from kernelwright.traces.records import Level, Profile
from kernelwright.verifier.profile.rates import TENSOR_SHARE, WARP_TENSOR_SHARE
from kernelwright.verifier.profile.sass import Instruction
from kernelwright.verifier.profile.tensor_cores import (
    ELEMENTS,
    element_of,
    is_wide,
    lane_flops,
    multiply_adds,
    tile_of,
)

THREADS = 128
WAVES = 4
"""Blocks for each SM: all of them have the same."""


class Product(NamedTuple):
    """One instruction of PTX, and what it should be in the code of a chip."""

    ptx: str
    registers: tuple[int, int, int]
    """Of a lane: D, A and B."""
    element: str
    multiply_adds: int
    sums: str = "f"
    """The constraint of D's registers: float or int."""


MMA = "mma.sync.aligned"
PRODUCTS = {
    "f16": Product(f"{MMA}.m16n8k16.row.col.f32.f16.f16.f32", (4, 4, 2), "fp16", 2048),
    "f16_k8": Product(f"{MMA}.m16n8k8.row.col.f32.f16.f16.f32", (4, 2, 1), "fp16", 1024),
    "bf16": Product(f"{MMA}.m16n8k16.row.col.f32.bf16.bf16.f32", (4, 4, 2), "bf16", 2048),
    "tf32": Product(f"{MMA}.m16n8k8.row.col.f32.tf32.tf32.f32", (4, 4, 2), "tf32", 1024),
    "tf32_k4": Product(f"{MMA}.m16n8k4.row.col.f32.tf32.tf32.f32", (4, 2, 1), "tf32", 512),
    "s8": Product(f"{MMA}.m16n8k32.row.col.s32.s8.s8.s32", (4, 4, 2), "int8", 4096, "r"),
    "u8": Product(f"{MMA}.m16n8k16.row.col.s32.u8.u8.s32", (4, 2, 1), "int8", 2048, "r"),
}
"""By kernel, on every chip from sm_80 on."""
ON_AMPERE = {
    "s4": Product(f"{MMA}.m16n8k64.row.col.s32.s4.s4.s32", (4, 4, 2), "int4", 8192, "r"),
    "b1": Product(
        f"{MMA}.m16n8k256.row.col.s32.b1.b1.s32.and.popc", (4, 4, 2), "binary", 32768, "r"
    ),
}
EIGHT = {"e4m3": Product(f"{MMA}.m16n8k32.row.col.f32.e4m3.e4m3.f32", (4, 4, 2), "fp8", 4096)}
# Hopper and B200 have no such warp-wide instruction: it is made of two in float16.
EIGHT_IN_HALVES = {"e4m3": EIGHT["e4m3"]._replace(element="fp16", multiply_adds=2048)}
ON = {
    "sm_80": {**PRODUCTS, **ON_AMPERE},
    "sm_89": {**PRODUCTS, **EIGHT},
    "sm_90": {**PRODUCTS, **EIGHT_IN_HALVES},
    "sm_100": {**PRODUCTS, **EIGHT_IN_HALVES},
    "sm_120": {**PRODUCTS, **EIGHT},
}


def mma_kernel(name: str, product: Product) -> str:
    """A loop over products of registers."""
    numbers = iter(range(sum(product.registers)))
    groups = [
        "{" + ",".join(f"%{next(numbers)}" for _ in range(count)) + "}"
        for count in product.registers
    ]
    d = ", ".join(f'"+{product.sums}"(d[{i}])' for i in range(product.registers[0]))
    given = ", ".join(f'"r"(a[i + {n}])' for n in range(sum(product.registers[1:])))
    kind = "float" if product.sums == "f" else "int"
    return f"""extern "C" __global__ void {name}({kind}* out, const unsigned* a, int n) {{
  {kind} d[4] = {{}};
  for (int i = 0; i < n; ++i)
    asm volatile("{product.ptx} {groups[0]}, {groups[1]}, {groups[2]}, {groups[0]};"
                 : {d} : {given});
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}}
"""


WGMMA = {
    "f16": Product("m64n8k16.f32.f16.f16", (4, 0, 0), "fp16", 8192),
    "bf16": Product("m64n8k16.f32.bf16.bf16", (4, 0, 0), "bf16", 8192),
    "tf32": Product("m64n8k8.f32.tf32.tf32", (4, 0, 0), "tf32", 4096),
    "e4m3": Product("m64n8k32.f32.e4m3.e4m3", (4, 0, 0), "fp8", 16384),
    "s8": Product("m64n8k32.s32.s8.s8", (4, 0, 0), "int8", 16384, "r"),
}
"""By kernel: a warp group's, of operands in shared memory."""


def wgmma_kernel(name: str, product: Product) -> str:
    kind = "float" if product.sums == "f" else "int"
    d = ", ".join(f'"+{product.sums}"(d[{i}])' for i in range(4))
    # Signs and, of 16 bits, the order of the factors in memory.
    more = {"fp16": ",1,1,0,0", "bf16": ",1,1,0,0", "int8": ""}.get(product.element, ",1,1")
    return f"""extern "C" __global__ void {name}({kind}* out, unsigned long long a, int n) {{
  {kind} d[4] = {{}};
  for (int i = 0; i < n; ++i) {{
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("wgmma.mma_async.sync.aligned.{product.ptx} {{%0,%1,%2,%3}}, %4, %4, 1{more};"
                 : {d} : "l"(a + i));
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }}
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}}
"""


TCGEN05 = {"f16": "untold", "tf32": "untold", "f8f6f4": "fp8", "i8": "int8"}
"""By kind, which is the kernel's name: what the code says of its type."""


def tcgen05_kernel(kind: str) -> str:
    return f"""extern "C" __global__ void {kind}(unsigned d, unsigned long long a, int n) {{
  for (int i = 0; i < n; ++i)
    asm volatile("{{.reg .pred p; setp.ne.b32 p, %2, 0; tcgen05.mma.cta_group::1.kind::{kind} "
                 "[%0], %1, %1, %3, p;}}" :: "r"(d), "l"(a + i), "r"(i), "r"(n));
}}
"""


SCALAR = """__device__ float wide(unsigned short v) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v));
  return f;
}
extern "C" __global__ void k(int n, const unsigned short* A, const unsigned short* B, float* C) {
  int x = blockIdx.x % (n / 16) * 16 + threadIdx.x % 16;
  int y = blockIdx.x / (n / 16) * 16 + threadIdx.x / 16;
  float s = 0;
  for (int j = 0; j < n; ++j) s += wide(A[y * n + j]) * wide(B[j * n + x]);
  C[y * n + x] = s;
}"""


def of_policy(bench: Bench, problem: str, source: str, kernels: object, kernel: str, chip: str):
    device = device_of(chip)
    assert device is not None
    return bench.profile(
        source,
        WAVES * device.sms,
        THREADS,
        chip=chip,
        kernels=tuple(kernels),
        kernel=kernel,
        flops=1e13,
        moved=1e3,
        arithmetic=arithmetic_of(registry.get(problem)),
    )


def tensor_us(found: Profile) -> float:
    return found.get("model_tensor_cores_us") or 0.0


def by_type(found: Profile) -> set[str]:
    return {e for e in ELEMENTS if found.get(f"tensor_{e}")}


@pytest.mark.parametrize(("chip", "name"), [(chip, name) for chip in ON for name in ON[chip]])
def test_a_warps_product_has_its_type_its_shape_and_its_peak(
    chip: str, name: str, bench: Bench
) -> None:
    product, device = ON[chip][name], device_of(chip)
    assert device is not None
    source = "".join(mma_kernel(each, made) for each, made in ON[chip].items())
    found = of_policy(bench, "gemm_f16", source, ON[chip], name, chip)
    assert by_type(found) == {product.element}
    assert 0 < (found.get("tensor_share") or 0) < 1
    # Of what is made of float16 some operations widen the factors.
    assert found.get("tensor_work_share") == pytest.approx(1, abs=0.02)
    (said,) = (r for r in found.remarks if "multiplies on tensor cores" in r)
    assert f"({product.element}, {product.multiply_adds} multiply-adds)" in said
    # All blocks go on at once: what decides is how fast tensor cores are in this very type.
    peak = device.tflops[{"int4": "int8", "binary": "int8"}.get(product.element, product.element)]
    capability = int(chip.removeprefix("sm_"))
    share = min(TENSOR_SHARE, WARP_TENSOR_SHARE.get(capability, 1.0))
    assert tensor_us(found) == pytest.approx(1e13 / (peak * 1e6 * share), rel=0.02)
    assert {m.level for m in found.metrics if m.name.startswith("tensor_")} == {Level.STATIC}


@pytest.mark.parametrize("name", WGMMA)
def test_a_warp_groups_product_reaches_more_of_the_peak(name: str, bench: Bench) -> None:
    product, device = WGMMA[name], device_of("sm_90")
    assert device is not None
    source = "".join(wgmma_kernel(each, made) for each, made in WGMMA.items())
    found = of_policy(bench, "gemm_f16", source, WGMMA, name, "sm_90")
    assert by_type(found) == {product.element}
    (said,) = (r for r in found.remarks if "multiplies on tensor cores" in r)
    assert f"({product.element}, {product.multiply_adds} multiply-adds)" in said
    peak = device.tflops[product.element] * 1e6
    assert tensor_us(found) == pytest.approx(1e13 / (peak * TENSOR_SHARE), rel=0.01)


@pytest.mark.parametrize("kind", TCGEN05)
@pytest.mark.parametrize(("problem", "rate"), [("gemm_bf16", 2250), ("gemm_tf32", 1100)])
def test_what_a_descriptor_says_is_guessed_of_the_problem(
    kind: str, problem: str, rate: float, bench: Bench
) -> None:
    """On a B200; what the code does say goes first."""
    source = "".join(map(tcgen05_kernel, TCGEN05))
    found = of_policy(bench, problem, source, TCGEN05, kind, "sm_100")
    assert by_type(found) == {TCGEN05[kind]}
    rate = 4500 if TCGEN05[kind] != "untold" else rate
    assert tensor_us(found) == pytest.approx(1e13 / (rate * 1e6 * TENSOR_SHARE), rel=0.01)
    (said,) = (r for r in found.remarks if "multiplies on tensor cores" in r)
    assert "how many, its code does not say" in said
    assert "all of the problem's operations are taken to be theirs" in said


def test_three_products_in_tf32_take_three_times_as_long(bench: Bench) -> None:
    source = "".join(mma_kernel(each, made) for each, made in ON["sm_80"].items())
    once, thrice = (
        of_policy(bench, problem, source, ON["sm_80"], "tf32", "sm_80")
        for problem in ("gemm_tf32", "gemm_tf32x3")
    )
    assert tensor_us(thrice) == pytest.approx(3 * tensor_us(once), rel=0.01)
    assert (once.get("peak_tflops"), thrice.get("peak_tflops")) == (156, 52)


@pytest.mark.parametrize(
    ("problem", "chip", "kinds", "times"),
    [
        ("gemm_f16", "sm_90", "fp16", 989 / 67),
        ("gemm_bf16", "sm_80", "bf16", 312 / 19.5),
        ("gemm_tf32", "sm_90", "tf32", 495 / 67),
        ("gemm_int8", "sm_89", "int8", 733 / 91.6),
        ("gemm_f16", "sm_75", "fp16", 65 / 8.1),
        ("gemm_f16", "sm_121", "fp16", None),
    ],
)
def test_a_product_that_leaves_tensor_cores_unused_is_told(
    problem: str, chip: str, kinds: str, times: float | None, bench: Bench
) -> None:
    work = {"flops": 2.0 * 1024**3, "moved": 6.0 * 1024**2}
    allowed = arithmetic_of(registry.get(problem))
    found = bench.profile(SCALAR, 64 * 64, chip=chip, arithmetic=allowed, **work)
    (said,) = (r for r in found.remarks if "no kernel uses tensor cores" in r)
    assert f"policy {allowed.policy} allows products in {kinds} on them" in said
    assert ("times that of fp32" in said) == (times is not None)
    assert found.get("tensor_share") == 0
    unused = found.get("unused_tensor_peak")
    assert unused == (pytest.approx(times) if times else None)


@pytest.mark.parametrize(
    ("problem", "chip"),
    [
        ("gemm", "sm_90"),
        ("bias_gelu_f16", "sm_90"),
        ("spmm_csr_f16", "sm_90"),
        ("gemm_bf16", "sm_75"),
        ("gemm_tf32", "sm_75"),
        ("gemm_tf32x3", "sm_89"),
    ],
)
def test_nobody_is_told_to_use_what_is_forbidden_absent_or_no_faster(
    problem: str, chip: str, bench: Bench
) -> None:
    """Strict float32; no product of matrices; types that Turing lacks; and an L40S, on which three
    products in TF32 take longer than one in float32."""
    found = bench.profile(SCALAR, 64, chip=chip, arithmetic=arithmetic_of(registry.get(problem)))
    assert not any("no kernel uses tensor cores" in remark for remark in found.remarks)
    assert found.get("unused_tensor_peak") is None


def test_one_kernel_on_tensor_cores_is_enough(bench: Bench) -> None:
    source = "".join(mma_kernel(each, made) for each, made in ON["sm_90"].items())
    found = of_policy(bench, "gemm_f16", source, ON["sm_90"], "f16", "sm_90")
    assert not any("no kernel uses tensor cores" in remark for remark in found.remarks)
    assert found.get("unused_tensor_peak") is None


@pytest.mark.parametrize(
    ("opcode", "element", "tile", "done"),
    [
        ("HMMA.SP.16832.F32", "fp16", (16, 8, 32), 2048),
        ("DMMA.884", "fp64", (8, 8, 4), 256),
        ("DMMA.16x8x8", "fp64", (16, 8, 8), 1024),
        ("HGMMA.64x256x16.F32.BF16", "bf16", (64, 256, 16), 262144),
        ("BGMMA.64x8x256.AND.POPC", "binary", (64, 8, 256), 131072),
        ("OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X", "fp4", (16, 8, 64), 8192),
        ("UTCOMMA", "fp4", None, 0),
        ("UTCIMMA", "int8", None, 0),
        ("UTCHMMA.2CTA", "untold", None, 0),
    ],
)
def test_names_of_instructions_say_what_they_multiply(
    opcode: str, element: str, tile: tuple[int, int, int] | None, done: float
) -> None:
    instruction = Instruction(0, opcode, "R4, R8, R12, R4")
    assert (element_of(instruction), tile_of(instruction)) == (element, tile)
    assert multiply_adds(instruction) == done
    lanes = 128 if is_wide(instruction) else 32
    assert lane_flops(instruction) * lanes == 2 * done
