"""Who implements an interface, by the methods that a class has: what a suite must not leave out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import kernelwright

ROOT = Path(kernelwright.__file__).parent
ROOMS = (ROOT / "tests", *(init.parent for init in sorted(ROOT.glob("*/__init__.py"))))


def unheld(methods: set[str], held: set[str]) -> list[str]:
    """Classes of package and tests with these methods that are neither held nor derived from one.

    An interface is none of them, since it has no bodies.
    """
    return [
        f"{file.relative_to(ROOT)}: {node.name}"
        for file, node in _classes(f"def {min(methods)}(")
        if methods <= {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        and not {node.name, *_names(node.bases)} & {*held, "Protocol"}
    ]


def _classes(word: str) -> Iterator[tuple[Path, ast.ClassDef]]:
    files = [*ROOT.glob("*.py"), *(file for room in ROOMS for file in room.rglob("*.py"))]
    for file in sorted(files):
        text = file.read_text("utf-8")
        if word in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef):
                    yield file, node


def _names(bases: list[ast.expr]) -> set[str]:
    return {ast.unparse(base).rpartition(".")[2] for base in bases}
