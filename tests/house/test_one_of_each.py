"""What one module reads, names or opens for all: places, decisions, languages, workshops."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

import pytest
from package_tree import Module, modules

from kernelwright.kernelbench.languages import LANGUAGES
from kernelwright.kernelbench.targets import CPU

DIVIDED = {
    "agents.models.choosing",
    "sandbox.builders.shims",
    "traces.export.write",
    "traces.names",
    "verifier.stands.sanitizer_reports",
}
"""Modules that divide names of models, headers, files and candidates. A place has `Place.parse`."""
OPENING = ("cli.", "sandbox.isolation.canary")
"""Who takes a jail or a cache folder by itself: options, and the first look at a jail. All others
are handed a Workshop."""

Rule = Callable[[Module], Iterator[int]]


def divides_by_slashes(module: Module) -> Iterator[int]:
    """A place is read by `traces.place` and nobody else."""
    if module.name in DIVIDED:
        return
    for node in ast.walk(module.tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr.removeprefix("r") in ("partition", "split")
            and any(isinstance(each, ast.Constant) and each.value == "/" for each in node.args)
        ):
            yield node.lineno


def has_a_bag(module: Module) -> Iterator[int]:
    """A decision has fields of its own; a bag is left for what older stores hold."""
    if module.name == "traces.decisions":
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.keyword) and node.arg == "details":
            yield node.value.lineno
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "details":
            yield node.lineno


def asks_by_name(module: Module) -> Iterator[int]:
    """What differs between languages or targets is asked of a Language or a Target."""
    if module.name in ("kernelbench.languages", "kernelbench.targets"):
        return
    for node in ast.walk(module.tree):
        compared: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            compared = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            compared = [node.value]
        if any(_is_name(each) for each in compared):
            yield node.lineno
        if isinstance(node, ast.Dict):
            keys = {each.value for each in node.keys if isinstance(each, ast.Constant)}
            # The version of Python stands in tables of versions, too.
            if len(keys & ({*LANGUAGES} - {"python"})) > 1:
                yield node.lineno


def _is_name(node: ast.expr) -> bool:
    """CUDA is torch's word for a device, too."""
    if isinstance(node, ast.Constant):
        return node.value in {CPU, *LANGUAGES} - {"cuda"}
    return isinstance(node, ast.Name) and node.id == "CPU"


def takes_a_part_of_a_workshop(module: Module) -> Iterator[int]:
    """Who builds or runs anything is handed the whole workshop."""
    if module.name.startswith(OPENING):
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef):
            taken = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if {each.arg for each in taken} & {"jail", "cache_dir"}:
                yield node.lineno


RULES: tuple[Rule, ...] = (divides_by_slashes, has_a_bag, asks_by_name, takes_a_part_of_a_workshop)


@pytest.mark.parametrize("rule", RULES)
def test_there_is_one_of_each(rule: Rule) -> None:
    assert [f"{m.path}:{line}" for m in modules() for line in rule(m)] == [], rule.__doc__


def test_what_may_divide_names_does_so() -> None:
    unlisted = (m._replace(name="") for m in modules() if m.name in DIVIDED)
    assert sum(any(divides_by_slashes(m)) for m in unlisted) == len(DIVIDED)


@pytest.mark.parametrize(
    ("rule", "text", "breaks"),
    [
        (divides_by_slashes, "place.partition('/')", True),
        (divides_by_slashes, "place.rsplit('/', 1)", True),
        (divides_by_slashes, "text.split(',')", False),
        (has_a_bag, "Decided(place=p, what='x', details={})", True),
        (has_a_bag, "class D:\n    details: dict[str, str]", True),
        (asks_by_name, "if target == 'cpu': pass", True),
        (asks_by_name, "if CPU != target: pass", True),
        (asks_by_name, "if language in (CPP, TRITON): pass", False),
        (asks_by_name, "match language:\n    case 'triton': pass", True),
        (asks_by_name, "ENDINGS = {'cpp': '.cpp', 'triton': '.py'}", True),
        (takes_a_part_of_a_workshop, "def build(source, *, jail): pass", True),
        (takes_a_part_of_a_workshop, "def build(workshop, source): pass", False),
    ],
)
def test_the_rules_see_what_they_forbid(rule: Rule, text: str, breaks: bool) -> None:
    module = modules()[0]._replace(name="agents.new", tree=ast.parse(text))
    assert any(rule(module)) is breaks
