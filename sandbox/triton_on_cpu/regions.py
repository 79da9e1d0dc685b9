# SPDX-License-Identifier: Apache-2.0
"""The tensors that interpreted kernels may reach, found again by the addresses of an access."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

NOBODY, MANY = -1, -2
WORD = 4
"""Bytes that share a mark of who touched them last, until smaller elements are accessed."""


class OutsideError(Exception):
    """An access leaves every tensor; says by how much."""


@dataclass
class Region:
    """One tensor that kernels may reach."""

    name: str
    start: int
    bytes: int
    is_writable: bool
    writer: Any = None
    """For each word the program of this launch that wrote it."""
    reader: Any = None
    touched: bool = False
    fresh: Any = None
    """For each word whether nobody has written it, where a story is told."""
    sites: Any = None
    """For each word the store that wrote it, where a story is told."""
    unknown: Any = None
    """For each word whether programs that were left out may have written it, or what came of it."""

    word: int = WORD
    """Bytes that share a mark here."""

    @property
    def words(self) -> int:
        """How many marks there are of each kind; one more than bytes need, for what sticks out."""
        return -(-self.bytes // self.word) + 1

    def divide(self, size: int) -> None:
        """Gives elements of so many bytes marks of their own, which say what was known of all."""
        if size >= self.word:
            return
        times, self.word = self.word // size, size
        for kind in ("writer", "reader", "fresh", "sites", "unknown"):
            marks = getattr(self, kind)
            if marks is not None:
                setattr(self, kind, np.repeat(marks, times)[: self.words])

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.start + self.bytes


class Regions:
    """All tensors of a call, none of which overlap."""

    def __init__(self) -> None:
        self.all: list[Region] = []
        """By address."""
        self._starts = np.zeros(0, dtype=np.uint64)

    def add(self, region: Region) -> None:
        """Takes one more, in the place of those whose memory it has."""
        if not region.bytes:
            return
        apart = [r for r in self.all if r.end <= region.start or region.end <= r.start]
        self.all = sorted([*apart, region], key=lambda r: r.start)
        self._starts = np.array([r.start for r in self.all], dtype=np.uint64)

    def at(self, address: int) -> Region | None:
        """The one that holds an address."""
        return next((r for r in self.all if r.start <= address < r.end), None)

    def find_regions(self, pointers: Any, mask: Any, size: int) -> list[tuple[Region, Any]]:
        """Those that an access of `size` bytes at each pointer reaches, with the words to mark in
        each; they count as touched.

        Raises:
            OutsideError: it reaches what is in none of them.
        """
        pointers = np.asarray(pointers, dtype=np.uint64)
        mask = np.broadcast_to(np.asarray(mask, dtype=bool), pointers.shape)
        addresses = pointers[mask]
        if not addresses.size:
            return []
        # Nearly always it is one tensor.
        lowest = int(np.searchsorted(self._starts, addresses.min(), side="right")) - 1
        if lowest >= 0 and int(addresses.max()) < self.all[lowest].end:
            return [(self.all[lowest], self._words(lowest, addresses, size))]
        places = np.searchsorted(self._starts, addresses, side="right").astype(np.int64) - 1
        return [
            (self.all[place], self._words(place, addresses[places == place], size))
            for place in np.unique(places).tolist()
        ]

    def _words(self, place: int, inside: Any, size: int) -> Any:
        """The words to mark of region number `place` for addresses that are not before it; -1 is
        before all."""
        last = int(inside.max())
        if place < 0 or last + size > self.all[place].end:
            raise OutsideError(self._whereabouts(int(inside.min()) if place < 0 else last, size))
        region = self.all[place]
        region.touched = True
        if not region.is_writable:
            # Nobody writes to inputs.
            return np.zeros(0, np.int64)
        region.divide(size)
        words = (inside - np.uint64(region.start)).astype(np.int64) // region.word
        if size > region.word:
            words = np.concatenate([words + at for at in range(size // region.word)])
        return words

    def _whereabouts(self, address: int, size: int) -> str:
        def distance(region: Region) -> int:
            return min(abs(address - region.start), abs(address - region.end))

        if not self.all:
            return "outside of every tensor"
        near = min(self.all, key=distance)
        if address < near.start:
            return f"out of bounds: {near.start - address} bytes before the start of {near.name}"
        element = (address - near.start) // size
        return (
            f"out of bounds: {address - near.end} bytes past the end of {near.name}, at element "
            f"{element} of {near.bytes // size}"
        )


def marks_of(region: Region, kind: str) -> Any:
    """Who touched each word of a region, made when it is first asked for."""
    marks = getattr(region, kind)
    if marks is None:
        marks = np.full(region.words, NOBODY, dtype=np.int32)
        setattr(region, kind, marks)
    return marks


def read_marks(region: Region, kind: str, tensor: Any) -> Any:
    """For each element of a tensor in a region the marks of its words, along a last axis."""
    import torch

    size = tensor.element_size()
    region.divide(size)
    each = size // region.word
    first = (tensor.data_ptr() - region.start) // region.word
    strides = [each * stride for stride in tensor.stride()]
    marks = torch.from_numpy(getattr(region, kind))
    return marks.as_strided((*tensor.shape, each), (*strides, 1), first)
