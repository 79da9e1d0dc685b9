# SPDX-License-Identifier: Apache-2.0
"""Memory that is shared with a runner process: a sealed file, which keeps its size for ever."""

from __future__ import annotations

import fcntl
import mmap
import os
from contextlib import suppress

import numpy as np

PAGE = mmap.PAGESIZE
_F_ADD_SEALS, _SEALS = 1033, 0x0002 | 0x0004  # shrink, grow


class SealedMemory:
    """One sealed memfd with a writable view."""

    def __init__(self, name: str, size: int) -> None:
        self.size = max(4096, -(-size // 4096) * 4096)
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size)
        fcntl.fcntl(self.fd, _F_ADD_SEALS, _SEALS)
        self.map = mmap.mmap(self.fd, self.size)
        self.view = np.frombuffer(self.map, dtype=np.uint8)

    def open_descriptor(self, *, is_writable: bool) -> int:
        """A new descriptor for a process. The caller closes it."""
        if is_writable:
            return os.dup(self.fd)
        return os.open(f"/proc/self/fd/{self.fd}", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Gives it back. May be called twice: the number may be somebody else's by then."""
        if self.fd < 0:
            return
        os.close(self.fd)
        self.fd = -1
        del self.view
        # Where somebody still holds a view, the mapping goes with the last of them.
        with suppress(BufferError):
            self.map.close()
