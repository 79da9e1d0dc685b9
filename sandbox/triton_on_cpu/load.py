# SPDX-License-Identifier: Apache-2.0
"""Executes a source as a module whose functions Triton can find the text of."""

from __future__ import annotations

import functools
import linecache
import sys
import types
from pathlib import Path

NAME = "candidate.py"


def module(source: str, name: str = NAME) -> types.ModuleType:
    """The module; there is no file, but tracebacks and Triton see its lines."""
    found = types.ModuleType(name.removesuffix(".py"))
    found.__file__ = name
    sys.modules[found.__name__] = found
    text = source.removeprefix("\ufeff")
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(source.encode(), name, "exec", dont_inherit=True), found.__dict__)
    return found


@functools.lru_cache(maxsize=1)
def runner() -> types.ModuleType:
    """The runner of Python candidates, whose contract for entry points holds here too."""
    start = sys.modules["__main__"]
    found: types.ModuleType = start.load(
        "kernelwright_runner", Path(__file__).resolve().parent.parent / "run" / "runner.py"
    )
    return found
