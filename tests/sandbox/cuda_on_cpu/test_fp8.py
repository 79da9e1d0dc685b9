"""fp8, fp4 and their scales: every code, and numbers around every boundary between two codes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from emulation import Case, Machine, Step

from kernelwright.kernelbench.codecs.elements import Overflow, codes_of, elements_of, encode
from kernelwright.kernelbench.codecs.elements import float64_of as exactly
from kernelwright.kernelbench.dtypes import (
    BFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E8M0FNU,
    FLOAT16,
    DType,
)

TYPES = {
    "fp8_e4m3": FLOAT8_E4M3FN,
    "fp8_e5m2": FLOAT8_E5M2,
    "fp8_e8m0": FLOAT8_E8M0FNU,
    "fp4_e2m1": FLOAT4_E2M1FN,
}
HEAD = "#include <cuda_fp8.h>\n#include <cuda_fp4.h>\n"


def play(machine: Machine, body: str, x: np.ndarray, columns: int, kind: str) -> np.ndarray:
    """The columns that the body writes to `out` for each x."""
    source = (
        f"{HEAD}__global__ void k(int n, const {kind}* x, int* y) {{\n"
        "  int i = blockIdx.x * 256 + threadIdx.x; if (i >= n) return;\n"
        f"  {kind} v = x[i]; int* out = y + i * {columns};\n  {body}\n}}\n"
    )
    steps = (Step(-(-len(x) // 256), 256, (len(x), "x", "y")),)
    case = Case(source, ("k",), {"x": x}, {"y": ("int32", (len(x), columns))}, steps)
    return machine.run(case)["y"].T


@pytest.mark.parametrize("name", TYPES)
def test_every_code_is_the_number_of_the_table(machine: Machine, name: str) -> None:
    dtype = TYPES[name]
    codes = np.arange(1 << dtype.bits, dtype=np.int32)
    body = f"""__nv_{name} one; one.__x = v;
      out[0] = __float_as_int(float(one));
      out[1] = __half_as_ushort(__half(one));
      out[2] = __bfloat16_as_ushort(__nv_bfloat16(one));"""
    wide, half, brain = play(machine, body, codes, 3, "int")
    expected = exactly(elements_of(codes.astype(np.uint8), dtype))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(wide.view(np.float32).astype(np.float64), expected)
        np.testing.assert_array_equal(
            half.astype(np.uint16).view(np.float16), expected.astype(np.float16)
        )
    np.testing.assert_array_equal(
        brain.astype(np.uint16).view(ml_dtypes.bfloat16).astype(np.float64),
        expected.astype(ml_dtypes.bfloat16).astype(np.float64),
    )


def boundaries(dtype: DType) -> np.ndarray:
    """float32: each number of the type, each middle between two, and what is just beside them."""
    codes = np.arange(1 << (dtype.bits - 1), dtype=np.uint8)
    numbers = exactly(elements_of(codes, dtype))
    numbers = numbers[np.isfinite(numbers)]
    last = numbers[-1]
    middles = (numbers[1:] + numbers[:-1]) / 2
    more = [last * 1.03125, last * 1.0625, last * 1.07, last * 1.125, last * 1.2, last * 9, 1e30]
    exact = np.concatenate([numbers, middles, more]).astype(np.float32)
    beside = [exact, np.nextafter(exact, np.float32(0)), np.nextafter(exact, np.float32(np.inf))]
    found = np.concatenate([*beside, np.array([np.inf], np.float32)])
    return np.concatenate([found, -found, np.array([np.nan], np.float32)])


@pytest.mark.parametrize("name", ["fp8_e4m3", "fp8_e5m2", "fp4_e2m1"])
def test_numbers_become_the_nearest_code(machine: Machine, name: str) -> None:
    dtype, x = TYPES[name], boundaries(TYPES[name])
    kind = name[-4:].upper()
    if dtype is FLOAT4_E2M1FN:
        body = "out[0] = __nv_cvt_float_to_fp4(v, __NV_E2M1, cudaRoundNearest); out[1] = out[0];"
    else:
        body = f"""out[0] = __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_{kind});
          out[1] = __nv_cvt_float_to_fp8(v, __NV_NOSAT, __NV_{kind});"""
    body += f"""
      out[2] = __nv_{name}(v).__x;
      out[3] = __nv_{name[:3]}x2_{name[4:]}(make_float2(v, 0.5f)).__x;
      out[4] = (int)__nv_{name[:3]}x4_{name[4:]}(make_float4(v, 0.5f, v, 2)).__x;"""
    finite, infinite, one, two, four = play(machine, body, x, 5, "float")
    nan, held = np.isnan(x), np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf)
    saturated = codes_of(encode(held, dtype, overflow=Overflow.SATURATE)).astype(np.int64)
    saturated[nan] = 7 if dtype is FLOAT4_E2M1FN else 0x7F
    np.testing.assert_array_equal(finite, saturated)
    np.testing.assert_array_equal(one, saturated)
    half, other = (
        int(codes_of(encode(np.array([z]), dtype, overflow=Overflow.SATURATE))[0])
        for z in (0.5, 2.0)
    )
    bits = dtype.bits
    np.testing.assert_array_equal(two, saturated | half << bits)
    packed = saturated | half << bits | saturated << 2 * bits | other << 3 * bits
    np.testing.assert_array_equal(four.view(np.uint32) & ((1 << 4 * bits) - 1), packed)
    if dtype is not FLOAT4_E2M1FN:
        beyond = codes_of(encode(held, dtype, overflow=Overflow.NONFINITE)).astype(np.int64)
        beyond[nan] = 0x7F
        np.testing.assert_array_equal(infinite, beyond)
        if dtype is FLOAT8_E5M2:
            theirs = held.astype(ml_dtypes.float8_e5m2).view(np.uint8)
            np.testing.assert_array_equal(infinite[~nan], theirs[~nan])


@pytest.mark.parametrize("source", [FLOAT16, BFLOAT16], ids=str)
def test_every_half_becomes_fp8(machine: Machine, source: DType) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    raw = "__half_raw" if source is FLOAT16 else "__nv_bfloat16_raw"
    name = "halfraw" if source is FLOAT16 else "bfloat16raw"
    body = f"""{raw} r{{(unsigned short)v}};
      out[0] = __nv_cvt_{name}_to_fp8(r, __NV_SATFINITE, __NV_E4M3);
      out[1] = __nv_cvt_{name}_to_fp8(r, __NV_SATFINITE, __NV_E5M2);"""
    found = play(machine, body, codes.view(np.int16), 2, "short")
    x = exactly(elements_of(codes, source))
    for got, dtype in zip(found, (FLOAT8_E4M3FN, FLOAT8_E5M2), strict=True):
        held = np.where(np.isnan(x), 0.0, x)
        want = codes_of(encode(held, dtype, overflow=Overflow.SATURATE)).astype(np.int64)
        np.testing.assert_array_equal(got, np.where(np.isnan(x), 0x7F, want))


def test_scales_are_powers_of_two_that_are_large_enough(machine: Machine) -> None:
    x = np.concatenate([boundaries(FLOAT8_E8M0FNU), np.float32([0.0, 1e-42, 3e38, 0.7])])
    body = """out[0] = __nv_cvt_float_to_e8m0(v, __NV_SATFINITE, cudaRoundPosInf);
      out[1] = __nv_cvt_float_to_e8m0(v, __NV_NOSAT, cudaRoundZero);
      out[2] = __nv_fp8_e8m0(v).__x;"""
    up, down, made = play(machine, body, x, 3, "float")
    np.testing.assert_array_equal(made, up)
    size = np.abs(x.astype(np.float64))
    known = np.isfinite(size) & (size > 2.0**-127)
    with np.errstate(divide="ignore"):
        exponent = np.log2(size, where=known, out=np.zeros_like(size))
    np.testing.assert_array_equal(up[known], np.minimum(np.ceil(exponent[known]) + 127, 254))
    np.testing.assert_array_equal(down[known], np.floor(exponent[known]) + 127)
    assert (up[size <= 2.0**-127] == 0).all()
    assert (up[np.isinf(size)] == 254).all()
    assert (down[np.isinf(size)] == 255).all()
    assert (up[np.isnan(size)] == 255).all()
