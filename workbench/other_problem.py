# SPDX-License-Identifier: Apache-2.0
"""Whether a source that a user gives is a kernel of another problem than the one it is given for.

That is a mistake in what was asked, and no verdict on the kernel: it is said before anything is
built. Only what is beyond doubt counts: the source names, at its entry, what this problem lacks and
another one has.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ..errors import UsageError
from ..kernelbench import registry
from ..kernelbench.features import SPARSE_FEATURES
from ..kernelbench.languages import CPP, CUDA, PYTHON, TRITON
from ..kernelbench.policies import POLICIES, name_in
from ..kernelbench.problem import Problem
from ..sandbox.plan import Plan, parse
from ..sandbox.plan.declared import Value
from ..syntax import parse_python

_RUN = "run"
_C_ENTRY = re.compile(r'\bextern\s+"C"\s[^;{}()]*?\bvoid\s+(\w+)\s*\(')


class _Lacking(NamedTuple):
    """What this problem does not have."""

    line: int
    what: str
    names: frozenset[str]
    """All that the entry names: those of the problem it was written for."""


def ensure_for_problem(text: str, language: str, problem: Problem, file: str) -> None:
    """Refuses a source that was written for another problem.

    Args:
        file: what the source is called, for the error.

    Raises:
        UsageError: with the line, what it names there, and the problem that has it.
    """
    if language == CPP.name:
        _ensure_entry(text, problem, file)
        return
    find = _FIND.get(language)
    lacking = find(text, problem) if find else None
    if lacking is None:
        return
    others = _likely(lacking.names, text)
    if others:
        raise UsageError(
            f"{file}:{lacking.line}: {lacking.what}, which {problem.name} does not have: "
            f"it is a kernel of another problem",
            hint=f"what it names stands in {', '.join(others[:3])}: "
            f"kernelwright eval {others[0]} {file}",
        )


def _likely(names: frozenset[str], text: str) -> list[str]:
    """The problems that have all these names, the likeliest first.

    That is one that the source names, the longest name before others, and then the one that has
    the fewest names beside these.
    """
    having = [each for each in registry.problems() if names <= _names_of(each)]

    def rank(problem: Problem) -> tuple[int, int]:
        named = len(problem.name) if problem.name in text else 0
        return -named, len(_names_of(problem) - names)

    return [each.name for each in sorted(having, key=rank)]


def _ensure_entry(text: str, problem: Problem, file: str) -> None:
    """C++ is called by the problem's name."""
    if re.search(rf"\b{problem.name}\b", text):
        return
    entries = {found[1]: found.start(1) for found in _C_ENTRY.finditer(text)}
    for name in _known_names():
        if name in entries:
            line = text.count("\n", 0, entries[name]) + 1
            raise UsageError(
                f"{file}:{line}: it defines {name} and no {problem.name}: "
                "it is a kernel of another problem",
                hint=f"kernelwright eval {name} {file}; or rename its entry point to "
                f"{problem.name}: kernelwright problems {problem.name} --signature cpp",
            )


def _known_names() -> list[str]:
    names = registry.names()
    return [*names, *(name_in(name, policy) for name in names for policy in POLICIES)]


def _names_of(problem: Problem) -> set[str]:
    return {*problem.axes, *(tensor.name for tensor in problem.tensors)}


def _find_in_plan(language: str, text: str, problem: Problem) -> _Lacking | None:
    """The first argument of a launch that is a name of nothing here."""
    plan = parse(text, language)
    if not isinstance(plan, Plan):
        return None
    own = {*plan.knobs, *(scratch.name for scratch in plan.scratch), *SPARSE_FEATURES}
    passed = [
        each.expression
        for launch in plan.launches
        for each in launch.arguments
        if isinstance(each, Value) and each.text.isidentifier() and each.text not in own
    ]
    names = frozenset(each.text for each in passed)
    for each in passed:
        if each.text not in _names_of(problem):
            return _Lacking(each.place(0).line, f"its launch passes '{each.text}'", names)
    return None


def _find_in_run(text: str, problem: Problem) -> _Lacking | None:
    """The first parameter of `run` that is a name of nothing here."""
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError):
        return None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == _RUN:
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            names = frozenset(each.arg for each in given)
            for each in given:
                if each.arg not in _names_of(problem):
                    return _Lacking(each.lineno, f"run takes '{each.arg}'", names)
    return None


_FIND: dict[str, Callable[[str, Problem], _Lacking | None]] = {
    CUDA.name: partial(_find_in_plan, CUDA.name),
    TRITON.name: partial(_find_in_plan, TRITON.name),
    PYTHON.name: _find_in_run,
}
