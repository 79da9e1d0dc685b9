# SPDX-License-Identifier: Apache-2.0
"""The configurations that a Triton source would try by itself: `@triton.autotune(configs=[…])`.

Read from the source's text alone. A source with one configuration of each list is a candidate like
any other: it is built once and timed as it will run, and what it is depends on no cache.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from ...kernelbench.recipe import Knobs
from ...sandbox.front_matter import MalformedError
from ...sandbox.source_text import python_tree

_CONFIGS = "configs"


class Config(NamedTuple):
    """One configuration."""

    text: str
    """As it is written."""
    values: Knobs
    """Its numbers and words by name; empty where they are not written out."""


class ConfigList(NamedTuple):
    """The configurations of one kernel."""

    kernel: str
    configs: tuple[Config, ...]
    start: int
    """Of the list in the source, with its brackets."""
    end: int


def find_config_lists(source: str) -> list[ConfigList]:
    """Those with two configurations or more that are written out, in the order of the source."""
    try:
        tree = python_tree(source)
    except MalformedError:
        return []
    starts = _line_starts(source)
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        for call in node.decorator_list:
            written = _configs_of(call)
            if written is None or len(written.elts) < 2:
                continue
            configs = tuple(_read(source, each) for each in written.elts)
            start, end = _span(source, starts, written)
            found.append(ConfigList(node.name, configs, start, end))
    return sorted(found, key=lambda each: each.start)


def choose_configs(source: str, lists: Sequence[ConfigList], chosen: Sequence[int]) -> str:
    """The source with one configuration of each list."""
    text = source
    for each, number in sorted(zip(lists, chosen, strict=True), key=lambda pair: -pair[0].start):
        text = f"{text[: each.start]}[{each.configs[number].text}]{text[each.end :]}"
    return text


def _configs_of(decorator: ast.expr) -> ast.List | ast.Tuple | None:
    if not isinstance(decorator, ast.Call) or not _is_named(decorator.func, "autotune"):
        return None
    given = next((k.value for k in decorator.keywords if k.arg == _CONFIGS), None)
    written = given or (decorator.args[0] if decorator.args else None)
    if not isinstance(written, ast.List | ast.Tuple):
        return None
    is_plain = all(isinstance(c, ast.Call) and _is_named(c.func, "Config") for c in written.elts)
    return written if is_plain else None


def _is_named(function: ast.expr, name: str) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr == name
    return isinstance(function, ast.Name) and function.id == name


def _read(source: str, config: ast.expr) -> Config:
    assert isinstance(config, ast.Call)
    text = ast.get_source_segment(source.replace("\r\n", "\n"), config) or ast.unparse(config)
    values: Knobs = {}
    for given in config.args[:1]:
        if isinstance(given, ast.Dict):
            for key, value in zip(given.keys, given.values, strict=True):
                _take(values, key.value if isinstance(key, ast.Constant) else None, value)
    for keyword in config.keywords:
        _take(values, keyword.arg, keyword.value)
    return Config(text, values)


def _take(values: Knobs, name: object, value: ast.expr) -> None:
    if isinstance(name, str) and isinstance(value, ast.Constant):
        found = value.value
        if isinstance(found, int | str) and not isinstance(found, bool):
            values[name] = found
        elif isinstance(found, bool):
            values[name] = int(found)


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.split("\n"):  # as the tree counts them, which knows no other ends
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _span(source: str, starts: Sequence[int], node: ast.expr) -> tuple[int, int]:
    """Offsets in characters; the tree counts bytes of UTF-8 within a line."""

    def offset(line: int, column: int) -> int:
        begin = starts[line - 1]
        before = source[begin : starts[line]].encode()[:column]
        return begin + len(before.decode(errors="ignore"))

    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (
        offset(node.lineno, node.col_offset),
        offset(node.end_lineno, node.end_col_offset),
    )
