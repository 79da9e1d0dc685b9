"""The runner's program: compiled once per machine from our own source and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from ...errors import PrerequisiteError

_SOURCE = Path(__file__).with_name("runner.cpp")
_FLAGS = ("-std=c++20", "-O2", "-rdynamic", "-ldl")
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


def runner_binary(cache_dir: Path, *, sanitized: bool = False) -> Path:
    """The compiled runner; built on first use, replaced atomically.

    Raises:
        PrerequisiteError: there is no compiler, or it lacks the sanitizers that were asked for.
    """
    source = _SOURCE.read_bytes()
    flags = (*_FLAGS, *(_SANITIZED if sanitized else ()))
    key = hashlib.sha256(source + " ".join(flags).encode()).hexdigest()[:16]
    program = cache_dir / "runner" / f"runner-{key}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent) as folder:
            built = Path(folder) / "runner"
            done = subprocess.run(
                [compiler(), str(_SOURCE), "-o", str(built), *flags],
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                raise PrerequisiteError(
                    f"the runner does not compile: {done.stderr.strip()[:500]}",
                    hint="check the installation of g++ (apt-get install --reinstall g++)",
                )
            built.chmod(0o755)
            os.replace(built, program)
    return program
