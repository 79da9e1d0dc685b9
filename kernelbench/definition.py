# SPDX-License-Identifier: Apache-2.0
"""A problem of a user's file: what it declares, without running it, and with, inside a jail.

A user's file is somebody's code: the campaign and the referee know its literal PROBLEM and which
parameters its functions have. `values`, `oracle` and the baselines run where `run_text` is called,
which `sandbox/definitions` does in a jail of their own.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import sys
import types
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import UsageError
from ..syntax import parse_python
from .declaration import Declaration, read_declaration
from .declared import problem_of
from .problem import Problem

OWN = "kernelwright_own_"
"""Before the name of a module that is a user's file."""
HASH_CHARACTERS = 12
"""Of a file's SHA-256, as its version."""


@dataclass(frozen=True)
class WrittenFunction:
    """A function that stands in a file and was not executed."""

    name: str
    place: str
    line: int
    __signature__: inspect.Signature = field(repr=False)

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Raises RuntimeError: it runs in a jail."""
        raise RuntimeError(f"{self.place}:{self.line}: {self.name} runs in a jail alone")


def read_text(name: str, text: str, place: str) -> Problem:
    """The problem of a file with this text, of which nothing runs: its functions cannot be called.

    Args:
        name: of the problem, and so of the entry point of its kernels.
        place: what the file is called in an error.

    Raises:
        UsageError: with the line, where it declares what cannot be.
    """
    declared = _read_own(text, place)
    functions = {
        node.name: WrittenFunction(node.name, place, node.lineno, _signature(node))
        for node in parse_python(text).body
        if isinstance(node, ast.FunctionDef)
    }
    return _own(problem_of(name, declared, functions), text)


def _read_own(text: str, place: str) -> Declaration:
    """The declaration. Raises UsageError: as `read_declaration`, and where sizes follow: shapes are
    drawn in this process, which runs nothing of a user's."""
    declared = read_declaration(text, place)
    if declared.follows:
        raise UsageError(
            f"{place}: follows names '{declared.follows[0]}': only problems of the package have "
            "sizes that follow from a pattern",
            hint="make such a size an axis that workloads give, or an upper bound",
        )
    return declared


def run_text(name: str, text: str, place: str) -> Problem:
    """The same, with functions that can be called: the file runs, here and now.

    Raises:
        UsageError: as `read_text`; and whatever the file raises.
    """
    declared = _read_own(text, place)
    module = types.ModuleType(f"{OWN}{name}")
    module.__file__ = place
    # Where torch's compilers and tracebacks look for it.
    sys.modules[module.__name__] = module
    linecache.cache[place] = (len(text), None, text.splitlines(keepends=True), place)
    exec(compile(text, place, "exec"), vars(module))
    return _own(problem_of(name, declared, vars(module)), text)


def version_of(text: str) -> str:
    """What a file is told from others by."""
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARACTERS]


def _own(problem: Problem, text: str) -> Problem:
    return replace(problem, text=text, version=version_of(text))


def _signature(node: ast.FunctionDef) -> inspect.Signature:
    """Of its plain parameters, with or without a default."""
    given = node.args
    if given.vararg or given.kwarg or given.posonlyargs:
        raise UsageError(
            f"line {node.lineno}: the parameters of {node.name} are not all named",
            hint="a function of a problem's file is given what its parameters name",
        )
    plain = [*given.args, *given.kwonlyargs]
    lacking = len(given.args) - len(given.defaults)
    has_default = [at >= lacking for at in range(len(given.args))]
    has_default += [default is not None for default in given.kw_defaults]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature(
        [
            inspect.Parameter(each.arg, kind, default=None if has else inspect.Parameter.empty)
            for each, has in zip(plain, has_default, strict=True)
        ]
    )
