# SPDX-License-Identifier: Apache-2.0
"""Builds a CUDA C++ candidate for the CPU: one source file in, one shared object or reasons out.

g++ reads the source against the header of `sandbox/cuda_on_cpu`, in the same jail as a C++
candidate, and links it with that folder's runtime. The result exports `kw_entry(void** args)`,
which plays a launch table:

    one pointer to an int for each axis, one pointer for each tensor (inputs, then outputs),
    the table (sandbox/plan/model.py), one pointer for each scratch buffer.

Whether the source is valid CUDA is for NVRTC to say: what g++ does not take is `Unsupported`, never
a failure of the candidate. Nothing here runs what it built.
"""

from __future__ import annotations

import functools
import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...kernelbench.problem import Problem
from ..isolation.model import End
from . import cache, cuda_source, diagnostics, shims
from .cache import BuildCache
from .compiler import BASE_FLAGS, FILL_FLAG, LINK_FLAGS, Compiler, cpu_signature, find_compiler
from .model import BuildFailed, Built, EmulatedVariant, Unsupported
from .workplace import LIMITS, Workplace, compile_own, explain_stop, read_output, run, workplace
from .workshop import Workshop

FORMAT = 2
"""Raised whenever the recipe below changes: old cache entries are then not found."""

EXITS = {
    71: "deadlock:",
    72: "divergent threads:",
    73: "trap:",
    74: "the launch table cannot be played:",
}
"""Exit statuses of the runtime, for Program.exits: the last line on stderr says the rest."""

SCHEDULE = "KW_SCHEDULE"
"""The environment variable that says which threads and blocks go first."""


def schedules(seed: int) -> tuple[str, ...]:
    """The orders in which a correct kernel must give the same answer."""
    return ("order", "reverse", f"random:{seed}")


_FOLDER = Path(__file__).parent.parent / "cuda_on_cpu"
_HEADER = "kernelwright_cuda.h"
_ENTRY = "entry.cpp"
_SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_FLAGS = {
    EmulatedVariant.PLAIN: ("-O2", "-DKW_ALIGNED"),
    EmulatedVariant.ASAN: ("-O1", "-g", *_SANITIZERS, "-fno-omit-frame-pointer"),
    # Of the tables of lines, readers of the fifth edition name the wrong file at times.
    EmulatedVariant.ACCESS: ("-O1", "-gdwarf-4", "-DKW_ACCESS"),
}
_UNSET = ("-Wuninitialized", "-Wmaybe-uninitialized")
"""What the log of the access build is asked for: variables that are read before they are set."""
_SOURCE_FLAGS = {
    # A GPU stops at a vector that stands where its type may not; a CPU reads it.
    EmulatedVariant.PLAIN: ("-fsanitize=alignment", "-fno-sanitize-recover=alignment"),
    EmulatedVariant.ASAN: (),
    # Calls before each access to memory, which our own runtime answers. A vector such as float4
    # stays whole: read element by element it would count as four requests far apart.
    EmulatedVariant.ACCESS: (
        "-fsanitize=thread",
        "--param=tsan-distinguish-volatile=1",
        "-fno-tree-vectorize",
        "-fno-tree-sra",
    ),
}
_WITHOUT_LIBRARIES = (
    *LINK_FLAGS,
    "-nodefaultlibs",
    "-lstdc++",
    "-lgomp",
    "-lm",
    "-lgcc_s",
    "-lgcc",
    "-lc",
)
"""But for those that a sanitizer's flag brings along: our own runtime answers its calls."""
_LINK = {
    EmulatedVariant.PLAIN: _WITHOUT_LIBRARIES,
    EmulatedVariant.ASAN: LINK_FLAGS,
    EmulatedVariant.ACCESS: _WITHOUT_LIBRARIES,
}
_KERNEL = re.compile(r"(?:[A-Za-z_]\w*\s*::\s*)*[A-Za-z_]\w*\s*(?:<[\w\s:,<>()+*/%.\-]*>)?")
_ASSERTED = "static assertion failed: "
"""What g++ says of an assertion ahead of its own words, which tell what cannot be emulated."""
_ERROR = re.compile(r"^(candidate\.cu|kernels):(\d+):(?:(\d+):)? (?:fatal )?error: (.+)$", re.M)


def build(
    workshop: Workshop,
    source: str,
    problem: Problem,
    kernels: Sequence[str],
    *,
    variant: EmulatedVariant = EmulatedVariant.PLAIN,
    architecture: str = "sm_80",
) -> Built | BuildFailed | Unsupported:
    """Compiles `source` to a shared object that exports `kw_entry`.

    Args:
        source: CUDA C++, device code only.
        problem: Gives the number of axes and of tensors.
        kernels: Names of functions or of template instances, in the order that tables use.
        variant: What the build looks for.
        architecture: What `__CUDA_ARCH__` says; nothing else depends on it.

    Raises:
        PrerequisiteError: there is no compiler.
        SandboxError: the jail or our own runtime failed; never the source's fault.
        StorageError: the cache cannot be used.
    """
    started = time.monotonic()
    compiler = find_compiler()
    if not compiler.is_gcc:
        return Unsupported(("the emulator needs g++, and this machine has only clang++",))
    if reasons := _wrong_names(kernels):
        return BuildFailed(reasons)
    words = _flags(variant, compiler, is_std_whole=shims.names_more_of_std(source))
    entry = _entry(kernels, architecture, axes=len(problem.axes), tensors=len(problem.tensors))
    key = cache.key_of(
        {
            "format": FORMAT,
            "emulated": source,
            "entry": entry,
            "flags": (*words, *_LINK[variant]),
            "runtime": _runtime_hash(),
            "compiler": compiler.version,
            "cpu": cpu_signature(),
        }
    )
    if (kept := workshop.cache.load(key)) is not None:
        return cache.with_seconds(kept, time.monotonic() - started)
    rewritten = cuda_source.rewrite(source)
    if rewritten.reasons:
        return Unsupported(rewritten.reasons, seconds=time.monotonic() - started)
    prepared = _prepare(words, variant, compiler, workshop.cache)
    with workplace() as place:
        _fill(place, rewritten.text, entry, prepared)
        command = _command(compiler, words, variant, place)
        result = _compile(workshop, command, kernels, compiler, place)
    if isinstance(result, Built):
        workshop.cache.store(key, result)
    return result


def _wrong_names(kernels: Sequence[str]) -> str:
    for name in kernels:
        if _KERNEL.fullmatch(name.strip()) is None:
            return f"'{name[:60]}' is not the name of a kernel, such as `scale` or `sum<float, 4>`"
    return ""


def _flags(variant: EmulatedVariant, compiler: Compiler, *, is_std_whole: bool) -> tuple[str, ...]:
    fill = (FILL_FLAG,) if compiler.fills_variables else ()
    std = ("-DKW_ALL_OF_STD",) if is_std_whole else ()
    warned = _UNSET if variant is EmulatedVariant.ACCESS else ("-w",)
    return (
        *BASE_FLAGS,
        "-fvisibility=hidden",
        *warned,
        *std,
        *_FLAGS[variant],
        *fill,
        *_SOURCE_FLAGS[variant],
    )


def _entry(kernels: Sequence[str], architecture: str, *, axes: int, tensors: int) -> str:
    """The unit that is compiled: the source, then the table of its kernels."""
    number = re.sub(r"\D", "", architecture)
    rows = "\n".join(f"  kw::kernel({name})," for name in kernels)
    return f"""\
#define __CUDA_ARCH__ {number}0
#include "{cuda_source.FILE}"
static const kw::Kernel kw_kernels[] = {{
#line 1 "kernels"
{rows}
}};
extern "C" __attribute__((visibility("default"))) void kw_entry(void** arguments) {{
  kw::play(arguments, kw_kernels, {axes}, {tensors});
}}
"""


@dataclass(frozen=True)
class _Prepared:
    header: bytes
    """Precompiled."""
    runtime: bytes
    """Object code."""


@functools.lru_cache(maxsize=1)
def _own_files() -> dict[str, str]:
    return {
        file.name: file.read_text("utf-8")
        for file in sorted(_FOLDER.iterdir())
        if file.suffix in (".h", ".cpp")
    }


@functools.lru_cache(maxsize=1)
def _runtime_hash() -> str:
    return cache.key_of(dict(_own_files()))


@functools.lru_cache(maxsize=len(EmulatedVariant))
def _prepare(
    words: tuple[str, ...], variant: EmulatedVariant, compiler: Compiler, kept: BuildCache
) -> _Prepared:
    """The header and the runtime, compiled where the cache has none: three seconds once."""
    header = ("-x", "c++-header", _HEADER)
    # The runtime does not watch itself, and is called at every change from thread to thread.
    own = tuple(word for word in words if word not in (*_SOURCE_FLAGS[variant], *_SANITIZERS))
    if variant is EmulatedVariant.ASAN:
        own = (*own, "-O2", "-DKW_SANITIZED")
    return _Prepared(
        _keep_compiled((*words, *header), f"{_HEADER}.gch", compiler, kept),
        _keep_compiled((*own, "-c", "runtime.cpp"), "runtime.o", compiler, kept),
    )


def _keep_compiled(
    words: tuple[str, ...], output: str, compiler: Compiler, kept: BuildCache
) -> bytes:
    key = cache.key_of(
        {
            "emulator": _runtime_hash(),
            "flags": words,
            "compiler": compiler.version,
            "cpu": cpu_signature(),
        }
    )
    return kept.own(
        key, lambda: compile_own(_own_files(), words, output, compiler), compiler.version
    )


def _fill(place: Workplace, source: str, entry: str, prepared: _Prepared) -> None:
    (place.folder / f"{_HEADER}.gch").write_bytes(prepared.header)
    (place.folder / "runtime.o").write_bytes(prepared.runtime)
    text = source.encode(errors="surrogatepass")
    (place.folder / place.source(cuda_source.FILE)).write_bytes(text)
    (place.folder / place.source(_ENTRY)).write_text(entry)
    # All that headers declare is in the one that comes first; whether they exist is NVRTC's word.
    for name in shims.list_included(source):
        header = place.folder / "include" / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.touch()


def _command(
    compiler: Compiler, words: tuple[str, ...], variant: EmulatedVariant, place: Workplace
) -> list[str]:
    return [
        str(compiler.path),
        *words,
        "-fdiagnostics-color=never",
        "-fmax-errors=5",
        "-frandom-seed=kernelwright",
        f"-ffile-prefix-map={place.token}/=",
        "-I",
        "include",
        "-include",
        _HEADER,
        place.source(_ENTRY),
        "runtime.o",
        *_LINK[variant],
        "-o",
        "out.so",
    ]


def _compile(
    workshop: Workshop,
    command: list[str],
    kernels: Sequence[str],
    compiler: Compiler,
    place: Workplace,
) -> Built | BuildFailed | Unsupported:
    outcome = run(workshop, command, compiler, place)
    told = tuple(word.replace(place.token + "/", "") for word in command)
    log = diagnostics.clean_words(outcome.stderr, (str(place.folder), place.token))
    if limit := explain_stop(outcome, log):
        return BuildFailed(limit, log, is_resource=True, seconds=outcome.wall_s, command=told)
    if outcome.end is not End.EXITED or outcome.code != 0:
        return Unsupported((_complaint(log, kernels),), log, outcome.wall_s)
    artefact = read_output(place.folder / "out.so", LIMITS.file_bytes)
    if artefact is None:
        return BuildFailed(
            f"the shared object is not a file of at most {LIMITS.file_bytes >> 20} MiB",
            log,
            is_resource=True,
            seconds=outcome.wall_s,
            command=told,
        )
    return Built(
        artefact=artefact,
        sha256=hashlib.sha256(artefact).hexdigest(),
        seconds=outcome.wall_s,
        log=log,
        command=told,
        compiler=compiler.version,
    )


def _complaint(log: str, kernels: Sequence[str]) -> str:
    """The compiler's first words about the source, or about a kernel that is not in it."""
    found = _ERROR.search(log)
    if found is None:
        return f"g++ does not take it: {diagnostics.reason(log)}"
    file, line, column, words = found.groups()
    if file == "kernels":
        name = kernels[min(int(line), len(kernels)) - 1]
        return f"the kernel `{name}` cannot be called: {words}"[: diagnostics.REASON_CHARACTERS]
    if words.startswith(_ASSERTED):
        return f"line {line}: {words.removeprefix(_ASSERTED)}"
    where = f"line {line}" + (f":{column}" if column else "")
    return f"g++ does not take {where}: {words}"[: diagnostics.REASON_CHARACTERS]
