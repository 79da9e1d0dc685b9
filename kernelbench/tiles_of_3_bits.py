# SPDX-License-Identifier: Apache-2.0
"""Weights of 3 bits in tiles of 16 x 16, as SpQR stores them (arXiv 2306.03078).

A row of a tile is one word of 64 bits, with codes of its scale, its zero point and 16 weights; a
tile has a step and an offset for the codes of its scales, and the same for its zero points.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .families import below_one, blemish, draw, full_mantissa
from .problem import BaselineCall, Family, Inputs, Pair
from .quantising import STEPS, falling_powers
from .torch_calls import dense_view

TILE, BITS, FIRST = 16, 3, 6
"""Rows and columns; bits of a code; and where in a word the weights begin."""
CODES = 2**BITS


def draw_tiles(family: Family, down: int, across: int, rng: np.random.Generator) -> Pair:
    """Words, every code as often as another, and the four numbers of each tile: scales of one sign
    far apart, zero points among the codes. Those of EXACT give whole numbers times a power of two.

    Args:
        down, across: tiles from top to bottom and in a row.
    """
    bits = FIRST + TILE * BITS
    codes = rng.integers(0, 1 << bits, (TILE * down, across), np.int64)
    words = np.stack([codes & 0xFFFFFFFF, codes >> 32], -1).astype(np.uint32).view(np.int32)
    is_exact = family is Family.EXACT
    shape = (down, across)
    steps = (
        falling_powers(6, 7, shape, rng) if is_exact else falling_powers(4, 4 + STEPS, shape, rng)
    )
    tiles = np.ones((down, across, 4), np.float32)
    if is_exact:
        tiles[..., 1], tiles[..., 3] = -rng.integers(0, 2, (2, *shape))
    else:
        steps = steps * full_mantissa(shape, rng)
        tiles[..., 1] = -rng.uniform(0.5, 4, shape)
        tiles[..., 2] = rng.uniform(0.5, 1, shape)
        tiles[..., 3] = rng.uniform(-1, 1, shape)
    tiles[..., 0] = steps
    blemish(family, tiles.reshape(-1, 4)[:, :1], rng, (np.nan,))
    return words, tiles


def draw_outliers(
    family: Family, rows: int, columns: int, count: int, rng: np.random.Generator
) -> Inputs:
    """Where the outliers of each row begin, and their columns, int32, and what they are: some rows
    and columns have far more than others. Columns ascend within a row, and may come twice."""
    share = np.exp(rng.standard_normal(rows))
    row = np.repeat(np.arange(rows), rng.multinomial(count, share / share.sum()))
    column = (columns * rng.random(count) ** 1.5).astype(np.int64)
    row_ptr = np.searchsorted(row, np.arange(rows + 1)).astype(np.int32)
    if family is Family.EXACT:
        outliers = draw(family, (count,), rng)
    else:
        outliers = below_one((count,), rng) * falling_powers(0, 4, (count,), rng)
        blemish(family, outliers, rng, (np.nan,))
    return row_ptr, column[np.lexsort((column, row))].astype(np.int32), outliers


def take_apart(words: np.ndarray, tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The codes of weights (rows, tiles, 16), and scales and zero points (rows, tiles), float64."""
    low, high = (words[..., half].astype(np.int64) & 0xFFFFFFFF for half in (0, 1))
    whole = low | high << 32
    codes = whole[..., None] >> (FIRST + BITS * np.arange(TILE)) & (CODES - 1)
    each = np.repeat(tiles.astype(np.float64), TILE, 0)
    scales = each[..., 0] * ((whole & (CODES - 1)) - each[..., 1])
    zeros = each[..., 2] * ((whole >> BITS & (CODES - 1)) - each[..., 3])
    return codes, scales, zeros


def multiply_tiles(words: np.ndarray, tiles: np.ndarray, x: np.ndarray) -> Pair:
    """The product with a vector, float64, and its scale: that of codes and of zero points, each for
    itself. A few rows of tiles at a time."""
    vector = x.reshape(-1, TILE).astype(np.float64)
    value, scale = np.empty(len(words)), np.empty(len(words))
    share = max(1, (1 << 15) // (TILE * len(vector)))
    for first in range(0, len(tiles), share):
        rows = slice(TILE * first, TILE * (first + share))
        codes, scales, zeros = take_apart(words[rows], tiles[first : first + share])
        found = np.einsum("itk,tk->it", codes, vector) - zeros * vector.sum(1)
        size = np.abs(vector)
        sizes = np.einsum("itk,tk->it", codes, size) + np.abs(zeros) * size.sum(1)
        value[rows], scale[rows] = (found * scales).sum(1), (sizes * np.abs(scales)).sum(1)
    return value, scale


def decode_words(torch: Any, words: Any, tiles: Any) -> Any:
    """The weights as a matrix of float32, by torch."""
    low, high = words[..., :1], words[..., 1:]
    parts = torch.stack([low >> FIRST, (low >> 30 & 3) | (high << 2)], -2)
    shifts = BITS * torch.arange(TILE // 2, dtype=torch.int32, device=words.device)
    codes = (parts >> shifts & (CODES - 1)).flatten(-2).float()
    each = tiles.float().repeat_interleave(TILE, 0)
    scales = each[..., :1] * ((low & (CODES - 1)).float() - each[..., 1:2])
    zeros = each[..., 2:3] * ((low >> BITS & (CODES - 1)).float() - each[..., 3:])
    return (scales * (codes - zeros)).flatten(1)


def bind_outliers(torch: Any, call: BaselineCall) -> Callable[[Any], Any]:
    """The product of a call's outliers with a vector, by torch, in float32."""
    row_ptr, cols, outliers = (dense_view(call.inputs[n]) for n in ("row_ptr", "cols", "outliers"))
    size = len(row_ptr) - 1, TILE * call.axes["H"]

    def multiply(x: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
            entries = outliers.float()
            return torch.sparse_csr_tensor(row_ptr, cols, entries, size, check_invariants=False) @ x

    return multiply
