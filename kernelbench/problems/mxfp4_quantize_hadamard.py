# SPDX-License-Identifier: Apache-2.0
"""Rows to MXFP4 behind a rotation of each block, which spreads outliers over the block.

The square root of 32 is irrational: whole numbers over it are at no tie. Below 2^15 none is nearer
to one than 3e-6 of itself, 50 roundings of float32: codes are decided though it is rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import blemish
from ..problem import Family, Pair, Prepared
from ..quantising import draw_blocks, hadamard_matrix, to_mxfp4, to_steps

PROBLEM = {
    "title": "Rotation by Hadamard matrices and quantisation to MXFP4 (blocks of 32)",
    "definition": "of each block of 32 of x: y[j] = sum over k of (-1)^popcount(j & k) * x[k] / "
    "sqrt(32); amax = max |y|; e = floor(log2 amax) - 2, at least -127 (and -127 where amax = 0)\n"
    "scales = e + 127; q = y / 2^e rounded to the nearest of 0 0.5 1 1.5 2 3 4 6 with its sign, "
    "more than 6 to 6",
    "source": "Quartet, arXiv 2505.14669; MR-GPTQ, arXiv 2509.23202",
    "headline": "layers up to 3.6x as fast as FP16 on B200, products among them (MR-GPTQ)",
    "tags": ["dense", "transform", "quantised"],
    "is_row_wise": True,
    "axes": {"M": "rows", "G": "blocks in a row: it has 32 G numbers"},
    "lengths": {"G": 2048},
    "inputs": {"x": "bfloat16[M, 32*G]: row-major; never -0"},
    "outputs": {"q": "uint8[M, 16*G]: the numbers of a row", "scales": "uint8[M, G]: of a block"},
    "codes": {"q": "float4_e2m1fn", "scales": "float8_e8m0fnu"},
    "flops": "448 * M * G",  # of a number: 5 sums, size and maximum 2, products 2, rounding 5
    "workloads": {
        "realistic": {"1024x128": "4096 numbers a token", "256x344": "a wide inner layer"},
        "tiny": {"tiny": {"M": 24, "G": 5}},
        "adversarial": {"1031x1": "a block a row", "1x896": "one row"},
    },
    "families": "denormal large nonfinite",
    "accuracy": "Bit for bit. Numbers of a block are whole multiples of about 1/1024 of its "
    "largest, so that float32 holds all sums exactly, and every code is decided whatever their "
    "order; a rotation that is rounded to bfloat16, or whose matrix is, is another one. A small "
    "negative number is code 8; no sum is 0, but of a block of zeros. A block that holds NaN or an "
    "infinity has the scale 255 and codes of 0.",
}
OCTAVES, BITS = 12, 10
"""Between the sizes of blocks; of a block's largest number in its steps."""


def values(family: Family, rng: np.random.Generator, M: int, G: int) -> np.ndarray:
    """Blocks of sizes far apart, in steps."""
    x = to_steps(draw_blocks(family, (M, 32 * G), 32, OCTAVES, rng), 32, BITS)
    blemish(family, x, rng)
    return x


def oracle(x: np.ndarray) -> Pair:
    """Before the last rounding, in float64."""
    matrix, blocks = hadamard_matrix(np, np.ones((1, 1)), 32), x.reshape(len(x), -1, 32)
    with np.errstate(invalid="ignore"):
        blocks = blocks.astype(np.float64) @ matrix / np.sqrt(32)
    amax = np.abs(blocks).max(2)
    is_whole = np.isfinite(amax)
    _, above = np.frexp(np.where(is_whole, amax, 0.0))
    power = np.where(amax > 0, np.maximum(above - 3, -127), -127)
    steps = np.where(is_whole[..., None], np.ldexp(blocks, -power[..., None]), 0.0)
    return steps.reshape(x.shape), np.where(is_whole, np.exp2(power * 1.0), np.nan)


def by_torch(torch: Any, x: Any, q: Any, scales: Any, M: int, G: int) -> Prepared:
    """The rotation as products with two small matrices, a third of the operations of one."""
    left, right = (hadamard_matrix(torch, torch.ones_like(x[:1, :1]), n).float() for n in (4, 8))

    def call() -> None:
        turned = left @ (x.float().view(-1, 8) @ right).view(-1, 4, 8)
        for to, found in zip((q, scales), to_mxfp4(torch, turned * 32**-0.5, M, G), strict=True):
            to.copy_(found)

    return call


def by_compile(torch: Any, x: Any, M: int, G: int) -> tuple[Any, Any]:
    """The rotation as a product with one matrix."""
    matrix = hadamard_matrix(torch, torch.ones_like(x[:1, :1]), 32).float()
    return to_mxfp4(torch, x.float().view(-1, 32) @ matrix * 32**-0.5, M, G)
