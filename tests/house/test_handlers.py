"""Whoever catches everything says why, beside it, or lets it go on its way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from package_tree import Module, modules

BROAD = {"Exception", "BaseException"}


def silent_handlers(module: Module, text: str) -> Iterator[str]:
    """Handlers of everything that neither end by raising it again nor hold a comment."""
    lines = text.splitlines()
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = {each.id for each in ast.walk(node.type or node) if isinstance(each, ast.Name)}
        goes_on = isinstance(node.body[-1], ast.Raise)
        has_reason = any("#" in line for line in lines[node.lineno - 1 : node.end_lineno])
        if (node.type is None or caught & BROAD) and not goes_on and not has_reason:
            yield f"{module.path}:{node.lineno}"


def test_whoever_catches_everything_says_why() -> None:
    found = [h for m in modules() for h in silent_handlers(m, m.path.read_text("utf-8"))]
    assert found == []


def test_a_silent_handler_is_seen() -> None:
    text = "\n".join(
        f"try: f()\nexcept {caught}{end}"
        for caught in ("ValueError:", "Exception:", "(OSError, BaseException):")
        for end in ("\n  pass", "\n  raise", "  # A reason.\n  pass")
    )
    module = Module("m", Path("m.py"), ast.parse(text))
    lines = text.splitlines()
    silent = [int(found.rpartition(":")[2]) for found in silent_handlers(module, text)]
    assert [lines[line - 1] for line in silent] == [
        "except Exception:",
        "except (OSError, BaseException):",
    ]
