# SPDX-License-Identifier: Apache-2.0
"""Native candidates: a shared object that our compiled runner loads."""

from __future__ import annotations

from pathlib import Path

from ..builders.model import Built
from ..builders.workshop import Workshop
from ..isolation.allow_list import NATIVE
from .binary import runner_binary
from .program import Descriptors, Program

_ARTEFACT = "candidate.so"


def native_program(workshop: Workshop, built: Built, *, sanitized: bool = False) -> Program:
    """The program of a built shared object; a sanitized one needs the sanitized runner.

    Both get the same environment, by which a candidate could tell them apart.

    Raises:
        PrerequisiteError: there is no compiler, or it lacks the sanitizers that were asked for.
    """
    runner = runner_binary(workshop, sanitized=sanitized)

    def command(given: Descriptors, folder: Path) -> list[str]:
        return [str(runner), *given.gated_words, str(folder / _ARTEFACT)]

    files = {_ARTEFACT: built.artefact}
    return Program(built, files, command, readable=(runner,), calls=NATIVE)
