"""The shape of the code: sizes, annotations, docstrings, and exact public faces."""

from __future__ import annotations

import ast
import importlib
import types
from collections.abc import Iterator

import pytest
from package_tree import Module, modules

MAX_MODULE = 450
MAX_FUNCTION = 60

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(module: Module) -> Iterator[Function]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def body_lines(function: Function) -> int:
    """Lines of the body without its docstring and without the functions defined inside it.

    A list of options in a docstring is not complexity, and inner functions are counted alone.
    """
    body = function.body[1:] if ast.get_docstring(function) else function.body
    if not body:
        return 0
    inner = [
        node
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lines = set(range(body[0].lineno, (body[-1].end_lineno or 0) + 1))
    for node in inner:
        lines -= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(lines)


each_module = pytest.mark.parametrize(
    "module", modules(), ids=lambda module: module.name or "kernelwright"
)


@each_module
def test_size(module: Module) -> None:
    assert len(module.path.read_text("utf-8").splitlines()) <= MAX_MODULE
    long = {f.name: body_lines(f) for f in functions(module) if body_lines(f) > MAX_FUNCTION}
    assert long == {}


@each_module
def test_everything_public_is_annotated(module: Module) -> None:
    bare = []
    for function in functions(module):
        parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        missing = [
            p.arg for p in parameters if p.annotation is None and p.arg not in ("self", "cls")
        ]
        if not function.name.startswith("_") and (missing or function.returns is None):
            bare.append(function.name)
    assert bare == []


@each_module
def test_the_module_says_what_it_is(module: Module) -> None:
    if module.is_package and not module.tree.body[1:]:
        pytest.skip("a package without contents of its own")
    assert ast.get_docstring(module.tree)


@pytest.mark.parametrize(
    "module",
    [module for module in modules() if module.is_package],
    ids=lambda module: module.name or "kernelwright",
)
def test_the_face_is_exact(module: Module) -> None:
    name = f"kernelwright.{module.name}".rstrip(".")
    package = importlib.import_module(name)
    bound = {
        key
        for key, value in vars(package).items()
        if not key.startswith("_")
        and not isinstance(value, types.ModuleType)
        and key != "annotations"
    }
    declared = list(getattr(package, "__all__", []))
    assert len(declared) == len(set(declared))
    assert {each for each in declared if not each.startswith("__")} == bound
    for each in declared:
        assert hasattr(package, each)
