# SPDX-License-Identifier: Apache-2.0
"""A matrix in 3 bits and its outliers times a vector in float16: a token's layer by SpQR."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import draw_rows
from ..problem import BaselineCall, Expected, Family, Inputs, Prepared
from ..tiles_of_3_bits import bind_outliers, decode_words, draw_outliers, draw_tiles, multiply_tiles

PROBLEM = {
    "title": "Matrix-vector product with 3-bit weights in tiles of 16 x 16, and outliers (SpQR)",
    "definition": "y[i] = sum over columns k of s * (w - z) * x[k], plus the sum of outliers[p] * "
    "x[cols[p]] over p in [row_ptr[i], row_ptr[i+1])\n"
    "w = bits 6+3j to 8+3j of words[i,c], c = k / 16, j = k mod 16; s = t[0] * (bits 0 to 2 - "
    "t[1]) and z = t[2] * (bits 3 to 5 - t[3]) of the same word, t = tiles[i/16,c]; words[i,c,0] "
    "are bits 0 to 31, words[i,c,1] bits 32 to 63",
    "source": "SpQR, arXiv 2306.03078",
    "headline": "33 billion weights on one GPU of 24 GB, 15 % faster than float16, as reported",
    "tags": ["dense", "pruned", "contraction", "quantised"],
    "axes": {"G": "tiles from top to bottom", "H": "tiles of a row", "P": "outliers"},
    "lengths": {"H": 512},
    "inputs": {
        "x": "float16[16*H]: activations",
        "words": "int32[16*G, H, 2]: of each row of a tile its codes; the highest 10 bits are 0",
        "tiles": "float16[G, H, 4]: step and offset of a tile's scales, then of its zero points",
        "row_ptr": "int32[16*G+1]: where the outliers of each row begin; from 0 to P",
        "cols": "int32[P]: their columns, ascending in a row; one may come twice",
        "outliers": "float16[P]: what is added to the weights there",
    },
    "bound": ["words", "row_ptr", "cols"],
    "outputs": {"y": "float16[16*G]: rounded once"},
    "flops": "640 * G * H + 2 * P",  # of a weight 2, of a word's scale and zero point 8
    "workloads": {
        "realistic": {
            "4096x4096": {"G": 256, "H": 256, "P": 167772, "note": "of LLaMA-7B, 1 % outliers"},
            "1024x5120": {"G": 64, "H": 320, "P": 26214, "note": "half a per cent of outliers"},
        },
        "tiny": {"tiny": {"G": 3, "H": 4, "P": 600}},
        "adversarial": {
            "1008x16": {"G": 63, "H": 1, "P": 1501, "note": "one tile a row, many outliers"},
            "16x8192": {"G": 1, "H": 512, "P": 7, "note": "hardly any outliers"},
        },
    },
    "families": "large nonfinite exact probe",
    "accuracy": "n = 16 H + the row's outliers, s = sum of |s x| (w + |z|) and of |outlier x|: "
    "{zero points} {running sum}",
}


def values(family: Family, rng: np.random.Generator, G: int, H: int, P: int) -> Inputs:
    """Codes of every kind, tiles far apart, and outliers that are drawn wherever they fall."""
    x = draw_rows(family, (1, 16 * H), rng)[0]
    words, tiles = draw_tiles(family, G, H, rng)
    return x, words, tiles, *draw_outliers(family, 16 * G, 16 * H, P, rng)


def oracle(x: Any, words: Any, tiles: Any, row_ptr: Any, cols: Any, outliers: Any) -> Expected:
    """In float64, a row of tiles at a time."""
    value, scale = multiply_tiles(words, tiles, x)
    terms = outliers.astype(np.float64) * x[cols]
    rows = np.repeat(np.arange(len(value)), np.diff(row_ptr))
    value += np.bincount(rows, terms, len(value))
    scale += np.bincount(rows, np.abs(terms), len(value))
    return Expected(value, scale, float(len(x)) + np.diff(row_ptr))


def by_torch(torch: Any, call: BaselineCall, x: Any, words: Any, tiles: Any, y: Any) -> Prepared:
    """Weights in float32 and a product, and a sparse one."""
    sparse = bind_outliers(torch, call)
    return lambda: y.copy_(decode_words(torch, words, tiles) @ x.float() + sparse(x.float()))


def by_compile(
    torch: Any, x: Any, words: Any, tiles: Any, row_ptr: Any, cols: Any, outliers: Any
) -> Any:
    """The same as loops: each weight is used where it is decoded, and outliers are scattered."""
    vector, places = x.float(), torch.arange(len(cols), device=x.device, dtype=torch.int32)
    rows = torch.searchsorted(row_ptr, places, right=True) - 1
    dense = (decode_words(torch, words, tiles) * vector).sum(1)
    return dense.index_add(0, rows, outliers.float() * vector[cols])
