"""mma, ldmatrix and stmatrix hold elements where the PTX ISA says, for each shape and type.

Here the ISA's formulas stand as it writes them, case by case; the emulator has one for all shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from emulation import Case, Machine, Step

Place = Callable[[int, int, int], tuple[int, int]]
"""Row and column of element i, by group = lane / 4 and place = lane % 4."""


@dataclass(frozen=True)
class Fragments:
    """Of one shape: elements of each lane, and where they are."""

    a: Place
    b: Place
    of_a: int
    of_b: int
    m: int = 16
    k: int = 0


HALVES_8 = Fragments(
    lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    lambda g, t, i: (t * 2 + i, g),
    4,
    2,
    k=8,
)
HALVES_16 = Fragments(
    lambda g, t, i: (
        g if i < 2 or 4 <= i < 6 else g + 8,
        t * 2 + (i & 1) if i < 4 else t * 2 + (i & 1) + 8,
    ),
    lambda g, t, i: (t * 2 + (i & 1) if i < 2 else t * 2 + (i & 1) + 8, g),
    8,
    4,
    k=16,
)
TF32_4 = Fragments(lambda g, t, i: (g if i == 0 else g + 8, t), lambda g, t, _: (t, g), 2, 1, k=4)
TF32_8 = Fragments(
    lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
    lambda g, t, i: (t if i == 0 else t + 4, g),
    4,
    2,
    k=8,
)
BYTES_16 = Fragments(
    lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)),
    lambda g, t, i: (t * 4 + i, g),
    8,
    4,
    k=16,
)
BYTES_32 = Fragments(
    lambda g, t, i: (
        g if i < 4 or 8 <= i < 12 else g + 8,
        t * 4 + (i & 3) if i < 8 else t * 4 + (i & 3) + 16,
    ),
    lambda g, t, i: (t * 4 + (i & 3) if i < 4 else t * 4 + (i & 3) + 16, g),
    16,
    8,
    k=32,
)
SMALL_16 = Fragments(
    lambda g, t, i: (g, t * 4 + i), lambda g, t, i: (t * 4 + i, g), 4, 4, m=8, k=16
)
SHAPES = {
    "m16n8k8 f16 f32": (HALVES_8, np.float16),
    "m16n8k16 f16 f32": (HALVES_16, np.float16),
    "m16n8k8 f16 f16": (HALVES_8, np.float16),
    "m16n8k16 f16 f16": (HALVES_16, np.float16),
    "m16n8k8 bf16 f32": (HALVES_8, ml_dtypes.bfloat16),
    "m16n8k16 bf16 f32": (HALVES_16, ml_dtypes.bfloat16),
    "m16n8k4 tf32 f32": (TF32_4, np.float32),
    "m16n8k8 tf32 f32": (TF32_8, np.float32),
    "m16n8k16 s8 s32": (BYTES_16, np.int8),
    "m16n8k32 s8 s32": (BYTES_32, np.int8),
    "m16n8k32 u8 s32": (BYTES_32, np.uint8),
    "m8n8k16 s8 s32": (SMALL_16, np.int8),
    "m16n8k32 e4m3 f32": (BYTES_32, ml_dtypes.float8_e4m3fn),
    "m16n8k32 e5m2 f32": (BYTES_32, ml_dtypes.float8_e5m2),
}


def place_of_c(g: int, t: int, i: int) -> tuple[int, int]:
    return g if i < 2 else g + 8, t * 2 + (i & 1)


def registers(values: np.ndarray, place: Place, count: int) -> np.ndarray:
    """A row of 32-bit words for each lane."""
    taken = [[values[place(lane // 4, lane % 4, i)] for i in range(count)] for lane in range(32)]
    return np.ascontiguousarray(np.array(taken, values.dtype)).view(np.int32)


def listed(first: int, count: int) -> str:
    return "{" + ", ".join(f"%{first + i}" for i in range(count)) + "}"


def kernel(shape: str, a: int, b: int, c: int) -> str:
    name, kind, sums = shape.split()
    opcode = f"mma.sync.aligned.{name}.row.col.{sums}.{kind}.{kind}.{sums}"
    text = f"{opcode} {listed(0, c)}, {listed(c, a)}, {listed(c + a, b)}, {listed(0, c)};"
    outs = ", ".join(f'"+r"(d[{i}])' for i in range(c))
    ins = ", ".join(
        [f'"r"(A[l * {a} + {i}])' for i in range(a)] + [f'"r"(B[l * {b} + {i}])' for i in range(b)]
    )
    return f"""__global__ void k(const int* A, const int* B, const int* C, int* D) {{
  int l = threadIdx.x, d[{c}];
  for (int i = 0; i < {c}; ++i) d[i] = C[l * {c} + i];
  asm volatile("{text}" : {outs} : {ins});
  for (int i = 0; i < {c}; ++i) D[l * {c} + i] = d[i];
}}
"""


@pytest.mark.parametrize("shape", SHAPES)
def test_a_product_of_fragments_is_the_product_of_matrices(machine: Machine, shape: str) -> None:
    fragments, dtype = SHAPES[shape]
    rng = np.random.default_rng(3)
    low = 0 if dtype is np.uint8 else -4
    A = rng.integers(low, 5, (fragments.m, fragments.k)).astype(dtype)
    B = rng.integers(low, 5, (fragments.k, 8)).astype(dtype)
    sums = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[shape.split()[2]]
    C = rng.integers(-9, 9, (fragments.m, 8)).astype(sums)
    given = {
        "A": registers(A, fragments.a, fragments.of_a),
        "B": registers(B, fragments.b, fragments.of_b),
        "C": registers(C, place_of_c, 4 * fragments.m // 16),
    }
    counts = [one.shape[1] for one in given.values()]
    case = Case(
        kernel(shape, *counts),
        ("k",),
        given,
        {"D": ("int32", (32, counts[2]))},
        (Step(1, 32, ("A", "B", "C", "D")),),
    )
    found = machine.run(case)["D"]
    exact = A.astype(np.float64) @ B.astype(np.float64) + C.astype(np.float64)
    np.testing.assert_array_equal(
        found, registers(exact.astype(sums), place_of_c, 4 * fragments.m // 16)
    )


MOVES = """
#include <stdint.h>
__global__ void k(const short* x, int* y, short* z) {
  __shared__ __align__(16) short s[4][8][8], back[4][8][8];
  int l = threadIdx.x;
  for (int i = l; i < 256; i += 32) s[0][0][i] = x[i];
  __syncwarp();
  uint32_t at = __cvta_generic_to_shared(&s[l / 8][l % 8][0]), to, r[4];
  asm volatile("{ .reg .u64 wide; cvta.to.shared.u64 wide, %1; cvt.u32.u64 %0, wide; }"
               : "=r"(to) : "l"(&back[l / 8][l % 8][0]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4LOAD.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  for (int i = 0; i < 4; ++i) y[l * 4 + i] = r[i];
  asm volatile("stmatrix.sync.aligned.m8n8.x4STORE.shared.b16 [%0], {%1, %2, %3, %4};"
               :: "r"(to), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
  __syncwarp();
  for (int i = l; i < 256; i += 32) z[i] = back[0][0][i];
}
"""


@pytest.mark.parametrize("load", ["", ".trans"])
@pytest.mark.parametrize("store", ["", ".trans"])
def test_rows_of_matrices_go_to_lanes_and_back(machine: Machine, load: str, store: str) -> None:
    x = np.arange(256, dtype=np.int16).reshape(4, 8, 8)
    case = Case(
        MOVES.replace("LOAD", load).replace("STORE", store),
        ("k",),
        {"x": x},
        {"y": ("int32", (32, 4)), "z": ("int16", (4, 8, 8))},
        (Step(1, 32, ("x", "y", "z")),),
    )
    found = machine.run(case)
    seen = x.transpose(0, 2, 1) if load else x
    lane = np.arange(32)
    pairs = np.stack([seen[:, lane // 4, lane % 4 * 2 + i] for i in range(2)], axis=-1)
    expected = np.ascontiguousarray(pairs.transpose(1, 0, 2)).view(np.int32)[..., 0]
    np.testing.assert_array_equal(found["y"], expected)
    np.testing.assert_array_equal(found["z"], x if load == store else x.transpose(0, 2, 1))
