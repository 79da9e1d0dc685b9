"""The check of Python candidates: what is taken, what is refused and where, and nothing is run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.signature import signature
from kernelwright.sandbox.build.model import BuildFailed
from kernelwright.sandbox.build.python import SOURCE_BYTES, Module, check

SPMM = registry.get("spmm_csr")
RUN = "def run(indptr, indices, values, B, C):\n    pass\n"
MODEL = "class ModelNew:\n    pass\n"


def taken(source: str) -> Module:
    found = check(source, SPMM)
    assert isinstance(found, Module), found
    return found


def refused(source: str) -> str:
    found = check(source, SPMM)
    assert isinstance(found, BuildFailed), found
    return found.reason


@pytest.mark.parametrize(
    ("source", "entry"),
    [
        (RUN, "run"),
        (MODEL, "ModelNew"),
        (RUN + MODEL, "ModelNew"),
        (f'"""\n---\nentry = "run"\n---\n"""\n{RUN}{MODEL}', "run"),
        ("def run(**everything):\n    pass\n", "run"),
        ("def run(values, *, C, scale=2):\n    pass\n", "run"),
        ("try:\n    from numba import njit as run\nexcept ImportError:\n    run = None\n", "run"),
        ("if True:\n    run = print\n", "run"),
        ("\ufeff" + RUN, "run"),
        ("# -*- coding: utf-8 -*-\n# é\n" + RUN, "run"),
    ],
)
def test_what_is_taken(source: str, entry: str) -> None:
    found = taken(source)
    assert found.entry == entry
    assert found.built.artefact == source.encode()


@pytest.mark.parametrize("problem", registry.names())
def test_the_printed_signature_is_taken(problem: str) -> None:
    found = check(signature(registry.get(problem), "python"), registry.get(problem))
    assert isinstance(found, Module), found
    assert found.entry == "ModelNew"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def run(values, C:\n    pass\n", "error at line 1"),
        ("x = 1\n  y = 2\n", "error at line 2:"),
        ("x = 1\n", "defines no entry point; it must define `def run(M, N, K, nnz, indptr,"),
        ("def other(C):\n    def run(C):\n        pass\n", "defines no entry point"),
        ("def run(C, weights):\n    pass\n", "error at line 1:12: 'weights' is not a parameter"),
        (
            "x = 1\ndef run(C, /):\n    pass\n",
            "error at line 2:9: parameter 'C' is positional-only",
        ),
        ("async def run(C):\n    pass\n", "error at line 1:1: run cannot be asynchronous"),
        ("def ModelNew():\n    pass\n", "error at line 1:1: ModelNew must be a class"),
        (f'"""\n---\nentry = run\n---\n"""\n{RUN}', "front matter that starts at line 3"),
        (f'"""\n---\nentry = "go"\n---\n"""\n{RUN}', "the front matter's entry is 'go'"),
        (f'"""\n---\nentry = "ModelNew"\n---\n"""\n{RUN}', "defines no entry point"),
        ("# coding: latin-1\n" + RUN, "declares the encoding iso-8859-1"),
        ("# coding: nonsense\n" + RUN, "unknown encoding"),
        (RUN + "x = '\0'\n", "error at line 3: a null byte"),
        (RUN + "x = '\ud800'\n", "error at line 3: a character that UTF-8 cannot hold"),
        (RUN + "#" * SOURCE_BYTES, "bytes, at most"),
        ("x = " + "(" * 500 + ")" * 500 + "\n" + RUN, "too many nested parentheses"),
        ("x = " + "-" * 100_000 + "1\n" + RUN, "cannot be parsed"),
        ("x = a" + ".b" * 100_000 + "\n" + RUN, "cannot be parsed"),
        ("x = 1" + " + 1" * 50_000 + "\n" + RUN, "cannot be parsed"),
    ],
    ids=lambda text: text[:20].encode("unicode_escape").decode(),
)
def test_what_is_refused(source: str, words: str) -> None:
    reason = refused(source)
    assert words in reason
    assert len(reason.splitlines()) == 1


def test_an_operator_with_two_outputs_takes_all_or_none() -> None:
    two = [p for p in registry.problems() if len(p.outputs) > 1]
    for problem in two:
        found = check(f"def run({problem.outputs[0].name}):\n    pass\n", problem)
        assert isinstance(found, BuildFailed)
        assert f"not {problem.outputs[1].name}" in found.reason


def test_nothing_is_executed() -> None:
    taken(f"import nothing_of_this_name\nraise SystemExit('it ran')\n{RUN}")


@given(st.text(max_size=300))
def test_any_text_gives_a_result(text: str) -> None:
    found = check(text, SPMM)
    assert isinstance(found, Module | BuildFailed)


@given(st.text(alphabet="()[]{}:=\n\t \"'\\#-abc", max_size=200))
def test_any_punctuation_gives_a_result(text: str) -> None:
    assert isinstance(check(text, SPMM), Module | BuildFailed)
