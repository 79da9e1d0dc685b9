"""`suite` on the command line: what it refuses before anything starts, and a whole one."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

TASK = '[[task]]\nproblem = "{problem}"\nworkload = "{workload}"\n'


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("sprase",), "there is no suite named 'sprase'"),
        (("none.toml",), "none.toml is no suite"),
        (("sparse", "--budget", "usd=1"), "would never end a campaign"),
        (("sparse", "--csv", "there/is/none.csv"), "which is no folder"),
        (("sparse", "--markdown", "."), "is a folder"),
        (("sparse", "--workflow", "forg"), "there is no workflow named 'forg'"),
        (("sparse", "--language", "fortran"), "takes no candidates in 'fortran'"),
        (("training", "--language", "python"), "has a recipe in python"),
    ],
)
def test_bad_input_is_told_before_anything_starts(
    kw_here, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    done = kw_here("suite", *arguments, "--target", "cpu")
    assert (done.code, done.out) == (2, ""), done.err
    assert told in done.err
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it has no [[task]]"),
        ("[[task]]\n", "task 1 names no problem"),
        ("[[task]]\nproblem = 3\n", "task 1 names no problem"),
        ('[[task]]\nproblem = "softmax"\nsize = 3\n', "task 1 has the unknown key size"),
        (TASK.format(problem="softmax", workload="tiny") * 2, "names softmax/tiny twice"),
        (TASK.format(problem="sofmax", workload="tiny"), "no problem named 'sofmax'"),
        (TASK.format(problem="softmax", workload="tinny"), "tinny"),
        ("[[task]\n", "is no suite"),
    ],
)
def test_a_file_that_cannot_be_used_is_told(kw_here, tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    done = kw_here("suite", str(file), "--target", "cpu")
    assert (done.code, done.out) == (2, ""), done.err
    assert told in done.err


@pytest.mark.heavy
@pytest.mark.slow
def test_a_suite_is_run_written_and_told_again(kw, tmp_path: Path) -> None:
    file, table, figures = (tmp_path / name for name in ("mine.toml", "t.md", "t.csv"))
    file.write_text(TASK.format(problem="softmax", workload="tiny"))
    arguments = ("suite", str(file), "--target", "cpu", "--budget", "evaluations=1,seconds=90")
    first = kw(*arguments, "--json", "--markdown", str(table), "--csv", str(figures))
    assert first.code == 0, first.err
    (task,) = first.document["tasks"]
    assert (task["problem"], task["workload"]) == ("softmax", "tiny")
    assert task["status"] == "VERIFIED"
    assert task["speedup"]["low"] <= task["speedup"]["median"] <= task["speedup"]["high"]
    assert task["best_baseline"] in task["baselines_us"]
    (row,) = csv.DictReader(figures.read_text().splitlines())
    assert float(row["time (us)"]) == pytest.approx(task["us"], rel=1e-3)
    assert row["campaign"] == task["campaign"]
    assert "| softmax | tiny | VERIFIED |" in table.read_text()
    again = kw(*arguments, "--json")
    assert again.document == first.document
    assert "referee" not in again.err
    assert "softmax" in kw(*arguments).out
