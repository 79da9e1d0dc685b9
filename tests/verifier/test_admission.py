"""A campaign on a user's problem begins with what can be found of it in seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.definition import read_text
from kernelwright.kernelbench.machine import usable_cpus
from kernelwright.kernelbench.problem import Arrays, Expected, Problem, Structure
from kernelwright.kernelbench.tried import Tried
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.definitions.process import Definition
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.tests.sampling import at_most
from kernelwright.traces.records import Check
from kernelwright.verifier import admission
from kernelwright.verifier.stands.session import SOUND, Admission
from kernelwright.verifier.truth import soundness

Answers = dict[str, Expected]
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


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    tmp_path.chmod(0o755)
    return Workshop(choose("auto"), tmp_path, usable_cpus())


def admit(problem: Problem, workshop: Workshop) -> None:
    structure = problem.structure(problem.workload("tiny"))
    admitted = Admission(problem, structure, workshop)
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
    change: Change, told: str, workshop: Workshop
) -> None:
    with pytest.raises(UsageError, match="the problem 'bias_gelu' cannot verify kernels") as caught:
        admit(owned(change), workshop)
    assert told in str(caught.value)
    assert "problems --check" in (caught.value.hint or "")
    assert not (workshop.folder / SOUND).exists()


@pytest.mark.parametrize("name", at_most(10, registry.names()))
def test_short_hidden_sizes_of_ours_end_in_nearly_all_ways(name: str) -> None:
    told = {check.name: check for check in look_at_sizes(registry.get(name))}
    assert told.pop("hidden sizes can be drawn").passed
    assert all(check.passed for check in told.values())


def test_a_problem_whose_short_sizes_end_in_few_ways_is_refused_with_the_axis() -> None:
    made = registry.get("bias_gelu")

    def vary(
        structure: Structure, rng: np.random.Generator, tried: Tried | None = None
    ) -> Iterator[Structure]:
        for each in made.variations(structure, rng, tried):
            yield replace(each, is_telling=each.is_telling and each.axes["N"] % 8 < 3)

    (_, check) = look_at_sizes(replace(made, variations=vary))
    assert not check.passed
    assert check.figure == 3 / 8
    assert "that N has" in check.detail


def look_at_sizes(problem: Problem) -> list[Check]:
    return list(soundness.ASPECTS["sizes"](problem, np.random.default_rng(0)))


@contextmanager
def defined(text: str, workshop: Workshop) -> Iterator[Problem]:
    """A user's file as a campaign has it: its functions run in the sandbox."""
    with closing(Definition(read_text("swi", text, "swi.py"), workshop)) as definition:
        yield definition.problem()


@pytest.mark.heavy
@pytest.mark.slow
def test_what_was_found_sound_is_looked_at_once_for_each_version(workshop: Workshop) -> None:
    asked: list[Structure] = []
    counts = []
    template = registry.template_of("swi")
    for text in (template, template, f"{template}\n# another\n"):
        with defined(text, workshop) as problem:

            def note(structure: Structure, inputs: Arrays, of: Problem = problem) -> Answers:
                asked.append(structure)
                return of.oracle(structure, inputs)

            asked.clear()
            admit(replace(problem, oracle=note), workshop)
            counts.append(len(asked))
    assert counts[1] < counts[0] / 2
    assert counts[2] == pytest.approx(counts[0], abs=counts[1])
    assert len(list((workshop.folder / SOUND).iterdir())) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exact", "changed", "told"),
    [
        ("out=y)", "out=y).mul_(1 + 2e-5)", "a baseline is right"),
        ("out=y)", "out=y).mul_(1 + 5.5e-7)", "right implementations have headroom"),
        ("7 * M * N", "70 * M * N * N", "flops are what is counted"),
    ],
)
def test_a_campaign_holds_a_users_problem_against_its_own_baselines(
    exact: str, changed: str, told: str, workshop: Workshop
) -> None:
    text = registry.template_of("swi")
    assert text.count(exact) == 1
    with (
        defined(text.replace(exact, changed), workshop) as problem,
        pytest.raises(UsageError, match=f"cannot verify kernels: {told}"),
    ):
        admit(problem, workshop)
    assert not (workshop.folder / SOUND).exists()


@pytest.mark.slow
@pytest.mark.parametrize(("exact", "changed", "notes"), [("", "", 1), ("M * N", "M * N * N", 0)])
def test_what_was_checked_and_found_sound_is_not_looked_at_again(
    exact: str, changed: str, notes: int, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = registry.template_of("swi").replace(f'"7 * {exact}"', f'"7 * {changed}"')
    with defined(text, workshop) as problem:
        found = admission.check_problem(problem, workshop)
        assert all(check.passed for check in found) == bool(notes)
        assert len(list(workshop.folder.glob(f"{SOUND}/*"))) == notes
        if notes:
            asked: list[Problem] = []
            monkeypatch.setattr(soundness, "find_unsound", asked.append)
            admit(problem, workshop)
            assert asked == []


def test_a_built_in_problem_is_admitted_by_tests_alone(workshop: Workshop) -> None:
    admit(replace(owned(narrow), text=""), workshop)
    assert not (workshop.folder / SOUND).exists()


def test_baselines_of_a_device_alone_are_not_asked_for_here(workshop: Workshop) -> None:
    known = registry.get("spmm_csr").baselines
    of_devices = tuple(baseline for baseline in known if not baseline.runs_on(""))
    assert of_devices
    admit(replace(owned(), baselines=of_devices), workshop)
    assert len(list((workshop.folder / SOUND).iterdir())) == 1
