# SPDX-License-Identifier: Apache-2.0
"""What a C++ candidate declares of the plan that it makes of a sparse pattern: how large it is.

`[prepare] bytes = "…"` in its front matter says so as an expression over the axes. What is in a
plan is the candidate's own; who has it made, and when, is the referee's to say.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...kernelbench.languages import CPP, Language, Syntax
from ...kernelbench.problem import Problem
from ..front_matter import FrontMatter, MalformedError, read_comment, read_docstring
from ..source_text import python_tree
from .expressions import MAX_INTEGER, Expression, Literal
from .faults import PlanFault, PlanFaultKind, PlanRefusedError, explain_missing, fault_at, quote
from .grammar import parse_expression
from .limits import MAX_SCRATCH_BYTES

MAX_SHARE = 16
"""A plan takes at most so many times the bytes of a call on the same pattern."""
LEAST_LENT = 64 << 10
"""Bytes that a plan may take however small the call is."""
_TABLE, _KEY = "prepare", "bytes"
_PATH = (_TABLE, _KEY)


@dataclass(frozen=True)
class PatternPlan:
    """A plan as it is declared."""

    problem: Problem
    size: Expression

    def bytes(self, axes: Mapping[str, int]) -> int | PlanFault:
        """What it takes on a pattern of these axes, or why that cannot be."""
        try:
            size = self.size.integer(axes)
        except PlanRefusedError as error:
            return error.fault
        said, place = self.size.bindings(axes), self.size.place(0)
        if size < 0:
            return fault_at(f"the plan takes {size} bytes{said}; they must not be negative", place)
        share = max(LEAST_LENT, MAX_SHARE * int(self.problem.bytes_moved(dict(axes))))
        most = min(share, MAX_SCRATCH_BYTES)
        if size <= most:
            return size
        reason = (
            f"the plan takes {size} bytes{said}, at most {most} are lent: {MAX_SHARE} times what a "
            f"call moves, and {MAX_SCRATCH_BYTES >> 20} MiB"
        )
        return fault_at(reason, place, PlanFaultKind.LIMIT)


def read_pattern_plan(source: str, problem: Problem) -> PatternPlan | PlanFault | None:
    """What a C++ source declares, or what is wrong with it; None where it declares no plan."""
    try:
        matter = read_comment(source)
        return _read(matter, problem) if _TABLE in matter.facts else None
    except MalformedError as error:
        # Front matter is optional in C++, and what cannot be read otherwise changes nothing.
        return fault_at(error.reason, error.place) if f"[{_TABLE}]" in source else None
    except PlanRefusedError as error:
        return error.fault


def declares_pattern_plan(source: str, language: Language = CPP) -> bool:
    """Whether a source declares a plan, a right one or not."""
    return _TABLE in source and _TABLE in _facts(source, language)


def explain_unprepared(source: str, language: Language, problem: Problem) -> str:
    """Why a source that declares a plan cannot be called with one; empty: it can, or it has none.

    What cannot be read is for its builder to say.
    """
    if not declares_pattern_plan(source, language):
        return ""
    if language is not CPP:
        return f"[{_TABLE}] is for {CPP} candidates only: leave it out of {language} sources"
    if not any(tensor.is_index for tensor in problem.inputs):
        return (
            f"{problem.name} has no index inputs, so that there is no pattern to prepare: leave "
            f"[{_TABLE}] out"
        )
    return ""


def _facts(source: str, language: Language) -> dict[str, Any]:
    try:
        if language.syntax is not Syntax.PYTHON:
            return read_comment(source).facts
        tree: ast.Module = python_tree(source)
        return read_docstring(tree, source).facts
    except MalformedError:
        return {}


def _read(matter: FrontMatter, problem: Problem) -> PatternPlan:
    table = matter.facts[_TABLE]
    if not isinstance(table, dict) or _KEY not in table:
        raise PlanRefusedError(
            f'[{_TABLE}] needs {_KEY} = "…", the size of the plan as an expression over the axes',
            matter.place((_TABLE,)),
        )
    for key in table:
        if key != _KEY:
            reason = explain_missing("key", key, (_KEY,))
            raise PlanRefusedError(reason, matter.place((_TABLE, key), of_key=True))
    size = _read_size(matter, table[_KEY])
    for name, at in size.names:
        if name not in problem.axes:
            raise PlanRefusedError(explain_missing("axis", name, problem.axes), size.place(at))
    return PatternPlan(problem, size)


def _read_size(matter: FrontMatter, value: object) -> Expression:
    if isinstance(value, str):
        return parse_expression(value, lambda at: matter.place_inside(_PATH, at))
    if type(value) is not int or abs(value) > MAX_INTEGER:
        reason = f"{quote(value)} is not an integer below 2^63 or an expression in quotes"
        raise PlanRefusedError(reason, matter.place(_PATH))
    return Expression(str(value), Literal(value), lambda _: matter.place(_PATH))
