"""A kernel of another problem is told from one that is wrong, before anything is started."""

from __future__ import annotations

import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import CPP, LANGUAGES
from kernelwright.kernelbench.skeleton import skeleton
from kernelwright.workbench.other_problem import ensure_for_problem


def refuse(text: str, language: str, problem: str) -> UsageError:
    with pytest.raises(UsageError) as error:
        ensure_for_problem(text, language, registry.get(problem), "mine")
    return error.value


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_skeleton_of_another_problem_is_refused_with_its_line(language: str) -> None:
    text = skeleton(registry.get("softmax"), LANGUAGES[language])
    error = refuse(text, language, "spmm_csr")
    place, _, words = str(error).partition(": ")
    line = text.splitlines()[int(place.removeprefix("mine:")) - 1]
    assert "softmax" in words if language == CPP.name else "'x'" in words
    assert "softmax(" in line if language == CPP.name else "x" in line
    assert "kernelwright eval softmax mine" in (error.hint or "")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("problem", registry.names())
def test_that_of_the_problem_itself_is_taken(problem: str, language: str) -> None:
    known = registry.get(problem)
    ensure_for_problem(skeleton(known, LANGUAGES[language]), language, known, "mine")


def test_another_precision_is_another_problem() -> None:
    text = skeleton(registry.get("gemm_bf16"), CPP)
    error = refuse(text, CPP.name, "gemm")
    assert "it defines gemm_bf16 and no gemm" in str(error)
    assert "kernelwright eval gemm_bf16 mine" in (error.hint or "")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ('static void softmax(int);\n#define ENTRY gemm\nextern "C" void ENTRY(int);', "cpp"),
        ('void softmax(int);\nextern "C" void gem(int);', "cpp"),
        ("def run(A, B, C, M, N, K, scale):\n    pass\n", "python"),
        ("def run(:", "python"),
        ("no plan", "cuda"),
        ("", "rust"),
    ],
)
def test_what_is_not_beyond_doubt_is_for_the_referee(text: str, language: str) -> None:
    ensure_for_problem(text, language, registry.get("gemm"), "mine")
