# SPDX-License-Identifier: Apache-2.0
"""Where programs that did not run would have stored, by where those that ran pointed their stores.

A launch's footprint is plain where each program makes the same stores, each to a tile of one shape
whose place is affine in the program's ids, or in the two that its number is divided into. Masked
elements count: what lies in the tile of a program may be its own. For other launches nothing can be
said, nor where an integer that programs load follows from their ids as well: the rows of a sparse
matrix that happened to run may be of one length, and the places follow the row pointers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

LEAST_FITTED = 6
"""Programs by which a place that is affine in three numbers is known."""
MOST_PROGRAMS = 2_000_000
"""Programs of a launch whose tiles are laid out."""
MOST_PIECES = 2_000_000
"""Rows of all tiles of a launch; of more the span of each tile is taken."""
MOST_STORES = 256
"""Stores of a program that are kept."""
MOST_LOADS = 64
"""Loads of integers of a program that are kept."""


@dataclass
class StoreFootprint:
    """One store of each program, the first or second and so on."""

    tile: Any
    """Distances in bytes from its first element."""
    size: int
    places: dict[int, int] = field(default_factory=dict)
    """The address of its first element by program."""

    def rows(self, word: int, most: int) -> list[tuple[int, int]]:
        """The tile as ranges of words from its first element, at most so many."""
        words = np.unique(self.tile // word)
        breaks = np.flatnonzero(np.diff(words) > 1)
        if breaks.size >= most:
            breaks = breaks[:0]
        starts, ends = words[np.r_[0, breaks + 1]], words[np.r_[breaks, words.size - 1]]
        wide = max(1, self.size // word)
        return [(int(a), int(b) + wide) for a, b in zip(starts, ends, strict=True)]


@dataclass
class LoadedInteger:
    """What one load of integers gave each program, by program: addresses and values, first and
    last of the tile."""

    addresses: dict[int, tuple[int, int]] = field(default_factory=dict)
    values: dict[int, tuple[int, int]] = field(default_factory=dict)


class Footprints:
    """The stores of one launch, and the integers that may have said where to."""

    def __init__(self, grid: tuple[int, int, int] = (1, 1, 1)) -> None:
        self._grid = grid
        self._is_plain = grid[0] * grid[1] * grid[2] <= MOST_PROGRAMS
        self._stores: list[StoreFootprint] = []
        self._made: dict[int, int] = {}
        """How many stores each program has made."""
        self._loads: list[LoadedInteger] = []
        self._loaded = 0
        """How many loads of integers the program that runs has made."""

    def begin(self, program: int) -> None:
        """A program runs."""
        self._made[program] = 0
        self._loaded = 0

    def forget(self, program: int) -> None:
        """A program does not count."""
        self._made.pop(program, None)
        for store in self._stores:
            store.places.pop(program, None)
        for load in self._loads:
            load.addresses.pop(program, None)
            load.values.pop(program, None)

    def note_integers(self, program: int, pointers: Any, values: Any) -> None:
        """A program has loaded these integers."""
        number, self._loaded = self._loaded, self._loaded + 1
        if number >= MOST_LOADS or not pointers.size:
            return
        if number == len(self._loads):
            self._loads.append(LoadedInteger())
        load = self._loads[number]
        load.addresses[program] = _ends(pointers)
        load.values[program] = _ends(values)

    def note(self, program: int, pointers: Any, size: int) -> None:
        """A program stores to what is not masked of these."""
        if not self._is_plain or not pointers.size:
            return
        number = self._made.get(program, 0)
        self._made[program] = number + 1
        flat = np.asarray(pointers).reshape(-1).astype(np.int64)
        tile = flat - flat[0]
        if number == len(self._stores) < MOST_STORES:
            self._stores.append(StoreFootprint(tile, size))
        if number >= len(self._stores):
            self._is_plain = False
            return
        store = self._stores[number]
        self._is_plain = store.size == size and np.array_equal(store.tile, tile)
        store.places[program] = int(flat[0])

    def left_out(self, start: int, words: int, word: int) -> Any:
        """Which words from an address on the programs that did not run may have stored to.

        None where it cannot be told.
        """
        ran = sorted(self._made)
        if not self._is_plain or len(ran) < LEAST_FITTED:
            return None
        if any(len(store.places) != len(ran) for store in self._stores):
            return None
        if any(self._may_be_ids(load, ran) for load in self._loads):
            return None
        count = self._grid[0] * self._grid[1] * self._grid[2]
        others = np.delete(np.arange(count), ran)
        most = MOST_PIECES // max(1, others.size * len(self._stores))
        if not most:
            return None
        begins, ends = [], []
        for store in self._stores:
            places = self._places(store, np.array(ran), others)
            if places is None:
                return None
            first = (places - start) // word
            for begin, end in store.rows(word, most):
                begins.append(np.clip(first + begin, 0, words))
                ends.append(np.clip(first + end, 0, words))
        if not begins:
            return None
        edges = np.bincount(np.concatenate(begins), minlength=words + 1)
        edges -= np.bincount(np.concatenate(ends), minlength=words + 1)
        return np.cumsum(edges[:-1]) > 0

    def _may_be_ids(self, load: LoadedInteger, ran: list[int]) -> bool:
        """Whether what those that ran have loaded from places of their own follows from their ids,
        so that nobody can tell which of the two a place follows from."""
        if len(load.values) != len(ran):
            return False
        addresses, values = (
            np.array([found[program] for program in ran], dtype=np.int64)
            for found in (load.addresses, load.values)
        )
        return any(
            (addresses[:, end] != addresses[0, end]).any()
            and self._find_law(ran, values[:, end]) is not None
            for end in (0, 1)
        )

    def _places(self, store: StoreFootprint, ran: Any, others: Any) -> Any:
        """Where the others' tiles begin, None where the places of those that ran tell no law."""
        known = np.array([store.places[int(program)] for program in ran], dtype=np.int64)
        found = self._find_law(ran, known)
        if found is None:
            return None
        (ny, nz), law = found
        return _ids(others, ny, nz) @ law + known[0]

    def _find_law(self, ran: Any, known: Any) -> tuple[tuple[int, int], Any] | None:
        """By which division of the programs' numbers their ids give these numbers, and how."""
        for division in self._divisions():
            law = _fit_law(_ids(np.asarray(ran), *division), known)
            if law is not None:
                return division, law
        return None

    def _divisions(self) -> Iterator[tuple[int, int]]:
        """How a program's number may be divided: as the grid has it, or in two by the kernel."""
        nx, ny, nz = self._grid
        yield ny, nz
        count = nx * ny * nz
        small = [n for n in range(2, int(count**0.5) + 1) if count % n == 0]
        for n in sorted({*small, *(count // n for n in small)}):
            yield n, 1


def _ends(tile: Any) -> tuple[int, int]:
    flat = np.asarray(tile).reshape(-1)
    return int(flat[0]), int(flat[-1])


def _ids(programs: Any, ny: int, nz: int) -> Any:
    """For each program a row: one, and its three ids."""
    rest, z = np.divmod(programs, nz)
    x, y = np.divmod(rest, ny)
    return np.stack([np.ones_like(x), x, y, z], axis=1)


def _fit_law(ids: Any, places: Any) -> Any:
    """The law by which places follow from ids, as distances from the first place."""
    varies = np.r_[True, (ids[:, 1:] != ids[0, 1:]).any(axis=0)]
    used = ids[:, varies].astype(np.float64)
    if len(ids) <= used.shape[1] or np.linalg.matrix_rank(used) < used.shape[1]:
        return None
    away = places - places[0]
    law = np.zeros(ids.shape[1], dtype=np.int64)
    law[varies] = np.rint(np.linalg.lstsq(used, away.astype(np.float64), rcond=None)[0])
    return law if np.array_equal(ids @ law, away) else None
