"""Native candidates: a shared object that our compiled runner loads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..build.model import Built
from .binary import runner_binary
from .program import Descriptors, Program

_ARTEFACT = "candidate.so"

FILL_BYTE = 0xFE
"""What GCC fills local variables with; as a float32 it is -1.7e38, as an index far below zero."""
SANITIZER_OPTIONS = {
    "detect_leaks": 0,  # needs ptrace, which the sandbox refuses
    "exitcode": 86,
    "redzone": 2048,
    "max_redzone": 2048,
    "quarantine_size_mb": 64,
    "malloc_fill_byte": FILL_BYTE,
    "max_malloc_fill_size": 1 << 30,
    "color": "never",
}


def sanitizer_environment(**more: int) -> dict[str, str]:
    """What the sanitizers are told, with `more` options or other values."""
    options = SANITIZER_OPTIONS | more
    words = ":".join(f"{name}={value}" for name, value in options.items())
    return {"ASAN_OPTIONS": words, "UBSAN_OPTIONS": words}


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
        return [str(runner), *given.words, str(folder / _ARTEFACT)]

    return Program(
        built, {_ARTEFACT: built.artefact}, command, readable=(runner,),
        environment=environment or {},
    )  # fmt: skip
