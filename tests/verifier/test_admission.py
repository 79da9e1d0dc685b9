"""A campaign on a user's problem begins with what can be found of it in seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Arrays, Expected, Problem, Structure
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation import choose
from kernelwright.verifier import admission
from kernelwright.verifier.stands.session import SOUND, Admission
from kernelwright.verifier.truth import soundness

Change = Callable[[Structure, np.ndarray], np.ndarray]
OUTPUT = "y"


def owned(change: Change | None = None) -> Problem:
    """A built-in problem as if a user's file had declared it, with changed answers."""
    made = registry.get("bias_gelu")

    def oracle(structure: Structure, inputs: Arrays) -> dict[str, Expected]:
        found = made.oracle(structure, inputs)
        if change is None:
            return found
        return {OUTPUT: replace(found[OUTPUT], value=change(structure, found[OUTPUT].value))}

    return replace(made, oracle=oracle, text="# a user's file")


def admit(problem: Problem, folder: Path) -> None:
    structure = problem.structure(problem.workload("tiny"))
    admitted = Admission(problem, structure, folder)
    try:
        admitted.wait()
    finally:
        admitted.close()


def narrow(_: Structure, value: np.ndarray) -> np.ndarray:
    return value.astype(np.float32).astype(np.float64)


def lost_where_long(structure: Structure, value: np.ndarray) -> np.ndarray:
    return value * np.where(max(structure.axes.values()) > 500, np.nan, 1.0)


def mixed(structure: Structure, value: np.ndarray) -> np.ndarray:
    return value / structure.axes["M"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (narrow, "answers are of float64: 1 (limit 0.5)"),
        (lost_where_long, "not finite"),
        (mixed, "no row says anything of another: y changes with other rows"),
    ],
)
def test_a_users_problem_is_refused_with_the_figure(
    change: Change, told: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="the problem 'bias_gelu' cannot verify kernels") as caught:
        admit(owned(change), tmp_path)
    assert told in str(caught.value)
    assert "problems --check" in (caught.value.hint or "")
    assert not (tmp_path / SOUND).exists()


def test_what_was_found_sound_is_looked_at_once_for_each_version(tmp_path: Path) -> None:
    asked: list[Structure] = []

    def note(structure: Structure, value: np.ndarray) -> np.ndarray:
        asked.append(structure)
        return value

    problem = owned(note)
    counts = []
    for text in ("# one", "# one", "# another"):
        asked.clear()
        admit(replace(problem, text=text), tmp_path)
        counts.append(len(asked))
    assert counts[1] < counts[0] / 2
    assert counts[2] == pytest.approx(counts[0], abs=counts[1])
    assert len(list((tmp_path / SOUND).iterdir())) == 2


@pytest.mark.parametrize(("change", "notes"), [(None, 1), (mixed, 0)])
def test_what_was_checked_and_found_sound_is_not_looked_at_again(
    change: Change | None, notes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Baselines say nothing of soundness, and this file has none.
    monkeypatch.setattr(admission, "_headroom", lambda *_: iter(()))
    found = admission.check_problem(owned(change), Workshop(choose(), tmp_path))
    assert all(check.passed for check in found) == bool(notes)
    assert len(list(tmp_path.glob(f"{SOUND}/*"))) == notes
    if notes:
        asked: list[Problem] = []
        monkeypatch.setattr(soundness, "find_unsound", asked.append)
        admit(owned(change), tmp_path)
        assert asked == []


def test_a_built_in_problem_is_admitted_by_tests_alone(tmp_path: Path) -> None:
    admit(replace(owned(narrow), text=""), tmp_path)
    assert not (tmp_path / SOUND).exists()
