# SPDX-License-Identifier: Apache-2.0
"""Rows to NVFP4: blocks of 16 numbers of 4 bits, each block with a scale in e4m3, and one of all.

The scale of all is given. Quotients are those of float32, operation by operation: where one lies
near the middle between two codes, another order of operations would find another code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..coded import CODECS
from ..families import blemish
from ..problem import Family, Pair
from ..quantising import draw_blocks, split_blocks, to_nvfp4

PROBLEM = {
    "title": "Quantisation to NVFP4 (blocks of 16, scales in e4m3)",
    "definition": "of each block of 16 of x, amax = max |x|: s = amax / (6 * tensor_scale) rounded "
    "to e4m3, more than 448 to 448; r = 1 / (s * tensor_scale), and 0 where s = 0\n"
    "q = x * r rounded to the nearest of 0 0.5 1 1.5 2 3 4 6 with its sign, more than 6 to 6; each "
    "operation is one of float32, rounded to nearest; all ties go to the even code",
    "source": "Pretraining Large Language Models with NVFP4, arXiv 2509.25149",
    "tags": ["dense", "elementwise", "quantised"],
    "is_row_wise": True,
    "axes": {"M": "rows", "G": "blocks in a row: it has 16 G numbers"},
    "lengths": {"G": 4096},
    "inputs": {
        "x": "bfloat16[M, 16*G]: row-major",
        "tensor_scale": "float32[1]: of all blocks, larger than 0",
    },
    "outputs": {
        "q": "uint8[M, 8*G]: the numbers of a row",
        "scales": "uint8[M, G]: s of each block",
    },
    "codes": {"q": "float4_e2m1fn", "scales": "float8_e4m3fn"},
    "flops": "128 * M * G",  # of a number: size and maximum 2, product 1, rounding and packing 5
    "workloads": {
        "realistic": {
            "1024x4096": {"M": 1024, "G": 256, "note": "activations of 1024 tokens"},
            "256x14336": {"M": 256, "G": 896, "note": "a wide inner layer"},
        },
        "tiny": {"tiny": {"M": 24, "G": 10}},
        "adversarial": {
            "1031x16": {"M": 1031, "G": 1, "note": "a block a row, a prime number of rows"},
            "1x28672": {"M": 1, "G": 1792, "note": "one row"},
        },
    },
    "families": "large nonfinite",
    "accuracy": "Bit for bit: each operation of the definition is one of float32, so that every "
    "code is decided; a product with 1/6, or an approximate reciprocal, is another one. A zero "
    "keeps its sign (code 8), save where s = 0: there codes are 0. A block that holds NaN or an "
    "infinity has the scale 0x7F and codes of 0.",
}
OCTAVES = 20
"""Between the sizes of blocks: the least have a scale of 0."""
LARGEST = np.float32(6 * 448)


def values(family: Family, rng: np.random.Generator, M: int, G: int) -> Pair:
    """Blocks of sizes far apart, and a scale of all that is a power of two in half of the draws:
    then many products are at a tie. In a third of them it is too small for the largest blocks."""
    x = draw_blocks(family, (M, 16 * G), 16, OCTAVES, rng)
    scale = np.abs(x).max() / LARGEST * np.float32(rng.choice((0.5, 1.0, 1.5))) or np.float32(1)
    if rng.random() < 0.5:
        scale = np.exp2(np.floor(np.log2(scale)))
    blemish(family, x, rng)
    return x, np.array([scale], np.float32)


def oracle(x: np.ndarray, tensor_scale: np.ndarray) -> Pair:
    """The definition in float32, up to the last rounding."""
    blocks, amax = split_blocks(x, 16)
    given = tensor_scale.astype(np.float32)[0]
    scales = CODECS["float8_e4m3fn"].round(amax / (np.float32(6) * given))
    factors = np.where(scales > 0, np.float32(1) / (scales * given), np.float32(0))[..., None]
    steps = np.where((scales > 0)[..., None], blocks * factors, np.float32(0))
    return steps.reshape(x.shape), scales


def by_compile(torch: Any, x: Any, tensor_scale: Any, M: int, G: int) -> tuple[Any, Any]:
    """Step by step; compiled, the same steps in one loop."""
    return to_nvfp4(torch, x, tensor_scale, M, G)
