# SPDX-License-Identifier: Apache-2.0
"""Which compilers make code that a driver loads, by NVIDIA's CUDA compatibility guide.

A driver loads cubins of its own major release, those of later minor ones too, and of every older
release; it refuses those of a later major one, and PTX that is newer than itself. PTX helps
nowhere: a driver that reads what a compiler writes loads the compiler's cubins as well. So a driver
needs a compiler of its own major release or an older one, and the newest of those that are
installed is taken. Where there is none that is a missing prerequisite, and no candidate's fault.
"""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from ...kernelbench.languages import CUDA, TRITON, language_of
from . import toolchain

_TRITON_SETTINGS = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")
"""Triton takes one or the other by architecture, and by other rules from version to version."""
_RELEASE = re.compile(r"(?:release |cuda_)(\d+)\.(\d+)")


class Assembler(NamedTuple):
    """One ptxas of Triton's."""

    path: Path
    major: int
    version: str


def major_of(cuda: int | None) -> int:
    """The major release of a driver that tells 13000; any where it is not known."""
    return cuda // 1000 if cuda else toolchain.ANY_RELEASE


def compiler_for(language: str, newest: int) -> str:
    """What builds a language for a driver of the major release `newest`: `NVRTC 13.5`.

    Raises:
        PrerequisiteError: it is not installed, or the driver does not load what it makes.
    """
    return _COMPILERS[language_of(language)](newest)


def _triton_compiler(newest: int) -> str:
    fit = {each.version: None for each in _list_fitting(newest)}
    names = list(fit) if not triton_settings(newest) else list(fit)[-1:]
    return f"Triton's ptxas {' and '.join(names)}"


def _cuda_compiler(newest: int) -> str:
    if toolchain.preferred_compiler() == "nvcc":
        nvcc = toolchain.find_nvcc()
        found = _RELEASE.search(nvcc.version)
        if found and int(found[1]) > newest:
            raise toolchain.too_new(f"nvcc at {nvcc.path}", int(found[1]), newest)
        return f"nvcc ({nvcc.version})"
    return f"NVRTC {toolchain.find_nvrtc(newest=newest).version}"


_COMPILERS = {CUDA: _cuda_compiler, TRITON: _triton_compiler}


def triton_settings(newest: int) -> dict[str, str]:
    """Variables that make Triton take an assembler whose code the driver loads.

    Raises:
        PrerequisiteError: it has none.
    """
    fit = _list_fitting(newest)
    if len(fit) == len(_assemblers()):
        return {}
    return dict.fromkeys(_TRITON_SETTINGS, str(fit[-1].path))


def _list_fitting(newest: int) -> list[Assembler]:
    """Those of Triton's that make code for a driver of this release. Raises PrerequisiteError."""
    known = _assemblers()
    fit = [each for each in known if each.major <= newest]
    if known and not fit:
        oldest = known[0]
        raise toolchain.too_new(f"Triton's ptxas {oldest.version}", oldest.major, newest)
    return fit


@functools.lru_cache(maxsize=1)
def _assemblers() -> tuple[Assembler, ...]:
    """Those of Triton's wheel, the oldest first; none where it is not installed."""
    found = []
    for path in toolchain.triton_programs("ptxas*"):
        said = subprocess.run(
            [str(path), "--version"], capture_output=True, text=True, timeout=30, check=False
        ).stdout
        if release := _RELEASE.search(said):
            found.append(Assembler(path, int(release[1]), f"{release[1]}.{release[2]}"))
    return tuple(sorted(found, key=lambda each: tuple(map(int, each.version.split(".")))))
