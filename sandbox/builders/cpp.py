# SPDX-License-Identifier: Apache-2.0
"""Builds a C++ candidate: one source file in, one shared object or a reason out.

The compiler runs in a jail that shows it the toolchain and one private folder. A header with the
problem's prototype is included by force, so that a wrong signature is a compile error, and a
trampoline of ours, `kw_entry(void** args)`, is linked in. Nothing here runs what it built.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import NamedTuple

from ...errors import SandboxError
from ...kernelbench.c_types import define_types
from ...kernelbench.dtypes import dtype_of
from ...kernelbench.problem import Problem, c_parameters
from ..isolation.model import End, Outcome
from . import cache, diagnostics, precompiled
from .compiler import LINK_FLAGS, Compiler, cpu_signature, find_compiler, flags
from .model import BuildFailed, BuildVariant, Built
from .workplace import LIMITS, Workplace, explain_stop, read_output, run, workplace
from .workshop import Workshop

FORMAT = 2
"""Raised whenever the recipe below changes: old cache entries are then not found."""

_SOURCE = "candidate.cpp"
ENTRY = "kw_entry"
"""The trampoline's name: `void kw_entry(void** args)`. An int parameter's argument points at the
int; a pointer parameter's argument is the pointer itself."""

_TRAMPOLINE = """\
#include <cstddef>
#include <type_traits>
#include <utility>
#include "prototype.h"

namespace {{
template <typename T> T argument(void* raw) {{
  if constexpr (std::is_pointer_v<T>) return static_cast<T>(raw);
  else return *static_cast<const T*>(raw);
}}
template <typename... T, std::size_t... I>
void call(void (*kernel)(T...), void** args, std::index_sequence<I...>) {{
  kernel(argument<T>(args[I])...);
}}
template <typename... T> void spread(void (*kernel)(T...), void** args) {{
  call(kernel, args, std::index_sequence_for<T...>{{}});
}}
}}

extern "C" __attribute__((visibility("default"))) void {name}(void** args) {{
  spread(&{entry}, args);
}}
"""


_PREPARING = """
extern "C" __attribute__((visibility("default"))) void kw_prepare(void** args) {{
  call(&{name}, args, std::index_sequence<{places}>{{}});
}}
"""
"""Of a candidate that makes a plan: it is given what a call is given, and takes what it needs."""


class Preparing(NamedTuple):
    """The function that makes a plan of a pattern, beside the entry point."""

    name: str
    declaration: str
    places: tuple[int, ...]
    """Of its arguments, among those of a call."""


def prototype(problem: Problem, *, takes_plan: bool = False) -> str:
    """The declaration that a candidate for `problem` must define, as one line of C++."""
    parameters = c_parameters(problem) + ["const void* plan"] * takes_plan
    return f'extern "C" void {problem.name}({", ".join(parameters)});'


def preparing(problem: Problem) -> Preparing:
    """What a candidate that declares a plan must define, too: it is given no values."""
    axes, tensors = len(problem.axes), problem.tensors
    taken = [at for at, tensor in enumerate(tensors) if tensor.is_index]
    parameters = [f"int {axis}" for axis in problem.axes]
    parameters += [f"const {dtype_of(tensors[at].dtype).c}* {tensors[at].name}" for at in taken]
    name = f"{problem.name}_prepare"
    return Preparing(
        name,
        f'extern "C" void {name}({", ".join(parameters)}, void* plan);',
        (*range(axes), *(axes + at for at in taken), axes + len(tensors)),
    )


def build(
    workshop: Workshop,
    source: str,
    problem_prototype: str,
    entry: str,
    *,
    prepares: Preparing | None = None,
    variant: BuildVariant = BuildVariant.RELEASE,
) -> Built | BuildFailed:
    """Compiles `source` to a shared object that exports `entry` and `kw_entry`.

    Args:
        prepares: Of a candidate that makes a plan; it exports `kw_prepare`, too.

    Raises:
        PrerequisiteError: there is no compiler.
        SandboxError: the jail or the trampoline failed; never the source's fault.
        StorageError: the cache cannot be used.
    """
    started = time.monotonic()
    compiler = find_compiler()
    declared = {entry: problem_prototype}
    if prepares:
        declared[prepares.name] = prepares.declaration
    asked: dict[str, object] = {
        "format": FORMAT,
        "source": source,
        "prototype": "\n".join(declared.values()),
        "entry": entry,
        "variant": variant.value,
        "flags": flags(variant, compiler) + LINK_FLAGS,
        "compiler": compiler.version,
        "cpu": cpu_signature(),
    }
    key = cache.key_of(asked)
    if (kept := workshop.cache.load(key)) is not None:
        return cache.with_seconds(kept, time.monotonic() - started)
    trampoline = _trampoline(workshop, declared, prepares, compiler)
    with workplace() as place:
        headers = ["prototype.h"]
        if precompiled.place(source, variant, compiler, workshop.cache, place.folder):
            headers.insert(0, precompiled.NAME)
        command = _command(compiler, variant, place, headers)
        result = _compile(workshop, source, declared, command, compiler, trampoline, place)
    if isinstance(result, Built):
        workshop.cache.store(key, result)
    return result


def expect_more(workshop: Workshop, source: str) -> None:
    """Gets ready for many builds of sources like this one. Raises as `build`."""
    precompiled.expect_more(source, BuildVariant.RELEASE, find_compiler(), workshop.cache)


def _compile(
    workshop: Workshop,
    source: str,
    declared: Mapping[str, str],
    command: list[str],
    compiler: Compiler,
    trampoline: bytes,
    place: Workplace,
) -> Built | BuildFailed:
    (place.folder / "prototype.h").write_text(_header(declared))
    (place.folder / place.source(_SOURCE)).write_bytes(source.encode(errors="surrogatepass"))
    (place.folder / "trampoline.o").write_bytes(trampoline)
    outcome = run(workshop, command, compiler, place)
    told = tuple(_word_told(word, place) for word in command)
    log = diagnostics.clean_words(outcome.stderr, (str(place.folder), place.token))
    if outcome.end is not End.EXITED or outcome.code != 0:
        return _failure(outcome, log, told, declared)
    artefact = read_output(place.folder / "out.so", LIMITS.file_bytes)
    if artefact is None:
        return BuildFailed(
            f"the shared object is not a file of at most {LIMITS.file_bytes >> 20} MiB",
            log,
            is_resource=True,
            seconds=outcome.wall_s,
            command=told,
        )
    said = read_output(place.folder / "remarks.txt", 8 << 20) or b""
    return Built(
        artefact=artefact,
        sha256=hashlib.sha256(artefact).hexdigest(),
        seconds=outcome.wall_s,
        log=log,
        remarks=diagnostics.remarks(said.decode(errors="replace"), place.source(_SOURCE)),
        command=told,
        compiler=compiler.version,
    )


def _command(
    compiler: Compiler, variant: BuildVariant, place: Workplace, headers: list[str]
) -> list[str]:
    words = [
        str(compiler.path),
        *flags(variant, compiler),
        "-fdiagnostics-color=never",
        "-ferror-limit=5",
    ]
    if compiler.is_gcc:
        words[-1] = "-fmax-errors=5"
        # A file, not stderr, which `#pragma message` writes to.
        words += ["-fopt-info-vec-optimized-missed=remarks.txt", "-frandom-seed=kernelwright"]
    words += [f"-ffile-prefix-map={place.token}/=", f"-fdebug-prefix-map={place.folder}=."]
    for header in headers:
        words += ["-include", header]
    words.append(place.source(_SOURCE))
    return [*words, "trampoline.o", *LINK_FLAGS, "-o", "out.so"]


def _word_told(word: str, place: Workplace) -> str:
    """A word of the command without the folder that it worked in."""
    return word.replace(str(place.folder), ".").replace(place.token + "/", "")


def _header(declared: Mapping[str, str]) -> str:
    lines = "".join(f"{line}\n" for line in declared.values())
    return define_types(lines) + lines


def _failure(
    outcome: Outcome, log: str, command: tuple[str, ...], declared: Mapping[str, str]
) -> BuildFailed:
    limit = explain_stop(outcome, log)
    why = limit or diagnostics.reason(log, declared)
    return BuildFailed(why, log, is_resource=bool(limit), seconds=outcome.wall_s, command=command)


def _trampoline(
    workshop: Workshop,
    declared: Mapping[str, str],
    prepares: Preparing | None,
    compiler: Compiler,
) -> bytes:
    """The object code of the trampoline for these prototypes; compiled once per machine."""
    text = _TRAMPOLINE.format(name=ENTRY, entry=next(iter(declared)))
    if prepares:
        places = ", ".join(map(str, prepares.places))
        text += _PREPARING.format(name=prepares.name, places=places)
    key = cache.key_of(
        {
            "format": FORMAT,
            "trampoline": text,
            "prototype": "\n".join(declared.values()),
            "flags": flags(BuildVariant.RELEASE, compiler),
            "compiler": compiler.version,
            "cpu": cpu_signature(),
        }
    )

    def compile_it() -> bytes:
        return _compiled_trampoline(workshop, text, declared, compiler)

    return workshop.cache.own(key, compile_it, compiler.version)


def _compiled_trampoline(
    workshop: Workshop, text: str, declared: Mapping[str, str], compiler: Compiler
) -> bytes:
    with workplace() as place:
        (place.folder / "prototype.h").write_text(_header(declared))
        (place.folder / "trampoline.cpp").write_text(text)
        command = [
            str(compiler.path),
            *flags(BuildVariant.RELEASE, compiler),
            "-g0",  # the folder's name would be in it
            "-c",
            "trampoline.cpp",
            "-o",
            "trampoline.o",
        ]
        outcome = run(workshop, command, compiler, place)
        code = read_output(place.folder / "trampoline.o", LIMITS.file_bytes)
        log = diagnostics.clean_words(outcome.stderr, (str(place.folder),))
    if outcome.end is not End.EXITED or outcome.code != 0 or code is None:
        raise SandboxError(
            f"the trampoline for `{' '.join(declared.values())}` did not compile "
            f"({outcome.end.value} {outcome.code}): " + diagnostics.reason(log, declared),
            hint="the prototype or this machine's compiler is broken; try `g++ --version`",
        )
    return code
