"""Weak problems: the referee refuses those that nobody can be verified on, and says why."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kernelwright.errors import NotDiscriminatingError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import (
    Arrays,
    Expected,
    Family,
    Problem,
    Structure,
    Tensor,
    Workload,
)
from kernelwright.tests.sampling import at_most
from kernelwright.traces.records import CHAMPION, Depth
from kernelwright.verifier.clock import timing
from kernelwright.verifier.clock.clocks import Clocks
from kernelwright.verifier.truth import null_kernels
from kernelwright.verifier.truth.trials import Stage, plan

Operator = Callable[[np.ndarray], np.ndarray]
PROBLEMS = at_most(16, registry.names())


def toy(
    operator: Operator,
    *,
    low: float = -1.0,
    scale: Operator = np.abs,
    axes: tuple[int, int] = (16, 50),
) -> Problem:
    """y = operator(x) on rows drawn from [low, low + 2)."""

    def values(structure: Structure, _family: Family, rng: np.random.Generator) -> Arrays:
        shape = (structure.axes["M"], structure.axes["N"])
        return {"x": rng.uniform(low, low + 2, shape).astype(np.float32)}

    def oracle(_structure: Structure, inputs: Arrays) -> dict[str, Expected]:
        with np.errstate(all="ignore"):
            value = operator(inputs["x"].astype(np.float64))
        return {"y": Expected(value, scale(value), 50.0)}

    tiny = Workload(name="tiny", kind="tiny", axes=dict(zip("MN", axes, strict=True)))
    return Problem(
        name="toy",
        title="",
        definition="",
        axes={"M": "rows", "N": "columns"},
        inputs=(Tensor(name="x", dtype="float32", shape=("M", "N")),),
        outputs=(Tensor(name="y", dtype="float32", shape=("M", "N")),),
        source="",
        workloads=(tiny,),
        structure=lambda workload: Structure(dict(workload.axes)),
        values=values,
        oracle=oracle,
        flops=lambda axes: 1.0 * axes["M"] * axes["N"],
        bytes_moved=lambda axes: 8.0 * axes["M"] * axes["N"],
        baselines=(),
        variations=lambda _structure, _rng, _tried=None: iter(()),
        families=(Family.NORMAL, Family.UNIFORM),
    )


def refusal(problem: Problem) -> str:
    """Why the problem's first workload is refused; empty where it is admitted."""
    structure = problem.structure(problem.workloads[0])
    try:
        null_kernels.admit(problem, structure, np.random.default_rng(0))
    except NotDiscriminatingError as error:
        return str(error)
    return ""


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))


def rectified(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def test_a_sound_problem_is_admitted() -> None:
    assert refusal(toy(softmax)) == ""
    assert refusal(toy(rectified)) == ""


@pytest.mark.parametrize(
    "operator",
    [
        lambda x: np.broadcast_to(softmax(x).mean(1, keepdims=True), x.shape),
        lambda x: softmax(np.broadcast_to(x.mean(), x.shape)),
    ],
    ids=["mean of a softmax", "softmax of one mean"],
)
def test_a_constant_answer_is_refused(operator: Operator) -> None:
    assert "'mean constant' passes" in refusal(toy(operator))


@pytest.mark.parametrize(
    "operator",
    [lambda x: x * 0.0, lambda x: x.max(1, keepdims=True) - x.max(1, keepdims=True) + 0 * x],
    ids=["weights of zero", "a maximum minus itself"],
)
def test_an_answer_that_ignores_its_inputs_is_refused(operator: Operator) -> None:
    assert "'zeros' passes" in refusal(toy(operator))


def test_an_operation_that_does_nothing_is_refused() -> None:
    assert "'copy of x' passes" in refusal(toy(rectified, low=0.0))


def test_a_tolerance_above_the_signal_is_refused() -> None:
    """An absolute tolerance of 0.01, which is more than most elements of a long softmax are."""
    lax = toy(softmax, scale=lambda value: np.full(value.shape, 1e4), axes=(4, 4096))
    assert "passes" in refusal(lax)
    assert refusal(toy(softmax, axes=(4, 4096))) == ""


def series(candidate_us: float, baselines: dict[str, float]) -> timing.Series:
    """A finished series of equal samples."""
    count = 10
    same = [candidate_us] * count
    seen = Clocks(claimed_us=same, wall_us=same, cpu_us=same)
    times = {"candidate": candidate_us, **baselines}
    return timing.Series([{name: [us] * count for name, us in times.items()}], [seen])


def measured(candidate_us: float, baselines: dict[str, float]):
    return timing.measurement(
        series(candidate_us, baselines),
        "candidate",
        [name for name in baselines if name != CHAMPION],
        CHAMPION if CHAMPION in baselines else None,
        missing={},
        workload="tiny",
        floor_us=0.1,
        roof="bytes alone",
        threads=1,
        rng=np.random.default_rng(0),
    )


def test_a_call_too_short_to_time_is_marked() -> None:
    assert measured(3.0, {"torch eager": 4.0}).is_launch_bound
    assert not measured(3000.0, {"torch eager": 4000.0}).is_launch_bound


def test_what_a_seat_is_worth_is_credited_to_nobody() -> None:
    """Equal samples say nothing of the seat; a champion sits in the candidate's own."""
    found = measured(100.0, {"torch eager": 101.0, CHAMPION: 101.0}).speedup
    beside_library, beside_champion = found["torch eager"], found[CHAMPION]
    assert beside_library.median == pytest.approx(1.01)
    assert beside_library.low < 1.0 < beside_library.high
    assert beside_champion.low == pytest.approx(1.01)
    assert beside_champion.high == pytest.approx(1.01)


def test_the_fastest_baseline_counts() -> None:
    found = measured(100.0, {"naive": 900.0, "torch.compile": 150.0, "torch eager": 300.0})
    assert found.best_baseline == "torch.compile"
    assert found.headline is not None
    assert found.headline.median == pytest.approx(1.5)
    for name in PROBLEMS:
        assert len(registry.get(name).baselines) >= 2, name


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_screening_has_hidden_shapes(name: str) -> None:
    problem = registry.get(name)
    workload = next(w for w in problem.workloads if w.kind == "tiny")
    target = problem.structure(workload)
    stage = Stage(problem, target, workload.name, ())
    seen = set()
    for seed in range(5):
        trials = plan(stage, Depth.SCREEN, np.random.default_rng(seed))
        hidden = [t.structure.axes for t in trials if t.name.startswith("hidden shape")]
        assert len(hidden) >= 2
        assert any(axes != target.axes for axes in hidden)
        seen |= {tuple(axes.items()) for axes in hidden}
    assert len(seen) >= 5, "the seed decides which"


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_reference_is_a_pure_function(name: str) -> None:
    problem = registry.get(name)
    structure = problem.structure(next(w for w in problem.workloads if w.kind == "tiny"))
    rng = np.random.default_rng(3)
    inputs = problem.values(structure, Family.NORMAL, rng)
    kept = {key: array.copy() for key, array in inputs.items()}
    first = problem.oracle(structure, inputs)
    problem.oracle(structure, problem.values(structure, Family.NORMAL, rng))
    again = problem.oracle(structure, inputs)
    for key, expected in first.items():
        np.testing.assert_array_equal(expected.value, again[key].value)
        assert np.isfinite(expected.value).all()
    for key, array in inputs.items():
        np.testing.assert_array_equal(array, kept[key])


def test_a_reference_that_is_not_finite_is_refused() -> None:
    assert "'previous output' passes" in refusal(toy(lambda x: np.sqrt(-1 - np.abs(x))))
