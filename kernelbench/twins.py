# SPDX-License-Identifier: Apache-2.0
"""Other CSR patterns of exactly the same sizes, for telling a kernel that kept the pattern.

A near twin differs in two or four entries and, where it can, not in the sums of its index arrays:
whoever recognises a pattern by its ends, by samples or by such a sum takes it for the same. The
turned twin has hardly an entry in common. Twins know no values: any fit, the sizes being the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .problem import Structure


def twins(structure: Structure, rng: np.random.Generator) -> Iterator[Structure]:
    """A near twin by rows, one by columns if there are any, the pattern turned, and so on.

    Those that do not exist are left out; it ends where none exists (one row that is full).
    """
    indptr, indices = structure.arrays["indptr"], structure.arrays.get("indices")
    while True:
        found = [_other_rows(indptr, indices, rng)]
        if indices is None:
            found.append(_other_rows(indptr, indices, rng))
        else:
            found.append(_other_columns(indptr, indices, structure.axes["K"], rng))
        found.append(_reverse_csr(indptr, indices, structure.axes.get("K", 0)))
        made = [_structure(structure, arrays) for arrays in found if arrays is not None]
        if not made:
            return
        yield from made


Arrays = tuple[np.ndarray, np.ndarray | None]


def _structure(structure: Structure, arrays: Arrays) -> Structure:
    names = ("indptr", "indices")
    given = {name: a for name, a in zip(names, arrays, strict=True) if a is not None}
    return Structure(dict(structure.axes), given)


def _other_rows(
    indptr: np.ndarray, indices: np.ndarray | None, rng: np.random.Generator
) -> Arrays | None:
    """One row's end moved up by an entry, and another's down where there is one that can be.

    The entry that changes its row keeps its column where the rows' order allows that.
    """
    boundaries = np.arange(1, len(indptr) - 1)
    before, behind = (np.diff(indptr)[boundaries - n] > 0 for n in (1, 0))
    is_up, is_down = before, behind
    if indices is not None and len(indices):
        at = indptr[boundaries]
        last, first = indices[np.maximum(at - 1, 0)], indices[np.minimum(at, len(indices) - 1)]
        is_kept = ~before | ~behind | (last < first)
        # Else it goes to column 0 of the row behind, or to one further right in the row before.
        is_up = _prefer_wanted(before & is_kept, before & (first > 0))
        is_down = behind & is_kept
    up, down = boundaries[is_up], boundaries[is_down]
    if not len(up) and not len(down):
        return None
    moved, chosen = indptr.copy(), -1
    if len(up):
        chosen = int(rng.choice(up))
        moved[chosen] -= 1
        indices = _in_order(indices, moved, chosen)
    others = down[np.abs(down - chosen) > 1]
    if len(others):
        moved[int(rng.choice(others))] += 1
    return moved, indices


def _prefer_wanted(wanted: np.ndarray, possible: np.ndarray) -> np.ndarray:
    return wanted if wanted.any() else possible


def _in_order(indices: np.ndarray | None, indptr: np.ndarray, row: int) -> np.ndarray | None:
    """The columns, the first one of `row` set to 0 where it is not below the second."""
    if indices is None or indptr[row + 1] - indptr[row] < 2:
        return indices
    start = indptr[row]
    if indices[start] < indices[start + 1]:
        return indices
    ordered = indices.copy()
    ordered[start] = 0
    return ordered


def _other_columns(
    indptr: np.ndarray, indices: np.ndarray, columns: int, rng: np.random.Generator
) -> Arrays | None:
    """One entry a column further right, and another one further left where there is one."""
    is_last = np.zeros(len(indices), bool)
    is_last[indptr[1:][np.diff(indptr) > 0] - 1] = True
    following = np.where(is_last, columns, np.roll(indices, -1))
    right = np.flatnonzero(indices + 1 < following)
    previous = np.where(np.roll(is_last, 1), -1, np.roll(indices, 1))
    left = np.flatnonzero(indices - 1 > previous)
    if not len(right) and not len(left):
        return None
    moved = indices.copy()
    chosen = int(rng.choice(right)) if len(right) else -2
    if chosen >= 0:
        moved[chosen] += 1
    others = left[np.abs(left - chosen) > 1]
    if len(others):
        moved[int(rng.choice(others))] -= 1
    return indptr, moved


def _reverse_csr(indptr: np.ndarray, indices: np.ndarray | None, columns: int) -> Arrays | None:
    """Rows and columns in reverse order: valid CSR again, at the price of a copy."""
    rows = np.ascontiguousarray(indptr[-1] - indptr[::-1])
    if indices is None:
        return None if np.array_equal(rows, indptr) else (rows, None)
    turned = np.ascontiguousarray(columns - 1 - indices[::-1])
    if np.array_equal(rows, indptr) and np.array_equal(turned, indices):
        return None
    return rows.astype(indptr.dtype), turned.astype(indices.dtype)
