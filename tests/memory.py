"""Whether a folder that lies in memory will do for the files of a test run."""

from __future__ import annotations

import os
import re
from pathlib import Path


def has_room(folder: Path, wanted: int) -> bool:
    """Whether programs may be run from there, and its file system and the memory have the room."""
    try:
        found = os.statvfs(folder)
        memory = Path("/proc/meminfo").read_text("ascii")
    except OSError:
        return False
    if found.f_flag & os.ST_NOEXEC or not os.access(folder, os.W_OK):
        return False
    available = re.search(r"^MemAvailable: +(\d+) kB$", memory, re.M)
    in_memory = int(available[1]) << 10 if available else 0
    return min(found.f_bavail * found.f_frsize, in_memory) >= wanted
