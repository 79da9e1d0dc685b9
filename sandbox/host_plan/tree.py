# SPDX-License-Identifier: Apache-2.0
"""A CUDA source as a tree (tree-sitter), and what of it host code refers to by name."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


@dataclass(frozen=True)
class Function:
    """A function of the host with a body."""

    name: str
    node: Node
    parameters: tuple[tuple[str, str, bool, bool], ...]
    """Name, type as written, whether it is a pointer, whether it is const."""
    defaults: tuple[Node | None, ...]
    template: tuple[str, ...] = ()
    body: Node | None = None


@dataclass
class Source:
    """One source: its text and what stands at its top level."""

    text: str
    first_line: int = 1
    """The line of the file that its first line is."""
    root: Node = field(init=False)
    functions: dict[str, list[Function]] = field(default_factory=dict)
    constants: dict[str, Node] = field(default_factory=dict)
    """Of `const` and `constexpr` at file scope: their values."""
    macros: dict[str, tuple[tuple[str, ...] | None, str]] = field(default_factory=dict)
    """Parameters, where it takes any, and the body."""
    exported: dict[str, str] = field(default_factory=dict)
    """What `m.def("name", &function)` says."""

    def __post_init__(self) -> None:
        self.bytes = self.text.encode()
        self.root = parser().parse(self.bytes).root_node
        self._collect(self.root)

    def say(self, node: Node) -> str:
        """The text of a node."""
        return (node.text or b"").decode()

    def line(self, node: Node) -> int:
        """Its line in the file."""
        return int(node.start_point[0]) + self.first_line

    def _collect(self, node: Node, template: tuple[str, ...] = ()) -> None:
        for child in node.named_children:
            kind = child.type
            if kind == "function_definition":
                self._add_function(child, template)
            elif kind == "template_declaration":
                self._collect(child, self._template(child))
            elif kind == "declaration":
                self._add_constants(child)
            elif kind == "preproc_def":
                value = child.child_by_field_name("value")
                self.macros[self._name(child)] = (None, self.say(value) if value else "")
            elif kind == "preproc_function_def":
                self._add_macro(child)
            elif kind in _NESTS:
                self._collect(child)
        if node is self.root:
            for found in re.finditer(
                r'\bm\s*\.\s*def\s*\(\s*"(\w+)[^"]*"\s*,\s*&?(\w+)', self.text
            ):
                self.exported[found[1]] = found[2]
            impl = r'\bm\s*\.\s*impl\s*\(\s*"(\w+)"\s*,\s*&?(?:TORCH_FN\()?(\w+)'
            for found in re.finditer(impl, self.text):
                self.exported[found[1]] = found[2]

    def _name(self, node: Node) -> str:
        found = node.child_by_field_name("name")
        return self.say(found) if found else ""

    def _template(self, node: Node) -> tuple[str, ...]:
        listed = node.child_by_field_name("parameters")
        names = []
        for each in listed.named_children if listed else ():
            words = re.findall(r"\w+", self.say(each).split("=")[0])
            names.append(words[-1] if words else "")
        return tuple(names)

    def _add_function(self, node: Node, template: tuple[str, ...]) -> None:
        declarator = find(node.child_by_field_name("declarator"), "function_declarator")
        body = node.child_by_field_name("body")
        if declarator is None:
            return
        named = declarator.child_by_field_name("declarator")
        name = self.say(named).rpartition("::")[2] if named else ""
        is_host = not any(self.say(child) == "__global__" for child in node.children)
        if is_host and body is not None:
            listed = declarator.child_by_field_name("parameters")
            given = [
                child
                for child in (listed.named_children if listed else ())
                if child.type in ("parameter_declaration", "optional_parameter_declaration")
            ]
            function = Function(
                name,
                node,
                tuple(self._parameter(each) for each in given),
                tuple(each.child_by_field_name("default_value") for each in given),
                template,
                body,
            )
            self.functions.setdefault(name, []).append(function)

    def _parameter(self, node: Node) -> tuple[str, str, bool, bool]:
        type_node = node.child_by_field_name("type")
        declarator = node.child_by_field_name("declarator")
        written = self.say(type_node) if type_node else ""
        name, is_pointer = "", False
        while declarator is not None:
            is_pointer |= declarator.type in ("pointer_declarator", "abstract_pointer_declarator")
            if declarator.type == "identifier":
                name = self.say(declarator)
            inner = declarator.child_by_field_name("declarator")
            if inner is None and declarator.named_children and declarator.type != "identifier":
                inner = declarator.named_children[-1]
            declarator = inner
        is_const = any(self.say(c) == "const" for c in node.named_children)
        return name, written, is_pointer, is_const

    def _add_constants(self, node: Node) -> None:
        words = {self.say(child) for child in node.children if child.type != "init_declarator"}
        if not words & {"const", "constexpr"}:
            return
        for child in node.children_by_field_name("declarator"):
            name, value = (
                child.child_by_field_name("declarator"),
                child.child_by_field_name("value"),
            )
            if child.type == "init_declarator" and name is not None and value is not None:
                self.constants[self.say(name)] = value

    def _add_macro(self, node: Node) -> None:
        listed, value = node.child_by_field_name("parameters"), node.child_by_field_name("value")
        names = tuple(self.say(each) for each in listed.named_children) if listed else ()
        body = self.say(value) if value else ""
        self.macros[self._name(node)] = (names, re.sub(r"\\\r?\n", " ", body))


_NESTS = frozenset(
    {
        "namespace_definition",
        "declaration_list",
        "linkage_specification",
        "preproc_ifdef",
        "preproc_if",
        "preproc_else",
        "ERROR",
    }
)


def find(node: Node | None, kind: str) -> Node | None:
    """The first node of a kind, this one or below it."""
    if node is None or node.type == kind:
        return node
    return next((found for child in node.named_children if (found := find(child, kind))), None)


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for child in node.children:
        yield from walk(child)


def launches_below(node: Node) -> bool:
    """Whether a `<<<…>>>` stands there."""
    return any(each.type == "kernel_call_syntax" for each in walk(node))


@functools.lru_cache(maxsize=1)
def parser() -> Parser:
    """The parser of CUDA sources."""
    import tree_sitter
    import tree_sitter_cuda

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))
