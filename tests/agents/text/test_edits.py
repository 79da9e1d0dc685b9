"""S12: what edits may not touch, and that either all are made or none."""

from __future__ import annotations

import pytest

from kernelwright.agents.text import FoundSource, ReplyOutcome, Unusable
from kernelwright.agents.text.edits import MOST_EDITS, Edit, apply
from kernelwright.tests.agents.text.corpus import SOURCES

PROTECTED = {
    "cuda": ("cuda", "/*---", "---*/"),
    "cpp_head": ("cpp", "/*---", "---*/"),
    "triton": ("triton", "---", "---"),
    "fixed": ("cpp", "// kernelwright: fixed", "// kernelwright: end fixed"),
}
"""Source → its language, and the first and the last line that edits may not touch."""


def without(line: str) -> Edit:
    return Edit(line + "\n", "", 1)


@pytest.mark.parametrize("name", PROTECTED)
def test_s12_no_edit_touches_a_protected_line(name: str) -> None:
    language, first, last = PROTECTED[name]
    lines = SOURCES[name].split("\n")[:-1]
    start = lines.index(first)
    end = lines.index(last, start + 1)
    refused, made = [], []
    for number, line in enumerate(lines):
        if lines.count(line) > 1 or not line.strip():
            continue
        result = apply(SOURCES[name], (without(line),), language)
        if isinstance(result, FoundSource):
            made.append(number)
            continue
        assert result.outcome == ReplyOutcome.EDIT_FAILED
        assert "the front matter" in result.reason or "a fixed region" in result.reason
        refused.append(number)
    assert made
    assert set(made).isdisjoint(range(start, end + 1))
    assert {n for n in range(start, end + 1) if lines.count(lines[n]) == 1} <= set(refused)


def test_s12_code_cannot_be_moved_before_the_front_matter() -> None:
    base = "// a kernel\n" + SOURCES["cuda"]
    result = apply(base, (Edit("// a kernel\n", "int x;\n", 1),), "cuda")
    assert isinstance(result, Unusable)
    assert "front matter" in result.reason


def test_one_bad_edit_spoils_all() -> None:
    good = Edit("#include <cstddef>\n", "#include <cmath>\n", 1)
    assert isinstance(apply(SOURCES["cpp"], (good,), "cpp"), FoundSource)
    for bad in (without("not there"), good, without("")):
        result = apply(SOURCES["cpp"], (good, bad), "cpp")
        assert isinstance(result, Unusable)
        assert result.outcome == ReplyOutcome.EDIT_FAILED


def test_an_edit_may_stand_at_either_end() -> None:
    base = "def run(x):\n    pass\n"
    edits = (
        Edit("def run(x):\n", "import torch\ndef run(x, y):\n", 1),
        Edit("    pass\n", "    y.copy_(x)\n    return\n", 5),
    )
    result = apply(base, edits, "python")
    assert isinstance(result, FoundSource)
    assert result.source == "import torch\ndef run(x, y):\n    y.copy_(x)\n    return\n"


def test_too_many_edits_are_refused() -> None:
    lines = [f"x{number} = {number}" for number in range(MOST_EDITS + 1)]
    edits = tuple(Edit(line + "\n", line + ".0\n", 1) for line in lines)
    base = "\n".join(lines) + "\n"
    assert isinstance(apply(base, edits, "python"), Unusable)
    assert isinstance(apply(base, edits[1:], "python"), FoundSource)
    assert isinstance(apply(base, (), "python"), Unusable)
