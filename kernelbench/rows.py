# SPDX-License-Identifier: Apache-2.0
"""The same operator on some of its rows: what a large answer is judged by, a part at a time.

It follows from the declared shapes: a tensor whose first axis is M has those rows, one whose first
axis is nnz the entries of those rows, and the dense factor of a sparse problem the rows that their
columns name. Every other tensor stays whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .problem import Arrays, Axes, Problem, Structure

LARGE_BYTES = 64 << 20
"""Inputs and outputs of one call together, from which on there is one slot, and few rounds."""
WHOLE_BYTES = 4 << 20
"""The same, up to which every answer is judged whole: the truth of a larger one takes a hundred
times as long as the call."""
SHRUNK = 4
"""Times smaller than what is large is what stands for it, some of its rows."""
PARTS = 4
"""So many answers of trials together are a whole one, each row of it judged once; more where a part
of so many would be larger than this."""
PART_BYTES = 64 << 20
FEWER = 4
"""Beside rows that are judged in any case so many times fewer of the others are."""
BLOCK_ROWS = 64
"""Neighbours that are taken together."""
MOST_CHANGED = 4096
"""Rows of a pattern that are looked at since they are not another's."""


@dataclass(frozen=True)
class Rows:
    """Some rows of a structure."""

    structure: Structure
    """The same problem on these rows alone."""
    places: Arrays
    """By axis: which of its places they take along the first axis of tensors (M, nnz, K)."""

    def of(self, problem: Problem, name: str) -> np.ndarray | None:
        """The places of a tensor's first axis; None: all."""
        shape = next(tensor.shape for tensor in problem.tensors if tensor.name == name)
        return self.places.get(shape[0]) if shape else None

    def take(self, problem: Problem, tensors: Arrays) -> Arrays:
        """Copies of what tensors hold for these rows, by name; of others the tensors themselves."""
        places = {name: self.of(problem, name) for name in tensors}
        return {
            name: array if (at := places[name]) is None else array[at]
            for name, array in tensors.items()
        }


def is_large(problem: Problem, axes: Axes) -> bool:
    """Whether making inputs and holding copies of them is what an evaluation's time goes into."""
    return problem.is_row_wise and problem.bytes_moved(axes) > LARGE_BYTES


def is_parted(problem: Problem, axes: Axes) -> bool:
    """Whether answers on these axes are judged a part at a time."""
    return problem.is_row_wise and problem.bytes_moved(axes) > WHOLE_BYTES


def count_parts(problem: Problem, axes: Axes) -> int:
    """In how many parts the answers of trials on these axes are judged."""
    if not is_parted(problem, axes):
        return 1
    return max(PARTS, -int(-problem.bytes_moved(axes) // PART_BYTES))


def take_rows(structure: Structure, rows: np.ndarray) -> Rows:
    """The rows of these numbers, ascending, of a problem that is row-wise.

    Columns of a sparse pattern are numbered anew, without those that none of the rows names.
    """
    places = {"M": rows}
    axes, arrays = {**structure.axes, "M": len(rows)}, dict(structure.arrays)
    if "indptr" in arrays:
        first, lengths = arrays["indptr"][rows], np.diff(arrays["indptr"])[rows]
        ends = np.cumsum(lengths, dtype=np.int64)
        axes["nnz"] = int(ends[-1]) if len(ends) else 0
        places["nnz"] = np.arange(axes["nnz"]) + np.repeat(first - (ends - lengths), lengths)
        arrays["indptr"] = np.concatenate(([0], ends)).astype(arrays["indptr"].dtype)
    if "indices" in arrays:
        named = arrays["indices"][places["nnz"]]
        used, numbers = np.unique(named, return_inverse=True)
        places["K"] = used if len(used) else np.zeros(1, named.dtype)
        axes["K"] = len(places["K"])
        arrays["indices"] = numbers.astype(named.dtype)
    return Rows(Structure(axes, arrays), places)


def shrink(problem: Problem, structure: Structure, rng: np.random.Generator) -> Structure:
    """A structure of the same kind that is not large: this one, or some of its rows."""
    is_kept = not is_large(problem, structure.axes)
    return structure if is_kept else _keep_rows(problem, structure, LARGE_BYTES // SHRUNK, rng)


def shrink_to_whole(problem: Problem, structure: Structure, rng: np.random.Generator) -> Structure:
    """A structure of the same kind whose answers are judged whole: this one, or some of its rows;
    evaluations judge answers of more rows at once, in parts that are drawn as these are."""
    is_kept = not is_parted(problem, structure.axes)
    return structure if is_kept else _keep_rows(problem, structure, WHOLE_BYTES, rng)


def _keep_rows(
    problem: Problem, structure: Structure, most_bytes: int, rng: np.random.Generator
) -> Structure:
    share = -(-int(problem.bytes_moved(structure.axes)) // most_bytes)
    return take_rows(structure, RowTurns(rng).take(structure.axes["M"], share)).structure


class RowTurns:
    """Rows in blocks of neighbours, drawn so that each comes before one comes again."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._left: dict[tuple[int, int], list[int]] = {}

    def take(self, rows: int, share: int) -> np.ndarray:
        """The numbers, ascending, of one in `share` of so many rows."""
        blocks = -(-rows // BLOCK_ROWS)
        wanted = -(-blocks // share)
        left = self._left.setdefault((rows, share), [])
        if len(left) < wanted:
            left += self._rng.permutation(blocks).tolist()
        taken = np.unique(left[:wanted])
        del left[:wanted]
        numbers = (taken[:, None] * BLOCK_ROWS + np.arange(BLOCK_ROWS)).reshape(-1)
        ours: np.ndarray = numbers[numbers < rows]
        return ours


def changed_rows(old: Structure, new: Structure) -> np.ndarray:
    """Rows in which two patterns of the same sizes may differ, some thousands of them at most."""
    if old is new or "indptr" not in new.arrays:
        return np.zeros(0, np.int64)
    indptr, before = new.arrays["indptr"], old.arrays["indptr"]
    longer = np.flatnonzero(np.diff(indptr) != np.diff(before))
    moved = np.flatnonzero((indptr != before)[:-1] | (indptr != before)[1:])
    entries = np.zeros(0, np.int64)
    if "indices" in new.arrays:
        entries = np.flatnonzero(new.arrays["indices"] != old.arrays["indices"])[:MOST_CHANGED]
    rows = np.searchsorted(indptr, entries, "right") - 1
    found: np.ndarray = np.unique(
        np.concatenate((longer[:MOST_CHANGED], moved[:MOST_CHANGED], rows))
    )
    return found


def differing_rows(problem: Problem, structure: Structure, old: Arrays, new: Arrays) -> np.ndarray:
    """Rows in which two answers on one structure are not the same to the bit, ascending."""
    found = [np.zeros(0, np.int64)]
    for tensor in problem.outputs:
        bits = [each[tensor.name].view(f"u{each[tensor.name].itemsize}") for each in (old, new)]
        unequal = bits[0] != bits[1]
        places = np.flatnonzero(unequal.reshape(len(unequal), -1).any(axis=1))
        if tensor.shape[0] == "nnz":
            places = np.searchsorted(structure.arrays["indptr"], places, "right") - 1
        found.append(places)
    return np.unique(np.concatenate(found))
