"""half and bfloat16: each code, and each intrinsic, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from emulation import Case, Machine, Step
from narrow_floats import SHARE, fold, nearest_codes, rounded, values

from kernelwright.kernelbench.dtypes import BFLOAT16, FLOAT16

TYPES = {"half": FLOAT16, "bfloat16": BFLOAT16}
CUDA = {"half": ("__half", "__half2"), "bfloat16": ("__nv_bfloat16", "__nv_bfloat162")}
CODES = 1 << 16


def table(
    machine: Machine, name: str, columns: tuple[str, ...], **inputs: np.ndarray
) -> np.ndarray:
    """A row of int32 for each code; the columns are expressions of its number a, and of b and c.

    Other inputs are read as `b` and `c` (codes) or `f` (float32) of the same row.
    """
    one, two = CUDA[name]
    given = {"codes": np.arange(CODES, dtype=np.uint16).view(np.int16), **inputs}
    reads = {"b": "H b = H{Raw{(unsigned short)b_[i]}};", "f": "float f = f_[i];"}
    reads["c"] = "H c = H{Raw{(unsigned short)c_[i]}};"
    kinds = {"int16": "short", "float32": "float", "int64": "long long"}
    parameters = ", ".join(
        f"const {kinds[str(array.dtype)]}* {key}_" for key, array in given.items()
    )
    source = f"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
using H = {one}; using H2 = {two}; using Raw = {one}_raw;
__device__ int code(H x) {{ return ((Raw)x).x; }}
__device__ int code(H2 x) {{ return *reinterpret_cast<int*>(&x); }}
__device__ int code(float x) {{ return __float_as_int(x); }}
__device__ int code(int x) {{ return x; }}
__global__ void k({parameters}, int* y) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  H a = H{{Raw{{(unsigned short)codes_[i]}}}};
  {" ".join(reads.get(key, f"auto {key} = {key}_[i];") for key in given if key != "codes")}
  int* out = y + (long)i * {len(columns)};
  {" ".join(f"out[{n}] = code({what});" for n, what in enumerate(columns))}
}}
"""
    case = Case(
        source,
        ("k",),
        given,
        {"y": ("int32", (CODES, len(columns)))},
        (Step(CODES // 256, 256, (*given, "y")),),
    )
    return machine.run(case)["y"].T


def partners(seed: int) -> np.ndarray:
    """For each code another one, half of them of a like size."""
    rng = np.random.default_rng(seed)
    near = np.arange(CODES) + rng.integers(-3000, 3000, CODES)
    wild = rng.integers(0, CODES, CODES)
    return np.where(rng.random(CODES) < 0.5, near, wild).astype(np.uint16)


@pytest.mark.parametrize("name", TYPES)
def test_every_code_converts(machine: Machine, name: str) -> None:
    dtype = TYPES[name]
    a = values(np.arange(CODES, dtype=np.uint16), dtype)
    numbers = np.nan_to_num(a)
    columns = (
        f"__{name}2float(a)",
        f"__float2{name}(__{name}2float(a))",
        f"__{name}2int_rn(a)",
        f"__{name}2int_rz(a)",
        f"__{name}2int_ru(a)",
        f"__{name}2int_rd(a)",
        f"(int)__{name}2short_rn(a)",
        f"(int)__{name}2uchar_rz(a)",
        "__hneg(a)",
        "__habs(a)",
    )
    wide, back, *whole, short, char, negated, positive = table(machine, name, columns)
    # A signalling NaN would warn.
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(wide.view(np.float32).astype(np.float64), a)
    np.testing.assert_array_equal(back, nearest_codes(a, dtype))
    for found, expected in zip(whole, (np.rint, np.trunc, np.ceil, np.floor), strict=True):
        clipped = np.clip(expected(numbers), -(2.0**31), 2.0**31 - 1)
        np.testing.assert_array_equal(found, clipped.astype(np.int64))
    np.testing.assert_array_equal(short, np.clip(np.rint(numbers), -(2**15), 2**15 - 1))
    np.testing.assert_array_equal(char, np.clip(np.trunc(numbers), 0, 255))
    codes = np.arange(CODES)
    np.testing.assert_array_equal(negated, codes ^ 0x8000)
    np.testing.assert_array_equal(positive, codes & 0x7FFF)


@pytest.mark.parametrize("mode", ["rn", "rz", "ru", "rd"])
@pytest.mark.parametrize("name", TYPES)
def test_numbers_are_rounded_as_the_suffix_says(machine: Machine, name: str, mode: str) -> None:
    """Around every boundary between two codes, and integers of 64 bits beyond what double holds."""
    dtype, rng = TYPES[name], np.random.default_rng(5)
    near = np.nan_to_num(values(np.arange(CODES, dtype=np.uint16), dtype), posinf=7e4, neginf=-7e4)
    aside = rng.choice([0, 2.0**-9, 2.0**-12, -(2.0**-10), 2.0**-20], CODES)
    with np.errstate(over="ignore"):
        f = (near * (1 + aside)).astype(np.float32)
    f[~np.isfinite(f)] = 1.0
    n = (rng.integers(-(1 << 62), 1 << 62, CODES) >> rng.integers(0, 62, CODES)).astype(np.int64)
    columns = (
        f"__float2{name}_{mode}(f)",
        f"__ll2{name}_{mode}(n)",
        f"__int2{name}_{mode}((int)n)",
    )
    found = table(machine, name, columns, f=f, n=n)
    for every, given in zip(found, (f, n, n.astype(np.int32)), strict=True):
        codes, numbers = every[::SHARE], given[::SHARE]
        exact = np.array([rounded(Fraction(x.item()), dtype, mode) for x in numbers])
        expected = nearest_codes(exact, dtype) | np.where(
            np.signbit(numbers.astype(float)), 0x8000, 0
        )
        np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize("name", TYPES)
def test_arithmetic_is_rounded_once(machine: Machine, name: str) -> None:
    dtype = TYPES[name]
    codes = [np.arange(CODES, dtype=np.uint16), partners(1), partners(2)]
    a, b, c = (values(one, dtype) for one in codes)
    columns = ("__hadd(a, b)", "a - b", "__hmul_rn(a, b)", "__hdiv(a, b)", "__hfma(a, b, c)")
    columns += ("__hfma_sat(a, b, c)", "__hfma_relu(a, b, c)", "__hadd_sat(a, b)")
    found = table(machine, name, columns, b=codes[1].view(np.int16), c=codes[2].view(np.int16))
    b_divides = np.where(b == 0, np.nan, b)
    add = fold(lambda x, y: x + y, a, b, dtype=dtype)
    fma = fold(lambda x, y, z: x * y + z, a, b, c, dtype=dtype)
    with np.errstate(invalid="ignore"):
        expected = (
            add,
            fold(lambda x, y: x - y, a, b, dtype=dtype),
            fold(lambda x, y: x * y, a, b, dtype=dtype),
            fold(lambda x, y: x / y, a, b_divides, dtype=dtype),
            fma,
            np.clip(fma, 0, 1),
            np.maximum(fma, 0),
            np.clip(add, 0, 1),
        )
    for what, got, want in zip(columns, found, expected, strict=True):
        known = np.isfinite(want) | np.isinf(want)
        got_values = values(got[known].astype(np.uint16), dtype)
        np.testing.assert_array_equal(got_values, want[known], err_msg=what)


@pytest.mark.parametrize("name", TYPES)
def test_comparisons_know_nan_and_the_sign_of_zero(machine: Machine, name: str) -> None:
    dtype = TYPES[name]
    other = np.where(np.arange(CODES) % 7 == 0, np.arange(CODES), partners(3)).astype(np.uint16)
    other[0], other[0x8000] = 0x8000, 0
    a, b = values(np.arange(CODES, dtype=np.uint16), dtype), values(other, dtype)
    ordered = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
    nan = np.isnan(a) | np.isnan(b)
    columns = [f"(int)__h{op}(a, b)" for op in ordered]
    columns += [f"(int)__h{op}u(a, b)" for op in ordered]
    columns += [f"(int)__h{op}2_mask(H2(a, b), H2(b, a))" for op in ("lt", "ltu")]
    columns += ["__hmax(a, b)", "__hmin(a, b)", "__hmax_nan(a, b)", "__hmin_nan(a, b)"]
    found = table(machine, name, tuple(columns), b=other.view(np.int16))
    for row, op in enumerate(ordered):
        np.testing.assert_array_equal(found[row], ordered[op] & ~nan, err_msg=op)
        np.testing.assert_array_equal(found[6 + row], ordered[op] | nan, err_msg=op + "u")
    for row, extra in ((12, False), (13, True)):
        low = np.where((a < b) | (nan & extra), 0xFFFF, 0)
        high = np.where((b < a) | (nan & extra), 0xFFFF, 0)
        np.testing.assert_array_equal(found[row].view(np.uint32), low | high << 16)
    most, least = np.fmax(a, b), np.fmin(a, b)
    for got, want in ((found[14], most), (found[15], least)):
        np.testing.assert_array_equal(values(got.astype(np.uint16), dtype), want)
    assert found[14][0] == found[14][0x8000] == 0
    assert found[15][0] == found[15][0x8000] == 0x8000
    for got, want in ((found[16], most), (found[17], least)):
        assert (got[nan] == 0x7FFF).all()
        np.testing.assert_array_equal(values(got[~nan].astype(np.uint16), dtype), want[~nan])


FUNCTIONS = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "rcp": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "rint": np.rint,
    "trunc": np.trunc,
}


@pytest.mark.parametrize("name", TYPES)
def test_mathematics_of_every_code(machine: Machine, name: str) -> None:
    """Within one code of the nearest; that of two is that of one, twice."""
    dtype = TYPES[name]
    a = values(np.arange(CODES, dtype=np.uint16), dtype)
    columns = [f"h{function}(a)" for function in FUNCTIONS]
    columns += [f"h2{function}(H2(a, H(1.0f)))" for function in FUNCTIONS]
    found = table(machine, name, tuple(columns))
    for row, (function, reference) in enumerate(FUNCTIONS.items()):
        with np.errstate(all="ignore"):
            exact = reference(a)
        known = np.isfinite(exact)
        want = nearest_codes(np.where(known, exact, 0.0), dtype)
        assert np.abs(found[row] - want)[known].max() <= 1, function
        np.testing.assert_array_equal(found[12 + row] & 0xFFFF, found[row], err_msg=function)


PAIRS = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void k(const uint4* x, uint4* y, int* sums) {
  int t = threadIdx.x;
  uint4 raw = x[t];
  half2* pair = reinterpret_cast<half2*>(&raw);
  for (int i = 0; i < 4; ++i)
    pair[i] = __hfma2(pair[i], __float2half2_rn(2.0f), make_half2(__float2half(1.0f), half(-1)));
  half2 shuffled = __shfl_xor_sync(~0u, pair[0], 1);
  pair[3] = __lowhigh2highlow(shuffled);
  y[t] = raw;
  float2 both = __half22float2(pair[1]);
  __nv_bfloat162 brain = __float22bfloat162_rn(both);
  atomicAdd((half2*)sums, __floats2half2_rn(1.0f, 0.5f));
  atomicAdd((__nv_bfloat162*)sums + 1, __halves2bfloat162(__low2bfloat16(brain), __nv_bfloat16(2)));
  atomicAdd((half*)sums + 4, __low2half(pair[2]));
  atomicAdd((__nv_bfloat16*)sums + 5, __high2bfloat16(brain));
}
"""


def test_vectors_of_pairs_shuffles_and_atomics(machine: Machine) -> None:
    x = np.arange(32 * 8, dtype=np.float16).reshape(32, 8) / 4
    case = Case(
        PAIRS,
        ("k",),
        {"x": x.view(np.int16)},
        {"y": ("int16", (32, 8)), "sums": ("int32", (3,))},
        (Step(arguments=("sums", 12), zero=True), Step(1, 32, ("x", "y", "sums"))),
    )
    found = machine.run(case)
    y = x * 2 + np.array([1, -1] * 4, np.float16)
    shuffled = y[np.arange(32) ^ 1, :2][:, ::-1]
    expected = np.concatenate([y[:, :6], shuffled], axis=1)
    np.testing.assert_array_equal(found["y"].view(np.float16), expected)
    halves = found["sums"].view(np.float16)
    assert halves[:2].tolist() == [32.0, 16.0]
    brains = values(found["sums"].view(np.uint16), BFLOAT16)
    sums = np.zeros(3)
    for row in expected:
        low, high = (rounded(Fraction(float(v)), BFLOAT16) for v in row[2:4])
        sums[0] = rounded(Fraction(sums[0]) + Fraction(low), BFLOAT16)
        sums[1] = float(np.float16(sums[1]) + row[4])
        sums[2] = rounded(Fraction(sums[2]) + Fraction(high), BFLOAT16)
    assert (brains[2], brains[3]) == (sums[0], 64.0)
    assert (float(halves[4]), brains[5]) == (sums[1], sums[2])
