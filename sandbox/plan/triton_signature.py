# SPDX-License-Identifier: Apache-2.0
"""Finds the `@triton.jit` kernels of a Triton source and what they take, by its syntax tree."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..front_matter import FilePlace
from .faults import explain_missing, quote
from .signature import Parameter, Signature

_TUNERS = ("autotune", "heuristics")


@dataclass(frozen=True)
class TritonSource:
    """The functions of one module."""

    functions: dict[str, ast.FunctionDef]
    tree: ast.Module

    @property
    def names(self) -> list[str]:
        """The kernels."""
        return [name for name, function in self.functions.items() if _is_kernel(function)]

    def definitions(self, name: str) -> list[str]:
        """What the top level defines `name` as: `64` of `BLOCK = 64` and `tl.constexpr(64)`."""
        found = []
        for each in self.tree.body:
            if not isinstance(each, ast.Assign | ast.AnnAssign) or each.value is None:
                continue
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                value = each.value
                if isinstance(value, ast.Call) and len(value.args) == 1:
                    value = value.args[0]
                found.append(str(value.value) if isinstance(value, ast.Constant) else "")
        return found

    def signatures(self, launched: str) -> tuple[Signature, ...] | str:
        """What the kernel takes, or why it cannot be launched by a plan."""
        function = self.functions.get(launched)
        if function is None:
            return explain_missing("@triton.jit function", launched, self.names)
        if not _is_kernel(function):
            return f"{quote(launched)} is not a kernel; decorate it with @triton.jit"
        decorators = [_decorator(each) for each in function.decorator_list]
        for tuner in _TUNERS:
            if tuner in decorators:
                return (
                    f"{quote(launched)} is decorated with {tuner}, and a plan launches what it "
                    f"declares: remove the decorator and give its values as constexpr and "
                    "num_warps, or launch the kernel from run(...)"
                )
        given = function.args
        if given.vararg or given.kwarg:
            return f"{quote(launched)} takes *args or **kwargs; name each parameter"
        place = FilePlace(function.lineno, function.col_offset + 1)
        return (Signature(launched, place, _parameters(given)),)


def read_triton(tree: ast.Module) -> TritonSource:
    """The functions at the top level of a module, conditional ones included."""
    found: dict[str, ast.FunctionDef] = {}
    pending: list[ast.stmt] = list(tree.body)
    for statement in pending:  # which grows on the way
        if isinstance(statement, ast.FunctionDef):
            found[statement.name] = statement
        elif isinstance(statement, ast.If | ast.Try):
            pending += [*statement.body, *statement.orelse]
    return TritonSource(found, tree)


def _is_kernel(function: ast.FunctionDef) -> bool:
    return any(_decorator(each) == "jit" for each in function.decorator_list)


def _decorator(node: ast.expr) -> str:
    """`jit` of `@triton.jit`, `@jit` and `@triton.jit(...)`."""
    node = node.func if isinstance(node, ast.Call) else node
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _parameters(given: ast.arguments) -> tuple[Parameter, ...]:
    plain = [*given.posonlyargs, *given.args]
    first = len(plain) - len(given.defaults)
    found = [_parameter(each, has_default=at >= first) for at, each in enumerate(plain)]
    for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        found.append(_parameter(each, has_default=default is not None))
    return tuple(found)


def _parameter(argument: ast.arg, *, has_default: bool) -> Parameter:
    annotation = argument.annotation
    if isinstance(annotation, ast.Constant):
        word = str(annotation.value).rpartition(".")[2]
    else:
        word = _decorator(annotation) if annotation is not None else ""
    is_pointer = True if argument.arg.endswith("_ptr") else None
    return Parameter(
        argument.arg,
        is_pointer=is_pointer,
        is_constexpr=word == "constexpr",
        has_default=has_default,
    )
