"""`problems` and `doctor`: what there is, and what this machine can do."""

from __future__ import annotations

import pytest

from kernelwright.kernelbench import registry

from .conftest import Command


def test_problems_lists_every_problem(kw_here: Command) -> None:
    assert kw_here("problems", "--names").out.split() == list(registry.names())
    table = kw_here("problems").out
    documents = kw_here("problems", "--json").document["problems"]
    assert [document["name"] for document in documents] == list(registry.names())
    for document in documents:
        assert document["name"] in table
        assert {t["name"] for t in document["inputs"]}
        assert all(recipe["combinations"] > 0 for recipe in document["recipes"])
        assert document["default_workload"] in [w["name"] for w in document["workloads"]]


def test_one_problem(kw_here: Command) -> None:
    document = kw_here("problems", "spmm_csr", "--json").document["problem"]
    assert document["c_parameters"][:4] == ["int M", "int N", "int K", "int nnz"]
    text = kw_here("problems", "spmm_csr").out
    assert "indptr" in text
    assert f"*{document['default_workload']}" in text


@pytest.mark.parametrize("language", ["cpp", "cuda", "triton", "python"])
def test_a_signature(kw_here: Command, language: str) -> None:
    text = kw_here("problems", "spmm_csr", "--signature", language).out
    assert "spmm_csr" in text
    document = kw_here("problems", "spmm_csr", "--signature", language, "--json").document
    assert document["skeleton"] == text
    assert document["signature"].strip() != text.strip(), "the entry point alone"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["problems", "spmm_crs"], ["spmm_crs", "did you mean spmm_csr"]),
        (["problems", "spmm_csr", "--signature", "fortran"], ["fortran", "cpp"]),
        (["run", "spmm_crs", "--max-evals", "1"], ["did you mean spmm_csr"]),
        (["run", "spmm_csr", "--workload", "tinny"], ["did you mean tiny"]),
        (["run", "spmm_csr", "--matrix", "gone.mtx"], ["gone.mtx"]),
        (["run", "spmm_csr", "--target", "sm_91"], ["sm_91", "did you mean sm_90"]),
        (["run", "spmm_csr", "--language", "cuda"], ["cuda", "language cpp"]),
        (
            ["run", "spmm_csr", "--language", "python"],
            ["no recipe for this problem in this language", "--from FILE"],
        ),
        (["run", "spmm_csr", "--model", "recipes"], ["recipes", "did you mean recipe"]),
        (["run", "spmm_csr", "--workflow", "evolved"], ["evolved", "did you mean evolve"]),
        (["run", "--resume", "20200101"], ["20200101"]),
        (["doctor", "--require", "gup"], ["gup", "gpu"]),
    ],
)
def test_unknown_names(kw_here: Command, arguments: list[str], words: list[str]) -> None:
    done = kw_here(*arguments)
    assert done.code == 2, done.err
    assert done.out == ""
    for word in words:
        assert word in done.err


def test_doctor_says_what_it_tried(kw: Command) -> None:
    done = kw("doctor", "--json")
    document = done.document
    findings = document["findings"]
    topics = {finding["topic"] for finding in findings}
    assert topics == {
        "python",
        "packages",
        "compiler",
        "sandbox",
        "cpu",
        "peaks",
        "gpu",
        "ncu",
        "sanitizer",
        "store",
        "browser",
    }
    assert {finding["level"] for finding in findings} <= {"PASS", "WARN", "FAIL"}
    failed = any(finding["level"] == "FAIL" for finding in findings)
    assert document["ok"] is not failed
    assert done.code == (3 if failed else 0)


def test_doctor_fails_for_what_is_required_and_missing(kw: Command) -> None:
    # Without a PATH there is no compiler anywhere.
    done = kw("doctor", "--require", "compiler", env={"PATH": "/nowhere"})
    assert done.code == 3
    assert "FAIL  compiler" in done.out
    assert "fix: " in done.out
    assert "missing: " in done.err
