"""Kernels of narrow types in the interpreter: right within their arithmetic, and mistakes seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn, float8_e5m2

from kernelwright.sandbox.triton_on_cpu import products
from kernelwright.tests.interpreting_directly import call_main
from kernelwright.tests.sandbox.triton_on_cpu.narrow_kernels import MATMUL, MATVEC, SOFTMAX

M, N, K = 40, 48, 320
Outputs = dict[str, np.ndarray]

PRODUCTS = (
    MATMUL
    + """

def main(a32, b32, a16, b16, abf, bbf, ai8, bi8, a4, b4, a5, b5, **c):
    matmul(a32, b32, c["ieee"], precision="ieee")
    matmul(a32, b32, c["tf32"], precision="tf32")
    matmul(a32, b32, c["default"])
    matmul(a32, b32, c["tf32x3"], precision="tf32x3")
    matmul(a16, b16, c["fp16"])
    matmul(a16, b16, c["fp16_stored"])
    matmul(a16, b16, c["half"], acc=tl.float16)
    matmul(abf, bbf, c["bf16"])
    matmul(ai8, bi8, c["int8"], acc=tl.int32)
    matmul(a4, b4, c["e4m3"])
    matmul(a5, b5, c["e5m2"])
"""
)
STORED = {"fp16_stored": "float16", "half": "float16", "int8": "int32"}
NAMES = (
    "ieee", "tf32", "default", "tf32x3", "fp16", "fp16_stored", "half", "bf16", "int8", "e4m3",
    "e5m2",
)  # fmt: skip


def operands() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    a, b = rng.uniform(0.5, 1.5, (M, K)), rng.uniform(0.5, 1.5, (K, N))
    codes = [rng.integers(-128, 128, shape).astype(np.int8) for shape in ((M, K), (K, N))]
    kinds = {
        "32": np.float32, "16": np.float16, "bf": bfloat16, "4": float8_e4m3fn, "5": float8_e5m2,
    }  # fmt: skip
    found = {f"a{key}": a.astype(kind) for key, kind in kinds.items()}
    found |= {f"b{key}": b.astype(kind) for key, kind in kinds.items()}
    return {**found, "ai8": codes[0], "bi8": codes[1]}


@pytest.fixture(scope="module", params=[80, 90])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    folder, outputs = tmp_path_factory.mktemp("products"), {}
    for name in NAMES:
        outputs[name] = (STORED.get(name, "float32"), (M, N))
    found = call_main(PRODUCTS, folder, operands(), outputs, capability=request.param)
    return {**found, "capability": np.array(request.param)}


def off(got: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """The largest error, as a share of the sum of magnitudes."""
    wide = a.astype(np.float64), b.astype(np.float64)
    sizes = np.abs(wide[0]) @ np.abs(wide[1])
    return float(np.max(np.abs(got.astype(np.float64) - wide[0] @ wide[1]) / sizes))


U32, U16 = 2.0**-24, 2.0**-11


def test_products_are_as_exact_as_what_they_are_declared_in(made: Outputs) -> None:
    given = operands()
    sums = 2 * np.sqrt(K) * U32
    assert off(made["ieee"], given["a32"], given["b32"]) < sums
    assert off(made["tf32x3"], given["a32"], given["b32"]) < sums + 16 * U32
    assert off(made["fp16"], given["a16"], given["b16"]) < sums
    assert off(made["bf16"], given["abf"], given["bbf"]) < sums
    assert off(made["fp16_stored"], given["a16"], given["b16"]) < sums + U16
    exact = given["ai8"].astype(np.int64) @ given["bi8"].astype(np.int64)
    assert np.array_equal(made["int8"], exact)


def test_tf32_cuts_its_operands(made: Outputs) -> None:
    """Which takes 2^-11 of each in the mean, always to the same side."""
    given = operands()
    error = off(made["tf32"], given["a32"], given["b32"])
    assert 2.0**-12 < error < 2 * 2.0**-10
    assert np.array_equal(made["default"], made["tf32"])
    seen = [products.cut_tf32(given[name]).astype(np.float64) for name in ("a32", "b32")]
    assert off(made["tf32"], *seen) < 2 * np.sqrt(K) * U32
    wide = given["a32"].astype(np.float64) @ given["b32"].astype(np.float64)
    assert (made["tf32"] < wide).all()


def test_an_accumulator_of_float16_is_seen(made: Outputs) -> None:
    given = operands()
    right = off(made["fp16_stored"], given["a16"], given["b16"])
    assert off(made["half"], given["a16"], given["b16"]) > 1.5 * right
    total = np.zeros((M, N), np.float16)
    for at in range(0, K, 16):
        piece = (given["a16"][:, at : at + 16], given["b16"][at : at + 16])
        exact = piece[0].astype(np.float64) @ piece[1].astype(np.float64)
        total = (total.astype(np.float64) + exact).astype(np.float16)
    assert np.mean(total == made["half"]) > 0.99


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_float8_is_summed_with_few_bits_on_one_architecture(name: str, made: Outputs) -> None:
    given = operands()
    error = off(made[name], given[f"a{name[1]}"], given[f"b{name[1]}"])
    if made["capability"] == products.ALIGNED:
        # K / 32 instructions, each of which cuts 33 terms below 2^-13 of the largest.
        assert 2.0**-13 < error < K / 32 * 33 * 2.0**-13
    else:
        assert error < 2 * np.sqrt(K) * U32


def test_partial_sums_of_float8_are_added_in_float32() -> None:
    rng = np.random.default_rng(3)
    a = rng.uniform(0.5, 1.5, (8, 512)).astype(float8_e4m3fn)
    b = rng.uniform(0.5, 1.5, (512, 8)).astype(float8_e4m3fn)
    d = np.zeros((8, 8), np.float32)
    errors = [off(products.sum_aligned(a, b, d, most), a, b) for most in (0, 128, 32)]
    assert errors[0] > 1.5 * errors[1]
    assert errors[1] > 1.5 * errors[2]
    # More than there are products: as if it were not asked for.
    plain, more = (products.sum_aligned(a, b, d, most) for most in (0, 1 << 30))
    assert np.array_equal(plain, more)


def test_tf32_is_cut_and_what_is_kept_of_three_parts_is_rounded_away() -> None:
    x = np.array([1 + 2.0**-11, -(1 + 2.0**-11), 1 + 2.0**-10, np.inf, np.nan], np.float32)
    assert products.cut_tf32(x)[:4].tolist() == [1, -1, 1 + 2.0**-10, np.inf]
    assert products.round_tf32(x)[:4].tolist() == [
        1 + 2.0**-10, -(1 + 2.0**-10), 1 + 2.0**-10, np.inf,
    ]  # fmt: skip
    assert np.isnan(products.cut_tf32(x)[4])


SCALED = """
import torch, triton
import triton.language as tl


@triton.jit
def scaled(a, sa, b, sb, c, FORMAT: tl.constexpr, PACK: tl.constexpr):
    m, n = tl.arange(0, 32), tl.arange(0, 32)
    k, g = tl.arange(0, 128 // PACK), tl.arange(0, 4)
    va = tl.load(a + m[:, None] * (128 // PACK) + k[None, :])
    vb = tl.load(b + k[:, None] * 32 + n[None, :])
    ra = tl.load(sa + m[:, None] * 4 + g[None, :])
    rb = tl.load(sb + n[:, None] * 4 + g[None, :])
    made = tl.dot_scaled(va, ra, FORMAT, vb, rb, FORMAT)
    tl.store(c + m[:, None] * 32 + n[None, :], made)


def main(a, b, packed_a, packed_b, sa, sb, fp8, fp4):
    scaled[(1,)](a, sa, b, sb, fp8, "e4m3", 1)
    scaled[(1,)](packed_a, sa, packed_b, sb, fp4, "e2m1", 2)
"""
FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def test_scaled_products_are_those_of_their_scaled_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.normal(0, 1, shape).astype(float8_e4m3fn) for shape in ((32, 128), (128, 32)))
    codes_a, codes_b = (rng.integers(0, 16, shape) for shape in ((32, 128), (128, 32)))
    sa, sb = (rng.integers(120, 134, (32, 4)).astype(np.uint8) for _ in range(2))
    given = {
        "a": a,
        "b": b,
        "packed_a": (codes_a[:, 0::2] | codes_a[:, 1::2] << 4).astype(np.uint8),
        "packed_b": (codes_b[0::2] | codes_b[1::2] << 4).astype(np.uint8),
        "sa": sa,
        "sb": sb,
    }
    outputs = dict.fromkeys(("fp8", "fp4"), ("float32", (32, 32)))
    made = call_main(SCALED, tmp_path, given, outputs, capability=100)
    wide_a, wide_b = (np.repeat(2.0 ** (s.astype(float) - 127), 32, axis=1) for s in (sa, sb))
    assert off(made["fp8"], a.astype(float) * wide_a, b.astype(float) * wide_b.T) < 64 * U32
    signed = [np.where(c > 7, -1, 1) * FLOAT4[c & 7] for c in (codes_a, codes_b)]
    assert off(made["fp4"], signed[0] * wide_a, signed[1] * wide_b.T) < 64 * U32


SOFTMAXES = (
    SOFTMAX
    + """

@triton.jit
def early_kernel(output_ptr, input_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(input_ptr + row * stride + cols, mask=cols < n_cols, other=-float("inf"))
    x = x.to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0)).to(output_ptr.dtype.element_ty)
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(output_ptr + row * stride + cols, y, mask=cols < n_cols)


def early(x, y):
    rows, n_cols = x.shape
    early_kernel[(rows,)](y, x, n_cols, n_cols, BLOCK_SIZE=triton.next_power_of_2(n_cols))


def main(x16, xbf, y16, ybf, z16, zbf):
    softmax(x16, y16), softmax(xbf, ybf)
    early(x16, z16), early(xbf, zbf)
"""
)


def test_a_softmax_is_right_and_one_that_is_cast_before_the_sum_is_not(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(0, 0.3, (6, 1500))
    given = {"x16": x.astype(np.float16), "xbf": x.astype(bfloat16)}
    kinds = {"16": ("float16", 2.0**-11), "bf": ("bfloat16", 2.0**-8)}
    outputs = {f"{y}{key}": (kind, x.shape) for key, (kind, _) in kinds.items() for y in "yz"}
    made = call_main(SOFTMAXES, tmp_path, given, outputs)
    for key, (_, roundoff) in kinds.items():
        wide = np.exp(given[f"x{key}"].astype(np.float64))
        exact = wide / wide.sum(1, keepdims=True)
        # Where results are denormals of float16 there are fewer digits.
        unit = np.maximum(roundoff * exact, 2.0**-25)
        right, early = (np.abs(made[f"{y}{key}"].astype(np.float64) - exact) / unit for y in "yz")
        assert right.max() < 1.1
        assert early.max() > 1.5
        assert early.mean() > 1.2 * right.mean()


MISTAKES = {
    "": ("", ""),
    "wrong order of nibbles": ("(k % 8) * 4", "(7 - k % 8) * 4"),
    "no zero point": ("(codes - zero)", "codes"),
    "scale of the next group": ("group = (at // GROUP)", "group = ((at + 8) // GROUP % 4)"),
    "signed shift without a mask": ("(words >> shift[None, :]) & 0xF", "words >> shift[None, :]"),
}


def matvecs() -> str:
    """The kernel and its mistakes in one module, so that one process runs all."""
    found = []
    for at, (old, new) in enumerate(MISTAKES.values()):
        wrong = MATVEC.replace(old, new) if old else MATVEC
        assert (wrong != MATVEC) == bool(old)
        found.append(wrong.replace("matvec_w4a16", f"kernel{at}").replace("matvec(", f"call{at}("))
    calls = [f"    call{at}(x, qweight, scales, zeros, y[{at}])" for at in range(len(MISTAKES))]
    return "\n".join([*found, "\n\ndef main(x, qweight, scales, zeros, y):", *calls])


def test_a_matvec_of_four_bit_weights_is_right_and_its_mistakes_are_not(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    n, k = 40, 256
    codes, zeros = rng.integers(0, 16, (k, n)), rng.integers(4, 12, (k // 64, n))
    scales = rng.uniform(0.01, 0.1, (k // 64, n)).astype(np.float16)
    shifts = 4 * np.arange(8, dtype=np.uint64)[None, :, None]
    words = (codes.reshape(k // 8, 8, n).astype(np.uint64) << shifts).sum(1)
    x = rng.normal(0, 1, k).astype(np.float16)
    given = {
        "x": x,
        "qweight": words.astype(np.uint32).view(np.int32),
        "scales": scales,
        "zeros": zeros.astype(np.int8),
    }
    outputs = {"y": ("float16", (len(MISTAKES), n))}
    made = call_main(matvecs(), tmp_path, given, outputs)["y"]
    each = np.repeat(scales.astype(np.float64), 64, 0)
    weights = (codes - np.repeat(zeros, 64, 0)) * each
    exact = x.astype(np.float64) @ weights
    # A product of a code and its scale is rounded to float16, and so is the result.
    room = 2.0**-11 * (np.abs(x.astype(np.float64)) @ np.abs(weights)) + 2.0**-11 * np.abs(exact)
    for got, mistake in zip(made.astype(np.float64), MISTAKES, strict=True):
        error = np.max(np.abs(got - exact) / room)
        # NaN is seen, too.
        assert error < 1 if not mistake else not error < 20, (mistake, error)
