"""What another process finds of trials ahead: the same as this one, whatever becomes of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.traces.records import Depth
from kernelwright.verifier.truth import drawing
from kernelwright.verifier.truth.drawing import LEAST, Drawing
from kernelwright.verifier.truth.trials import Stage, Trial, plan

Values = dict[str, np.ndarray]


@pytest.fixture(params=["edge_softmax", "gemm"])
def stage(request: pytest.FixtureRequest) -> Stage:
    problem = registry.get(request.param)
    return Stage(problem, problem.structure(problem.workload("tiny")), "tiny", ())


@pytest.fixture
def trials(stage: Stage) -> list[Trial]:
    return plan(stage, Depth.FULL, np.random.default_rng(4))[-3 * LEAST :]


@pytest.fixture(autouse=True)
def _two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


def take(stage: Stage, trials: list[Trial], *, apart: bool) -> Iterator[Values]:
    """Copies of all that is found of each: an item is gone with the next."""
    rng = np.random.default_rng(5)
    with Drawing(stage.problem, trials, rng, apart=apart) as drawn:
        for trial, item in drawn:
            assert item.structure is trial.structure
            assert item.family is trial.family
            found = {name: array.copy() for name, array in item.inputs.items()}
            if not item.is_parted:
                for name, expected in item.expected.items():
                    found |= {
                        f"{name}.{part}": np.array(getattr(expected, part))
                        for part in ("value", "scale", "terms")
                    }
            yield found


def assert_same(found: list[Values], wanted: list[Values]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.keys() == other.keys()
        for name, array in one.items():
            assert array.dtype == other[name].dtype, name
            np.testing.assert_array_equal(array, other[name], name)


def children() -> set[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as listed:
        return set(map(int, listed.read().split()))


def test_another_process_finds_what_this_one_would(stage: Stage, trials: list[Trial]) -> None:
    before, alone = children(), list(take(stage, trials, apart=False))
    ahead = take(stage, trials, apart=True)
    first = next(ahead)
    assert len(children() - before) == 1
    assert_same([first, *ahead], alone)
    assert not children() - before


def test_memory_is_used_again_and_what_has_no_room_there_is_found_here(
    stage: Stage, trials: list[Trial], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = list(take(stage, trials, apart=False))
    monkeypatch.setattr(drawing, "ROOM", 1)
    # As much as the largest inputs take: their truth is more.
    assert_same(list(take(stage, trials, apart=True)), alone)
    monkeypatch.setattr(drawing, "MOST_ROOM", 10_000)
    assert_same(list(take(stage, trials, apart=True)), alone)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_without_the_other_process_this_one_goes_on(
    stage: Stage, trials: list[Trial], monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(drawing, "STALLED_S", 0.05)
    monkeypatch.setattr(drawing, "ROOM", 1)
    before, alone = children(), list(take(stage, trials, apart=False))
    ahead = take(stage, trials, apart=True)
    found = [next(ahead)]
    (other,) = children() - before
    os.kill(other, number)
    assert_same([*found, *ahead], alone)
    assert not children() - before


def test_an_error_of_the_definition_is_raised_here(stage: Stage, trials: list[Trial]) -> None:
    def fail(*_: object) -> dict[str, object]:
        raise ValueError("no answer")

    broken = replace(stage, problem=replace(stage.problem, oracle=fail))
    with pytest.raises(ValueError, match="no answer"):
        list(take(broken, trials, apart=True))


def test_few_trials_are_drawn_here(stage: Stage, trials: list[Trial]) -> None:
    before = children()
    for _ in take(stage, trials[: LEAST - 1], apart=True):
        assert children() == before


def test_leaving_early_ends_the_other_process(stage: Stage, trials: list[Trial]) -> None:
    before = children()
    with Drawing(stage.problem, trials, np.random.default_rng(0), apart=True) as drawn:
        next(iter(drawn))
        assert children() - before
    assert children() == before
