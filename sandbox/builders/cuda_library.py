# SPDX-License-Identifier: Apache-2.0
"""Builds CUDA with its host code as one shared object for several architectures, by nvcc in a jail.

What the referee runs is a cubin (`cuda.py`); this is for handing a kernel over, where nobody
compiles. It knows no plans: the source has its launches written out.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import UsageError
from ..isolation.model import End
from . import diagnostics
from .compiler import find_compiler
from .toolchain import find_nvcc
from .workplace import LIMITS, explain_stop, read_output, run, workplace
from .workshop import Workshop

FLAGS = ("-std=c++17", "-O3", "-shared", "-Xcompiler=-fPIC", "-cudart=static")
_SOURCE, _MADE = "kernel.cu", "made.so"
_ARCHITECTURE = re.compile(r"[0-9]{2,3}[af]?")
_RELEASE = re.compile(r"cuda_(\d+\.\d+)")


@dataclass(frozen=True)
class CudaLibrary:
    """A shared object with code for GPUs, and what it is for."""

    content: bytes
    architectures: tuple[str, ...]
    """`90`, `90a`: there is machine code for each; of the last one PTX, too."""
    platform: str
    """Whose host code it has: `linux-x86_64`."""
    cuda: str
    """The release whose runtime is linked into it."""
    flags: tuple[str, ...]


def read_architectures(text: str) -> tuple[str, ...]:
    """`80,sm_90a` or `80;90a` as `80` and `90a`.

    Raises:
        UsageError: one of them is none.
    """
    found = [part.strip().removeprefix("sm_") for part in text.replace(";", ",").split(",")]
    wrong = [part for part in found if not _ARCHITECTURE.fullmatch(part)]
    if wrong:
        raise UsageError(
            f"{wrong[0]!r} is no architecture of NVIDIA's", hint="write them as 80,90a"
        )
    return tuple(dict.fromkeys(found))


def build_library(workshop: Workshop, source: str, architectures: Sequence[str]) -> CudaLibrary:
    """The library of one source, whose functions have C linkage.

    Raises:
        PrerequisiteError: nvcc, or the C++ compiler that it needs, is not there.
        UsageError: nvcc does not make it; the message has its first words.
        SandboxError: the jail failed.
    """
    tool, host = find_nvcc(), find_compiler()
    codes = [f"-gencode=arch=compute_{each},code=sm_{each}" for each in architectures]
    codes.append(f"-gencode=arch=compute_{architectures[-1]},code=compute_{architectures[-1]}")
    with workplace() as place:
        named = place.source(_SOURCE)
        (place.folder / named).write_text(source)
        command = [str(tool.path), f"-ccbin={host.path}", *FLAGS, *codes, named, "-o", _MADE]
        outcome = run(workshop, command, host, place, readable=tool.readable)
        made = read_output(place.folder / _MADE, LIMITS.file_bytes)
    private = (str(place.folder), place.token, *(str(path) for path in tool.readable))
    log = diagnostics.clean_words(outcome.stderr, private)
    if outcome.end is not End.EXITED or outcome.code != 0 or made is None:
        why = explain_stop(outcome, log) or log.strip()[:300] or "it says nothing"
        raise UsageError(
            f"nvcc makes no library for {', '.join(architectures)}: {why}",
            hint="name architectures that this nvcc knows (nvcc --list-gpu-arch)",
        )
    release = _RELEASE.search(tool.version)
    return CudaLibrary(
        made,
        tuple(architectures),
        f"{sys.platform}-{platform.machine()}",
        release[1] if release else "",
        (*FLAGS, *codes),
    )
