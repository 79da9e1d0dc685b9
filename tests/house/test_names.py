"""Names of functions: a verb first, or a noun for what comes back; never a lone participle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from package_tree import Module, modules

VERBS = {"exceed", "feed", "need", "proceed", "read", "reseed", "seed", "shed", "speed", "spread"}
"""End like participles, and are none."""
PARTICIPLES = {
    "begun",
    "broken",
    "built",
    "chosen",
    "drawn",
    "fallen",
    "found",
    "given",
    "held",
    "hidden",
    "kept",
    "known",
    "left",
    "lent",
    "lost",
    "made",
    "met",
    "said",
    "seen",
    "sent",
    "shown",
    "spent",
    "taken",
    "told",
    "understood",
    "written",
}
OTHERS = {
    "again",
    "all",
    "alone",
    "any",
    "apart",
    "bare",
    "beside",
    "both",
    "each",
    "either",
    "fresh",
    "only",
    "plain",
    "several",
    "whole",
}
"""What else says neither what is done nor what comes back."""
KEPT: dict[str, str] = {}
"""By module and name, each with its reason."""


def riddles(module: Module) -> Iterator[str]:
    """Functions whose one word is a participle or an adverb; what is asked yes or no may be one."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        word = node.name.strip("_")
        is_participle = word in PARTICIPLES or (word.endswith("ed") and word not in VERBS)
        if "_" in word or not (is_participle or word in OTHERS):
            continue
        decorators = {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}
        is_fact = bool(decorators & {"property", "cached_property"})
        if not is_fact and not (node.returns and ast.unparse(node.returns) == "bool"):
            yield f"{module.name}.{node.name}"


def test_functions_say_what_they_do() -> None:
    found = {name for module in modules() for name in riddles(module)}
    assert found == set(KEPT)


def test_a_riddle_is_seen() -> None:
    source = """
class A:
    @property
    def seen(self) -> int: ...
    def _told(self) -> str: ...
def closed() -> bool: ...
def apart() -> int: ...
def _measured() -> int: ...
def seed() -> int: ...
def read_told() -> int: ...
"""
    module = Module("m", Path("m.py"), ast.parse(source))
    assert list(riddles(module)) == ["m.apart", "m._measured", "m._told"]
