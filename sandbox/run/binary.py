# SPDX-License-Identifier: Apache-2.0
"""The runners' programs: compiled once per machine from our own sources and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from ...errors import PrerequisiteError
from ..builders.workshop import Workshop

_HERE = Path(__file__).parent
_NATIVE = _HERE / "runner.cpp"
_DEVICE = _HERE / "device" / "device_runner.cpp"
_REFUSED_CALL = _HERE / "refused_call.cpp"
_FLAGS = ("-std=c++20", "-O2", "-rdynamic")
_OF_A_LIBRARY = ("-std=c++20", "-O2", "-shared", "-fPIC")
_LIBRARIES = ("-ldl",)
_SANITIZED = ("-fsanitize=address,undefined", "-no-pie")
"""The runner itself is linked with the sanitizers, which must be there before any candidate. Where
the kernel randomises 32 bits, a position-independent program may lie where ASan wants its heap."""


def compiler() -> str:
    """Path of g++, or of clang++ where there is no g++. Raises PrerequisiteError."""
    found = shutil.which("g++") or shutil.which("clang++")
    if found is None:
        raise PrerequisiteError(
            "neither g++ nor clang++ is on the PATH", hint="apt-get install g++"
        )
    return found


def runner_binary(workshop: Workshop, *, sanitized: bool = False) -> Path:
    """The compiled runner of native candidates; built on first use, replaced atomically.

    Raises:
        PrerequisiteError: there is no compiler, or it lacks the sanitizers that were asked for.
    """
    return _compile(workshop, _NATIVE, (*_FLAGS, *(_SANITIZED if sanitized else ())))


def device_runner_binary(workshop: Workshop) -> Path:
    """The compiled runner of device candidates; as `runner_binary`."""
    return _compile(workshop, _DEVICE, _FLAGS)


def refused_call_library(workshop: Workshop) -> Path:
    """What the Python runner loads to say which system call it was refused; as `runner_binary`."""
    return _compile(workshop, _REFUSED_CALL, _OF_A_LIBRARY)


def _compile(workshop: Workshop, source: Path, flags: tuple[str, ...]) -> Path:
    headers = sorted({*_HERE.glob("*.hpp"), *source.parent.glob("*.hpp")})
    content = b"".join(file.read_bytes() for file in (source, *headers))
    key = hashlib.sha256(content + " ".join(flags).encode()).hexdigest()[:16]
    program = workshop.folder / "runner" / f"{source.stem}-{key}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent) as folder:
            built = Path(folder) / source.stem
            done = subprocess.run(
                [compiler(), str(source), "-o", str(built), *flags, *_LIBRARIES],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            if done.returncode != 0:
                raise PrerequisiteError(
                    f"the runner does not compile: {done.stderr.strip()[:500]}",
                    hint="check the installation of g++ (apt-get install --reinstall g++)",
                )
            built.chmod(0o755)
            os.replace(built, program)
    return program
