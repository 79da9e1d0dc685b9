# SPDX-License-Identifier: Apache-2.0
"""Runs nvcc on one source, for those who ask for it: slower, and it needs a CUDA toolkit.

nvcc knows no name expressions. A line after the source takes the address of every kernel that the
plan names, which instantiates templates; their mangled names are found by demangling.
"""

from __future__ import annotations

import re
import shutil
import subprocess

from ..isolation.model import End
from . import cubin, cuda_diagnostics, diagnostics, shims
from .compiler import find_compiler
from .model import BuildFailed
from .nvrtc_job import Compilation, Compiled, stopped_failure
from .toolchain import Nvcc
from .workplace import LIMITS, Workplace, read_output, run, workplace
from .workshop import Workshop

_FIXED = (
    "-cubin",
    "-std=c++20",
    "-lineinfo",
    "-fmad=true",
    "-Xptxas",
    "-v",
    "--expt-relaxed-constexpr",
)
_PRELUDE = "prelude.h"
_MORE = (
    "algorithm",
    "cassert",
    "cfloat",
    "climits",
    "cmath",
    "cstdint",
    "cstdio",
    "limits",
    "math_constants.h",
    "type_traits",
    "utility",
)
"""What NVRTC's prelude has beyond what nvcc reads by itself."""
_NAMES = "__nv_name_map"
"""The file that errors of the added line are reported in, as NVRTC calls it."""


def options(build_name: str) -> tuple[str, ...]:
    """What nvcc is told."""
    return (f"-arch={build_name}", *_FIXED)


def compile_source(workshop: Workshop, ask: Compilation, tool: Nvcc) -> Compiled | BuildFailed:
    """The cubin of one source, or why there is none.

    Raises:
        PrerequisiteError: there is no C++ compiler, which nvcc needs.
        SandboxError: the jail failed.
    """
    host = find_compiler()
    with workplace() as place:
        source = place.source(cuda_diagnostics.SOURCE)
        (place.folder / source).write_text(ask.source + _instances(ask.kernels))
        _give_headers(place, ask.source)
        command = [
            str(tool.path),
            f"-ccbin={host.path}",
            *options(ask.build_name),
            f"-include={_PRELUDE}",
            "-Xcompiler=-idirafter,include",
        ]
        outcome = run(
            workshop,
            [*command, source, "-o", "out.cubin"],
            host,
            place,
            readable=tool.readable,
        )
        made = read_output(place.folder / "out.cubin", LIMITS.file_bytes)
    private = (str(place.folder), place.token, *(str(path) for path in tool.readable))
    log = diagnostics.clean_words(outcome.stderr, private)
    told = ("nvcc", *options(ask.build_name))
    if outcome.end is not End.EXITED:
        return stopped_failure(outcome)
    if outcome.code != 0 or made is None:
        limit = cuda_diagnostics.limit(log)
        why = limit or cuda_diagnostics.reason(
            log, kernels=ask.kernels, known=ask.known, source=ask.source
        )
        return BuildFailed(
            why, log, is_resource=limit is not None, seconds=outcome.wall_s, command=told
        )
    return Compiled(made, _symbols(ask.kernels, made), log, outcome.wall_s, told)


def _give_headers(place: Workplace, source: str) -> None:
    """The prelude, and empty headers of libraries for where the machine has none of the name."""
    (place.folder / _PRELUDE).write_text("".join(f"#include <{name}>\n" for name in _MORE))
    for name in filter(shims.is_of_host, shims.list_included(source)):
        header = place.folder / "include" / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.touch()


def _instances(kernels: tuple[str, ...]) -> str:
    if not kernels:
        return ""
    lines = [f'\nnamespace {{\n#line 1 "{_NAMES}"']
    for index, name in enumerate(kernels):
        lines.append(f"[[maybe_unused]] void* const kw_kernel_{index} = (void*)&{name};")
    return "\n".join([*lines, "}", ""])


def _symbols(kernels: tuple[str, ...], made: bytes) -> tuple[str, ...]:
    """The symbol of each kernel, empty for one that is not in the cubin."""
    try:
        found = tuple(cubin.entries(made))
    except cubin.CubinError:
        return ("",) * len(kernels)
    plain = {_bare_name(demangled): symbol for symbol, demangled in _demangle(found).items()}
    return tuple(name if name in found else plain.get(_bare_name(name), "") for name in kernels)


def _demangle(symbols: tuple[str, ...]) -> dict[str, str]:
    program = shutil.which("c++filt")
    if program is None or not symbols:
        return {symbol: symbol for symbol in symbols}
    done = subprocess.run(
        [program], input="\n".join(symbols), capture_output=True, text=True, timeout=10, check=False
    )
    return dict(zip(symbols, done.stdout.splitlines(), strict=False))


def _bare_name(name: str) -> str:
    """A name without return type, parameters, spaces and the types of literals."""
    name = re.sub(r"\((?:unsigned )?(?:int|char|short|long|bool)\)", "", name)
    name = name.removeprefix("void ")
    depth = 0
    for at, letter in enumerate(name):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0:
            name = name[:at]
            break
    return re.sub(r"\s+", "", name).removeprefix("::")
