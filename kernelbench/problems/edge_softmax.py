# SPDX-License-Identifier: Apache-2.0
"""Softmax over the entries of each row of a sparse pattern, per head: attention on a graph.

The scale is that of exponentials.py, with the row's length as the number of terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exponentials import OFFSETS, add_noise, softmax_of
from ..families import draw, noise, raise_peaks, sink
from ..problem import Expected, Family, Prepared, Structure
from ..sparse import (
    draw_entries,
    live_rows,
    row_lengths,
    row_numbers,
    row_places,
    segment_sums,
)

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
    # Maximum, subtraction, exponential, sum and division.
    "flops": "5 * nnz * H",
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
    "families": "denormal large nonfinite",
    "nrmse": 1.5e-4,
    "accuracy": "n = the entries of the row. {softmax law} A NaN makes its row of that head NaN; "
    "-inf is a mask, never the first entry of a row; +inf is never drawn.",
}


def values(
    structure: Structure, family: Family, rng: np.random.Generator, M: int, H: int, nnz: int
) -> np.ndarray:
    """The logits; LARGE has some that overflow exp without the subtraction of the maximum, and in
    half of the rows of each head one that overflows it unless the maximum is that one.

    NONFINITE masks entries by -inf, never the first one of a row, and has a few NaN.
    """
    places, lengths = (each[:, None] for each in row_places(structure))
    if family is Family.LARGE:
        offsets = rng.choice(OFFSETS, M)
        e = noise((nnz, H), rng)
        e += offsets[row_numbers(structure)][:, None]
        sink(e, places, lengths, rng)
        raise_peaks(e, row_lengths(structure), rng)
        return e
    if family is Family.CONSTANT:
        e = draw(family, (nnz, H), rng, varies=1)
    else:
        e = add_noise(draw(family, (nnz * H,), rng).reshape(nnz, H), family, rng)
    sink(e, places, lengths, rng)
    if family is Family.NONFINITE:
        is_masked = rng.random((nnz, H)) < 1 / 8
        is_masked[structure.arrays["indptr"][live_rows(structure)]] = False
        e[is_masked] = -np.inf
        e.reshape(-1)[draw_entries(structure, rng, H)] = np.nan
    return e


def oracle(structure: Structure, indptr: np.ndarray, e: np.ndarray, M: int, H: int) -> Expected:
    """exp(e - max) / sum per row and head in float64."""
    rows, full = row_numbers(structure), live_rows(structure)
    terms = row_lengths(structure)[rows].astype(np.float64)[:, None]
    highest = np.zeros((M, H))
    if len(full):
        highest[full] = np.maximum.reduceat(e, indptr[full], axis=0)

    def total(entries: np.ndarray) -> np.ndarray:
        sums: np.ndarray = segment_sums(structure, entries)[rows]
        return sums

    distance = highest[rows] - e
    value, scale = softmax_of(distance, e, terms, total, lambda y, d: total(y * d))
    return Expected(value, scale, terms)


# scipy has nothing for it.
def by_torch(torch: Any, indptr: Any, rows: Any, e: Any, alpha: Any) -> Prepared:
    """Segments reduced, and gathered."""
    offsets, gathered = indptr.long(), torch.empty_like(e)

    def per_row(entries: Any, reduce: str) -> Any:
        # unsafe: skips a check of the offsets that never change.
        rowwise = torch.segment_reduce(entries, reduce, offsets=offsets, axis=0, unsafe=True)
        return torch.index_select(rowwise, 0, rows, out=gathered)

    def compute() -> None:
        torch.sub(e, per_row(e, "max"), out=alpha)
        alpha.exp_()
        alpha.div_(per_row(alpha, "sum"))

    return compute


def by_compile(torch: Any, rows: Any, e: Any, alpha: Any, M: int, H: int) -> Any:
    """Segments scattered, and gathered."""
    rows = rows.long()
    wide = rows[:, None].expand(e.shape).contiguous()

    def softmax(e: Any, rows: Any, wide: Any, a: Any) -> None:
        highest = e.new_full((M, H), -torch.inf).scatter_reduce(0, wide, e, "amax")
        risen = torch.exp(e - highest[rows])
        sums = e.new_zeros((M, H)).scatter_add(0, wide, risen)
        a.copy_(risen / sums[rows])

    return softmax, (e, rows, wide, alpha)
