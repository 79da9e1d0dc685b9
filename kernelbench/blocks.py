# SPDX-License-Identifier: Apache-2.0
"""What problems share whose entries of a CSR pattern are blocks of elements.

Values are drawn, and truth is computed, on the pattern of the elements: there all that is known of
CSR holds, as rows with few non-zeros for a probe.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .families import blemish
from .problem import Family, Pair, Structure
from .sparse import draw_entries, factors, multiply, row_lengths, row_numbers


def expand(structure: Structure, rows: int, columns: int) -> tuple[Structure, np.ndarray]:
    """The pattern of the elements, where an entry is a block of so many rows and columns; and of
    the elements of each block, one block behind the other, their places there. Cached."""
    if "elements" not in structure.cache:
        indptr, indices = structure.arrays["indptr"].astype(np.int64), structure.arrays["indices"]
        lengths = row_lengths(structure)
        of_entry = row_numbers(structure)
        first, length = indptr[of_entry], lengths[of_entry]
        # Of a row of elements the blocks follow each other, and in each of them its columns.
        r, c = np.arange(rows)[:, None], np.arange(columns)
        before = first * rows + np.arange(len(indices)) - first
        places = ((before[:, None, None] + r * length[:, None, None]) * columns + c).astype(
            np.int64
        )
        named = np.empty(places.size, np.int64)
        named[places] = indices[:, None, None].astype(np.int64) * columns + c
        ends = np.cumsum(np.repeat(lengths, rows).astype(np.int64) * columns)
        axes = {"M": structure.axes["M"] * rows, "K": structure.axes["K"] * columns}
        arrays = {"indptr": np.concatenate(([0], ends)), "indices": named}
        made = Structure({**axes, "nnz": places.size}, arrays)
        structure.cache["elements"] = made, places
    found: tuple[Structure, np.ndarray] = structure.cache["elements"]
    return found


def pruned_factors(
    elements: Structure, family: Family, shape: tuple[int, int], rng: np.random.Generator
) -> Pair:
    """Weights on a pattern of elements, and the dense factor, whose numbers are always finite: a
    kernel may multiply them with the zeros of a dense matrix of weights."""
    drawn = Family.NORMAL if family is Family.NONFINITE else family
    weights, dense = factors(elements, drawn, shape, rng)
    blemish(family, weights, rng, places=draw_entries(elements, rng))
    return weights, dense


def block_factors(
    structure: Structure,
    family: Family,
    block: tuple[int, int],
    width: int,
    rng: np.random.Generator,
    draw: Callable[..., Pair] = factors,
) -> Pair:
    """Blocks (nnz, rows, columns), and the dense factor (K, columns, width).

    Args:
        draw: gives both, of the pattern of the elements.
    """
    elements, places = expand(structure, *block)
    entries, dense = draw(elements, family, (elements.axes["K"], width), rng)
    return entries[places], dense.reshape(-1, block[1], width)


def multiply_blocks(structure: Structure, blocks: np.ndarray, dense: np.ndarray) -> Pair:
    """The product in float64, (M, rows, width), and that of the magnitudes."""
    _, rows, columns = blocks.shape
    elements, places = expand(structure, rows, columns)
    entries = np.empty(places.size, blocks.dtype)
    entries[places] = blocks
    flat = dense.reshape(elements.axes["K"], -1)
    value, scale = multiply(elements, entries, flat, elements.axes["K"])
    shape = (structure.axes["M"], rows, -1)
    return value.reshape(shape), scale.reshape(shape)


def bsr_view(torch: Any, indptr: Any, indices: Any, blocks: Any, *, shape: tuple[int, int]) -> Any:
    """A torch BSR tensor over the memory of these."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse BSR tensor support is in beta state")
        return torch.sparse_bsr_tensor(indptr, indices, blocks, shape, check_invariants=False)
