# SPDX-License-Identifier: Apache-2.0
"""Two CSR matrices and the rows of their product: patterns, their sizes, and library calls.

Row j of the second has the columns of row j of the first, so that a square pattern is squared;
where there is no such row, one column. The two have values of their own.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from .families import (
    below_one,
    blemish,
    denormal_rows,
    draw,
    full_mantissa,
    make_denormal,
    probe_segments,
)
from .following import Drawn
from .problem import Arrays, Axes, BaselineCall, Family, Inputs, Pair, Prepared, Structure
from .sparse import draw_entries, live_rows, row_numbers
from .torch_calls import dense_view

A, B = ("indptr", "indices"), ("b_indptr", "b_indices")
VALUES = ("values", "b_values")
PATTERN = "pattern of the product"
"""In the cache of a structure: a CSR matrix of how many products each entry has."""
MOST_PRODUCTS = {Drawn.ASKED: math.inf, Drawn.BULK: 1 << 22, Drawn.HIDDEN: 1 << 18}
MOST_OF_A_ROW = {Drawn.ASKED: math.inf, Drawn.BULK: math.inf, Drawn.HIDDEN: 1 << 12}
"""A plain kernel goes through the products of a row again for each part of its columns."""


def matrix(indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, columns: int) -> Any:
    """A scipy CSR matrix over this memory."""
    from scipy.sparse import csr_matrix

    made = csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, columns), copy=False)
    # scipy copies what is a small view of a large buffer, and would miss values that change there.
    made.data, made.indices, made.indptr = values, indices, indptr
    made.has_sorted_indices = True
    return made


def multiply(structure: Structure, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The entries of the product in their order; `pattern_of` says where they are."""
    return _spread(structure, _multiply(structure, a, b))


def _multiply(structure: Structure, a: np.ndarray, b: np.ndarray) -> Any:
    """scipy's product, which leaves out entries that add up to zero; columns ascend in a row."""
    arrays, columns = structure.arrays, structure.axes["K"]
    first, second = (
        matrix(arrays[ends], arrays[indices], values, columns)
        for (ends, indices), values in zip((A, B), (a, b), strict=True)
    )
    product = first @ second
    product.sort_indices()
    return product


def _spread(structure: Structure, product: Any) -> np.ndarray:
    """The entries of scipy's product, with those that it leaves out."""
    pattern = pattern_of(structure)
    if product.nnz == pattern.nnz:
        return np.asarray(product.data)
    there, kept = (
        np.repeat(np.arange(each.shape[0]), np.diff(each.indptr)) * each.shape[1] + each.indices
        for each in (pattern, product)
    )
    found = np.zeros(pattern.nnz, product.dtype)
    found[np.searchsorted(there, kept)] = product.data
    return found


def pattern_of(structure: Structure) -> Any:
    """A CSR matrix of how many products each entry of the product has, float64."""
    if PATTERN not in structure.cache:
        ones = (np.ones(len(structure.arrays[name])) for _, name in (A, B))
        structure.cache[PATTERN] = _multiply(structure, *ones)
    return structure.cache[PATTERN]


def scale_of(structure: Structure, a: np.ndarray, b: np.ndarray) -> Pair:
    """Of each entry of the product the sum of magnitudes, and the number of products, float64."""
    magnitudes = (np.abs(each, dtype=np.float64) for each in (a, b))
    return multiply(structure, *magnitudes), pattern_of(structure).data


def draw_factors(
    structure: Structure, family: Family, rng: np.random.Generator, nnz: int, nnz_b: int
) -> Inputs:
    """Values of both. Sums go along rows of the first; what is denormal there is not lost to the
    second."""
    if family is Family.PROBE:
        return probe_segments(structure.arrays["indptr"], rng), full_mantissa((nnz_b,), rng)
    if family is Family.DENORMAL:
        entries = draw(Family.NORMAL, (nnz,), rng)
        chosen = denormal_rows(structure.axes["M"], rng, live_rows(structure))
        make_denormal(entries, chosen[row_numbers(structure)], rng)
        return entries, below_one((nnz_b,), rng)
    entries, others = draw(family, (nnz,), rng), draw(family, (nnz_b,), rng)
    blemish(family, entries, rng, places=draw_entries(structure, rng))
    blemish(family, others, rng)
    return entries, others


def count_products(structure: Structure) -> np.ndarray:
    """How many products each row has, int64[M]."""
    indptr, indices = (structure.arrays[name] for name in A)
    sums = np.concatenate(([0], np.cumsum(np.diff(structure.arrays["b_indptr"])[indices])))
    found: np.ndarray = np.diff(sums[indptr])
    return found


def follow(structure: Structure, drawn: Drawn) -> Structure | None:
    """The structure with the second pattern, the rows of the product, and all sizes that follow;
    None: too dear to hide."""
    axes, (indptr, indices) = dict(structure.axes), (structure.arrays[name] for name in A)
    both = min(axes["M"], axes["K"])
    more = axes["K"] - both
    ends = np.concatenate((indptr[: both + 1], indptr[both] + np.arange(1, more + 1)))
    columns = np.concatenate((indices[: indptr[both]], np.arange(more, dtype=np.int32)[::-1]))
    patterns = {**structure.arrays, "b_indptr": ends.astype(np.int32), "b_indices": columns}
    counted = count_products(Structure(axes, patterns))
    axes |= {"nnz_b": len(columns), "P": int(counted.sum())}
    if axes["P"] > MOST_PRODUCTS[drawn] or counted.max() > MOST_OF_A_ROW[drawn]:
        return None
    return _with_product(axes, patterns)


def _with_product(axes: Axes, patterns: Arrays) -> Structure:
    """With the rows of the product of two patterns."""
    pattern = pattern_of(Structure(axes, patterns))
    ends = {"c_indptr": pattern.indptr.astype(np.int32)}
    return Structure(axes | {"nnz_c": int(pattern.nnz)}, patterns | ends, {PATTERN: pattern})


def other_patterns(structure: Structure, rng: np.random.Generator) -> Iterator[Structure]:
    """Other structures of the same sizes: two rows of the first change places, or its rows are
    turned; or the columns of the second are."""
    arrays, rows = structure.arrays, np.arange(structure.axes["M"])
    while True:
        swapped = rows.copy()
        two = rng.choice(len(rows), min(2, len(rows)), replace=False)
        swapped[two] = two[::-1]
        found = (_in_order(arrays, swapped), _in_order(arrays, rows[::-1]), _turn(structure))
        changed = [
            _with_product(dict(structure.axes), {**arrays, **new})
            for new in found
            if any(not np.array_equal(arrays[name], each) for name, each in new.items())
        ]
        if not changed:
            return
        yield from changed


def _in_order(arrays: Arrays, rows: np.ndarray) -> Arrays:
    """The first pattern with its rows in this order."""
    indptr, indices = (arrays[name] for name in A)
    lengths = np.diff(indptr)[rows]
    ends = np.cumsum(lengths)
    places = np.arange(len(indices)) + np.repeat(indptr[rows] - (ends - lengths), lengths)
    return {
        "indptr": np.concatenate(([0], ends)).astype(np.int32),
        "indices": indices[places],
    }


def _turn(structure: Structure) -> Arrays:
    """The second pattern with its columns in reverse."""
    indptr, indices = (structure.arrays[name] for name in B)
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    turned = structure.axes["K"] - 1 - indices
    return {"b_indices": turned[np.lexsort((turned, rows))].astype(np.int32)}


def by_torch(torch: Any, call: BaselineCall) -> Prepared:
    """torch's product by coordinates, which are made once: it comes in order, and that of CSR
    matrices does not."""
    columns = call.axes["K"]

    def place(names: tuple[str, str]) -> Any:
        indptr, indices = (dense_view(call.inputs[name]).long() for name in names)
        rows = torch.repeat_interleave(torch.arange(len(indptr) - 1), indptr.diff())
        return torch.stack((rows, indices)), (len(indptr) - 1, columns)

    def join(at: Any, each: Any, size: tuple[int, int]) -> Any:
        return torch.sparse_coo_tensor(
            at, each.float(), size, is_coalesced=True, check_invariants=False
        )

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        one = join(torch.zeros(2, 1, dtype=torch.int64), torch.ones(1), (1, 1))
        torch.sparse.mm(one, one)  # it says so once
    places = [place(names) for names in (A, B)]
    entries = [dense_view(call.inputs[name]) for name in VALUES]
    found, values = (dense_view(array) for array in call.outputs.values())

    def compute() -> None:
        factors = (join(at, e, size) for (at, size), e in zip(places, entries, strict=True))
        product = torch.sparse.mm(*factors).coalesce()
        found.copy_(product.indices()[1])
        values.copy_(product.values())

    return compute


def by_scipy(structure: Structure, call: BaselineCall) -> Prepared:
    """scipy's product without its first pass, which counts, and the sort of columns."""
    from scipy.sparse import _sparsetools as passes

    a, b = (
        matrix(call.inputs[ends], call.inputs[indices], call.inputs[entries], call.axes["K"])
        for (ends, indices), entries in zip((A, B), VALUES, strict=True)
    )
    found, values = call.outputs.values()
    rows, columns = a.shape[0], b.shape[1]
    ends = np.empty(rows + 1, np.int32)
    given = (rows, columns, a.indptr, a.indices, a.data, b.indptr, b.indices, b.data)

    def compute() -> None:
        passes.csr_matmat(*given, ends, found, values)
        passes.csr_sort_indices(rows, ends, found, values)
        if ends[-1] < len(values):  # entries that add up to zero
            count = int(ends[-1])
            product = matrix(ends, found[:count].copy(), values[:count].copy(), columns)
            values[...] = _spread(structure, product)
            found[...] = pattern_of(structure).indices

    return compute
