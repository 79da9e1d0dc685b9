# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of a Python text, made by one thread at a time."""

from __future__ import annotations

import ast
import threading

# Python counts how deep the tree is that it makes in one place for all threads: of two that parse
# at once, one may end with a SystemError (python/cpython issue 106905; seen with 3.11.7).
_TURN = threading.Lock()


def parse_python(text: str | bytes, name: str = "<unknown>") -> ast.Module:
    """The tree of a text, of which nothing runs.

    Args:
        name: what it is called in an error.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `ast.parse` does.
    """
    with _TURN:
        return ast.parse(text, name)
