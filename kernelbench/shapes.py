# SPDX-License-Identifier: Apache-2.0
"""Sizes that waste a machine: what a model's designer can choose better, and a kernel cannot.

The rules are those of Anthony et al., The Case for Co-Designing Model Architectures with Hardware
(arXiv 2401.14489): rows that no wide load can follow, tiles at the edge of a product that are
mostly empty, a last wave of blocks that leaves most multiprocessors idle; and for CPUs vectors at a
row's end, and rows that lie a page apart, which share the sets of the first-level cache.

Every figure follows from the sizes; nothing is measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .dtypes import dtype_of
from .problem import Axes, Problem, Tensor
from .products import device_of
from .targets import Target, target_of

WIDE_LOAD = 16
"""Bytes that one thread of a GPU loads at once."""
TILES = ((128, 128), (64, 128), (128, 64), (64, 64), (32, 64), (16, 64))
"""Rows and columns of a product's output that one block has, in libraries that choose by size."""
WORTH_TELLING = 0.1
"""Share of the work that is wasted, from which it is told."""
FEW_WAVES = 8
"""From so many waves on the last one counts little."""
PAGE = 4096
"""Bytes: addresses so far apart share a set of the first-level cache, on x86 and most others."""
SHARED_ROWS = 8
"""Ways of that cache: more rows than these push each other out."""


@dataclass(frozen=True)
class ShapeNote:
    """One size that wastes something."""

    what: str
    """The rule's name: `alignment`, `tiles`, `waves`, `vectors`, `pages`."""
    text: str
    """With the figures, and what would do instead."""
    wasted: float = 0.0
    """Share of the work; 0 where no share follows from the sizes."""


def lint_shapes(
    problem: Problem, axes: Axes, target: str, *, vector_bytes: int = 32
) -> tuple[ShapeNote, ...]:
    """What the sizes of a call waste on a target, the costliest first.

    Args:
        axes: all of the problem's.
        vector_bytes: of the widest vectors, where the target is a CPU.

    Raises:
        UnknownNameError: there is no such target.
    """
    where = target_of(target)
    found = [
        *(_of_vectors(problem, axes, vector_bytes) if where.is_cpu else _of_loads(problem, axes)),
        *(_of_tiles(problem, axes, where) if "contraction" in problem.tags else ()),
        *(_of_pages(problem, axes) if where.is_cpu else ()),
    ]
    return tuple(sorted(found, key=lambda note: -note.wasted))


def _rows_of(problem: Problem, axes: Axes) -> Iterator[tuple[Tensor, int, int, int]]:
    """Tensors of several rows: how many, elements of one, and bytes of an element."""
    for tensor in problem.tensors:
        extent = tensor.extent(axes)
        if len(extent) > 1 and not tensor.is_index and (rows := math.prod(extent[:-1])) > 1:
            yield tensor, rows, extent[-1], dtype_of(tensor.dtype).bytes


def _of_loads(problem: Problem, axes: Axes) -> Iterator[ShapeNote]:
    """Rows that do not begin where a wide load can."""
    for tensor, _, length, size in _rows_of(problem, axes):
        if length * size % WIDE_LOAD and length * size > WIDE_LOAD:
            better = math.ceil(length * size / WIDE_LOAD) * WIDE_LOAD // size
            yield ShapeNote(
                "alignment",
                f"rows of {tensor.name} are {length} x {size} bytes, no multiple of {WIDE_LOAD}: "
                f"wide loads and tensor-core copies need a remainder; {better} would not",
            )


def _of_vectors(problem: Problem, axes: Axes, vector_bytes: int) -> Iterator[ShapeNote]:
    """Vectors at the end of a row that are mostly empty."""
    for tensor, _, length, size in _rows_of(problem, axes):
        lanes = vector_bytes // size
        vectors = math.ceil(length / lanes)
        wasted = 1 - length / (vectors * lanes)
        if wasted >= WORTH_TELLING:
            yield ShapeNote(
                "vectors",
                f"rows of {tensor.name} have {length} elements, {vectors} vectors of {lanes} of "
                f"which {wasted:.0%} is empty; {vectors * lanes} would take as long",
                wasted,
            )


def _of_pages(problem: Problem, axes: Axes) -> Iterator[ShapeNote]:
    """Rows that lie whole pages apart: walking down a column meets one set of the cache."""
    names = [
        f"{tensor.name} ({length * size} bytes)"
        for tensor, rows, length, size in _rows_of(problem, axes)
        if rows > SHARED_ROWS and length * size % PAGE == 0
    ]
    if names and not {"normalisation", "elementwise"}.intersection(problem.tags):
        yield ShapeNote(
            "pages",
            f"rows of {' and of '.join(names)} lie whole pages apart: elements below each other "
            f"share sets of the first-level cache; pack what is walked through by columns",
        )


def _of_tiles(problem: Problem, axes: Axes, where: Target) -> Iterator[ShapeNote]:
    """Tiles of a product's output that are mostly empty, and the last wave of them."""
    extent = problem.outputs[0].extent(axes)
    if where.is_cpu or len(extent) < 2:
        return
    rows, columns = math.prod(extent[:-1]), extent[-1]
    height, width = min(TILES, key=lambda tile: _count_padded(rows, columns, tile))
    wasted = 1 - rows * columns / _count_padded(rows, columns, (height, width))
    if wasted >= WORTH_TELLING:
        yield ShapeNote(
            "tiles",
            f"{rows} x {columns} results fill tiles of {height} x {width} to {1 - wasted:.0%}",
            wasted,
        )
    chip = device_of(where.architecture.name)
    if chip is None:
        return
    tiles = math.ceil(rows / height) * math.ceil(columns / width)
    waves = tiles / chip.sms
    wasted = 1 - waves / math.ceil(waves)
    if wasted >= WORTH_TELLING and waves <= FEW_WAVES:
        remedy = "split the inner dimension" if waves < 1 else "smaller tiles, or a persistent grid"
        yield ShapeNote(
            "waves",
            f"{tiles} tiles of {height} x {width} are {waves:.2f} waves on the {chip.sms} "
            f"multiprocessors of {chip.name}, which leave {wasted:.0%} idle: {remedy}",
            wasted,
        )


def _count_padded(rows: int, columns: int, tile: tuple[int, int]) -> int:
    """Results of all tiles, empty places included."""
    height, width = tile
    return math.ceil(rows / height) * height * math.ceil(columns / width) * width


def word_notes(notes: tuple[ShapeNote, ...], most: int = 3) -> str:
    """The costliest, as one line for a prompt; empty where there are none."""
    return "; ".join(note.text for note in notes[:most])


def find_axes(problem: Problem, facts: Mapping[str, float]) -> Axes | None:
    """All axes of a problem as facts have them; None where one is missing."""
    if any(axis not in facts for axis in problem.axes):
        return None
    return {axis: int(facts[axis]) for axis in problem.axes}
