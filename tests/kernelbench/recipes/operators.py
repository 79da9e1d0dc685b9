"""The ten operators in float64, with small awkward inputs and a ctypes call for each."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
U = 2.0**-24


class Case(NamedTuple):
    """One call: scalars in C order, inputs in C order, the truth and its error bound."""

    label: str
    scalars: tuple[int, ...]
    inputs: tuple[Array, ...]
    truth: Array
    bound: Array


def bound(truth: Array, scale: Array | float, terms: Array | float) -> Array:
    """The elementwise gate: 2 u sqrt(terms) scale + 2 u |truth|, and the smallest normal float."""
    return 2 * U * np.sqrt(terms) * scale + 2 * U * np.abs(truth) + np.full(truth.shape, 1.2e-38)


def patterns(rng: np.random.Generator) -> Iterator[tuple[str, int, Array, Array]]:
    """CSR patterns as (label, K, indptr, indices)."""
    degrees = {
        "one row": [5],
        "one empty row": [0],
        "all empty": [0] * 7,
        "huge row among empty ones": [0, 0, 9000, 0, 1],
        "many": list(rng.integers(0, 9, 211)) + [700, 0, 0, 333],
    }
    for label, counts in degrees.items():
        K = max(1, max(counts) * 2)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        rows = [np.sort(rng.choice(K, c, replace=False)) for c in counts]
        yield label, K, indptr, np.concatenate(rows).astype(np.int32)


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def by_row(indptr: Array, terms: Array) -> Array:
    """Sums per CSR row of an array whose first axis is the non-zeros."""
    total = np.concatenate([np.zeros((1, *terms.shape[1:])), np.cumsum(terms, axis=0)])
    sums: Array = np.stack(
        [terms[a:b].sum(axis=0) for a, b in zip(indptr[:-1], indptr[1:], strict=True)] or [total[0]]
    )
    return sums


def spmm_csr(rng: np.random.Generator) -> Iterator[Case]:
    for label, K, indptr, indices in patterns(rng):
        for N in (1, 3, 33, 150):
            values, B = normal(rng, len(indices)), normal(rng, K, N)
            terms = values[:, None].astype(float) * B[indices].astype(float)
            truth = by_row(indptr, terms)
            length = np.maximum(1, np.diff(indptr))[:, None]
            limit = bound(truth, by_row(indptr, np.abs(terms)), length)
            scalars = (len(indptr) - 1, N, K, len(indices))
            yield Case(f"{label}, N={N}", scalars, (indptr, indices, values, B), truth, limit)


def matrices(rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    for M, N in ((1, 1), (1, 3), (5, 33), (3, 1000), (67, 64), (2, 5003)):
        yield f"{M}x{N}", normal(rng, M, N)
    yield "large", normal(rng, 4, 70) * np.float32(1e4)


def softmax(rng: np.random.Generator) -> Iterator[Case]:
    cases = list(matrices(rng))
    special = normal(rng, 6, 37)
    special[0, 3], special[1, 4], special[2, 36] = np.nan, np.inf, -np.inf
    special[3] = -np.inf
    special[4] = np.where(np.arange(37) % 2, 3.4e38, -3.4e38)
    special[5, 1:] = -np.inf
    for label, x in [*cases, ("special", special)]:
        with np.errstate(invalid="ignore"):
            e = np.exp(x.astype(float) - x.astype(float).max(axis=1, keepdims=True))
            truth = e / e.sum(axis=1, keepdims=True)
            # Rounding x - max costs |x - max| units in the last place of the result.
            gap = np.nan_to_num(x.astype(float).max(axis=1, keepdims=True) - x, posinf=0.0)
        limit = bound(truth, truth * (2 + np.minimum(gap, 110)), 1.0)
        yield Case(label, x.shape, (x,), truth, limit)


OPERATORS: dict[str, Callable[[np.random.Generator], Iterator[Case]]] = {
    "spmm_csr": spmm_csr,
    "softmax": softmax,
}


def call(function: Any, case: Case) -> Array:
    """Calls the C function on copies of the inputs; the output starts as NaN between guards."""
    guard = 64
    padded = np.full(case.truth.size + 2 * guard, np.nan, dtype=np.float32)
    padded[:guard] = padded[-guard:] = 12345.0
    arrays = [np.ascontiguousarray(a).copy() for a in case.inputs]
    before = [a.copy() for a in arrays]
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
    out = ctypes.c_void_p(padded.ctypes.data + 4 * guard)
    function(*(ctypes.c_int(s) for s in case.scalars), *pointers, out)
    assert (padded[:guard] == 12345.0).all(), f"{case.label}: written before the output"
    assert (padded[-guard:] == 12345.0).all(), f"{case.label}: written after the output"
    for kept, now in zip(before, arrays, strict=True):
        np.testing.assert_array_equal(kept, now, err_msg=f"{case.label}: an input was changed")
    return padded[guard:-guard].reshape(case.truth.shape).copy()


def check(function: Any, case: Case) -> None:
    """Runs a case and holds it against its truth; NaN and infinities must stand where they should."""
    found = call(function, case).astype(float)
    with np.errstate(over="ignore"):
        rounded = case.truth.astype(np.float32)
    for kind in (np.isnan, np.isposinf, np.isneginf):
        np.testing.assert_array_equal(kind(found), kind(rounded), err_msg=case.label)
    finite = np.isfinite(rounded)
    error = np.abs(found - case.truth)[finite]
    limit = np.broadcast_to(case.bound, case.truth.shape)[finite]
    if (worst := error > limit).any():
        at = int(np.argmax(error / limit))
        raise AssertionError(
            f"{case.label}: {int(worst.sum())} of {error.size} wrong, the worst "
            f"{found[finite][at]} for {case.truth[finite][at]} (limit {limit[at]:.3g})"
        )
