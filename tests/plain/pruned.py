"""Second implementations: products with weights that were pruned, and with blocks."""

from __future__ import annotations

import itertools

import numpy as np

from kernelwright.kernelbench.problem import Arrays, Structure

from .collect import Implementation


def _bsr_spmm(s: Structure, i: Arrays, t: type) -> np.ndarray:
    blocks, x = i["values"].astype(t), i["X"].astype(t)
    y = np.zeros((s.axes["M"], *x.shape[1:]), t)
    for row, (first, last) in enumerate(itertools.pairwise(s.arrays["indptr"].tolist())):
        for p in range(first, last):
            y[row] += blocks[p] @ x[s.arrays["indices"][p]]
    return y


PLAIN: dict[str, Implementation] = {
    "bsr_spmm": _bsr_spmm,
}
