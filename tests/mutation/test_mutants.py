"""Mutants are what their operators say, and the referee refuses what is wrong with them."""

from __future__ import annotations

import pickle
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import CPP, TRITON, Language
from kernelwright.kernelbench.skeleton import skeleton
from kernelwright.tests.mutation.explained import (
    KINDS,
    fits,
    is_right,
    rows,
    unmutated_because,
)
from kernelwright.tests.mutation.judging import (
    REFUSED,
    SAME,
    SURVIVED,
    TWICE,
    Bench,
    Finding,
    load_findings,
)
from kernelwright.tests.mutation.mutants import Mutant, make_mutants, mutate
from kernelwright.tests.mutation.operators import OPERATORS
from kernelwright.tests.mutation.originals import Original, originals
from kernelwright.tests.mutation.tokens import Code

FIELDS = {"operators", "problems", "originals", "lines", "line", "becomes", "bounded", "why"}
BY_NAME = {operator.name: operator for operator in OPERATORS}
SUM = """\
// for (int j = 0; j < N; ++j) is no loop
extern "C" void softmax(int M, int N, const float* x, float* y) {
    for (int i = 0; i < M; ++i) {
        const float* row = x + (long)i * N;
        double total = 0.0;
        for (int j = 0; j < N; ++j) total += row[j] * 0.5;
        if (total > 1) y[(long)i * N + 1] = total;
        __syncthreads();
    }
}
"""
BLOCKS = """\
def softmax_kernel(M, N, x_ptr, y_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * N
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        j = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row + j, mask=j < N, other=0.0)
"""


def apply(name: str, source: str, language: Language = CPP) -> set[str]:
    """The lines that an operator makes of a source, in place of those that it changed."""
    code = Code(source, language == TRITON)
    rng = random.Random(1)
    made = [code.apply(edit) for edit in BY_NAME[name].find(code, rng, ("M", "N"))]
    before = source.split("\n")
    return {line.strip() for text in made for line in text.split("\n") if line not in before}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("bound less", "for (int i = 0; i < M - 1; ++i) {"),
        ("bound more", "for (int j = 0; j < N + 1; ++j) total += row[j] * 0.5;"),
        ("comparison", "if (total >= 1) y[(long)i * N + 1] = total;"),
        ("begins late", "for (int i = 0 + 1; i < M; ++i) {"),
        ("step", "for (int i = 0; i < M; i += 2) {"),
        ("statement", "for (int j = 0; j < N; ++j) ;"),
        ("statement", "if (total > 1) ;"),
        ("term", "const float* row = x + (long)i;"),
        ("term", "for (int j = 0; j < N; ++j) total += row[j];"),
        ("arithmetic", "for (int j = 0; j < N; ++j) total -= row[j] * 0.5;"),
        ("lost sum", "for (int j = 0; j < N; ++j) total = row[j] * 0.5;"),
        ("stale accumulator", "static thread_local double total = 0.0;"),
        ("missing zero", "double total;"),
        ("synchronisation", ";"),
        ("operands", "if (total > 1) y[(long)N * i + 1] = total;"),
        ("stride", "for (int j = 0; j < M; ++j) total += row[j] * 0.5;"),
        ("16-bit integer", "for (short j = 0; j < N; ++j) total += row[j] * 0.5;"),
        ("32-bit integer", "const float* row = x + (int)i * N;"),
        ("float16", "_Float16 total = 0.0;"),
        ("bfloat16", "double total = cut_to_16_bits(0.0);"),
        ("float for double", "float total = 0.0;"),
    ],
)
def test_an_operator_on_cpp(name: str, line: str) -> None:
    assert line in apply(name, SUM)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("bound less", "for start in range(0, N - 1, BLOCK):"),
        ("step", "for start in range(0, N, BLOCK + 1):"),
        ("mask", "total += tl.load(x_ptr + row + j, mask=None, other=0.0)"),
        ("missing zero", "total = tl.full([BLOCK], 1.0, tl.float32)"),
        ("lost sum", "total = tl.load(x_ptr + row + j, mask=j < N, other=0.0)"),
        ("16-bit integer", "row = tl.program_id(0).to(tl.int16) * N"),
        ("statement", "pass"),
    ],
)
def test_an_operator_on_triton(name: str, line: str) -> None:
    assert line in apply(name, BLOCKS, TRITON)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("tail at a residue", r"j < \(N\) - \(\(N\) % (\d+) == (\d+)\);"),
        ("tail beyond a size", r"j < \(N\) - \(\(N\) > \d+\);"),
        ("stops at a size", r"j < \(\(N\) > (\d+) \? \(N\) - \(\(N\) - \1\) : \(N\)\);"),
        ("skipped iterations", r"\+\+j\) if \(\(j\) % \d+ != \d+\) total"),
        ("axis at a residue", r"\{ if \(N > 1 && N % \d+ == \d+\) --N;"),
        ("axis at a residue beyond a size", r"\{ if \(N > \d+ && N % 8 == \d\) --N;"),
        ("constant", r"row\[j\] \* 0\.(505|4995)"),
        ("condition", r"if \((true|false)\) y"),
    ],
)
def test_an_operator_that_draws(name: str, pattern: str) -> None:
    assert any(re.search(pattern, line) for line in apply(name, SUM))


def test_comments_are_left_alone() -> None:
    made = {line for name in BY_NAME for line in apply(name, SUM) if line.startswith("//")}
    assert made == set()


@pytest.fixture(scope="module")
def cpp_mutants() -> dict[str, list[Mutant]]:
    """Of a few sources that have a place for every operator between them."""
    names = ("skeleton", "online", "softmax_streaming_stores")
    found = [o for o in originals(CPP, 0) if o.problem == "softmax" and o.name in names]
    return make_mutants(found, 0)


def test_every_operator_finds_something(cpp_mutants: dict[str, list[Mutant]]) -> None:
    made = {mutant.operator for mutants in cpp_mutants.values() for mutant in mutants}
    assert made == {operator.name for operator in OPERATORS if CPP in operator.languages}


def test_a_beginning_holds_every_operator(cpp_mutants: dict[str, list[Mutant]]) -> None:
    for mutants in cpp_mutants.values():
        first = mutants[: len(OPERATORS) - 4]
        assert len({mutant.operator for mutant in first}) == len(first)


def test_mutants_differ_from_their_originals_and_each_other(
    cpp_mutants: dict[str, list[Mutant]],
) -> None:
    for mutants in cpp_mutants.values():
        assert len({(m.id, m.operator) for m in mutants}) == len(mutants)
        assert all(m.source != m.original.source and m.before != m.after for m in mutants)
        assert not any(unmutated_because(m.before) for m in mutants)


def test_a_seed_says_which_mutants() -> None:
    right = Original("skeleton", "gemm", CPP, skeleton(registry.get("gemm"), CPP))
    operator = BY_NAME["tail at a residue"]
    one, again, other = (mutate(operator, right, seed) for seed in (0, 0, 1))
    assert one == again != other


def test_arguments_name_operators_that_there_are() -> None:
    for kind in KINDS:
        for row in rows(kind):
            assert set(row.get("operators", [])) <= set(BY_NAME)
            assert set(row.get("problems", [])) <= set(registry.names())
            assert set(row) <= FIELDS, row["why"]
            # Lines are those of a kernel that is named, or of all that have one beginning.
            assert "lines" not in row or row["originals"].startswith("^") or "problems" in row
            assert row["why"]
            assert row.get("line") or row.get("becomes")


@pytest.mark.parametrize(
    ("row", "is_meant"),
    [
        ({"line": "sum"}, True),
        ({"line": "^sum"}, False),
        ({"becomes": "sum$"}, True),
        ({"line": "sum", "becomes": r"\+"}, False),
        ({"line": "sum", "operators": ["term"]}, True),
        ({"line": "sum", "operators": ["step", "stride"]}, False),
        ({"line": "sum", "problems": ["gemm"]}, False),
        ({"line": "sum", "originals": "^row-wise"}, True),
        ({"line": "sum", "originals": "^wise"}, False),
        ({"line": "sum", "lines": [7, 8]}, True),
        ({"line": "sum", "lines": [6]}, False),
    ],
)
def test_an_argument_speaks_of_nothing_but_what_it_names(
    row: dict[str, Any], is_meant: bool
) -> None:
    right = Original("row-wise unroll=4", "softmax", CPP, "")
    mutant = Mutant(right, "term", 8, "total = sum + more", "total = sum", "")
    made = {"id": "", "language": "cpp", "original": right.name, "outcome": SURVIVED}
    finding = Finding(
        **made, problem="softmax", operator="term", line=8, before=mutant.before, after=mutant.after
    )
    assert fits(row, mutant) is fits(row, finding) is is_meant


@pytest.mark.parametrize(
    ("problem", "operator", "after", "is_right_there"),
    [
        ("gat_fused", "tail at a residue", "h < (c.H) - ((c.H) % 32 == 14);", True),
        ("gat_fused", "tail at a residue", "h < (H) - ((H) % 32 == 8);", False),
        ("gat_fused", "tail at a residue", "k < (K) - ((K) % 32 == 14);", False),
        ("gat_fused", "tail beyond a size", "h < (H) - ((H) > 100);", True),
        ("gat_fused", "tail beyond a size", "h < (own) - ((own) > 100);", False),
        ("gat_fused", "axis at a residue", "{ if (H > 1 && H % 4 == 1) --H;", True),
        ("gat_fused", "axis at a residue", "{ if (H > 1 && H % 4 == 3) --H;", False),
        ("bsr_sdd", "stops at a size", "d < ((D) > 4096 ? (D) - ((D) - 4096) : (D));", True),
        ("bsr_sdd", "stops at a size", "d < ((D) > 1000 ? (D) - ((D) - 1000) : (D));", False),
        ("hadamard_transform", "tail at a residue", "n < (N) - ((N) % 16 == 4);", False),
        ("hadamard_transform", "tail at a residue", "n < (N) - ((N) % 16 == 6);", True),
    ],
)
def test_what_goes_wrong_at_no_declared_length_is_right(
    problem: str, operator: str, after: str, is_right_there: bool
) -> None:
    made = Mutant(Original("", problem, CPP, ""), operator, 1, "", after, "")
    assert is_right(made) is is_right_there


def test_a_killed_run_is_read_up_to_where_it_was(tmp_path: Path) -> None:
    file = tmp_path / "softmax-cpp.jsonl"
    assert load_findings(file) == []
    file.write_text(
        '{"id": "a", "problem": "softmax", "language": "cpp", "original": "skeleton", '
        '"operator": "term", "line": 1, "before": "a + b", "after": "a", '
        '"outcome": "refused"}\n{"id": "b", "prob'
    )
    assert [finding.id for finding in load_findings(file)] == ["a"]


@pytest.fixture(scope="module")
def bench(shared_cache: Path) -> Iterator[Bench]:
    opened = Bench("softmax", "cpp", shared_cache)
    yield opened
    opened.close()


def _judge(bench: Bench, find: str, put: str, operator: str = "term") -> Finding:
    right = Original("skeleton", "softmax", CPP, skeleton(registry.get("softmax"), CPP))
    assert right.source.count(find) == 1
    wrong = right.source.replace(find, put)
    # As it comes to a process that judges.
    mutant = pickle.loads(pickle.dumps(Mutant(right, operator, 1, find, put, wrong)))
    return bench.judge(mutant)


@pytest.mark.slow
def test_what_becomes_of_mutants(bench: Bench) -> None:
    sum_ = "for (int j = 0; j < N; ++j) total +="
    refused = _judge(bench, sum_, "for (int j = 0; j < N - (N % 16 == 5); ++j) total +=")
    assert refused.outcome == REFUSED
    assert refused.check.startswith("correct on")
    assert _judge(bench, sum_, "for (int j = 0;  j < N; j++) total +=").outcome == SAME
    again = "for (int j = 0; j < N - (5 == N % 16); ++j) total +="
    assert _judge(bench, sum_, again).outcome == TWICE
    assert not _judge(bench, sum_, "for (int j = 0; j < L; ++j) total +=").is_judged
    survived = _judge(bench, "double total", "float total", "float for double")
    assert survived.outcome == SURVIVED
    assert is_right(survived)
