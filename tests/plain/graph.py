"""Second implementations: neural networks on graphs."""

from __future__ import annotations

import itertools

import numpy as np

from kernelwright.kernelbench.problem import Arrays, Structure

from .collect import Implementation


def _attend(s: Structure, i: Arrays, t: type) -> np.ndarray:
    """Row by row."""
    indptr, indices = s.arrays["indptr"], s.arrays["indices"]
    X = i["X"].astype(t)
    Y = np.zeros((s.axes["M"], *X.shape[1:]), t)
    for row, (first, last) in enumerate(itertools.pairwise(indptr)):
        if first < last:
            columns = indices[first:last]
            e = i["a_row"][row].astype(t) + i["a_col"][columns].astype(t)
            e = np.maximum(e, t(0.2) * e)
            risen = np.exp(e - e.max(0))
            Y[row] = ((risen / risen.sum(0))[:, :, None] * X[columns]).sum(0)
    return Y


def _pool(s: Structure, i: Arrays, t: type) -> np.ndarray:
    """Bag by bag, by a segmented sum."""
    indptr, gathered = s.arrays["indptr"], i["table"].astype(t)[s.arrays["indices"]]
    y, live = np.zeros((s.axes["M"], s.axes["N"]), t), np.flatnonzero(np.diff(indptr))
    if len(live):
        y[live] = np.add.reduceat(gathered, indptr[live], axis=0)
    lengths = np.maximum(np.diff(indptr), 1).astype(t)[:, None]
    return y / lengths if s.axes["mean"] else y


def _push(s: Structure, i: Arrays, t: type) -> Arrays:
    """Row by row, each of which adds to the sums of its columns."""
    indptr, indices = s.arrays["indptr"], s.arrays["indices"]
    B, G, values = (i[name].astype(t) for name in ("B", "G", "values"))
    d_values, d_B = np.zeros(len(values), t), np.zeros_like(B)
    for row, (first, last) in enumerate(itertools.pairwise(indptr)):
        columns = indices[first:last]
        d_values[first:last] = (B[columns] * G[row]).sum(1)
        d_B[columns] += values[first:last, None] * G[row]
    return {"d_values": d_values, "d_B": d_B}


def _merge_rows(s: Structure, i: Arrays, t: type) -> Arrays:
    """Row by row, the sums of each by column in a dictionary."""
    indptr, indices, b_indptr, b_indices = (
        s.arrays[name] for name in ("indptr", "indices", "b_indptr", "b_indices")
    )
    a, b = i["values"].astype(t), i["b_values"].astype(t)
    columns, values = [], []
    for first, last in itertools.pairwise(indptr):
        sums: dict[int, float] = {}
        for p in range(first, last):
            for q in range(b_indptr[indices[p]], b_indptr[indices[p] + 1]):
                j = int(b_indices[q])
                sums[j] = sums[j] + a[p] * b[q] if j in sums else a[p] * b[q]
        columns += sorted(sums)
        values += [sums[j] for j in sorted(sums)]
    return {"c_indices": np.array(columns, np.int32), "c_values": np.array(values, t)}


def _go_back(s: Structure, i: Arrays, t: type) -> Arrays:
    """Row by row, each of which adds to the sums of its columns."""
    indptr, indices = s.arrays["indptr"], s.arrays["indices"]
    a_row, a_col, X, dY = (i[name].astype(t) for name in ("a_row", "a_col", "X", "dY"))
    d_row, d_col, dX = np.zeros_like(a_row), np.zeros_like(a_col), np.zeros_like(X)
    for row, (first, last) in enumerate(itertools.pairwise(indptr)):
        if first < last:
            columns = indices[first:last]
            s_row = a_row[row] + a_col[columns]
            e = np.where(s_row > 0, s_row, t(0.2) * s_row)
            risen = np.exp(e - e.max(0))
            alpha = risen / risen.sum(0)
            told = (dY[row] * X[columns]).sum(2)
            change = alpha * (told - (alpha * told).sum(0)) * np.where(s_row > 0, t(1), t(0.2))
            d_row[row] = change.sum(0)
            d_col[columns] += change
            dX[columns] += alpha[:, :, None] * dY[row]
    return {"d_row": d_row, "d_col": d_col, "dX": dX}


def _transform(s: Structure, i: Arrays, t: type) -> np.ndarray:
    """Each edge by itself."""
    X, W = i["X"].astype(t), i["W"].astype(t)
    types = np.searchsorted(i["seg_ptr"], np.arange(s.axes["M"]), "right") - 1
    pairs = zip(i["src"], types, strict=True)
    return np.stack([(X[node][:, None] * W[kind]).sum(0) for node, kind in pairs])


PLAIN: dict[str, Implementation] = {
    "gat_fused": _attend,
    "embedding_bag": _pool,
    "spmm_backward": _push,
    "spgemm_csr": _merge_rows,
    "gat_backward": _go_back,
    "typed_linear": _transform,
}
