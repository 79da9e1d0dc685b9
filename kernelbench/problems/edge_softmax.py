# SPDX-License-Identifier: Apache-2.0
"""Softmax over the entries of each row of a sparse pattern, per head: attention on a graph."""

from __future__ import annotations

import numpy as np

from .. import segments, sparse
from ..exponentials import OFFSETS, add_noise, draw_overflowing, softmax_of
from ..families import draw, sink
from ..masking import draw_mask
from ..problem import Expected, Family, Structure

PROBLEM = {
    "title": "Softmax over the entries of each row, per head (CSR)",
    "definition": "alpha[p,h] = exp(e[p,h] - max over row) / sum over q in row i of "
    "exp(e[q,h] - max), for p in [indptr[i], indptr[i+1])",
    "source": "dgNN, arXiv 2110.09524; TC-GNN (AGNN)",
    "tags": ["sparse", "graph", "attention", "normalisation"],
    "is_row_wise": True,
    "axes": {"M": "rows", "H": "heads", "nnz": "entries"},
    "lengths": {"H": "grid y"},
    "inputs": {"indptr": "csr", "e": "float32[nnz, H]: logits, row-major"},
    "outputs": {"alpha": "float32[nnz, H]: sums to 1 per row"},
    "flops": "5 * nnz * H",  # maximum, subtraction, exponential, sum and division
    "workloads": {
        "realistic": {
            "enron-4": {"H": 4, "graph": "email-Enron", "note": "four heads"},
            "caida-8": {"H": 8, "graph": "as-caida"},
        },
        "tiny": {"tiny": {"H": 4, "pattern": "uneven 1000"}},
        "adversarial": {
            "hub-3": {"H": 3, "pattern": "hub 2000", "note": "three heads"},
            "hub-1": {"H": 1, "pattern": "hub 5000", "note": "one head"},
        },
    },
    "baselines": "sparse softmax",
    "families": "denormal large nonfinite",
    "nrmse": 1.5e-4,
    "accuracy": "n = the entries of the row. {softmax law} A NaN makes its row of that head NaN; "
    "-inf is a mask, never the first entry of a row; +inf is never drawn.",
}


def values(
    structure: Structure, family: Family, rng: np.random.Generator, M: int, H: int, nnz: int
) -> np.ndarray:
    """The logits; NONFINITE masks some by -inf, never the first of a row, and has a few NaN."""
    places, lengths = (each[:, None] for each in sparse.row_places(structure))
    if family is Family.LARGE:
        shift = rng.choice(OFFSETS, (M, 1))[sparse.row_numbers(structure)]
        per_row = sparse.row_lengths(structure)
        return draw_overflowing((nnz, H), shift, places, lengths, per_row, rng, lanes=H)
    if family is Family.CONSTANT:
        e = draw(family, (nnz, H), rng, varies=1)
    else:
        e = add_noise(draw(family, (nnz * H,), rng).reshape(nnz, H), family, rng)
    sink(e, places, lengths, rng)
    if family is Family.NONFINITE:
        rows = sparse.row_numbers(structure)[:, None]
        e[draw_mask(places, lengths, rows, (nnz, H), rng)] = -np.inf
        e.reshape(-1)[sparse.draw_entries(structure, rng, H)] = np.nan
    return e


def oracle(structure: Structure, e: np.ndarray) -> Expected:
    """exp(e - max) / sum per row and head in float64."""
    terms = sparse.row_lengths(structure).astype(np.float64)[:, None]
    terms, distance = segments.widen_rows(structure, terms), segments.depths(structure, e)
    value, scale = softmax_of(distance, e, terms, *segments.row_sums(structure))
    return Expected(value, scale, terms)
