# SPDX-License-Identifier: Apache-2.0
"""Checks a Python candidate: one source file in, the same bytes or a reason out.

The source is parsed and nothing of it is executed or imported here; what the module does when it
runs is found out in the runner. `run/host_code.py` says what contract its entry point must keep.

Front matter is TOML in the module's docstring, between two lines of `---`. One key is read here:
`entry`, the entry point where a module defines both `run` and `ModelNew`; other keys are facts.
"""

from __future__ import annotations

import ast
import hashlib
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...kernelbench.problem import Problem
from ..front_matter import MalformedError, read_docstring
from ..source_text import python_tree
from . import diagnostics
from .model import BuildFailed, Built

ENTRIES = ("ModelNew", "run")
"""What a module may define; where it defines both, the first unless the front matter says else."""


class _Refused(Exception):
    """Why a source is not a candidate."""


@dataclass(frozen=True)
class Module:
    """A source that may be run."""

    built: Built
    entry: str
    facts: dict[str, Any]
    """Its front matter."""


def check(source: str, problem: Problem) -> Module | BuildFailed:
    """Parses `source` and looks for an entry point that takes what `problem` gives."""
    started = time.monotonic()
    try:
        tree = python_tree(source)
        facts = read_docstring(tree, source).facts
        entry = _entry(tree, facts, problem)
    except MalformedError as error:
        where = f"line {error.place.line}:{error.place.column}"
        reason = diagnostics.clean(f"error at {where}: {error.reason}")
        return BuildFailed(reason, seconds=time.monotonic() - started)
    except _Refused as error:
        reason = diagnostics.clean(str(error))
        return BuildFailed(reason, seconds=time.monotonic() - started)
    raw = source.encode()
    built = Built(
        artefact=raw,
        sha256=hashlib.sha256(raw).hexdigest(),
        seconds=time.monotonic() - started,
        compiler=f"{platform.python_implementation()} {platform.python_version()}",
    )
    return Module(built, entry, facts)


def _entry(tree: ast.Module, facts: dict[str, Any], problem: Problem) -> str:
    bound = dict(_bound(tree.body))
    wanted = facts.get("entry")
    if wanted is not None and wanted not in ENTRIES:
        raise _Refused(f"the front matter's entry is {wanted!r}, not one of {', '.join(ENTRIES)}")
    for name in (wanted,) if wanted else ENTRIES:
        if name in bound:
            _check_definition(name, bound[name], problem)
            return str(name)
    raise _Refused(
        f"the module defines no entry point; it must define `def run({', '.join(_names(problem))})`"
        " or `class ModelNew(torch.nn.Module)`"
    )


def _bound(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Names that the module's top level binds, conditional statements included; the last counts."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name, statement
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name, statement) for alias in statement.names)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id, statement
        else:
            for inner in ("body", "orelse", "finalbody"):
                yield from _bound(getattr(statement, inner, []))
            for handler in getattr(statement, "handlers", []):
                yield from _bound(handler.body)


def _check_definition(name: str, where: ast.stmt, problem: Problem) -> None:
    spot = f"line {where.lineno}:{where.col_offset + 1}"
    if isinstance(where, ast.AsyncFunctionDef):
        raise _Refused(f"error at {spot}: {name} cannot be asynchronous")
    if name == "run" and isinstance(where, ast.FunctionDef):
        _check_parameters(where, problem)
    if name == "ModelNew" and isinstance(where, ast.FunctionDef):
        raise _Refused(f"error at {spot}: ModelNew must be a class")


def _check_parameters(function: ast.FunctionDef, problem: Problem) -> None:
    given = function.args
    for argument in given.posonlyargs:
        raise _Refused(
            f"error at line {argument.lineno}:{argument.col_offset + 1}: parameter "
            f"'{argument.arg}' is positional-only, but run is called with names"
        )
    known = _names(problem)
    required = given.args[: len(given.args) - len(given.defaults)]
    required += [
        argument
        for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if default is None
    ]
    for argument in required:
        if argument.arg not in known:
            raise _Refused(
                f"error at line {argument.lineno}:{argument.col_offset + 1}: '{argument.arg}' is "
                f"not a parameter of {problem.name}; run may take {', '.join(known)}"
            )
    names = {argument.arg for argument in (*given.args, *given.kwonlyargs)}
    outputs = [tensor.name for tensor in problem.outputs]
    missing = [output for output in outputs if output not in names]
    if given.kwarg is None and missing and len(missing) < len(outputs):
        raise _Refused(
            f"error at line {function.lineno}:{function.col_offset + 1}: run takes some "
            f"outputs and not {', '.join(missing)}; take all to write them, or none to return them"
        )


def _names(problem: Problem) -> list[str]:
    """The names that `run` may take: axes, inputs, outputs."""
    return [*problem.axes, *(tensor.name for tensor in problem.tensors)]
