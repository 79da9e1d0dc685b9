"""The shape of the code: sizes, annotations, docstrings, and exact public faces."""

from __future__ import annotations

import ast
import importlib
import re
import statistics
import types
from collections.abc import Iterator
from pathlib import Path

from package_tree import ROOT, Module, modules

MAX_MODULE = 450
MAX_FUNCTION = 60
LONGEST_PROBLEM, MEDIAN_PROBLEM = 85, 80

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


def test_size() -> None:
    long = []
    for module in modules():
        if (lines := len(module.path.read_text("utf-8").splitlines())) > MAX_MODULE:
            long.append(f"{module.path}: {lines} lines")
        long += [
            f"{module.path}:{function.lineno}: {function.name} has {body_lines(function)} lines"
            for function in functions(module)
            if body_lines(function) > MAX_FUNCTION
        ]
    assert long == []


def test_a_problem_is_one_small_file() -> None:
    """What a second one would repeat belongs to the library; the median is small."""
    problems = [each for each in modules() if each.name.startswith("kernelbench.problems.")]
    lines = [len(each.path.read_text("utf-8").splitlines()) for each in problems]
    assert len(lines) >= 11
    assert max(lines) <= LONGEST_PROBLEM
    assert statistics.median(lines) <= MEDIAN_PROBLEM


def test_everything_public_is_annotated() -> None:
    assert [each for module in modules() for each in bare_functions(module)] == []


def bare_functions(module: Module) -> Iterator[str]:
    for function in functions(module):
        parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        missing = [
            p.arg for p in parameters if p.annotation is None and p.arg not in ("self", "cls")
        ]
        if not function.name.startswith("_") and (missing or function.returns is None):
            yield f"{module.path}:{function.lineno}: {function.name}"


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(module.path)
        for module in modules()
        if not (module.is_package and not module.tree.body[1:])
        and not ast.get_docstring(module.tree)
    ]
    assert silent == []


def test_faces_are_exact() -> None:
    packages = [module for module in modules() if module.is_package]
    assert {each.name: why for each in packages if (why := wrong_face(each))} == {}


def wrong_face(module: Module) -> str:
    """What a package offers and does not declare, or the other way round."""
    package = importlib.import_module(f"kernelwright.{module.name}".rstrip("."))
    bound = {
        key
        for key, value in vars(package).items()
        if not key.startswith("_")
        and not isinstance(value, types.ModuleType)
        and key != "annotations"
    }
    declared = list(getattr(package, "__all__", []))
    if len(declared) != len(set(declared)):
        return "a name is declared twice"
    missing = [each for each in declared if not hasattr(package, each)]
    undeclared = sorted(bound - set(declared))
    if missing or undeclared:
        return f"declared and absent {missing}, or not declared {undeclared}"
    return ""


def test_the_rules_see_what_they_forbid() -> None:
    long = "def f():\n" + "    pass\n" * (MAX_FUNCTION + 1)
    assert body_lines(ast.parse(long).body[0]) > MAX_FUNCTION  # type: ignore[arg-type]
    bare = Module("x", Path("x.py"), ast.parse("def f(a) -> None: ...\ndef _g(a): ..."))
    assert list(bare_functions(bare)) == ["x.py:1: f"]


def test_every_module_names_its_licence() -> None:
    line = "# SPDX-License-Identifier: Apache-2.0\n"
    silent = [str(m.path) for m in modules() if not m.path.read_text("utf-8").startswith(line)]
    assert silent == []


def test_marks_that_runs_ask_for_stand_in_the_files_of_their_tests() -> None:
    """The Makefile finds these files by the text of the mark."""
    mark = re.compile(r"mark\.(timed|jail)\b")
    others = [path for path in (ROOT / "tests").rglob("*.py") if path.name[:5] != "test_"]
    assert [path for path in others if mark.search(path.read_text("utf-8"))] == []
