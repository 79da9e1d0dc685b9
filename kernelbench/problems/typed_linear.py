# SPDX-License-Identifier: Apache-2.0
"""The linear layer of a relational graph network: each edge takes its source's features through the
weights of its type. Edges come sorted by type; the rows are gathered in the product."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import multiply
from ..experts import call_for_each, draw_segments, list_segments
from ..families import blemish, draw_factors, thin_columns
from ..problem import Expected, Family, Inputs, Prepared

PROBLEM = {
    "title": "Typed linear layer: gathered rows meet the weights of their edge's type",
    "definition": "Y[i,j] = sum over k of X[src[i],k] * W[t,k,j] for the edges i from seg_ptr[t] "
    "up to, not including, seg_ptr[t+1]",
    "source": "Hector, arXiv 2301.06284; DGL's segment_mm and gather_mm",
    "headline": "Hector: up to 9.9 times faster inference of RGCN, RGAT and HGT than with DGL and "
    "PyG, 3.8 times more by compact materialization, as reported",
    "tags": ["dense", "contraction", "ragged", "graph"],
    "axes": {"M": "edges by type", "N": "outputs", "K": "inputs", "V": "nodes", "E": "types"},
    "inputs": {
        "X": "float32[V, K]: features of the nodes, row-major",
        "W": "float32[E, K, N]: weights of each type, row-major",
        "src": "int32[M]: the node whose row an edge takes; some are many edges' source",
        "seg_ptr": "int32[E+1]: from 0 to M, never falling; a type may have no edges",
    },
    "bound": ["src", "seg_ptr"],
    "outputs": {"Y": "float32[M, N]: row-major"},
    "flops": "2 * M * N * K",
    "workloads": {
        "realistic": {
            "48000x64x64x7000x90": "a small knowledge graph with 90 relations, 64 features",
            "60000x32x32x27000x46": "narrow features: the gather weighs as much as the products",
        },
        "tiny": {"tiny": {"M": 60, "N": 20, "K": 48, "V": 30, "E": 5}},
        "adversarial": {
            "1291x65x129x257x7": "tails along every axis",
            "400x33x64x50x900": "more types than edges",
        },
    },
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = K, s = sum over k of |X[src[i],k] W[t,k,j]|. {running sum} Zero times "
    "infinity is NaN.",
}


def values(
    family: Family, rng: np.random.Generator, M: int, N: int, K: int, V: int, E: int
) -> Inputs:
    """Factors, segments of very different lengths, and sources some of which are popular."""
    src = rng.permutation(V)[(V * rng.random(M) ** 2).astype(np.int64)].astype(np.int32)
    x, w = draw_factors(family, (V, K), (K, E * N), rng, varies=(0, 1), live=np.unique(src))
    thin_columns(family, x, rng)
    w = np.ascontiguousarray(w.reshape(K, E, N).swapaxes(0, 1))
    blemish(family, x, rng, places=src)
    blemish(family, w.reshape(E * K, N), rng)
    return x, w, src, draw_segments(family, M, E, rng)


def oracle(X: np.ndarray, W: np.ndarray, src: np.ndarray, seg_ptr: np.ndarray) -> Expected:
    """The products in float64; the scale is that of the magnitudes."""
    value, scale = np.zeros((2, len(src), W.shape[2]))
    for t, edges in list_segments(seg_ptr):
        value[edges], scale[edges] = multiply(X[src[edges]], W[t])
    return Expected(value, scale, float(W.shape[1]))


def by_torch(torch: Any, X: Any, W: Any, src: Any, seg_ptr: Any, Y: Any) -> Prepared:
    """Rows gathered, and a product of each type that has edges."""
    return call_for_each(seg_ptr, lambda t, e: torch.mm(X[src[e]], W[t], out=Y[e]))


def by_floats(X: Any, W: Any, src: Any, seg_ptr: Any, Y: Any) -> Prepared:
    """Narrow factors as float32, which are rounded once."""
    return call_for_each(seg_ptr, lambda t, e: Y[e].copy_(X[src[e]].float() @ W[t].float()))


def by_numpy(X: np.ndarray, W: np.ndarray, src: np.ndarray, seg_ptr: Any, Y: np.ndarray) -> Any:
    """OpenBLAS, for each type that has edges."""
    return call_for_each(seg_ptr, lambda t, e: np.dot(X[src[e]], W[t], out=Y[e]))
