# SPDX-License-Identifier: Apache-2.0
"""A precompiled `<immintrin.h>`: half of what a compiler does for a candidate that uses it.

The header is included by force, ahead of everything else, where and only where the source includes
it itself, so that the precompiled form changes how long a build takes and nothing else. GCC only.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from .cache import BuildCache, key_of
from .compiler import Compiler, cpu_signature, flags
from .model import BuildVariant
from .workplace import compile_own

NAME = "vectors.h"
_TEXT = "#include <immintrin.h>\n"
_ASKS = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<immintrin\.h>", re.MULTILINE)


def place(
    source: str, variant: BuildVariant, compiler: Compiler, cache: BuildCache, folder: Path
) -> bool:
    """Puts the header and its precompiled form into `folder`; False where it is of no use.

    A copy, not a link: the folder belongs to the compiler that reads the candidate.

    Raises:
        SandboxError: the compiler cannot precompile its own header.
        StorageError: the cache cannot be used.
    """
    if not compiler.is_gcc or _ASKS.search(source) is None:
        return False
    (folder / NAME).write_text(_TEXT)
    (folder / f"{NAME}.gch").write_bytes(_keep_header(variant, compiler, cache))
    return True


@functools.lru_cache(maxsize=len(BuildVariant))
def _keep_header(variant: BuildVariant, compiler: Compiler, cache: BuildCache) -> bytes:
    """The precompiled header, made where the cache has none: about 26 MB and a second."""
    words = flags(variant, compiler)
    key = key_of(
        {
            "precompiled": _TEXT,
            "flags": words,
            "compiler": compiler.version,
            "cpu": cpu_signature(),
        }
    )
    command = [*words, "-x", "c++-header", NAME]

    def make() -> bytes:
        return compile_own({NAME: _TEXT}, command, f"{NAME}.gch", compiler)

    return cache.own(key, make, compiler.version)
