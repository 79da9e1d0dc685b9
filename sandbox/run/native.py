"""Native candidates: a shared object that our compiled runner loads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..build.model import Built
from .binary import runner_binary
from .program import Descriptors, Program

_ARTEFACT = "candidate.so"


def native_program(
    built: Built,
    cache_dir: Path,
    *,
    sanitized: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Program:
    """The program of a built shared object; a sanitized one needs the sanitized runner.

    Raises:
        PrerequisiteError: there is no compiler, or it lacks the sanitizers that were asked for.
    """
    runner = runner_binary(cache_dir, sanitized=sanitized)

    def command(given: Descriptors, folder: Path) -> list[str]:
        return [str(runner), *given.words, str(given.gate), str(folder / _ARTEFACT)]

    return Program(
        built, {_ARTEFACT: built.artefact}, command, readable=(runner,),
        environment=environment or {},
    )  # fmt: skip
