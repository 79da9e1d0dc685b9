"""Highlighting and differences: every line is there, escaped, with the right numbers."""

from __future__ import annotations

from html import unescape
from re import findall, sub

from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.traces.view.code import COLOURED, CodeDifference, difference, highlight
from kernelwright.traces.view.render import asset

TEXT = st.text(st.sampled_from("ab <>&\"'/*\n\t#{}"), max_size=120)


def plain(line: str) -> str:
    return unescape(sub(r"</?span[^>]*>", "", str(line)))


@given(TEXT, st.sampled_from(["cpp", "cuda", "triton", "unknown"]))
@settings(max_examples=60, deadline=None)
def test_highlighting_keeps_every_line(source: str, language: str) -> None:
    assert [plain(line) for line in highlight(source, language)] == source.splitlines()


def test_only_what_has_a_colour_is_marked() -> None:
    html, _ = highlight('static float f(int n) { return n * 2 + g("a<b"); }  // why\n}', "cpp")
    marked = findall(r'<span class="(\w+)">([^<]*)</span>', html)
    assert ("kt", "float") in marked
    assert ("c1", "// why") in marked
    assert {name for name, _ in marked} <= COLOURED
    rules = findall(
        r"\.([a-z][a-z0-9]{0,2})(?=[ ,][^{}]*\{ color: var\(--[kscmf]\))", asset("view.css")
    )
    assert set(rules) == COLOURED


def test_a_token_of_several_lines_is_marked_in_each() -> None:
    first, second = highlight("/* one\n two */", "cpp")
    assert first == '<span class="cm">/* one</span>'
    assert second == '<span class="cm"> two */</span>'


@given(TEXT, TEXT)
@settings(max_examples=60, deadline=None)
def test_a_difference_holds_both_sources(old: str, new: str) -> None:
    change = difference(old, new, "cpp")
    lines = [line for block in change.blocks for line in block.lines]
    assert [plain(x.html) for x in lines if x.kind != "add"] == (
        # Unchanged lines are highlighted in the context of the new source; their text is the same.
        old.splitlines()
    )
    assert [plain(x.html) for x in lines if x.kind != "del"] == new.splitlines()
    assert [x.new for x in lines if x.new] == list(range(1, len(new.splitlines()) + 1))
    assert [x.old for x in lines if x.old] == list(range(1, len(old.splitlines()) + 1))
    assert change.added == sum(x.kind == "add" for x in lines)
    assert change.removed == sum(x.kind == "del" for x in lines)


def test_unchanged_runs_are_folded_beside_their_context() -> None:
    old = "\n".join(f"line {i}" for i in range(100))
    change = difference(old, old.replace("line 50", "other"), "cpp")
    shape = [(block.is_folded, len(block.lines)) for block in change.blocks]
    assert shape == [(True, 47), (False, 3), (False, 2), (False, 3), (True, 46)]


def test_very_long_sources_are_not_compared() -> None:
    assert difference("a\n" * 5000, "b", "cpp") == CodeDifference(
        (), 0, 0, "more than 4000 lines are not compared"
    )
    long = "int x;\n" * 60_000
    assert len(highlight(long, "cpp")) == 60_000
