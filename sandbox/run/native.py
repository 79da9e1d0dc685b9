"""Native candidates: a shared object that our compiled runner loads."""

from __future__ import annotations

from pathlib import Path

from ..build.model import Built
from .binary import runner_binary
from .program import Descriptors, Program

_ARTEFACT = "candidate.so"


def native_program(built: Built, cache_dir: Path) -> Program:
    """The program of a built shared object. Raises PrerequisiteError if there is no compiler."""
    runner = runner_binary(cache_dir)

    def command(given: Descriptors, folder: Path) -> list[str]:
        return [str(runner), *given.words, str(folder / _ARTEFACT)]

    return Program(built, {_ARTEFACT: built.artefact}, command, readable=(runner,))
