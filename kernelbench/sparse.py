# SPDX-License-Identifier: Apache-2.0
"""What the sparse problems share: structures from generators and matrix files, hidden variations.

It knows CSR patterns as index arrays; the values on them belong to each problem.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import MatrixError, UsageError
from . import graphs
from .dtypes import INT32
from .families import (
    KEPT,
    LONG,
    NOT_FINITE,
    PROBE_NONZEROS,
    below_one,
    blemish,
    denormal_rows,
    draw,
    full_mantissa,
    make_denormal,
    probe_segments,
)
from .graphs import Pattern
from .problem import Axes, Family, Structure, Tensor, Workload

INDPTR = Tensor(
    name="indptr",
    dtype=INT32.name,
    shape=("M+1",),
    is_index=True,
    meaning="row i holds the entries indptr[i] up to, not including, indptr[i+1]",
)
INDICES = Tensor(
    name="indices",
    dtype=INT32.name,
    shape=("nnz",),
    is_index=True,
    meaning="column of each entry; ascending and distinct within a row",
)

Generator = Mapping[str, float | int | str | bool]


def pattern_of(workload: Workload) -> Pattern:
    """The CSR pattern of a workload: from its matrix file, else drawn from its generator.

    Raises:
        MatrixError: if the file cannot be used.
        UsageError: if the generator's law is unknown or its arguments do not fit.
    """
    if workload.matrix:
        from .matrices import file_sha256, load_pattern

        digest = file_sha256(workload.matrix)
        if workload.matrix_sha256 and digest != workload.matrix_sha256:
            raise MatrixError(
                f"{workload.matrix}: is not the file it was: SHA-256 {digest[:12]}…, "
                f"was {workload.matrix_sha256[:12]}…",
                hint="restore the file, or begin a new campaign with the new one",
            )
        return load_pattern(workload.matrix)
    arguments: dict[str, Any] = dict(workload.generator)
    law = arguments.pop("law", None)
    laws: dict[Any, Callable[..., Pattern]] = {
        "degree": _degree,
        "rmat": graphs.rmat,
        "hub": graphs.hub,
    }
    if law not in laws:
        raise UsageError(
            f"workload '{workload.name}' names the law '{law}' for its pattern",
            hint=f"laws: {', '.join(laws)}",
        )
    try:
        return laws[law](seed=workload.seed, **arguments)
    except TypeError as error:
        raise UsageError(
            f"workload '{workload.name}': the law '{law}' does not take {arguments}",
            hint=str(error),
        ) from error


def _degree(rows: int, nnz: int, cv: float, **more: Any) -> Pattern:
    return graphs.by_degree(rows, nnz, cv, **more)


def structure_from(
    pattern: Pattern, dense: Mapping[str, int], *, names: tuple[str, ...]
) -> Structure:
    """The Structure of a pattern: axes in the order of `names`, `dense` for those not its own.

    Columns are part of it only where the problem has the axis K.
    """
    own = {"M": pattern.rows, "K": pattern.cols, "nnz": pattern.nnz}
    axes: Axes = {name: int(own[name] if name in own else dense[name]) for name in names}
    arrays = {"indptr": pattern.indptr}
    if "K" in names:
        arrays["indices"] = pattern.indices
    return Structure(axes, arrays)


def structure_maker(*names: str) -> Callable[[Workload], Structure]:
    """The `structure` function of a sparse problem with these axes."""

    def make(workload: Workload) -> Structure:
        missing = [n for n in names if n not in ("M", "K", "nnz") and n not in workload.axes]
        if missing:
            raise UsageError(
                f"workload '{workload.name}' gives no value for the axis {missing[0]}",
                hint=f"it gives {dict(workload.axes)}",
            )
        return structure_from(pattern_of(workload), workload.axes, names=names)

    return make


def row_numbers(structure: Structure) -> np.ndarray:
    """The row of every entry, int32; kept in the structure's cache."""
    if "rows" not in structure.cache:
        indptr = structure.arrays["indptr"]
        rows = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
        structure.cache["rows"] = rows
    numbers: np.ndarray = structure.cache["rows"]
    return numbers


def row_lengths(structure: Structure) -> np.ndarray:
    """How many entries each row has."""
    return np.diff(structure.arrays["indptr"])


def segment_sums(structure: Structure, entries: np.ndarray) -> np.ndarray:
    """Sums over the entries of each row, float64; 0 for an empty row."""
    sums: np.ndarray = row_sum_matrix(structure) @ entries
    return sums


def row_sum_matrix(structure: Structure) -> Any:
    """The M x nnz matrix of ones that sums entries by row (scipy CSR); cached."""
    if "row_sum" not in structure.cache:
        from scipy.sparse import csr_matrix

        indptr = structure.arrays["indptr"]
        nnz = int(indptr[-1])
        structure.cache["row_sum"] = csr_matrix(
            (np.ones(nnz), np.arange(nnz, dtype=np.int32), indptr), shape=(len(indptr) - 1, nnz)
        )
    return structure.cache["row_sum"]


def row_constants(structure: Structure, rng: np.random.Generator) -> np.ndarray:
    """Values of the entries that are equal within a row and differ between rows."""
    per_row = draw(Family.CONSTANT, (structure.axes["M"],), rng, varies=0)
    entries: np.ndarray = per_row[row_numbers(structure)]
    return entries


def denormal_live_rows(structure: Structure, rng: np.random.Generator) -> np.ndarray:
    """Which rows are denormal in the family of that name: a few of those that have entries."""
    live = np.flatnonzero(row_lengths(structure))
    chosen = np.zeros(structure.axes["M"], bool)
    if len(live):
        chosen[live] = denormal_rows(len(live), rng)
    return chosen


def factors(
    structure: Structure,
    family: Family,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    *,
    nonzeros: int = PROBE_NONZEROS,
    kinds: tuple[float, ...] = NOT_FINITE,
) -> tuple[np.ndarray, np.ndarray]:
    """Values of the entries, and the dense factor of `shape` whose rows the columns name.

    Args:
        nonzeros: of each row, for the family PROBE.
        kinds: what NONFINITE puts into the dense factor, and into the entries where NaN is one of
            them; then some entries that meet it are zeros, too: 0 times infinity is NaN.
    """
    count = structure.axes["nnz"]
    if family is Family.PROBE:
        entries = probe_segments(structure.arrays["indptr"], rng, nonzeros)
        return entries, full_mantissa(shape, rng)
    if family is Family.DENORMAL:
        entries = draw(Family.NORMAL, (count,), rng)
        make_denormal(entries, denormal_live_rows(structure, rng)[row_numbers(structure)], rng)
        return entries, below_one(shape, rng)
    is_constant = family is Family.CONSTANT
    entries = row_constants(structure, rng) if is_constant else draw(family, (count,), rng)
    dense = draw(family, shape, rng, varies=1 if len(shape) > 1 else None)
    lengths = row_lengths(structure)
    if family is not Family.NORMAL and lengths.max(initial=0) > LONG:
        share = np.where(lengths > LONG, KEPT / np.maximum(lengths, 1), 1.0)
        entries[rng.random(count) > share[row_numbers(structure)]] = 0
    if family is Family.NONFINITE and count:
        columns = structure.arrays["indices"]
        blemish(dense, rng, kinds, places=columns)
        is_met = ~np.isfinite(dense).reshape(len(dense), -1).all(1)[columns]
        if any(map(np.isnan, kinds)):
            blemish(entries, rng, kinds)
            entries[np.flatnonzero(is_met)[::2]] = 0
        else:
            entries[is_met & (entries == 0)] = 1
    return entries, dense


def csr(structure: Structure, values: np.ndarray, columns: int) -> Any:
    """A scipy CSR matrix over the structure's pattern with these values; nothing is copied."""
    from scipy.sparse import csr_matrix

    indptr, indices = structure.arrays["indptr"], structure.arrays["indices"]
    matrix = csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, columns), copy=False)
    # scipy copies what is a small view of a large buffer, and would miss values that change there.
    matrix.data, matrix.indices, matrix.indptr = values, indices, indptr
    matrix.has_sorted_indices = True
    return matrix


HARD_LENGTHS: tuple[tuple[int, ...], ...] = (
    (1,),
    (0, 1),
    (0, 0, 3, 0),
    (17,) * 17,
    (31, 32, 33, 0, 63, 64, 65, 1),
    (7,) * 8,
    (0,) * 126 + (127,),
    (257,) + (1,) * 16,
    (2,) * 257,
    (8, 9) * 33,
    (300,) + (0,) * 40,
)
"""Row lengths of the hidden patterns: one entry, none, empty rows, one huge row, primes, tails."""


WIDE = (1 << 16) + 2048
"""Beyond what 16 bits can count: rows, columns, entries and the length of a row."""
WIDE_DENSE = 1
"""The most of a dense axis beside them, so that it stays small."""


def wide_pattern(rng: np.random.Generator, *, has_long_row: bool) -> Pattern:
    """A pattern whose every size is beyond 16 bits, with entries in its last rows and columns.

    With a long row that one has nearly all of the entries; else all rows are short.
    """
    rows, cols = (WIDE + int(n) for n in rng.integers(0, 4096, 2))
    most = 1 if has_long_row else 3
    lengths = rng.integers(0, most + 1, rows, dtype=np.int32)
    if has_long_row:
        lengths[rng.random(rows) < 0.9] = 0
    lengths[-8:] = most
    long = int(rng.integers(0, rows - 8))
    if has_long_row:
        lengths[long] = WIDE - 128
    indptr = np.zeros(rows + 1, np.int32)
    np.cumsum(lengths, out=indptr[1:])
    # Each place in a row has a range of columns of its own: sorted and distinct without a sort.
    band = cols // most
    indices = rng.integers(0, band, indptr[-1], dtype=np.int32)
    if has_long_row:
        kept = np.ones(cols, bool)
        kept[rng.permutation(cols)[WIDE - 128 :]] = False
        indices[indptr[long] : indptr[long + 1]] = np.flatnonzero(kept)
    else:
        place = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
        indices += band * place.astype(np.int32)
    return Pattern(rows, cols, indptr, indices)


def hard_patterns(rng: np.random.Generator, *, has_long_row: bool) -> Iterator[Pattern]:
    """Small patterns without end; in each round of the hard ones the columns differ.

    Each round begins with a wide one.
    """
    for round_number in itertools.count():
        yield wide_pattern(rng, has_long_row=has_long_row)
        for lengths in HARD_LENGTHS:
            cols = max(max(lengths), 1) + int(rng.integers(0, 40))
            yield graphs.from_lengths(np.array(lengths), cols, rng)
        for _ in range(4):
            rows = int(rng.choice((1, 2, 17, 64, 127, 257, 300 + round_number % 64)))
            cols = int(rng.choice((1, 5, 33, 127, 257)))
            lengths_drawn = rng.poisson(rng.uniform(0.5, 12), rows).clip(0, cols)
            lengths_drawn[rng.integers(0, rows)] |= 1  # never without an entry
            yield graphs.from_lengths(lengths_drawn, cols, rng)


def variations_of(
    *names: str,
    dense: Mapping[str, tuple[int, ...]] | None = None,
    has_long_row: bool = True,
) -> Callable[[Structure, np.random.Generator], Iterator[Structure]]:
    """The `variations` of a sparse problem.

    Args:
        names: its axes, in order.
        dense: for each dense axis the sizes to choose from; the workload's own size is added.
        has_long_row: whether wide ones have a row of more than 65,536 entries.
    """

    def vary(structure: Structure, rng: np.random.Generator) -> Iterator[Structure]:
        for pattern in hard_patterns(rng, has_long_row=has_long_row):
            most = WIDE_DENSE if pattern.rows >= WIDE else 512
            sizes = {
                axis: min(int(rng.choice((*choices, structure.axes[axis]))), most)
                for axis, choices in (dense or {}).items()
            }
            yield structure_from(pattern, sizes, names=names)

    return vary
