# SPDX-License-Identifier: Apache-2.0
"""Rows to MXFP4: blocks of 32 numbers of 4 bits, each block with a power of two.

Nothing is inexact but the one rounding that is asked for: a power of two divides without loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import blemish
from ..problem import Family, Pair
from ..quantising import draw_blocks, split_blocks, to_mxfp4

PROBLEM = {
    "title": "Quantisation to MXFP4 (blocks of 32, powers of two)",
    "definition": "of each block of 32 of x, amax = max |x|: e = floor(log2 amax) - 2, at least "
    "-127 (and -127 where amax = 0)\n"
    "scales = e + 127; q = x / 2^e rounded to the nearest of 0 0.5 1 1.5 2 3 4 6 with its sign, a "
    "tie to the even code, more than 6 to 6",
    "source": "OCP Microscaling Formats (MX) Specification 1.0, section 6.3; Quartet, arXiv "
    "2505.14669",
    "tags": ["dense", "elementwise", "quantised"],
    "is_row_wise": True,
    "axes": {"M": "rows", "G": "blocks in a row: it has 32 G numbers"},
    "lengths": {"G": 2048},
    "inputs": {"x": "bfloat16[M, 32*G]: row-major"},
    "outputs": {
        "q": "uint8[M, 16*G]: the numbers of a row",
        "scales": "uint8[M, G]: of each block",
    },
    "codes": {"q": "float4_e2m1fn", "scales": "float8_e8m0fnu"},
    "flops": "256 * M * G",  # of a number: size and maximum 2, division 1, rounding and packing 5
    "workloads": {
        "realistic": {
            "1024x4096": {"M": 1024, "G": 128, "note": "activations of 1024 tokens"},
            "256x11008": {"M": 256, "G": 344, "note": "a wide inner layer"},
        },
        "tiny": {"tiny": {"M": 24, "G": 5}},
        "adversarial": {
            "1031x32": {"M": 1031, "G": 1, "note": "a block a row, a prime number of rows"},
            "1x28672": {"M": 1, "G": 896, "note": "one row"},
        },
    },
    "families": "denormal large nonfinite",
    "accuracy": "Bit for bit: every code is decided. A zero keeps its sign (code 8). A block that "
    "holds NaN or an infinity has the scale 255 and codes of 0.",
}

OCTAVES = 12
"""Between the sizes of blocks."""


def values(family: Family, rng: np.random.Generator, M: int, G: int) -> np.ndarray:
    """Blocks of sizes far apart. Numbers of 8 bits are at a tie about once in thirty times."""
    x = draw_blocks(family, (M, 32 * G), 32, OCTAVES, rng)
    blemish(family, x, rng)
    return x


def oracle(x: np.ndarray) -> Pair:
    """What is to be rounded, in float32, which is exact: what underflows is below all bounds."""
    blocks, amax = split_blocks(x, 32)
    is_whole = np.isfinite(amax)
    _, above = np.frexp(np.where(is_whole, amax, np.float32(0)))
    power = np.where(amax > 0, np.maximum(above - 3, -127), -127)
    # 2^-power in two factors: one alone would be beyond float32.
    half = -power // 2
    first, second = (np.exp2(p.astype(np.float32))[..., None] for p in (half, -power - half))
    steps = np.where(is_whole[..., None], blocks * first * second, np.float32(0))
    return steps.reshape(x.shape), np.where(is_whole, np.exp2(power * 1.0), np.nan)


def by_compile(torch: Any, x: Any, M: int, G: int) -> tuple[Any, Any]:
    """Step by step; compiled, the same steps in one loop."""
    return to_mxfp4(torch, x, M, G)
