"""The check of Python candidates: what is taken, what is refused and where, and nothing is run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import PYTHON
from kernelwright.kernelbench.skeleton import signature
from kernelwright.sandbox.builders.model import BuildFailed
from kernelwright.sandbox.builders.python import Module, check
from kernelwright.sandbox.source_text import SOURCE_BYTES

SPMM = registry.get("spmm_csr")
RUN = "def run(indptr, indices, values, B, C):\n    pass\n"
MODEL = "class ModelNew:\n    pass\n"


def assert_taken(source: str) -> Module:
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
    found = assert_taken(source)
    assert found.entry == entry
    assert found.built.artefact == source.encode()


@pytest.mark.parametrize("problem", registry.names())
def test_the_printed_signature_is_taken(problem: str) -> None:
    found = check(signature(registry.get(problem), PYTHON), registry.get(problem))
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
        (
            f'"""\n---\nentry = run\n---\n"""\n{RUN}',
            "error at line 3:9: the front matter is not TOML",
        ),
        (f'"""\n---\nentry = "go"\n---\n"""\n{RUN}', "the front matter's entry is 'go'"),
        (f'"""\n---\nentry = "ModelNew"\n---\n"""\n{RUN}', "defines no entry point"),
        ("# coding: latin-1\n" + RUN, "declares the encoding iso-8859-1"),
        ("# coding: nonsense\n" + RUN, "unknown encoding"),
        (RUN + "x = '\0'\n", "error at line 3:6: a null byte"),
        (RUN + "x = '\ud800'\n", "error at line 3:6: a character that UTF-8 cannot hold"),
        (RUN + "#" * SOURCE_BYTES, "bytes, at most"),
        ("x = " + "(" * 500 + ")" * 500 + "\n" + RUN, "too many nested parentheses"),
    ],
    ids=lambda text: text[:20].encode("unicode_escape").decode(),
)
def test_what_is_refused(source: str, words: str) -> None:
    reason = refused(source)
    assert words in reason
    assert len(reason.splitlines()) == 1


def test_of_several_outputs_run_takes_all_or_none() -> None:
    more = SPMM.outputs[0].model_copy(update={"name": "D"})
    two = replace(SPMM, outputs=(*SPMM.outputs, more))
    found = check("def run(values, C):\n    pass\n", two)
    assert isinstance(found, BuildFailed)
    assert "error at line 1:1: run takes some outputs and not D" in found.reason
    for parameters in ("values", "values, C, D", "values, **rest"):
        assert isinstance(check(f"def run({parameters}):\n    pass\n", two), Module)


@pytest.mark.parametrize(
    "bomb", ["-" * 100_000 + "1", "a" + ".b" * 100_000, "1" + " + 1" * 50_000, "f" + "()" * 90_000]
)
def test_a_bomb_gives_a_result(bomb: str) -> None:
    """Which one depends on how deep this Python can go; a reason where it cannot."""
    found = check(f"x = {bomb}\n{RUN}", SPMM)
    assert isinstance(found, Module) or found.reason.startswith(("the source cannot", "error at"))


def test_nothing_is_executed() -> None:
    assert_taken(f"import nothing_of_this_name\nraise SystemExit('it ran')\n{RUN}")


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_gives_a_result(text: str) -> None:
    found = check(text, SPMM)
    assert isinstance(found, Module | BuildFailed)


@settings(deadline=None)
@given(st.text(alphabet="()[]{}:=\n\t \"'\\#-abc", max_size=200))
def test_any_punctuation_gives_a_result(text: str) -> None:
    assert isinstance(check(text, SPMM), Module | BuildFailed)
