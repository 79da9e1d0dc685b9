# SPDX-License-Identifier: Apache-2.0
"""Memory for interpreted kernels: each tensor ends where its pages end, or begins where they do.

A tensor lies in a stretch of address space of its own, most of which can be neither read nor
written, so that a pointer that leaves its tensor meets no other one.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

PAGE = 4096
APART = 1 << 30
"""Closed address space before and behind each tensor; it costs nothing."""
PROT_NONE, PROT_READ, PROT_WRITE = 0, 1, 2
MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE = 2, 0x20, 0x4000
POISON = 0xFF
"""What memory holds that nobody has written: NaN as a float, -1 as an integer."""

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p


class Guarded:
    """One tensor's memory."""

    def __init__(self, size: int, *, at_end: bool) -> None:
        self.size = size
        self._pages = -(-size // PAGE) * PAGE
        length = self._pages + 2 * APART
        flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        base = LIBC.mmap(None, ctypes.c_size_t(length), PROT_NONE, flags, -1, ctypes.c_long(0))
        if base is None or base == ctypes.c_void_p(-1).value:
            raise MemoryError(f"no address space for {size} bytes")
        self._first = int(base) + APART
        self.start = self._first + (self._pages - size if at_end else 0)
        self.may(PROT_READ | PROT_WRITE)
        ctypes.memset(self.start, POISON, size)
        weakref.finalize(self, LIBC.munmap, ctypes.c_void_p(base), ctypes.c_size_t(length))

    def may(self, protection: int) -> None:
        """Sets what may be done with the tensor's own pages."""
        if self._pages and LIBC.mprotect(
            ctypes.c_void_p(self._first), ctypes.c_size_t(self._pages), protection
        ):
            raise OSError(ctypes.get_errno(), "mprotect")

    def tensor(self, dtype: Any, count: int) -> Any:
        """The memory as a flat tensor, which does not keep the memory alive."""
        import torch

        if not count:
            return torch.empty(0, dtype=dtype)
        raw = (ctypes.c_ubyte * self.size).from_address(self.start)
        return torch.frombuffer(raw, dtype=dtype, count=count)
