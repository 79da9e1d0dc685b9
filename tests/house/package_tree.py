"""The package's modules as syntax trees, and which of its own modules each one imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import kernelwright

ROOT = Path(kernelwright.__file__).parent
ROOMS = (
    "agents",
    "cli",
    "compare",
    "kernelbench",
    "portfolio",
    "sandbox",
    "traces",
    "verifier",
    "workbench",
)


class Module(NamedTuple):
    """One module of the package."""

    name: str
    """Dotted, without `kernelwright.`; the package's own `__init__` is the empty name."""
    path: Path
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the package, tests and benchmarks left out."""
    paths = sorted(ROOT.glob("*.py"))
    for room in ROOMS:
        paths += sorted((ROOT / room).rglob("*.py"))
    return tuple(Module(_name(path), path, ast.parse(path.read_text("utf-8"))) for path in paths)


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def own_imports(module: Module) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import of the package's own modules."""
    package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            stem = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            yield from ((node.lineno, f"{stem}.{alias.name}".strip(".")) for alias in node.names)
        else:
            yield from ((node.lineno, name) for name in _absolute(node))


def _absolute(node: ast.AST) -> Iterator[str]:
    names = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    for name in names:
        if name.split(".")[0] == "kernelwright":
            yield name.removeprefix("kernelwright").removeprefix(".")
