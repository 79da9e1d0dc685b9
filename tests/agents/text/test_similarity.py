"""Which sources are the same up to comments and spacing, and how alike others are."""

from __future__ import annotations

import pytest

from kernelwright.agents.text import changed_lines, hash_normalised, similarity, unified_diff
from kernelwright.tests.agents.text.corpus import SOURCES

CPP = SOURCES["cpp"]
CUDA = SOURCES["cuda"]
TRITON = SOURCES["triton"]


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("cpp", CPP, CPP.replace("  for", "\t// each\n      for").replace("; ++", ";/* next */++")),
        ("cpp", CPP, CPP.replace("\n", "\r\n")),
        ("cuda", CUDA, CUDA.replace("block = [256]", "block   = [ 256 ] # b")),
        ("cuda", CUDA, CUDA.replace("grid =", "# of blocks\ngrid =")),
        ("triton", TRITON, TRITON.replace("Doubles in", "Twice, in")),
        ("triton", TRITON, TRITON.replace("    at =", "    # where\n\n    at =")),
        (
            "python",
            SOURCES["python_plain"],
            SOURCES["python_plain"].replace("Gives twice", "Returns twice"),
        ),
        ("python", SOURCES["python"], SOURCES["python_plain"]),
        ("python", "f(a,\n  b)\n", "f(a, b)  # both\n"),
    ],
)
def test_comments_and_spacing_do_not_count(language: str, one: str, other: str) -> None:
    assert hash_normalised(one, language) == hash_normalised(other, language)
    assert similarity(one, other, language) == 1.0


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("cpp", CPP, CPP.replace("2.0f", "3.0f")),
        ("cpp", "#define A 1\nx\n", "#define A 1 x\n"),
        ("cpp", 'f("a  b // c");', 'f("a b // c");'),
        ("cpp", 'f(R"x(a /* " */)x");', 'f(R"x(a /* \' */)x");'),
        ("cuda", CUDA, CUDA.replace("block = [256]", "block = [512]")),
        ("triton", TRITON, TRITON.replace('256)"', '512)"')),
        ("python", "if a:\n    b\nc\n", "if a:\n    b\n    c\n"),
        ("python", "a\nb\n", "a, b\n"),
        ("python", 'f(\n"""a"""\n)\n', 'f(\n"""b"""\n)\n'),
        ("python", 'x = """a"""\n', 'x = """b"""\n'),
        ("python", '"a" + b\n', "'b' + b\n"),
    ],
)
def test_what_a_program_does_counts(language: str, one: str, other: str) -> None:
    assert hash_normalised(one, language) != hash_normalised(other, language)
    assert similarity(one, other, language) < 1.0


def test_likeness_grows_with_what_is_shared() -> None:
    base, small = CUDA, CUDA.replace("2.0f", "3.0f")
    near = similarity(base, small, "cuda")
    far = similarity(base, SOURCES["cuda_four"], "cuda")
    assert 0 < similarity(base, CPP, "cuda") < far < near < 1
    assert similarity(base, small, "cuda") == similarity(small, base, "cuda")
    assert similarity("", "", "cuda") == 1.0
    assert similarity("", base, "cuda") == 0.0
    # The same words in another order.
    assert similarity("a; b; c;", "c; b; a;", "cpp") < 1


def test_a_difference_for_people() -> None:
    new = CPP.replace("2.0f * x[i]", "x[i] + x[i]").replace("#include <cstddef>\n", "")
    shown = unified_diff(CPP, new, old_name="#1", new_name="#2")
    assert shown.startswith("--- #1\n+++ #2\n@@ ")
    assert "\n-#include <cstddef>\n" in shown
    assert "\n+  for (int i = 0; i < m; ++i) y[i] = x[i] + x[i];\n" in shown
    assert changed_lines(CPP, new) == (1, 2)
    assert changed_lines(new, CPP) == (2, 1)


def test_no_difference_is_none() -> None:
    assert unified_diff(CPP, CPP.replace("\n", "\r\n")) == ""
    assert changed_lines(CPP, CPP) == (0, 0)
    assert changed_lines("a\u2028b\n", "a\u2028c\n") == (1, 1)


def test_very_long_sources_are_counted_and_not_aligned() -> None:
    long = "".join(f"{number}\n" for number in range(5000))
    assert "not compared" in unified_diff(long, long + "x\n")
    assert changed_lines(long, long.replace("17\n", "x\n", 1) + "y\n") == (2, 1)
    assert unified_diff(long, long) == ""
