# SPDX-License-Identifier: Apache-2.0
"""The part of a source that runs on the device: its kernels and what they use, as they stand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .tree import Source, launches_below

if TYPE_CHECKING:
    from tree_sitter import Node

_HOST_MACROS = re.compile(
    r"\s*(?:PYBIND11_MODULE|TORCH_LIBRARY\w*|TORCH_EXTENSION_NAME|STABLE_TORCH)"
)
_USING = re.compile(
    r"\s*(?:using\s+namespace\s+(?:torch|at|c10)\b|namespace\s+\w+\s*=\s*(?:torch|at))"
)
_HOST_TYPES = re.compile(
    r"\b(?:torch|at|c10)::|\bstd::(?:vector|string)\b|\bcuda(?:Stream|Event)_t\b"
)
_TYPE = re.compile(r"(?:template\s*<[^{;]*>\s*)?(?:typedef\s+)?(?:struct|class|union|enum|using)\b")
_DEVICE = re.compile(r"__global__|__device__|__constant__|\bconstexpr\b")

_NESTS = frozenset(
    {
        "namespace_definition",
        "linkage_specification",
        "declaration_list",
        "preproc_ifdef",
        "preproc_if",
        "preproc_else",
        "ERROR",
    }
)


def device_text(source: Source) -> str:
    """The source without its host code."""
    cut: list[tuple[int, int]] = []
    _find_host(source.root, source, cut)
    content, done, pieces = source.bytes, 0, []
    for start, end in sorted(cut):
        if start >= done:
            pieces.append(content[done:start])
            done = end
    text = b"".join([*pieces, content[done:]]).decode()
    text = re.sub(r"[ \t]+$", "", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def _find_host(node: Node, source: Source, cut: list[tuple[int, int]]) -> None:
    for child in node.children:
        if _is_host(child, source.say(child)):
            cut.append((child.start_byte, child.end_byte))
        elif child.type in _NESTS:
            _find_host(child, source, cut)


def _is_host(node: Node, text: str) -> bool:
    """Whether what stands at file scope is of the host alone."""
    kind = node.type
    if kind in ("function_definition", "template_declaration"):
        if _TYPE.match(text):
            return bool(_HOST_TYPES.search(text))
        return launches_below(node) or not _DEVICE.search(text.split("{")[0])
    if kind == "declaration":
        return _is_host_declaration(node, text)
    if kind == "linkage_specification":
        return launches_below(node) and "{" not in text.split("(")[0]
    if kind in ("struct_specifier", "class_specifier"):
        return bool(_HOST_TYPES.search(text))
    if kind in ("expression_statement", "compound_statement"):
        return text != ";"
    return bool(_USING.match(text) or _HOST_MACROS.match(text))


def _is_host_declaration(node: Node, text: str) -> bool:
    """A prototype of a host function, or a variable of the host's types."""
    if _DEVICE.search(text) and not _HOST_TYPES.search(text):
        return False
    is_prototype = any(
        child.type == "function_declarator" for child in node.children_by_field_name("declarator")
    )
    return is_prototype or bool(_HOST_TYPES.search(text))
