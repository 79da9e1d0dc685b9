"""Fences line by line, and thoughts before an answer."""

from __future__ import annotations

import pytest

from kernelwright.agents.text.code_blocks import split
from kernelwright.agents.text.thinking import without_thinking


def test_blocks_and_what_is_around_them() -> None:
    text = "a\n```cuda x=1\nb\n\n```\nc\n~~~\n```\n~~~\nd"
    found = split(text)
    assert [(b.info, b.text, b.line) for b in found.blocks] == [
        ("cuda x=1", "b\n\n", 2),
        ("", "```\n", 7),
    ]
    assert found.outside == "a\nc\nd"
    assert found.unclosed is None


def test_an_open_block_is_told() -> None:
    found = split("```\na\n```\n````json\n{\n```")
    assert found.unclosed
    assert (found.unclosed.label, found.unclosed.line, found.unclosed.text) == (
        "json",
        4,
        "{\n```\n",
    )


def test_only_line_feeds_end_lines() -> None:
    found = split("x\x0b```\u2028```\x85```\n")
    assert (found.blocks, found.unclosed) == ((), None)


def test_the_indentation_of_the_fence_is_taken_away() -> None:
    (block,) = split("  ```py\n  a\n    b\n c\n\n  ```").blocks
    assert block.text == "a\n  b\nc\n\n"


@pytest.mark.parametrize(
    ("info", "label"),
    [
        ("", ""),
        ("cuda", "cuda"),
        ("CUDA C++", "cuda"),
        ("{.cuda}", "cuda"),
        ("cuda:kernel.cu", "cuda"),
        ("src/kernel.cu", "cu"),
        ("c++", "c++"),
        ("json,x", "json"),
        ("{.python .numberLines}", "python"),
        ("cpp{1,3}", "cpp"),
        (":", ""),
    ],
)
def test_the_label_of_a_block(info: str, label: str) -> None:
    (block,) = split(f"```{info}\n```").blocks
    assert block.label == label


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("answer", "answer"),
        ("<think>a</think>answer", "answer"),
        ("\n<THINK>a</Think>\n<reasoning>b</reasoning>answer", "answer"),
        ("a\n</think>\nanswer", "\nanswer"),
        ("a</think>\n<think>b</think>answer", "answer"),
        ("it writes `</think>` at its end", "it writes `</think>` at its end"),
        ("[THINK]a[/THINK]answer", "answer"),
    ],
)
def test_thoughts_are_left_out(text: str, left: str) -> None:
    assert without_thinking(text).text == left


def test_an_unclosed_thought_leaves_nothing() -> None:
    assert without_thinking("<think>a</thinking>") == ("", True, True)
