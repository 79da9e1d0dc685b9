# SPDX-License-Identifier: Apache-2.0
"""Precompiled headers: more than half of what a compiler does for a short candidate.

Headers are included by force, ahead of everything else, where and only where the source includes
them itself, so that the precompiled form changes how long a build takes and nothing else. It is
made where it is asked for again and again: it takes as long as two or three builds. GCC only.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

from .cache import BuildCache, key_of
from .compiler import Compiler, cpu_signature, flags
from .model import BuildVariant
from .workplace import compile_own

NAME = "headers.h"
BUNDLES = (
    ("cmath", "algorithm", "memory", "immintrin.h"),
    ("cmath", "algorithm", "vector", "immintrin.h"),
    ("cmath", "algorithm", "immintrin.h"),
    ("cmath", "immintrin.h"),
    ("immintrin.h",),
    ("cmath", "algorithm", "vector"),
    ("cmath", "algorithm"),
    ("cmath",),
)
"""What is precompiled together: the first of which a source includes all. Few, since each takes
seconds once, and 26 to 74 MB."""
SELDOM = 2
"""So many builds go without it, since there may be no more."""
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<([\w./]+)>", re.MULTILINE)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)", re.MULTILINE)
_OF_NO_HEADER = re.compile(r"[A-Z][A-Z0-9_]*")


def place(
    source: str, variant: BuildVariant, compiler: Compiler, cache: BuildCache, folder: Path
) -> bool:
    """Puts the headers and their precompiled form into `folder`; False where none is of use.

    A copy, not a link: the folder belongs to the compiler that reads the candidate.

    Raises:
        SandboxError: the compiler cannot precompile its own header.
        StorageError: the cache cannot be used.
    """
    wanted = _list_wanted(source, variant, compiler)
    if wanted is None:
        return False
    key, text, words = wanted
    if cache.count(key, SELDOM + 1) <= SELDOM:
        return False
    (folder / NAME).write_text(text)
    (folder / f"{NAME}.gch").write_bytes(_keep_headers(key, text, words, compiler, cache))
    return True


def expect_more(source: str, variant: BuildVariant, compiler: Compiler, cache: BuildCache) -> None:
    """Precompiles now what this source includes: many like it are going to be built.

    Raises:
        SandboxError: the compiler cannot precompile its own header.
        StorageError: the cache cannot be used.
    """
    if wanted := _list_wanted(source, variant, compiler):
        key, text, words = wanted
        _keep_headers(key, text, words, compiler, cache)
        for _ in range(SELDOM):
            cache.count(key, SELDOM)


class _Wanted(NamedTuple):
    """Headers that are of use to a source."""

    key: str
    text: str
    words: tuple[str, ...]
    """What a build is asked with."""


def _list_wanted(source: str, variant: BuildVariant, compiler: Compiler) -> _Wanted | None:
    bundle = choose_bundle(source)
    if not compiler.is_gcc or not bundle:
        return None
    words, text = flags(variant, compiler), "".join(f"#include <{name}>\n" for name in bundle)
    key = key_of(
        {
            "precompiled": text,
            "flags": words,
            "compiler": compiler.version,
            "cpu": cpu_signature(),
        }
    )
    return _Wanted(key, text, words)


def choose_bundle(source: str) -> tuple[str, ...]:
    """The headers that this source includes and that may be read before all else; () for none.

    A macro that is defined before them may change what they say: of such a source none is.
    """
    asked = list(_INCLUDE.finditer(source))
    names = {each[1] for each in asked}
    bundle = next((b for b in BUNDLES if names.issuperset(b)), ())
    last = max((each.start() for each in asked if each[1] in bundle), default=0)
    macros = (each[1] for each in _DEFINE.finditer(source, 0, last))
    return bundle if all(map(_OF_NO_HEADER.fullmatch, macros)) else ()


@functools.lru_cache(maxsize=2 * len(BuildVariant))
def _keep_headers(
    key: str, text: str, words: tuple[str, ...], compiler: Compiler, cache: BuildCache
) -> bytes:
    """The precompiled headers, made where the cache has none."""
    command = [*words, "-x", "c++-header", NAME]

    def make() -> bytes:
        return compile_own({NAME: text}, command, f"{NAME}.gch", compiler)

    return cache.own(key, make, compiler.version)
