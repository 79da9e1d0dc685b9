# SPDX-License-Identifier: Apache-2.0
"""The machine code of a C++ candidate as text, and what llvm-mca says of pieces of it.

Both programs run in a jail: a candidate had a hand in every byte that they read. A listing is kept
in the cache under the hash of what it is of. What it says is read elsewhere.
"""

from __future__ import annotations

import shutil
from functools import lru_cache
from pathlib import Path

from ...errors import PrerequisiteError
from ..isolation.model import End, Outcome
from . import cache, diagnostics
from .compiler import Compiler, cpu_signature, find_compiler
from .model import Built
from .workplace import Workplace, run, workplace
from .workshop import Workshop

_OBJDUMP = ("-d", "-l", "--no-show-raw-insn", "--section=.text")
_RELEASES = range(30, 10, -1)
_ITERATIONS = 200
"""Passes of a loop that are simulated: more than any reorder buffer holds."""


def list_code(workshop: Workshop, built: Built) -> str:
    """The instructions of a shared object, with lines of its source where it tells them.

    Raises:
        PrerequisiteError: there is no objdump here, or it cannot read the file.
        SandboxError, StorageError: the jail or the cache failed.
    """
    program = _find("objdump", "install binutils (apt install binutils, dnf install binutils)")
    key = cache.key_of({"listing": built.sha256, "options": _OBJDUMP, "program": str(program)})
    listing = workshop.cache.own(key, lambda: _listing(workshop, built, program))
    return listing.decode(errors="replace")


def simulate_loops(workshop: Workshop, loops: tuple[str, ...]) -> str | None:
    """What llvm-mca says of these loops on this processor, one region each; None where it is not
    installed or does not know the processor.

    Args:
        loops: Instructions in AT&T syntax, a line each.
    """
    program = find_mca()
    if program is None or not loops:
        return None
    regions = "".join(
        f"# LLVM-MCA-BEGIN {number}\n{text}\n# LLVM-MCA-END\n" for number, text in enumerate(loops)
    )
    key = cache.key_of({"simulated": regions, "program": str(program), "cpu": cpu_signature()})

    def simulate() -> bytes:
        with workplace() as place:
            file = place.folder / place.source("loops.s")
            file.write_text(regions)
            options = [f"-iterations={_ITERATIONS}", "-resource-pressure=false"]
            options += ["-instruction-info=false", str(file)]
            outcome = _run(workshop, [str(program), *options], place)
        is_well = outcome.end is End.EXITED and outcome.code == 0
        return outcome.stdout if is_well else b""

    return workshop.cache.own(key, simulate).decode(errors="replace") or None


@lru_cache(maxsize=1)
def find_mca() -> Path | None:
    """llvm-mca, of whichever release is installed; None: there is none."""
    names = ("llvm-mca", *(f"llvm-mca-{release}" for release in _RELEASES))
    found = next((path for name in names if (path := shutil.which(name))), None)
    return Path(found) if found else None


def _listing(workshop: Workshop, built: Built, program: Path) -> bytes:
    with workplace() as place:
        file = place.folder / place.source("candidate.so")
        file.write_bytes(built.artefact)
        outcome = _run(workshop, [str(program), *_OBJDUMP, str(file)], place)
    if outcome.end is not End.EXITED or outcome.code != 0:
        words = diagnostics.clean_words(outcome.stderr, (str(place.folder), place.token))
        raise PrerequisiteError(
            f"{program} cannot read the candidate ({outcome.end.value} {outcome.code}): "
            + diagnostics.shorten(words),
            hint="install a newer binutils",
        )
    return outcome.stdout


def _run(workshop: Workshop, command: list[str], place: Workplace) -> Outcome:
    compiler: Compiler = find_compiler()
    return run(workshop, command, compiler, place)


def _find(name: str, hint: str) -> Path:
    found = shutil.which(name)
    if found is None:
        raise PrerequisiteError(f"{name} is not on PATH", hint=hint)
    return Path(found)
