# SPDX-License-Identifier: Apache-2.0
"""Tensors that stand for device memory while host code is recorded.

What a kernel would read or write has addresses here and no contents: its pages can be neither read
nor written, so that host code which looks at values ends with a signal instead of being recorded
as if every call were like the first. The structure's index arrays are there to be read, since they
stay the same in every call.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

PAGE = 4096
PROT_NONE, PROT_READ, PROT_WRITE = 0, 1, 2
MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE = 2, 0x20, 0x4000


class MemoryRole(StrEnum):
    """What a piece of memory stands for."""

    INDEX = "index"
    """An input that belongs to the structure."""
    INPUT = "input"
    OUTPUT = "output"
    SCRATCH = "scratch"


@dataclass
class MemoryRegion:
    """One tensor's memory."""

    role: MemoryRole
    place: int
    """Among the problem's tensors, or among the scratch buffers."""
    name: str
    start: int
    bytes: int
    dtype: Any
    shape: tuple[int, ...]


class Memory:
    """All regions of one recording, found again by address."""

    def __init__(self) -> None:
        self.regions: list[MemoryRegion] = []
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p

    @property
    def scratch(self) -> list[MemoryRegion]:
        """The buffers that host code has made, in order."""
        return [region for region in self.regions if region.role is MemoryRole.SCRATCH]

    def find(self, address: int) -> MemoryRegion | None:
        """The region that `address` lies in; a pointer behind the last element belongs to it."""
        return next((r for r in self.regions if r.start <= address <= r.start + r.bytes), None)

    def tensor(
        self, role: MemoryRole, place: int, name: str, dtype: Any, shape: Sequence[int]
    ) -> Any:
        """A contiguous tensor without contents."""
        import torch

        count = 1
        for length in shape:
            count *= length
        if count == 0:
            made = torch.empty(tuple(shape), dtype=dtype)
            self.regions.append(
                MemoryRegion(role, place, name, made.data_ptr(), 0, dtype, tuple(shape))
            )
            return made
        size = count * dtype.itemsize
        start = self._map(size, PROT_NONE)
        self.regions.append(MemoryRegion(role, place, name, start, size, dtype, tuple(shape)))
        raw = (ctypes.c_ubyte * size).from_address(start)
        return torch.frombuffer(raw, dtype=dtype).view(tuple(shape))

    def index(self, place: int, name: str, dtype: Any, shape: Sequence[int], raw: bytes) -> Any:
        """An index array of the structure, for reading."""
        made = self.tensor(MemoryRole.INDEX, place, name, dtype, shape)
        if raw:
            start = self.regions[-1].start
            size = -(-len(raw) // PAGE) * PAGE
            self._protect(start, size, PROT_READ | PROT_WRITE)
            ctypes.memmove(start, raw, len(raw))
            self._protect(start, size, PROT_READ)
        return made

    def view(self, region: MemoryRegion, offset: int, torch: Any) -> Any:
        """What lies in `region` from `offset` bytes on, flat."""
        count = (region.bytes - offset) // region.dtype.itemsize
        if count <= 0:
            return torch.empty(0, dtype=region.dtype)
        raw = (ctypes.c_ubyte * (region.bytes - offset)).from_address(region.start + offset)
        return torch.frombuffer(raw, dtype=region.dtype, count=count)

    def _map(self, size: int, protection: int) -> int:
        flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        # A page more, so that no two regions touch.
        length = ctypes.c_size_t(-(-size // mmap.PAGESIZE) * mmap.PAGESIZE + mmap.PAGESIZE)
        found = self._libc.mmap(None, length, protection, flags, -1, ctypes.c_long(0))
        if found is None or found == ctypes.c_void_p(-1).value:
            raise MemoryError(f"no address space for {size} bytes")
        return int(found)

    def _protect(self, start: int, size: int, protection: int) -> None:
        if self._libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(size), protection) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
