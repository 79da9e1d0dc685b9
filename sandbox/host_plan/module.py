# SPDX-License-Identifier: Apache-2.0
"""Reads a Python file that compiles CUDA inline (`load_inline`): its source, functions and numbers.

What its `ModelNew` does stands in `forward.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from ...syntax import parse_python
from .values import (
    HostCodeError,
    Number,
    Real,
    Unknown,
    Words,
    number,
)

_LOADERS = ("load_inline",)


class Inline(NamedTuple):
    """The CUDA source of a Python file."""

    text: str
    line: int
    """Where it begins in the file."""


def compiles_cuda(text: str) -> bool:
    """Whether a Python file has CUDA compiled by `load_inline`."""
    return "load_inline" in text and "__global__" in text


class Module:
    """One file: its inline source and what its host code does."""

    def __init__(self, text: str) -> None:
        self.tree = parse_python(text)
        self.names: dict[str, object] = {}
        self.functions: dict[str, ast.FunctionDef | ast.Lambda] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.strings: dict[str, tuple[str, int]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
        for node in self.tree.body:
            self._take(node)

    def _take(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef):
            self.functions[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name = target.id if isinstance(target, ast.Name) else ""
            text = self._string(node.value)
            if text is not None:
                self.strings[name] = text
            elif isinstance(node.value, ast.Lambda):
                self.functions[name] = node.value
            elif name:
                self.names[name] = read_constant(node.value)

    def _string(self, node: ast.expr) -> tuple[str, int] | None:
        """The text of a string that is written out, and its first line."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value, node.lineno
        if isinstance(node, ast.Name):
            return self.strings.get(node.id)
        if isinstance(node, ast.List | ast.Tuple):
            parts = [self._string(each) for each in node.elts]
            return _join(parts)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return _join([self._string(node.left), self._string(node.right)])
        method = node.func if isinstance(node, ast.Call) and not node.args else None
        if isinstance(method, ast.Attribute) and "strip" in method.attr:
            return self._string(method.value)
        if isinstance(node, ast.JoinedStr):
            return self._format(node)
        return None

    def _format(self, node: ast.JoinedStr) -> tuple[str, int] | None:
        text = ""
        for each in node.values:
            if isinstance(each, ast.Constant):
                text += str(each.value)
                continue
            value = each.value if isinstance(each, ast.FormattedValue) else None
            known = self.names.get(value.id) if isinstance(value, ast.Name) else None
            if isinstance(known, Number):
                text += known.text
            else:
                return None
        return text, node.lineno

    def inline(self) -> Inline:
        """The CUDA source that is compiled. Raises HostCodeError."""
        found, line = [], 1
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Call) or last_name(node.func) not in _LOADERS:
                continue
            for keyword in node.keywords:
                if keyword.arg == "cuda_sources":
                    text = self._string(keyword.value)
                    if text is None:
                        raise HostCodeError(
                            "cuda_sources is no text that is written out", node.lineno
                        )
                    found.append(text)
            if len(node.args) > 2 and (text := self._string(node.args[2])):
                found.append(text)
        if not found:
            raise HostCodeError("load_inline is given no cuda_sources", line)
        return Inline("\n".join(text for text, _ in found), found[0][1])


def _join(parts: Sequence[tuple[str, int] | None]) -> tuple[str, int] | None:
    if not parts or any(each is None for each in parts):
        return None
    known = [each for each in parts if each is not None]
    return "\n".join(text for text, _ in known), known[0][1]


def last_name(node: ast.expr) -> str:
    """`f` of `f` and of `module.f`; empty of anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def read_constant(node: ast.expr) -> object:
    """A number or a string that is written out."""
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool | int):
            return number(int(value))
        if isinstance(value, float):
            return Real(value)
        if isinstance(value, str):
            return Words(value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = read_constant(node.operand)
        if isinstance(inner, Real):
            return Real(-inner.value)
        if isinstance(inner, Number) and inner.value is not None:
            return number(-inner.value)
    return Unknown(f"'{ast.unparse(node)[:40]}' cannot be told from the text")
