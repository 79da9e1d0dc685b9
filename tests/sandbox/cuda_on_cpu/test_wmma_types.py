"""wmma with bfloat16, tf32, int8 and half accumulators: products, and mistakes in them."""

from __future__ import annotations

import numpy as np
import pytest
from emulation import Case, Machine, Step
from narrow_floats import nearest_codes, values

from kernelwright.kernelbench.dtypes import BFLOAT16

N = 32


def source(kind: str, stored: str, sums: str, k: int, more: str = "", clamps: str = "") -> str:
    return f"""
#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda;
__global__ void product(int n, const {stored}* A, const {stored}* B, {sums}* C) {{
  wmma::fragment<wmma::matrix_a, 16, 16, {k}, {kind}, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, {k}, {kind}, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, {k}, {sums}> c;
  wmma::fill_fragment(c, {sums}(0));
  int row = blockIdx.y * 16, column = blockIdx.x * 16;
  for (int i = 0; i < n; i += {k}) {{
    wmma::load_matrix_sync(a, A + row * n + i, n);
    wmma::load_matrix_sync(b, B + i * n + column, n);
    {more}
    wmma::mma_sync(c, a, b, c{clamps});
  }}
  wmma::store_matrix_sync(C + row * n + column, c, n, wmma::mem_row_major);
}}
"""


def play(machine: Machine, text: str, A: np.ndarray, B: np.ndarray, sums: str) -> np.ndarray:
    case = Case(
        text,
        ("product",),
        {"A": A, "B": B},
        {"C": (sums, (N, N))},
        (Step((N // 16, N // 16), 32, (N, "A", "B", "C")),),
    )
    return machine.run(case)["C"]


def test_bfloat16(machine: Machine) -> None:
    rng = np.random.default_rng(1)
    A, B = (nearest_codes(rng.standard_normal((N, N)), BFLOAT16).astype(np.uint16) for _ in "AB")
    text = source("__nv_bfloat16", "__nv_bfloat16", "float", 16)
    found = play(machine, text, A.view(np.int16), B.view(np.int16), "float32")
    exact = values(A, BFLOAT16) @ values(B, BFLOAT16)
    np.testing.assert_allclose(found, exact, atol=2e-5)
    swapped = text.replace("__nv_bfloat16, wmma::row_major> b", "__nv_bfloat16, wmma::col_major> b")
    assert swapped != text
    wrong = play(machine, swapped, A.view(np.int16), B.view(np.int16), "float32")
    assert np.abs(wrong - exact).max() > 1


ROUND = """for (auto* x : {a.x, b.x})
      for (int e = 0; e < a.num_elements; ++e) x[e] = wmma::__float_to_tf32(x[e]);"""


@pytest.mark.parametrize("is_rounded", [True, False])
def test_tf32(machine: Machine, is_rounded: bool) -> None:
    """What is not rounded is cut: its error is twice as large, and towards zero."""
    rng = np.random.default_rng(2)
    A, B = (rng.random((N, N)).astype(np.float32) + np.float32(1) for _ in "AB")
    text = source("wmma::precision::tf32", "float", "float", 8, ROUND if is_rounded else "")
    found = play(machine, text, A, B, "float32")
    added = np.uint32(0x1000 if is_rounded else 0)
    seen = [((x.view(np.uint32) + added) & np.uint32(0xFFFFE000)).view(np.float32) for x in (A, B)]
    exact = seen[0].astype(np.float64) @ seen[1].astype(np.float64)
    np.testing.assert_allclose(found, exact, rtol=1e-6)
    assert np.abs(found - A.astype(np.float64) @ B.astype(np.float64)).max() > 1e-4


@pytest.mark.parametrize(("kind", "dtype"), [("signed char", np.int8), ("unsigned char", np.uint8)])
def test_whole_numbers(machine: Machine, kind: str, dtype: type) -> None:
    rng = np.random.default_rng(3)
    bounds = np.iinfo(dtype)
    A, B = (rng.integers(bounds.min, bounds.max + 1, (N, N)).astype(dtype) for _ in "AB")
    found = play(machine, source(kind, kind, "int", 16), A, B, "int32")
    np.testing.assert_array_equal(found, A.astype(np.int64) @ B.astype(np.int64))


@pytest.mark.parametrize("clamps", ["", ", true"])
def test_sums_of_whole_numbers_wrap_unless_they_are_clamped(machine: Machine, clamps: str) -> None:
    A, B = (np.full((N, N), 100, np.int8) for _ in "AB")
    more = "for (int e = 0; e < c.num_elements; ++e) if (i == 0) c.x[e] = 2147483647 - 100000;"
    text = source("signed char", "signed char", "int", 16, more, clamps)
    found = play(machine, text, A, B, "int32")
    assert (found == (2**31 - 1 if clamps else 2**31 - 1 - 100000 + N * 10000 - 2**32)).all()


def test_accumulators_in_half_lose_what_float_keeps(machine: Machine) -> None:
    rng = np.random.default_rng(4)
    A, B = (rng.standard_normal((N, N)).astype(np.float16) for _ in "AB")
    found = play(
        machine, source("half", "half", "half", 16), A.view(np.int16), B.view(np.int16), "int16"
    ).view(np.float16)
    first, second = (A[:, k : k + 16].astype(np.float32) for k in (0, 16))
    sums = np.float16(first @ B[:16].astype(np.float32)).astype(np.float32)
    expected = np.float16(sums + second @ B[16:].astype(np.float32))
    np.testing.assert_allclose(
        found.astype(float), expected.astype(float), rtol=2**-10, atol=2**-10
    )
    exact = A.astype(np.float64) @ B.astype(np.float64)
    assert np.abs(found - exact).max() > 1e-4
