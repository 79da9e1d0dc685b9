"""The private folder that a compiler works in, and how its output is taken out of there."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Workplace:
    """One folder for one build."""

    folder: Path
    token: str
    """A folder name that the source cannot learn; remarks are believed only under it."""
    name: str
    """What the source's file is called."""

    @property
    def source(self) -> str:
        """The source's file, as seen from the folder."""
        return f"{self.token}/{self.name}"


@contextmanager
def workplace(name: str) -> Iterator[Workplace]:
    """A new folder for a source called `name`; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="kernelwright-build-") as outer:
        token = secrets.token_hex(8)
        folder = Path(outer) / token
        (folder / token).mkdir(parents=True)
        if os.geteuid() == 0:
            # A jail may drop root; the folder is reachable only by those who know its name.
            os.chmod(outer, 0o711)
            folder.chmod(0o777)
        yield Workplace(folder, token, name)


def read_output(path: Path, limit: int) -> bytes | None:
    """The bytes of a regular file that a jailed job wrote; None for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > limit:
            return None
        return file.read(limit + 1)
