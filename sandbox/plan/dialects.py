# SPDX-License-Identifier: Apache-2.0
"""What launch plans hold in each language that has them, and how they are read from a source."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ...errors import UnknownNameError
from ...kernelbench.languages import CUDA, TRITON, Language
from ..front_matter import FrontMatter, read_comment, read_docstring
from ..source_text import encode_source, python_tree
from .cuda_signature import CudaSource, read_cuda
from .triton_signature import TritonSource, read_triton

_ENTRIES = ("run", "ModelNew")


class ParsedSource(NamedTuple):
    """What stands in a source."""

    matter: FrontMatter
    kernels: CudaSource | TritonSource
    has_entry: bool = False
    """It has host code that can launch its kernels itself."""


@dataclass(frozen=True)
class Dialect:
    """Launch plans in one language."""

    language: Language
    read: Callable[[str], ParsedSource]
    """Raises MalformedError."""
    keys: tuple[str, ...]
    """Of a launch of a kernel."""
    needed: tuple[str, ...]
    no_launch: str
    """What is said of a source without a plan."""
    is_specialised: bool
    """Kernels are compiled for the constants of their launch, and are no instances of templates."""
    may_launch_itself: bool
    """A file may leave its launches to host code of its own."""


def _read_cuda(source: str) -> ParsedSource:
    encode_source(source)
    return ParsedSource(read_comment(source), read_cuda(source))


def _read_triton(source: str) -> ParsedSource:
    tree = python_tree(source)
    return ParsedSource(read_docstring(tree, source), read_triton(tree), _defines_entry(tree))


def _defines_entry(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in _ENTRIES
        for node in ast.walk(tree)
    )


DIALECTS = {
    CUDA: Dialect(
        CUDA,
        _read_cuda,
        keys=("kernel", "when", "grid", "block", "cluster", "shared_bytes", "args"),
        needed=("grid", "block", "args"),
        no_launch="there is no launch plan: the file must start with /*--- and a [[launch]] with "
        "kernel, grid, block and args, and ---*/",
        is_specialised=False,
        may_launch_itself=False,
    ),
    TRITON: Dialect(
        TRITON,
        _read_triton,
        keys=(
            "kernel",
            "when",
            "grid",
            "args",
            "constexpr",
            "num_warps",
            "num_stages",
            "num_ctas",
            "maxnreg",
        ),
        needed=("grid", "args"),
        no_launch="there is no launch plan: start the module's docstring with a line --- and a "
        "[[launch]] with kernel, grid and args, ended by a line ---; or define run(...) or "
        "ModelNew",
        is_specialised=True,
        may_launch_itself=True,
    ),
}


def dialect_of(language: str) -> Dialect:
    """The dialect of a language; UnknownNameError where it has no launch plans."""
    known = {each.name: dialect for each, dialect in DIALECTS.items()}
    if language not in known:
        raise UnknownNameError.for_name("language with launch plans", language, known)
    return known[language]
