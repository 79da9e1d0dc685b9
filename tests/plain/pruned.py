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


def _spmm_nm(s: Structure, i: Arrays, t: type) -> np.ndarray:
    """A few kept weights of every row after the others."""
    w, x, codes = i["values"].astype(t), i["X"].astype(t), i["codes"].astype(np.int64)
    y = np.zeros((s.axes["M"], s.axes["N"]), t)
    each = max(1, (1 << 18) // y.size)
    for first in range(0, s.axes["H"], each):
        part = slice(first, first + each)
        places = np.stack([codes[:, part] // 4**place % 4 for place in range(4)], -1)
        places += 8 * np.arange(first, first + places.shape[1])[:, None] + [0, 0, 4, 4]
        taken = w[:, 4 * first : 4 * (first + each)]
        y += np.einsum("mk,mkn->mn", taken, x[places.reshape(taken.shape)])
    return y


def _spmm_lscd(s: Structure, i: Arrays, t: type) -> Arrays:
    """Row by row, one weight after the other."""
    w, x = i["values"].astype(t), i["X"].astype(t)
    y = np.zeros((s.axes["M"], s.axes["N"]), t)
    for row, (first, last) in enumerate(itertools.pairwise(s.arrays["indptr"].tolist())):
        if first < last:
            products = w[first:last, None] * x[s.arrays["indices"][first:last]]
            y[row] = np.add.accumulate(products)[-1]
    return {"Y": y}


def _spmm_shflbw(s: Structure, i: Arrays, t: type) -> np.ndarray:
    """A dense product of each group with the rows that it names."""
    w, x, perm = i["values"].astype(t), i["X"].astype(t), i["perm"].reshape(s.axes["M"], -1)
    y = np.zeros((perm.size, x.shape[1]), t)
    for group, (first, last) in enumerate(itertools.pairwise(s.arrays["indptr"].tolist())):
        if first < last:
            y[perm[group]] = w[first:last].T @ x[s.arrays["indices"][first:last]]
    return y


def _bsr_sdd(s: Structure, i: Arrays, t: type) -> np.ndarray:
    """A row of blocks after the other."""
    x, w, size = i["X"].astype(t), i["W"].astype(t), s.axes["B"]
    h = np.zeros((s.axes["nnz"], size, size), t)
    for row, (first, last) in enumerate(itertools.pairwise(s.arrays["indptr"].tolist())):
        for p in range(first, last):
            h[p] = x[row] @ w[s.arrays["indices"][p]].T
    return h


def _spqr_gemv(s: Structure, i: Arrays, t: type) -> Arrays:
    """Bit by bit, a column of tiles after the other; outliers one by one."""
    x, tiles = i["x"].astype(t), i["tiles"].astype(t)
    bits = np.unpackbits(i["words"].view(np.uint8), axis=-1, bitorder="little")[..., :54]
    fields = (bits.reshape(*bits.shape[:2], 18, 3) * [1, 2, 4]).sum(-1).astype(t)
    y = np.zeros(len(bits), t)
    for c in range(s.axes["H"]):
        tile = np.repeat(tiles[:, c], 16, 0)
        scale = tile[:, 0] * (fields[:, c, 0] - tile[:, 1])
        zero = tile[:, 2] * (fields[:, c, 1] - tile[:, 3])
        y += scale * ((fields[:, c, 2:] - zero[:, None]) * x[16 * c : 16 * c + 16]).sum(1)
    for row, (first, last) in enumerate(itertools.pairwise(i["row_ptr"])):
        for p in range(first, last):
            y[row] += i["outliers"][p].astype(t) * x[i["cols"][p]]
    return {"y": y}


PLAIN: dict[str, Implementation] = {
    "bsr_sdd": _bsr_sdd,
    "bsr_spmm": _bsr_spmm,
    "spmm_nm": _spmm_nm,
    "spmm_lscd": _spmm_lscd,
    "spmm_shflbw": _spmm_shflbw,
    "spqr_gemv": _spqr_gemv,
}
