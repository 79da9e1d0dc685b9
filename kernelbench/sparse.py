# SPDX-License-Identifier: Apache-2.0
"""What the sparse problems share: structures from generators and matrix files, hidden variations.

It knows CSR patterns as index arrays; the values on them belong to each problem.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import MatrixError, UsageError
from . import graphs
from .dtypes import INT32
from .families import (
    LONG,
    NOT_FINITE,
    PROBE_NONZEROS,
    below_one,
    blemish,
    denormal_rows,
    draw,
    draw_few,
    draw_places,
    full_mantissa,
    is_thinned,
    make_denormal,
    probe_segments,
)
from .graphs import Pattern
from .patterns import (
    LONGEST_LIGHT,
    MOST_ENTRIES,
    ROOM,
    ROOM_OF_LANES,
    crowded_pattern,
    draw_pattern,
    laws,
    light_pattern,
    list_edges,
    list_ends,
    wide_pattern,
    widen,
)
from .problem import Axes, Family, Pair, Structure, Tensor, Variations, Workload
from .rooms import Room
from .sizes import (
    BEYOND_16_BITS,
    BULK,
    Range,
    draw_pair,
    draw_sizes,
    is_middling,
    is_telling,
)
from .tried import MOST_OF_TWO, Tried

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

VALUES = "values"
"""The input that a CSR matrix takes its entries from, where it has any."""

OWN_AXES = ("M", "K", "nnz")
"""Axes that a pattern gives; all others come from the workload."""
LONGEST = "longest row"
"""It leads like an axis where sizes are drawn."""
WIDE = 1000
"""From so many columns up to LONG every other pattern has a row with all of them."""

FEW_ROWS = (2, 9)
"""Of every third pattern with a row of WIDE or more: pieces of equal work end in neighbours."""
LEAST_ENTRIES = 24
"""Of a pattern beside however wide a dense factor: some rows are cut by pieces of equal work."""
TALL = (1 << 18, 1 << 19)
"""Rows, and columns, of a pattern that is as large as BULK without a dense factor."""
NARROW = (4, 16)
"""Of a dense factor that has as many elements as BULK says because it has many rows."""
PADDED = 1 / 2
"""Of NONFINITE so many have one in the first row, and in the last, whoever names it."""
CROWDED = (200, 900)
"""Rows that share so many blocks that 16 bits do not count them."""

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
        missing = [n for n in names if n not in OWN_AXES and n not in workload.axes]
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


def row_terms(structure: Structure) -> np.ndarray:
    """How many terms the sum of each row has, float64; 1 of an empty one."""
    terms: np.ndarray = np.maximum(row_lengths(structure), 1).astype(np.float64)
    return terms


def row_places(structure: Structure) -> Pair:
    """Of every entry, its number within its row and that row's length."""
    rows, first = row_numbers(structure), structure.arrays["indptr"][:-1]
    return np.arange(len(rows)) - first[rows], row_lengths(structure)[rows]


def draw_entries(structure: Structure, rng: np.random.Generator, lanes: int = 1) -> np.ndarray:
    """Places of a few values in an array nnz x lanes read row by row, each in another row or lane
    of it. Empty where the pattern is.

    Args:
        lanes: values of each entry, as heads.
    """
    live = live_rows(structure)
    if not len(live):
        return live
    rows, lane = np.divmod(draw_few(len(live) * lanes, rng), lanes)
    places = draw_places(row_lengths(structure)[live[rows]], rng)
    found: np.ndarray = (structure.arrays["indptr"][live[rows]] + places) * lanes + lane
    return found


def segment_sums(structure: Structure, entries: np.ndarray) -> np.ndarray:
    """Sums over the entries of each row, float64; 0 for an empty row."""
    sums: np.ndarray = row_sum_matrix(structure) @ entries
    return sums


def segment_maxima(structure: Structure, entries: np.ndarray) -> np.ndarray:
    """Maxima over the entries of each row, float64; 0 for an empty row."""
    live, indptr = live_rows(structure), structure.arrays["indptr"]
    maxima = np.zeros((len(indptr) - 1, *entries.shape[1:]))
    if len(live):
        maxima[live] = np.maximum.reduceat(entries, indptr[live], axis=0)
    return maxima


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


def live_rows(structure: Structure) -> np.ndarray:
    """The numbers of the rows that have entries."""
    return np.flatnonzero(row_lengths(structure))


def factors(
    structure: Structure,
    family: Family,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    *,
    nonzeros: int = PROBE_NONZEROS,
    kinds: tuple[float, ...] = NOT_FINITE,
) -> Pair:
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
        chosen = denormal_rows(structure.axes["M"], rng, live_rows(structure))
        make_denormal(entries, chosen[row_numbers(structure)], rng)
        return entries, below_one(shape, rng)
    is_constant = family is Family.CONSTANT
    entries = row_constants(structure, rng) if is_constant else draw(family, (count,), rng)
    dense = draw(family, shape, rng, varies=1 if len(shape) > 1 else None)
    if family is not Family.NORMAL:
        entries[is_thinned(*row_places(structure), (count,), rng)] = 0
    if family is Family.NONFINITE and count:
        columns = structure.arrays["indices"]
        blemish(family, dense, rng, kinds, places=columns)
        # What vectors are filled up with, entries of value 0, names the first row, or the last.
        rows = dense.reshape(len(dense), -1)
        for end in (0, -1):
            if rng.random() < PADDED:
                rows[end, rng.integers(rows.shape[1])] = rng.choice(np.array(kinds, np.float32))
        is_met = ~np.isfinite(rows).all(1)[columns]
        if any(map(np.isnan, kinds)):
            blemish(family, entries, rng, kinds, places=draw_entries(structure, rng))
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


def multiply(structure: Structure, values: np.ndarray, dense: np.ndarray, columns: int) -> Pair:
    """The product with a dense matrix, float64, and that of the magnitudes, summed in float32,
    whose rounding is harmless in a scale.

    Args:
        values: of the entries.
        columns: of the sparse matrix.
    """
    value = csr(structure, values.astype(np.float64), columns) @ dense.astype(np.float64)
    scale = csr(structure, np.abs(values), columns) @ np.abs(dense)
    return value, scale.astype(np.float64)


def row_maxima(structure: Structure, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Per row the maximum of a[p] * b[column p] in float32; 0 for an empty row."""
    indptr, indices = structure.arrays["indptr"], structure.arrays["indices"]
    result = np.zeros((len(indptr) - 1, b.shape[1]), np.float32)
    rows = np.flatnonzero(np.diff(indptr))
    block = max(1, (1 << 17) // max(b.shape[1], 1))
    # Blocks of whole rows with about `block` entries: their products stay in the cache.
    cuts = np.searchsorted(indptr[rows], np.arange(0, len(a) + block, block))
    for first, last in itertools.pairwise(cuts):
        part = rows[first:last]
        if len(part):
            start, end = indptr[part[0]], indptr[part[-1] + 1]
            products = b[indices[start:end]]
            products *= a[start:end, None]
            result[part] = np.maximum.reduceat(products, indptr[part] - start, axis=0)
    return result


def _may_be_few(longest: int) -> bool:
    """Whether a pattern may have FEW_ROWS beside its longest.

    Of some lengths it may not: a plain float32 sum of so many terms of one sign is wrong by nearly
    as much as the gates allow (`make headroom`), and no short rows are there beside it.
    """
    return WIDE <= longest <= LONG // 2 or longest > LONG


def variations_of(
    *names: str, dense: Mapping[str, Range] | None = None, room: Room | None = None
) -> Variations:
    """The `variations` of a sparse problem; rows and columns have any number.

    Args:
        names: its axes, in order.
        dense: the ranges of the dense ones.
        room: what it has for entries that are blocks.
    """
    ranges = {"M": Range(), "K": Range(), LONGEST: Range(), **(dense or {})}
    lengths = [name for name, kind in (dense or {}).items() if not kind.choices]
    long = ROOM if "K" in names else ROOM_OF_LANES

    def vary(
        structure: Structure, rng: np.random.Generator, tried: Tried | None = None
    ) -> Iterator[Structure]:
        tried = tried or Tried(int(rng.integers(1 << 63)))
        own = {LONGEST: int(row_lengths(structure).max(initial=1)), "K": structure.axes["M"]}
        in_turn, edges, ends = laws(rng), list_edges(tried), list_ends(tried)
        turns, full = itertools.cycle((True, False)), itertools.cycle((True, False))
        few = itertools.cycle((False, False, True))
        for sizes in draw_sizes(ranges, {**own, **structure.axes}, rng, None, tried):
            if _may_be_few(sizes[LONGEST]) and sizes["M"] < WIDE and next(few):
                sizes["M"] = int(rng.integers(*FEW_ROWS))
            blocks = None
            if room:
                sizes, blocks = room.fit(sizes), room.entries(sizes)
                sizes[LONGEST] = room.longest(sizes, sizes[LONGEST])
            rows, cols, most = sizes["M"], sizes["K"], sizes[LONGEST]
            if max(rows, cols, most) >= BEYOND_16_BITS and blocks is None:
                is_long = most >= BEYOND_16_BITS or next(turns)
                pattern = wide_pattern(rows, cols, most, rng, has_long_row=is_long)
                sizes.update({name: 1 for name, kind in ranges.items() if not kind.choices})
            else:
                beside = max((sizes[name] for name in lengths), default=1)
                beside *= room.lanes(sizes) if room else 1
                entries = min(MOST_ENTRIES, max(LEAST_ENTRIES, MOST_OF_TWO // beside))
                entries = min(entries, blocks or entries)
                if widen(cols, most) * beside > 2 * MOST_OF_TWO:
                    most = cols  # a short row beside a wide factor: no axis beyond what was drawn
                elif blocks is None and WIDE <= cols <= LONG and next(full):
                    most = cols
                law, end = next(in_turn), next(ends)
                pattern = draw_pattern(rows, cols, most, law, rng, entries, long, edges, end)
            drawn = structure_from(pattern, sizes, names=names)
            yield replace(
                drawn,
                is_telling=is_telling(ranges, sizes),
                is_middling=is_middling(ranges, sizes),
            )

    return vary


def bulk_of(
    *names: str, dense: Mapping[str, Range] | None = None, room: Room | None = None
) -> Callable[[Structure, np.random.Generator], Iterator[Structure]]:
    """The `bulk` of a sparse problem: a wide dense factor beside many rows, then a narrow one. Of
    the many rows one is long, where the problem has columns.

    Args:
        names: its axes, in order.
        dense: the ranges of the dense ones.
        room: as of `variations_of`.
    """
    ranges = dense or {}
    width = next((name for name, kind in ranges.items() if not kind.choices), "")

    def draw(_structure: Structure, rng: np.random.Generator) -> Iterator[Structure]:
        for turn in itertools.count():
            choices = {name: kind.choices for name, kind in ranges.items() if kind.choices}
            sizes = {name: int(rng.choice(can)) for name, can in choices.items()}
            halved = room.halvings(sizes) if room else 0
            if not width:
                rows, cols = (int(rng.integers(*TALL)) >> halved for _ in range(2))
            elif turn % 3 == 2:
                sizes[width] = int(rng.integers(*NARROW, endpoint=True))
                if crowd := room and room.crowd(sizes):
                    pattern = crowded_pattern(int(rng.integers(*CROWDED)), crowd, rng)
                    yield structure_from(pattern, sizes, names=names)
                    continue
                rows = (int(rng.integers(*BULK)) >> halved) // sizes[width]
                rows = cols = room.rows(sizes, rows) if room else rows
            else:
                rows, sizes[width] = draw_pair(rng, is_whole=turn % 3 == 0, shrunk=halved)
                cols = rows
            # What cuts long rows into pieces, and wide factors into columns, does both here; but
            # not where an answer has a row for each entry, which would be too large.
            longest = cols if width and "K" in names and turn % 3 < 2 else LONGEST_LIGHT
            yield structure_from(light_pattern(rows, cols, rng, longest), sizes, names=names)

    return draw
