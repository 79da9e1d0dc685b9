# SPDX-License-Identifier: Apache-2.0
"""Where a compiler works on a candidate: a private folder, a jail around it, and limits.

Shared by the builders that run a compiler of this machine. Knows no language and no flags.
"""

from __future__ import annotations

import os
import secrets
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...errors import SandboxError
from ..isolation.model import Confinement, End, Limits, Outcome
from . import diagnostics
from .compiler import Compiler
from .workshop import Workshop

LIMITS = Limits(
    wall_s=60.0,
    cpu_s=60.0,
    memory_bytes=2 << 30,
    file_bytes=64 << 20,
    processes=64,
    open_files=256,
    output_bytes=1 << 20,
)


@dataclass(frozen=True)
class Workplace:
    """A folder that the compiler may write, with one inside for the source."""

    folder: Path
    token: str
    """A folder name that the source cannot learn; remarks are believed only under it."""

    def source(self, name: str) -> str:
        """Where a source of this name belongs, relative to the folder."""
        return f"{self.token}/{name}"


@contextmanager
def workplace() -> Iterator[Workplace]:
    """A new workplace, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="kernelwright-build-") as outer:
        token = secrets.token_hex(8)
        folder = Path(outer) / token
        (folder / token).mkdir(parents=True)
        if os.geteuid() == 0:
            # A jail may drop root; the folder is reachable only by those who know its name.
            os.chmod(outer, 0o711)
            folder.chmod(0o777)
        yield Workplace(folder, token)


def run(
    workshop: Workshop,
    command: Sequence[str],
    compiler: Compiler,
    place: Workplace,
    *,
    readable: tuple[Path, ...] = (),
) -> Outcome:
    """Runs a command of the toolchain, in the jail."""
    confinement = Confinement(
        readable=(*compiler.readable, *readable),
        writable=(place.folder,),
        env={**compiler.environment, "TMPDIR": str(place.folder)},
        cwd=place.folder,
    )
    start = partial(workshop.jail.start, command, confinement, LIMITS)
    with workshop.standstill.work(start) as job:
        return job.wait()


def explain_stop(outcome: Outcome, log: str) -> str:
    """Which limit ended the compiler or a part of it; empty where none did."""
    if outcome.end is not End.EXITED:
        why = f"the compiler was stopped: {outcome.end.value}"
        return why + (
            f" ({outcome.detail})" if outcome.detail else f" after {outcome.wall_s:.1f} s"
        )
    limit = diagnostics.limit(log)
    return f"the compiler met a limit: {limit}" if limit is not None else ""


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


def compile_own(
    files: Mapping[str, str], words: Sequence[str], output: str, compiler: Compiler
) -> bytes:
    """What the compiler makes of sources of our own, with `words` for its arguments.

    Raises:
        SandboxError: it does not compile them.
    """
    with tempfile.TemporaryDirectory(prefix="kernelwright-build-") as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        done = subprocess.run(
            [str(compiler.path), *words, "-o", output],
            cwd=folder,
            env={**compiler.environment, "TMPDIR": folder},
            timeout=60,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise SandboxError(
                f"{compiler.path} does not compile {output}: {done.stderr[:300].strip()}",
                hint="free space in the folder for temporary files, or reinstall the compiler",
            )
        return (Path(folder) / output).read_bytes()
