# SPDX-License-Identifier: Apache-2.0
"""Products of a mixture of experts: tokens come sorted by expert, each segment meets its own
weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import multiply
from ..experts import call_for_each, draw_segments, list_segments
from ..families import blemish, draw_factors, thin_columns
from ..problem import Expected, Family, Inputs, Prepared

PROBLEM = {
    "title": "Grouped product: one of each expert, of its own tokens",
    "definition": "Y[i,j] = sum over k of X[i,k] * W[e,k,j] for the rows i from seg_ptr[e] up to, "
    "not including, seg_ptr[e+1]",
    "source": "MegaBlocks, arXiv 2211.15841; Nemotron 3, arXiv 2512.20856",
    "headline": "MegaBlocks: training up to 1.40 times faster than with padded experts (Tutel), "
    "as reported",
    "tags": ["dense", "contraction", "ragged"],
    "axes": {"M": "tokens, sorted by expert", "N": "outputs", "K": "inputs", "E": "experts"},
    "inputs": {
        "X": "float32[M, K]: rows in the order of their experts",
        "W": "float32[E, K, N]: weights of each expert, row-major",
        "seg_ptr": "int32[E+1]: from 0 to M, never falling; an expert may have no rows",
    },
    "bound": ["seg_ptr"],
    "outputs": {"Y": "float32[M, N]: row-major"},
    "flops": "2 * M * N * K",
    "workloads": {
        "realistic": {
            "512x512x256x16": "16 experts of width 512, a half of MegaBlocks' smallest",
            "256x448x256x32": "32 small experts, of whom some have few rows",
        },
        "tiny": {"tiny": {"M": 24, "N": 20, "K": 48, "E": 5}},
        "adversarial": {
            "129x65x257x7": "tails along every axis",
            "40x33x64x90": "more experts than tokens",
        },
    },
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = K, s = sum over k of |X[i,k] W[e,k,j]|. {running sum} Zero times infinity is "
    "NaN.",
}


def values(family: Family, rng: np.random.Generator, M: int, N: int, K: int, E: int) -> Inputs:
    """Factors, and segments of very different lengths: one expert has far more than the others."""
    x, w = draw_factors(family, (M, K), (K, E * N), rng, varies=(0, 1))
    thin_columns(family, x, rng)
    w = np.ascontiguousarray(w.reshape(K, E, N).swapaxes(0, 1))
    blemish(family, x, rng)
    blemish(family, w.reshape(E * K, N), rng)
    return x, w, draw_segments(family, M, E, rng)


def oracle(X: np.ndarray, W: np.ndarray, seg_ptr: np.ndarray, M: int, N: int, K: int) -> Expected:
    """The products in float64; the scale is that of the magnitudes."""
    value, scale = np.zeros((M, N)), np.zeros((M, N))
    for e, rows in list_segments(seg_ptr):
        value[rows], scale[rows] = multiply(X[rows], W[e])
    return Expected(value, scale, float(K))


def by_torch(torch: Any, X: Any, W: Any, seg_ptr: Any, Y: Any) -> Prepared:
    """A product of each expert that has rows."""
    return call_for_each(seg_ptr, lambda e, rows: torch.mm(X[rows], W[e], out=Y[rows]))


def by_floats(X: Any, W: Any, seg_ptr: Any, Y: Any) -> Prepared:
    """Narrow factors as float32, which are rounded once."""
    return call_for_each(seg_ptr, lambda e, r: Y[r].copy_(X[r].float() @ W[e].float()))


def by_numpy(X: np.ndarray, W: np.ndarray, seg_ptr: np.ndarray, Y: np.ndarray) -> Prepared:
    """OpenBLAS, for each expert that has rows."""
    return call_for_each(seg_ptr, lambda e, rows: np.dot(X[rows], W[e], out=Y[rows]))
