# SPDX-License-Identifier: Apache-2.0
"""Runs NVIDIA's disassembler on a cubin, in a jail: a candidate had a hand in every byte of it.

A listing is kept in the cache under the cubin's hash. What it says is read elsewhere.
"""

from __future__ import annotations

from pathlib import Path

from ...errors import PrerequisiteError
from ..isolation.model import Confinement, End, Limits, Outcome
from . import cache, diagnostics, toolchain
from .model import Built
from .workplace import workplace
from .workshop import Workshop

LIMITS = Limits(
    wall_s=30.0,
    cpu_s=30.0,
    memory_bytes=1 << 30,
    file_bytes=64 << 20,
    processes=16,
    open_files=64,
    output_bytes=32 << 20,
)
_OPTIONS = ("-c", "-gi")
"""Code only, with the lines of the source, and for what was inlined the lines that called it."""


def disassemble(workshop: Workshop, cubin: Built, home: Path | None = None) -> str:
    """The listing of a cubin, with labels and source lines.

    Raises:
        PrerequisiteError: there is no disassembler, or it is older than the cubin.
        SandboxError: the jail failed.
        StorageError: the cache cannot be used.
    """
    program = toolchain.find_nvdisasm(home).resolve()
    key = cache.key_of(
        {
            "listing": cubin.sha256,
            "options": _OPTIONS,
            "program": program.stat().st_size,
        }
    )
    listing = workshop.cache.own(key, lambda: _disassemble(workshop, cubin, program))
    return listing.decode(errors="replace")


def _disassemble(workshop: Workshop, cubin: Built, program: Path) -> bytes:
    with workplace() as place:
        file = place.folder / place.source("candidate.cubin")
        file.write_bytes(cubin.artefact)
        outcome = _run(workshop, [str(program), *_OPTIONS, str(file)], program, place.folder)
    if outcome.end is not End.EXITED or outcome.code != 0:
        words = diagnostics.clean_words(outcome.stderr, (str(place.folder), place.token))
        raise PrerequisiteError(
            f"{program} cannot read the cubin ({outcome.end.value} {outcome.code}): "
            + diagnostics.shorten(words),
            hint="install a newer nvdisasm: pip install -U 'kernelwright[cuda]'",
        )
    return outcome.stdout


def _run(workshop: Workshop, command: list[str], program: Path, folder: Path) -> Outcome:
    environment = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    job = workshop.jail.start(
        command,
        Confinement(readable=(program, folder), env=environment, may_fork=False, may_mark=False),
        LIMITS,
    )
    try:
        return job.wait()
    finally:
        job.kill()
