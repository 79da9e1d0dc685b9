"""What a problem's file declares, and how it is told where it declares what cannot be."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.declaration import SENTENCES, read_declaration
from kernelwright.kernelbench.declared import problem_of
from kernelwright.kernelbench.problem import Expected, Family, Problem, Workload
from kernelwright.kernelbench.sparse import pattern_of
from kernelwright.kernelbench.standins import LAWS, STAND_INS, read_law

FILE = '''"""Rows times two."""

import os

PROBLEM = {
    "title": "Twice",
    "definition": "y[i,j] = 2 x[i,j]",
    "source": "here",
    "axes": {"M": "rows", "N": "columns"},
    "inputs": {"x": "float32[M, N]: row-major"},
    "outputs": {"y": "float32[M, N]"},
    "flops": "M * N",
    "workloads": {
        "realistic": {"10x20": {"M": 10, "N": 20, "note": "ten rows"}},
        "tiny": {"tiny": {"M": 2, "N": 3}},
    },
    "families": "exact -sorted",
}


def oracle(x):
    return 2 * x
'''


def twice(**functions: Any) -> Problem:
    def oracle(x: np.ndarray) -> Expected:
        return Expected(2.0 * x.astype(np.float64), np.abs(x).astype(np.float64))

    known = {"oracle": oracle, **functions}
    return problem_of("twice", read_declaration(FILE, "twice.py"), known)


def test_a_file_becomes_a_problem() -> None:
    problem = twice()
    assert [t.name for t in problem.tensors] == ["x", "y"]
    assert problem.tensors[0].shape == ("M", "N")
    assert problem.default_workload.name == "10x20"
    assert problem.default_workload.note == "ten rows"
    assert Family.EXACT in problem.families
    assert Family.SORTED not in problem.families
    assert problem.flops({"M": 3, "N": 5}) == 15
    assert problem.bytes_moved({"M": 3, "N": 5}) == 120
    structure = problem.structure(problem.workload("tiny"))
    drawn = problem.values(structure, Family.NORMAL, np.random.default_rng(1))
    assert drawn["x"].shape == (2, 3)
    assert np.array_equal(problem.oracle(structure, drawn)["y"].value, 2.0 * drawn["x"])


def test_a_workload_may_be_named_by_its_sizes_and_a_pattern_by_its_law() -> None:
    text = FILE.replace(
        '"tiny": {"tiny": {"M": 2, "N": 3}},',
        """"tiny": {"2x3": "two rows", "4x5": ""},
        "adversarial": {
            "hub": {"N": 3, "pattern": "hub 70", "note": "three"},
            "uneven": {"N": 3, "pattern": "uneven 50"},
            "caida": {"N": 3, "graph": "as-caida"},
            "own": {"N": 3, "pattern": {"law": "hub", "n": 9, "nnz": 20}, "note": "mine"},
        },""",
    )
    found = {each.name: each for each in read_declaration(text, "twice.py").all_workloads}
    assert (found["2x3"].axes, found["2x3"].note) == ({"M": 2, "N": 3}, "two rows")
    assert (found["4x5"].axes, found["4x5"].note) == ({"M": 4, "N": 5}, "")
    assert found["hub"].axes == {"N": 3}
    assert found["hub"].note == "one full row, 40 % empty rows, three"
    assert found["uneven"].note == ""
    assert found["caida"].note == STAND_INS["as-caida"].note
    assert "note" not in found["caida"].generator
    assert found["own"].note == "mine"
    assert found["own"].generator == {"law": "hub", "n": 9, "nnz": 20}


@pytest.mark.parametrize("law", LAWS)
def test_a_law_is_what_its_note_says(law: str) -> None:
    generator, note = read_law(f"{law} {10 if law == 'rmat' else 700}")
    pattern = pattern_of(Workload(name="a", kind="tiny", generator=generator))
    lengths = np.sort(np.diff(pattern.indptr))[::-1]
    empty = float(np.mean(lengths == 0))
    if law == "rmat":
        assert pattern.rows == 1024
        assert note.startswith("a third of the rows empty")
        assert 0.2 < empty < 0.45
        assert 0.15 < lengths[:10].sum() / pattern.nnz < 0.4
    elif law == "hub":
        assert note == "one full row, 40 % empty rows"
        assert (lengths[0], 0.35 < empty < 0.45) == (pattern.cols, True)
    elif law == "pruned":
        assert note == "a square matrix with a fifth of its entries"
        assert (pattern.rows, pattern.cols, pattern.nnz) == (700, 700, 98_000)
    elif law == "experts":
        assert note == "rows with 8 entries each"
        assert (lengths == 8).all()
    else:
        assert (note, pattern.rows, pattern.nnz) == ("", 700, 4200)
        assert 1.7 < lengths.std() / lengths.mean() < 2.3


def test_sizes_in_a_list_have_their_usual_notes() -> None:
    text = FILE.replace('{"tiny": {"M": 2, "N": 3}}', '["4099x33", "5x7"]')
    found = {each.name: each for each in read_declaration(text, "twice.py").all_workloads}
    assert (found["4099x33"].axes, found["4099x33"].kind) == ({"M": 4099, "N": 33}, "tiny")
    assert found["4099x33"].note == "short rows with an odd tail"
    assert (found["5x7"].axes, found["5x7"].note) == ({"M": 5, "N": 7}, "")


def test_a_sentence_of_several_accuracies_is_written_once() -> None:
    known = [registry.get(name).accuracy for name in registry.names()]
    assert not any("{" in each for each in known)
    for mark, sentence in SENTENCES.items():
        text = FILE.replace('"flops"', f'"accuracy": "n = {{k}}. {mark} Then more.", "flops"')
        told = read_declaration(text, "twice.py").accuracy
        assert told == f"n = {{k}}. {sentence} Then more."
        assert sum(sentence in each for each in known) >= 2


def test_a_file_is_read_and_never_run() -> None:
    text = FILE.replace("import os", "raise SystemExit(3)")
    assert read_declaration(text, "twice.py").title == "Twice"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("PROBLEM = {", "PROBLEMS = {", "twice.py declares no problem"),
        ('"source": "here",', '"source" "here",', "twice.py:8: this is no Python"),
        ('"here"', "os.name", "twice.py:5: PROBLEM is not plain data"),
        ('    "source": "here",\n', "", "PROBLEM.source: Field required"),
        ('"source"', '"sauce"', "twice.py:8: PROBLEM.sauce"),
        ('"float32[M, N]"', '"float32"', "twice.py:11: PROBLEM.outputs"),
        ('"float32[M, N]"', '"float33[M, N]"', "twice.py:11: PROBLEM.outputs"),
        ('"float32[M, N]"', '"float8_e5m2[M, N]"', "twice.py:11: PROBLEM.outputs"),
        ('"float32[M, N]"', '"float8_e5m2[M, N]"', "'y' is float8_e5m2, of which no problem"),
        ('"float32[M, N]"', '"int16[M, N]"', "'y' is int16, of which no problem"),
        ("-sorted", "-shorted", "'-shorted' is none of"),
        (
            '"outputs": {"y": "float32[M, N]"}',
            '"is_row_wise": True, "outputs": {"y": "float32[N, M]"}',
            "an output does not begin with M",
        ),
        ("-sorted", "-normal", "normal and uniform are drawn of every problem"),
        ('"realistic"', '"real"', "twice.py:14: PROBLEM.workloads"),
        ('"M * N"', '"M * L"', "flops names 'L', which is no axis: M, N"),
        ('"M * N"', '"M / N"', "'M / N' in 'M / N' is neither an axis nor a whole number"),
        ('"float32[M, N]"', '"float32[M, P+1]"', "the shape of y names 'P'"),
        ('{"M": 2, "N": 3}', '"a note"', "'tiny' has a note alone, and its name is not the sizes"),
        ('"tiny": {"M": 2, "N": 3}', '"2x3x4": "a note"', "its name is not the sizes MxN"),
        ('{"tiny": {"M": 2, "N": 3}}', '["2x3", "two"]', "'two' has a note alone"),
        ('"N": 3}', '"graph": "enron"}', "names the graph 'enron', which nobody knows"),
        ('"N": 3}', '"pattern": "hubs 9"}', "'hubs 9' is no law with a number, such as 'hub 2000'"),
        ('"N": 3}', '"pattern": "hub"}', "'hub' is no law with a number"),
        ('"N": 3}', '"N": 0}', "the workload 'tiny' gives 0 for axis N"),
        ('"tiny": {"M": 2, "N": 3}', '"2x0": "a note"', "the workload '2x0' gives 0 for axis N"),
    ],
)
def test_what_cannot_be_is_told_with_its_line(old: str, new: str, told: str) -> None:
    assert old in FILE
    with pytest.raises(UsageError) as error:
        read_declaration(FILE.replace(old, new), "twice.py")
    assert told in str(error.value)
    assert error.value.hint


def test_a_function_that_asks_for_what_nobody_has_is_refused() -> None:
    with pytest.raises(UsageError, match="oracle asks for 'z'") as error:
        twice(oracle=lambda x, z: x + z)
    assert "structure, M, N, x" in error.value.hint
    with pytest.raises(UsageError, match="defines no function 'oracle'"):
        twice(oracle=None)


def test_sizes_that_are_all_fixed_are_drawn_as_they_are() -> None:
    text = FILE.replace('"flops"', '"lengths": {"M": (10,), "N": (3, 20)}, "flops"')
    known = {"oracle": lambda x: 2 * x}
    problem = problem_of("twice", read_declaration(text, "twice.py"), known)
    tiny = problem.structure(problem.workload("tiny"))
    varied = itertools.islice(problem.variations(tiny, np.random.default_rng(1)), 20)
    assert {(s.axes["M"], s.axes["N"]) for s in varied} == {(10, 3), (10, 20)}
    assert list(problem.bulk(tiny, np.random.default_rng(1))) == []


def test_plain_answers_get_the_scales_that_are_measured() -> None:
    problem = twice(oracle=lambda x: 2 * x)
    structure = problem.structure(problem.workload("tiny"))
    drawn = problem.values(structure, Family.NORMAL, np.random.default_rng(1))
    expected = problem.oracle(structure, drawn)["y"]
    assert expected.value.dtype == np.float64
    assert np.array_equal(expected.value, 2.0 * drawn["x"])
    assert expected.terms == 1
    ratio = expected.scale / np.abs(expected.value)
    assert 0.2 < np.median(ratio) < 20
