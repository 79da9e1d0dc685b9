"""Narrow numbers in interpreted kernels, value by value against numpy, ml_dtypes and the codecs."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from kernelwright.kernelbench.codecs.elements import Overflow, elements_of, encode
from kernelwright.kernelbench.dtypes import DTYPES, INT8, INT16, UINT8, DType
from kernelwright.sandbox.triton_on_cpu import narrow
from kernelwright.tests.interpreting_directly import call_main, find_fault

# numpy warns where NaN or an overflow is cast, which is what is tried here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

HALVES = ("float16", "bfloat16")
FLOAT8S = ("float8_e4m3fn", "float8_e5m2")


def every(name: str) -> np.ndarray:
    """All values of a float type."""
    dtype = DTYPES[name]
    return elements_of(np.arange(1 << dtype.bits, dtype=f"u{dtype.bytes}"), dtype)


def assert_same(got: np.ndarray, wanted: np.ndarray) -> None:
    """Bit for bit, but for what NaN carries."""
    assert got.dtype == wanted.dtype
    bits = f"u{got.itemsize}"
    is_number = ~np.isnan(wanted.astype(np.float64))
    assert not np.isnan(got.astype(np.float64))[is_number].any()
    assert np.isnan(got.astype(np.float64))[~is_number].all()
    wrong = (got.view(bits) != wanted.view(bits)) & is_number
    assert not wrong.any(), (got[wrong][:5], wanted[wrong][:5], np.flatnonzero(wrong)[:5])


def rough(count: int) -> np.ndarray:
    """float32 of all sizes, those between and at the ties of narrow types among them."""
    rng = np.random.default_rng(11)
    bits = rng.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32)
    bits[: count // 2] &= np.uint32(0xFFFFF000)
    near = (rng.uniform(-1, 1, count) * 2.0 ** rng.integers(-28, 20, count)).astype(np.float32)
    return np.concatenate([bits.view(np.float32), near])


CASTS = """
import torch, triton
import triton.language as tl


@triton.jit
def cast(x, y, n, ROUNDING: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, v.to(y.dtype.element_ty, fp_downcast_rounding=ROUNDING), mask=at < n)


def main(**given):
    for name, y in given.items():
        if name.startswith("x_"):
            continue
        source, _, rest = name.partition("_to_")
        x = given["x_" + source]
        n = x.numel()
        rounding = "rtz" if rest.endswith("_rtz") else None
        cast[(triton.cdiv(n, 8192),)](x, y, n, rounding, BLOCK=8192)
"""
CAST = {
    "float32": ("float16", "bfloat16", *FLOAT8S, "int8", "uint8", "int16", "int32"),
    "float64": ("float16", "bfloat16"),
    "float16": ("float32", "bfloat16", *FLOAT8S, "int8", "int16"),
    "bfloat16": ("float32", "float16", *FLOAT8S, "int8", "int32"),
    "float8_e4m3fn": ("float32", "float16", "bfloat16"),
    "float8_e5m2": ("float32", "float16", "bfloat16"),
    "int8": ("float16", "bfloat16", "float32", "int32", "uint8"),
    "uint8": ("float16", "bfloat16", "int8"),
    "int16": ("float16", "bfloat16", "int8"),
    "int32": ("bfloat16", "float16"),
}
CUT = {"float32": ("float16", "bfloat16", "float8_e5m2")}


def starts() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    found = {name: every(name) for name in (*HALVES, *FLOAT8S)}
    found["float32"] = rough(30_000)
    wide = rough(8_000).astype(np.float64)
    # Just off the ties of narrow types, by less than float32 can tell.
    off = every("bfloat16").astype(np.float64)[:20_000] * (1 + 2.0**-8)
    found["float64"] = np.concatenate([wide, off * (1 + 2.0**-40), off * (1 - 2.0**-40), off])
    for dtype in (INT8, UINT8, INT16):
        limits = np.iinfo(dtype.name)
        found[dtype.name] = np.arange(limits.min, limits.max + 1, dtype=dtype.name)
    found["int32"] = np.concatenate(
        [rng.integers(-(2**31), 2**31, 20_000), rng.integers(-70_000, 70_000, 20_000)]
    ).astype(np.int32)
    return found


@pytest.fixture(scope="module")
def cast(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    given = starts()
    outputs = {f"{a}_to_{b}": (b, given[a].shape) for a, ends in CAST.items() for b in ends}
    outputs |= {f"{a}_to_{b}_rtz": (b, given[a].shape) for a, ends in CUT.items() for b in ends}
    inputs = {f"x_{name}": array for name, array in given.items()}
    return call_main(CASTS, tmp_path_factory.mktemp("cast"), inputs, outputs)


def wanted_cast(x: np.ndarray, to: DType) -> np.ndarray:
    """By the codecs, and for integers as PTX's cvt.rzi.sat into a register of 16 bits or more."""
    if to.is_float:
        exact = x if x.dtype.name in DTYPES and DTYPES[x.dtype.name].is_float else x.astype(float)
        overflow = Overflow.SATURATE if to.name in FLOAT8S else Overflow.NONFINITE
        return encode(exact, to, overflow=overflow)
    if x.dtype.kind in "iu":
        return x.astype(to.name)
    register = np.iinfo(f"{'i' if to.kind == 'signed' else 'u'}{max(2, to.bytes)}")
    whole = [0 if np.isnan(v) else min(max(v, register.min), register.max) for v in x.astype(float)]
    return np.array([int(v) for v in whole]).astype(to.name)


@pytest.mark.parametrize(("start", "to"), [(a, b) for a, ends in CAST.items() for b in ends])
def test_casts_are_right_for_every_value(start: str, to: str, cast: dict[str, np.ndarray]) -> None:
    wanted = wanted_cast(starts()[start], DTYPES[to])
    assert_same(cast[f"{start}_to_{to}"], wanted)


@pytest.mark.parametrize("to", CUT["float32"])
def test_a_cast_toward_zero_gives_the_nearest_that_is_no_larger(
    to: str, cast: dict[str, np.ndarray]
) -> None:
    x = starts()["float32"].astype(np.float64)
    got = cast[f"float32_to_{to}_rtz"]
    wide = got.astype(np.float64)
    finite = np.isfinite(x)
    assert np.all(np.abs(wide[finite]) <= np.abs(x[finite]))
    assert np.all(np.signbit(wide[finite]) == np.signbit(x[finite]))
    up = (got.view(f"u{got.itemsize}") + 1).astype(f"u{got.itemsize}").view(got.dtype)
    above = np.abs(up.astype(np.float64))
    assert np.all((above > np.abs(x))[finite] | np.isnan(above[finite]))
    assert np.array_equal(np.isinf(wide), np.isinf(x))
    assert np.array_equal(np.isnan(wide), np.isnan(x))


def test_an_integer_becomes_bfloat16_by_way_of_float32_where_devices_do_so(tmp_path: Path) -> None:
    """sm_80 has no cvt.rn.bf16.s32: a value is rounded twice."""
    x = np.array([(1 << 24) + (1 << 16) + 1], np.int32)
    for capability, wanted in ((80, 2.0**24), (90, 2.0**24 + 2.0**17)):
        made = call_main(
            CASTS,
            tmp_path,
            {"x_int32": x},
            {"int32_to_bfloat16": ("bfloat16", (1,))},
            capability=capability,
        )
        assert float(made["int32_to_bfloat16"][0]) == wanted


ARITHMETIC = """
import torch, triton
import triton.language as tl


@triton.jit
def combine(x, y, sums, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(sums + at, a + b)
    tl.store(sums + n + at, a - b)
    tl.store(sums + 2 * n + at, a * b)
    tl.store(sums + 3 * n + at, tl.maximum(a, b))
    tl.store(sums + 4 * n + at, -a)
    tl.store(sums + 5 * n + at, tl.abs(a))
    tl.store(sums + 6 * n + at, tl.where(a < b, a, b))
    tl.store(sums + 7 * n + at, tl.fma(a, b, a))
    tl.store(sums + 8 * n + at, (a / b).to(a.dtype))
    tl.store(sums + 9 * n + at, a * 1.1)
    tl.store(sums + 10 * n + at, tl.clamp(a, b * 0.0, tl.abs(b)))


def main(**given):
    for name in ("float16", "bfloat16"):
        x = given["x_" + name]
        combine[(x.numel() // 8192,)](x, given["y_" + name], given[name], x.numel(), BLOCK=8192)
"""
COUNT = 1 << 16


@pytest.fixture(scope="module")
def combined(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    inputs = {}
    for name in HALVES:
        inputs[f"x_{name}"] = every(name)
        near = every(name).astype(np.float32) * rng.uniform(-2, 2, COUNT).astype(np.float32)
        mixed = np.where(rng.random(COUNT) < 0.5, near, rng.permutation(every(name)))
        with np.errstate(all="ignore"):
            inputs[f"y_{name}"] = mixed.astype(every(name).dtype)
    outputs = {name: (name, (11, COUNT)) for name in HALVES}
    made = call_main(ARITHMETIC, tmp_path_factory.mktemp("sums"), inputs, outputs)
    return {**inputs, **made}


@pytest.mark.parametrize("name", HALVES)
def test_each_operation_is_rounded_once(name: str, combined: dict[str, np.ndarray]) -> None:
    dtype = DTYPES[name]
    a, b = (combined[f"{which}_{name}"].astype(np.float64) for which in "xy")
    constant = float(encode(np.array(1.1), dtype, overflow=Overflow.NONFINITE))
    with np.errstate(all="ignore"):
        # float64 holds sums of bfloat16 but for what is far below, and all products.
        exact = [a + b, a - b, a * b, np.fmax(a, b), -a, np.abs(a), np.where(a < b, a, b)]
        for at, value in enumerate(exact):
            assert_same(combined[name][at], encode(value, dtype, overflow=Overflow.NONFINITE))
        quotient = (a.astype(np.float32) / b.astype(np.float32)).astype(np.float32)
        assert_same(combined[name][8], encode(quotient, dtype, overflow=Overflow.NONFINITE))
        scaled = encode(a * constant, dtype, overflow=Overflow.NONFINITE)
        assert_same(combined[name][9], scaled)
        clamped = np.where(np.isnan(a), 0.0 * b, np.clip(a, 0.0 * b, np.abs(b)))
        known = np.isfinite(b) & ~np.isnan(a)
        got = combined[name][10].astype(np.float64)
        assert np.array_equal(got[known], clamped[known])


def test_fused_multiply_and_add_of_bfloat16_rounds_once() -> None:
    """Also where float64 sees a tie and what breaks it lies 60 digits below."""
    one = np.array([1.0078125], ml_dtypes.bfloat16)
    tiny = np.array([2.0**-60, -(2.0**-60)], ml_dtypes.bfloat16)
    # (1 + 2^-7)^2 = 1 + 2^-6 + 2^-14 is no tie; 1.5 (1 + 2^-7) = 1.5 + 2^-7 + 2^-8 is one.
    half = np.array([1.5], ml_dtypes.bfloat16)
    made = narrow.fma_bfloat16(np.repeat(half, 2), np.repeat(one, 2), tiny)
    assert made.astype(float).tolist() == [1.515625, 1.5078125]


SUMS = """
import torch, triton
import triton.language as tl


@triton.jit
def reduce(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at)
    tl.store(y, tl.sum(v, 0))
    tl.store(y + 1, tl.sum(v.to(tl.float32), 0).to(v.dtype))
    tl.store(y + 2, tl.max(v, 0))
    tl.store(y + 3, tl.min(v, 0))
    tl.store(y + 4, tl.argmax(v, 0).to(v.dtype))
    tl.store(y + 5, tl.sum(tl.cumsum(v, 0) * 0.0 + tl.where(at == N - 1, tl.cumsum(v, 0), 0.0), 0))


def main(**given):
    for name in ("float16", "bfloat16"):
        reduce[(1,)](given["x_" + name], given[name], N=4096)
"""


def test_sums_in_narrow_types_round_at_each_addition(tmp_path: Path) -> None:
    """numpy sums float16 in float32, and a device does not: the mistake must be seen."""
    rng = np.random.default_rng(4)
    drawn = rng.uniform(0.5, 1.5, 4096)
    inputs = {f"x_{n}": drawn.astype(every(n).dtype) for n in HALVES}
    made = call_main(SUMS, tmp_path, inputs, {n: (n, (6,)) for n in HALVES})
    for name in HALVES:
        x = inputs[f"x_{name}"].astype(np.float64)
        tree = inputs[f"x_{name}"]
        while tree.size > 1:
            tree = tree[0::2] + tree[1::2]
        got = made[name].astype(np.float64)
        assert got[0] == float(tree[0])
        assert got[1] == float(encode(np.array(x.sum()), DTYPES[name], overflow=Overflow.NONFINITE))
        assert got[2:4].tolist() == [x.max(), x.min()]
        assert got[4] == float(np.array(x.argmax()).astype(every(name).dtype))
        assert abs(got[5] - x.sum()) <= 16 * DTYPES[name].roundoff * x.sum()


ATOMICS = """
import torch, triton
import triton.language as tl


@triton.jit
def add(x, at, y, before, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    was = tl.atomic_add(y + tl.load(at + i), tl.load(x + i), mask=i % 5 != 4)
    tl.store(before + i, tl.where(i % 5 != 4, was, 0.0))


@triton.jit
def clear(y, N: tl.constexpr):
    tl.store(y + tl.arange(0, N), tl.zeros([N], y.dtype.element_ty))


def main(at, **given):
    for name in ("float16", "bfloat16"):
        clear[(1,)](given[name], N=32)
        add[(4,)](given["x_" + name], at, given[name], given["was_" + name], N=64)
"""


def test_atomic_sums_of_16_bit_floats_round_each_time_and_keep_denormals(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    at = rng.integers(0, 31, 256).astype(np.int32)
    inputs = {f"x_{n}": rng.uniform(0, 3, 256).astype(every(n).dtype) for n in HALVES}
    for name in HALVES:
        at[7], inputs[f"x_{name}"][7] = 31, np.array(DTYPES[name].smallest, every(name).dtype)
    outputs: dict[str, tuple[str, tuple[int, ...]]] = {n: (n, (32,)) for n in HALVES}
    outputs |= {f"was_{n}": (n, (256,)) for n in HALVES}
    made = call_main(ATOMICS, tmp_path, {**inputs, "at": at}, outputs)
    for name in HALVES:
        x, total = inputs[f"x_{name}"], np.zeros(32, every(name).dtype)
        was = np.zeros(256, every(name).dtype)
        for i in range(256):
            if i % 5 != 4:
                was[i] = total[at[i]]
                total[at[i]] = total[at[i]] + x[i]
        assert_same(made[name], total)
        assert_same(made[f"was_{name}"], was)


PACKED = """
import torch, triton
import triton.language as tl


@triton.jit
def unpack(words, codes, signed, N: tl.constexpr):
    at = tl.arange(0, N)
    w = tl.load(words + at // 8)
    tl.store(codes + at, ((w >> (at % 8) * 4) & 0xF).to(tl.int8))
    b = tl.load(signed + at // 2)
    low, high = (b << 4) >> 4, b >> 4
    tl.store(codes + N + at, tl.where(at % 2 == 0, low, high))


def main(words, signed, codes):
    unpack[(1,)](words, codes, signed, N=1024)
"""


def test_packed_codes_of_four_bits_are_unpacked_by_shifts(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    nibbles = rng.integers(0, 16, (128, 8))
    words = (nibbles.astype(np.uint64) << (4 * np.arange(8, dtype=np.uint64))).sum(1)
    pairs = rng.integers(0, 256, 512).astype(np.uint8).view(np.int8)
    made = call_main(
        PACKED,
        tmp_path,
        {"words": words.astype(np.uint32).view(np.int32), "signed": pairs},
        {"codes": ("int8", (2, 1024))},
    )["codes"]
    assert np.array_equal(made[0], nibbles.reshape(-1))
    both = np.stack([pairs.view(np.uint8) & 15, pairs.view(np.uint8) >> 4], 1).astype(int)
    assert np.array_equal(made[1], np.where(both > 7, both - 16, both).reshape(-1))


REFUSED = """
import triton
import triton.language as tl


@triton.jit
def cast(x, y):
    at = tl.arange(0, 16)
    tl.store(y + at, tl.load(x + at).to(tl.float8e4b15).to(tl.float32))


def main(x, y):
    cast[(1,)](x, y)
"""


def test_other_float8_types_are_out_of_reach(tmp_path: Path) -> None:
    x = np.zeros(16, np.float32)
    told = find_fault(REFUSED, tmp_path, {"x": x}, {"y": ("float32", (16,))})
    assert told.startswith("LimitError: the interpreter has no fp8e4b15")


FAULTS = """
import triton
import triton.language as tl


@triton.jit
def fill(y, N: tl.constexpr, STEP: tl.constexpr, EXTRA: tl.constexpr):
    at = tl.program_id(0) * STEP + tl.arange(0, N)
    tl.store(y + at, (at + EXTRA * tl.program_id(0)).to(y.dtype.element_ty), mask=at < 62 + EXTRA)


def main(y):
    fill[(4,)](y, N=16, STEP=STEP_HERE, EXTRA=EXTRA_HERE)
"""


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2"])
def test_memory_of_narrow_elements_is_watched(dtype: str, tmp_path: Path) -> None:
    def found(step: int, extra: int) -> str:
        source = FAULTS.replace("STEP_HERE", str(step)).replace("EXTRA_HERE", str(extra))
        if dtype.startswith("float8"):
            source = source.replace(").to(y", ").to(tl.float32).to(y")
        return find_fault(source, tmp_path, {}, {"y": (dtype, (62,))})

    # The last two programs' tiles meet inside a word.
    assert found(16, 0) == ""
    size = DTYPES[dtype].bytes
    assert f"{size} bytes past the end of y" in found(16, 2)
    assert "in no order" in found(15, 9)
