"""Front matter: found where it may stand, with the place of everything in it."""

from __future__ import annotations

import ast
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.sandbox.front_matter import (
    MATTER_CHARACTERS,
    FilePlace,
    FrontMatter,
    MalformedError,
    Path,
    read_comment,
    read_docstring,
)
from kernelwright.sandbox.toml_places import spots

TEXT = """\
a = 1 # [not.a.table]
"b c".d = { e = [ 1,  # one
   [2, "three"] ], f = 'g' }
h.i.j = '''
lines'''
[k]
l = "x\\ty"
[[m]]
n = 1979-05-27 07:32:00
[[m]]
n = -0.5e3
[m.o]
p = \"\"\"\\
   folded\"\"\"
[[m.q]]
[[m.q]]
r = true
"""


def leaves(value: Any, path: Path = ()) -> dict[Path, Any]:
    """Everything in a document that is no table or list, by path."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found: dict[Path, Any] = {}
    for key, inner in items:
        is_inner = isinstance(inner, dict | list)
        found |= leaves(inner, (*path, key)) if is_inner else {(*path, key): inner}
    return found


def check_spots(text: str) -> None:
    """Where a value is said to stand, one can read it."""
    found = spots(text)
    for path, value in leaves(tomllib.loads(text)).items():
        rest = text[found.values[path] :]
        end = len(rest) if isinstance(value, str) and "\n" in rest[: len(str(value)) + 6] else None
        for stop in range(1, len(rest) + 1) if end is None else range(end, 0, -1):
            try:
                if tomllib.loads(f"x = {rest[:stop]}")["x"] == value:
                    break
            except tomllib.TOMLDecodeError:
                continue
        else:
            raise AssertionError((path, rest))
        if isinstance(value, str) and path in found.contents:
            assert text[found.contents[path] :].startswith(value)
    assert set(found.keys) >= {p for p in leaves(tomllib.loads(text)) if isinstance(p[-1], str)}


def test_every_place_of_a_document() -> None:
    check_spots(TEXT)
    found = spots(TEXT)
    assert TEXT[found.values["m", 1, "n"] :].startswith("-0.5e3")
    assert TEXT[found.keys["m", 1, "q", 1, "r"] :].startswith("r = true")
    assert TEXT[found.values["m", 1] :].startswith("[[m]]\nn = -0.5e3")
    assert TEXT[found.contents["b c", "d", "e", 1, 1] :].startswith("three")
    assert ("k", "l") not in found.contents


KEYS = st.sampled_from(("a", "b-c", '"d e"', "'f.g'", "h.i", 'j . "k"'))
SCALARS = st.sampled_from(
    (
        "1",
        "-2.5",
        "true",
        '"text"',
        "'raw'",
        '"es\\"c"',
        '"""\nmany\n"lines" """',
        "''' ' '''",
        "1979-05-27",
        "0x1F",
        "'#'",
        '"]"',
        "inf",
    )
)
GAPS = st.sampled_from(("", " ", "\n", " # note ] }\n"))


def _lists(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    items = st.lists(st.tuples(GAPS, inner, GAPS).map("".join), max_size=3)
    tables = st.lists(inner, max_size=3).map(
        lambda values: "{" + ", ".join(f"k{at} = {v}" for at, v in enumerate(values)) + "}"
    )
    return items.map(lambda parts: "[" + ",".join(parts) + "]") | tables


LINES = st.tuples(KEYS, st.just(" = "), st.recursive(SCALARS, _lists, max_leaves=5)).map("".join)
TABLES = st.sampled_from(("[t]", "[[u]]", "[[u.v]]", "[u.w]", '[x."y z"]', "[[u]]", "# nothing"))


@settings(max_examples=200, deadline=None)
@given(lines=st.lists(LINES | TABLES, max_size=6))
def test_places_of_any_document(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    check_spots(text)


def test_what_may_stand_before_the_comment() -> None:
    matter = read_comment("\ufeff// one\n\n/* two */ /*--- three ---*/\n/*---\na = 1\n---*/ int x;")
    assert matter.facts == {"a": 1}
    assert matter.place(("a",)) == FilePlace(5, 5)
    assert matter.place(("a",), of_key=True) == FilePlace(5, 1)
    assert matter.place(("a", "b", 3)) == FilePlace(5, 5)
    assert read_comment("// nothing\nint x;") == FrontMatter()


@pytest.mark.parametrize(
    ("source", "place", "words"),
    [
        ("int x;\n/*---\n---*/", FilePlace(2, 1), "must stand before any code"),
        ("/*---\na = 1\n", FilePlace(1, 1), "and there is none"),
        ("/*---\na = 1\n*/ ---*/", FilePlace(3, 1), "the comment ends here without it"),
        ("/*---\na = 1 ---*/", FilePlace(2, 10), "the comment ends here without it"),
        ("/*---\na = 1\nb = \n---*/", FilePlace(3, 5), "not TOML: Invalid value"),
        ("/*---\na = 1\na = 2\n---*/", FilePlace(3, 6), "not TOML: Cannot overwrite a value"),
        ("/*---\na = [1\n---*/", FilePlace(2, 7), "not TOML: Unclosed array"),
        ("/*---\na = " + "9" * 5000 + "\n---*/", FilePlace(2, 1), "not TOML"),
        ("/*---\na = " + "[" * 9000 + "\n---*/", FilePlace(2, 1), "nested too deeply"),
        ("/*---\n" + "#" * MATTER_CHARACTERS + "\n---*/", FilePlace(2, 1), "at most"),
    ],
)
def test_what_is_malformed(source: str, place: FilePlace, words: str) -> None:
    with pytest.raises(MalformedError, match=words) as error:
        read_comment(source)
    assert error.value.place == place


@pytest.mark.parametrize("quotes", ['"""', "'''", 'r"""'])
def test_the_docstring_of_a_module(quotes: str) -> None:
    source = f"# note\n{quotes}\n---\nab = 1\n---\nWords.\n{quotes[-3:]}\nx = 1\n"
    matter = read_docstring(ast.parse(source), source)
    assert matter.facts == {"ab": 1}
    assert matter.place(("ab",)) == FilePlace(4, 6)


@pytest.mark.parametrize(
    "source",
    ["", "x = 1\n", '"""Words.\n---\na = 1\n---\n"""\n', "'---'\n", "f'''\n---\n---\n'''\n"],
)
def test_modules_without_front_matter(source: str) -> None:
    assert read_docstring(ast.parse(source), source).facts == {}
