"""No bundled problem's inputs let a kernel pass that computes nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from kernelwright.errors import NotDiscriminatingError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.families import draw
from kernelwright.kernelbench.problem import (
    Arrays,
    Expected,
    Family,
    Problem,
    Structure,
    Tensor,
    Workload,
)
from kernelwright.kernelbench.rows import WHOLE_BYTES
from kernelwright.tests.sampling import at_most
from kernelwright.traces.records import Depth
from kernelwright.verifier.truth import null_kernels
from kernelwright.verifier.truth.trials import Stage, Trial, plan


def cases(*, tiny: bool) -> list[tuple[str, str]]:
    return [
        (name, workload.name)
        for name in registry.names()
        for workload in registry.get(name).workloads
        if (workload.kind == "tiny") is tiny
    ]


def admitted(name: str, workload: str, seed: int) -> dict[str, str]:
    problem = registry.get(name)
    structure = problem.structure(problem.workload(workload))
    found = null_kernels.admit(problem, structure, np.random.default_rng(seed))
    assert all(check.passed for check in found)
    return {check.name: check.detail for check in found}


@pytest.mark.parametrize(("name", "workload"), at_most(16, cases(tiny=True)))
def test_tiny_workloads_reject_every_null_kernel(name: str, workload: str) -> None:
    for seed in range(2):
        found = admitted(name, workload, seed)
        assert len(found) == len(null_kernels.nulls(registry.get(name)))
        # Where all is whole numbers nothing has fewer digits.
        has_digits = registry.get(name).precision.policy in null_kernels.DOWNCASTS
        assert ("null kernel 'downcast' rejected" in found) is has_digits


@pytest.mark.slow
@pytest.mark.parametrize(("name", "workload"), at_most(18, cases(tiny=False)))
def test_other_workloads_reject_every_null_kernel(name: str, workload: str) -> None:
    assert admitted(name, workload, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", at_most(16, registry.names()))
def test_every_screening_rejects_every_null_kernel(name: str) -> None:
    problem = registry.get(name)
    tiny = next(w for w in problem.workloads if w.kind == "tiny")
    stage = Stage(problem, problem.structure(tiny), tiny.name, ())
    for seed in range(10):
        rng = np.random.default_rng(seed)
        trials = plan(stage, Depth.SCREEN, rng)
        made: list[null_kernels.Scene] = []

        def scenes(
            trials: list[Trial] = trials,
            rng: np.random.Generator = rng,
            made: list[null_kernels.Scene] = made,
        ) -> Iterator[null_kernels.Scene]:
            """Each is made where the ones before it have not rejected one: most reject all."""
            yield from made
            for trial in trials[len(made) :]:
                made.append(null_kernels.scene(problem, trial.structure, trial.family, rng))
                yield made[-1]

        for null, make in null_kernels.nulls(problem).items():
            if null == null_kernels.DOWNCAST:
                continue
            assert any(null_kernels.rejects(scene, make) for scene in scenes()), (null, seed)


def relu(low: float, high: float, **more: object) -> Problem:
    """y = max(x, 0) on inputs drawn from [low, high)."""

    def values(structure: Structure, _family: Family, rng: np.random.Generator) -> Arrays:
        return {"x": rng.uniform(low, high, structure.axes["N"]).astype(np.float32)}

    def oracle(_structure: Structure, inputs: Arrays) -> dict[str, Expected]:
        value = np.maximum(inputs["x"].astype(np.float64), 0)
        return {"y": Expected(value, np.abs(value))}

    tiny = Workload(name="tiny", kind="tiny", axes={"N": 100})
    problem = Problem(
        name="relu",
        title="",
        definition="",
        axes={"N": "elements"},
        inputs=(Tensor(name="x", dtype="float32", shape=("N",)),),
        outputs=(Tensor(name="y", dtype="float32", shape=("N",)),),
        source="",
        workloads=(tiny,),
        structure=lambda workload: Structure(dict(workload.axes)),
        values=values,
        oracle=oracle,
        flops=lambda axes: 1.0 * axes["N"],
        bytes_moved=lambda axes: 8.0 * axes["N"],
        baselines=(),
        variations=lambda _structure, _rng, _tried=None: iter(()),
        families=(Family.NORMAL, Family.UNIFORM),
    )
    return replace(problem, **more)  # type: ignore[arg-type]


def verdict(problem: Problem) -> str:
    structure = problem.structure(problem.workloads[0])
    try:
        null_kernels.admit(problem, structure, np.random.default_rng(0))
    except NotDiscriminatingError as error:
        return str(error)
    return ""


def test_signed_inputs_admit_a_relu() -> None:
    assert verdict(relu(-1, 1)) == ""


@pytest.mark.parametrize(
    ("low", "high", "null"), [(0, 1, "copy of x"), (-2, -1, "zeros"), (1, 1, "ones")]
)
def test_inputs_that_hide_the_operator_are_refused(low: float, high: float, null: str) -> None:
    assert verdict(relu(low, high)).startswith(
        f"relu: the null kernel '{null}' passes on the workload's inputs of family 'normal'"
    )


def test_a_family_that_hides_the_operator_must_not_be_the_rule() -> None:
    one = relu(-1, 1)

    def mixed(structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
        drawn = one.values(structure, family, rng)["x"]
        return {"x": np.abs(drawn) if family in weak else drawn}

    families = (Family.NORMAL, Family.UNIFORM, Family.LAPLACE, Family.SORTED)
    problem = replace(one, values=mixed, families=families)
    weak = {Family.SORTED}
    assert verdict(problem) == ""
    checks = null_kernels.admit(
        problem, problem.structure(problem.workloads[0]), np.random.default_rng(0)
    )
    told = {check.name: check.detail for check in checks}["null kernel 'copy of x' rejected"]
    assert told == "fails on normal, uniform, laplace; passes on sorted"
    weak = {Family.SORTED, Family.LAPLACE}
    assert "'copy of x' passes on most inputs" in verdict(problem)
    weak = {Family.NORMAL}
    assert "'copy of x' passes on the workload's inputs of family 'normal'" in verdict(problem)


def test_an_answer_that_forgets_its_inputs_is_refused() -> None:
    def constant(structure: Structure, _inputs: Arrays) -> dict[str, Expected]:
        value = np.full(structure.axes["N"], 0.3)
        return {"y": Expected(value, value)}

    assert "'mean constant' passes" in verdict(relu(-1, 1, oracle=constant))


def test_an_oracle_that_forgives_a_downcast_is_refused() -> None:
    def lax(_structure: Structure, inputs: Arrays) -> dict[str, Expected]:
        value = np.maximum(inputs["x"].astype(np.float64), 0)
        return {"y": Expected(value, np.full(len(value), 1e4))}

    assert "'downcast' passes on the workload's inputs of family 'normal'" in verdict(
        relu(-1, 1, oracle=lax)
    )


@pytest.mark.parametrize("shape", [(100_000,), (5000, 33), (3, 65_537), (1, 70_000), (7, 300, 20)])
def test_a_single_wrong_tail_is_found_behind_the_sample(shape: tuple[int, ...]) -> None:
    problem = relu(-1, 1)
    value = np.random.default_rng(0).normal(size=shape)
    expected = {"y": Expected(value, np.abs(value))}
    scene = null_kernels.Scene(problem, Structure({"N": 1}), Family.NORMAL, {}, expected, expected)
    got = value.astype(np.float32)
    assert not null_kernels.rejects(scene, lambda _scene, _name: got)
    wrong = got.copy()
    wrong.reshape(-1)[wrong.size // 2 + 3] += 1
    assert null_kernels.rejects(scene, lambda _scene, _name: wrong)


def test_one_sum_is_told_from_null_kernels_where_it_is_short() -> None:
    def total(_structure: Structure, inputs: Arrays) -> dict[str, Expected]:
        x = inputs["x"].astype(np.float64)
        return {"y": Expected(np.array([x.sum()]), np.array([np.abs(x).sum()]), float(x.size))}

    def values(structure: Structure, _family: Family, rng: np.random.Generator) -> Arrays:
        return {"x": rng.standard_normal(structure.axes["N"], np.float32) + np.float32(1)}

    given = registry.get("softmax")
    problem = replace(
        given,
        name="total",
        axes={"N": "elements"},
        inputs=(Tensor(name="x", dtype="float32", shape=("N",)),),
        outputs=(Tensor(name="y", dtype="float32", shape=("1",)),),
        workloads=(),
        values=values,
        oracle=total,
        families=(Family.NORMAL,),
        bytes_moved=lambda axes: 4.0 * axes["N"],
    )
    for length, is_told in ((25, True), (1 << 16, False)):
        found = null_kernels.admit(problem, Structure({"N": length}), np.random.default_rng(2))
        names = {check.name for check in found}
        assert ("null kernel 'downcast' rejected" in names) == is_told
        assert "null kernel 'zeros' rejected" in names
        assert "null kernel 'mean constant' rejected" not in names


def test_in_long_sums_the_tiny_workload_tells_narrow_inputs() -> None:
    """Rows of 65,536 elements: what half precision makes of a sum is less than float32 may make."""

    def totals(_structure: Structure, inputs: Arrays) -> dict[str, Expected]:
        x = inputs["x"].astype(np.float64)
        return {"y": Expected(x.sum(1), np.abs(x).sum(1), float(x.shape[1]))}

    def values(structure: Structure, _family: Family, rng: np.random.Generator) -> Arrays:
        axes = structure.axes
        return {"x": rng.random((axes["M"], axes["N"]), np.float32) + np.float32(1)}

    problem = relu(
        0,
        1,
        axes={"M": "rows", "N": "columns"},
        inputs=(Tensor(name="x", dtype="float32", shape=("M", "N")),),
        outputs=(Tensor(name="y", dtype="float32", shape=("M",)),),
        workloads=(Workload(name="tiny", kind="tiny", axes={"M": 9, "N": 20}),),
        values=values,
        oracle=totals,
        families=(Family.NORMAL,),
        bytes_moved=lambda axes: 4.0 * axes["M"] * axes["N"],
    )
    long, rng = Structure({"M": 16, "N": 1 << 16}), np.random.default_rng(0)
    found = null_kernels.admit(problem, long, rng)
    assert "null kernel 'downcast' rejected" in {check.name for check in found}
    with pytest.raises(NotDiscriminatingError, match="'downcast' passes"):
        null_kernels.admit(replace(problem, workloads=()), long, rng)


def test_of_many_rows_some_tell_and_a_refusal_names_the_workload() -> None:
    problem = registry.get("softmax")
    workload = problem.workload("4096x1024")
    whole, rng = problem.structure(workload), np.random.default_rng(0)
    asked: list[int] = []

    def note(structure: Structure, inputs: Arrays) -> dict[str, Expected]:
        asked.append(structure.axes["M"])
        return problem.oracle(structure, inputs)

    def answer_nothing(structure: Structure, inputs: Arrays) -> dict[str, Expected]:
        found = problem.oracle(structure, inputs)
        return {name: replace(each, value=0 * each.value) for name, each in found.items()}

    assert null_kernels.admit(replace(problem, oracle=note), whole, rng)
    assert problem.bytes_moved({**whole.axes, "M": max(asked)}) <= 2 * WHOLE_BYTES
    # Rows are as long as they were, of every family.
    assert len(asked) >= 2 * len(problem.families)
    with pytest.raises(NotDiscriminatingError, match=r"passes on the workload's .*M=4096, N=1024"):
        null_kernels.admit(replace(problem, oracle=answer_nothing), whole, rng)


def one_number(*draws: float) -> Problem:
    """y = x[0], of whose NORMAL inputs these come one after the other, again and again."""
    turns = itertools.cycle(draws)

    def values(_structure: Structure, _family: Family, _rng: np.random.Generator) -> Arrays:
        return {"x": np.array([next(turns)], np.float32)}

    def oracle(_structure: Structure, inputs: Arrays) -> dict[str, Expected]:
        value = 3.0 * inputs["x"].astype(np.float64)
        return {"y": Expected(value, np.abs(value))}

    return relu(
        -1,
        1,
        name="one number",
        workloads=(Workload(name="tiny", kind="tiny", axes={"N": 1}),),
        values=values,
        oracle=oracle,
        families=(Family.NORMAL,),
    )


WHOLE, BROKEN = (0.5, 1.25, 2.0, 4.5), 0.1
"""What half precision holds, and what it does not."""


def test_one_number_that_is_one_of_half_precision_by_chance_is_drawn_again() -> None:
    # The first draw is of the call before, the second is what is looked at.
    problem = one_number(BROKEN, 1.25, BROKEN, 2.7)
    structure = problem.structure(problem.workloads[0])
    rng = np.random.default_rng(0)
    first = null_kernels.scene(problem, structure, Family.NORMAL, rng)
    downcast = null_kernels.nulls(problem)[null_kernels.DOWNCAST]
    assert not null_kernels.rejects(first, downcast)
    assert verdict(one_number(BROKEN, 1.25, BROKEN, 2.7)) == ""


def test_one_number_that_half_precision_always_holds_is_refused() -> None:
    assert (
        "one number: the null kernel 'downcast' passes on the workload's inputs of family "
        "'normal'" in verdict(one_number(*WHOLE))
    )


@pytest.mark.parametrize("length", [1, 5, 25])
def test_few_numbers_that_chance_gave_one_sign_are_drawn_again(length: int) -> None:
    """Once in 40 draws all of 25 are negative, and a relu of them is 0."""
    problem = relu(
        -1,
        1,
        workloads=(Workload(name="tiny", kind="tiny", axes={"N": length}),),
        values=lambda structure, family, rng: {"x": draw(family, (structure.axes["N"],), rng)},
    )
    structure = problem.structure(problem.workloads[0])
    seeds = range(300)
    drawn = [
        null_kernels.scene(problem, structure, Family.NORMAL, np.random.default_rng(seed))
        for seed in seeds
    ]
    zeros = null_kernels.nulls(problem)["zeros"]
    assert not all(null_kernels.rejects(scene, zeros) for scene in drawn)
    for seed in seeds:
        assert null_kernels.admit(problem, structure, np.random.default_rng(seed))


def test_of_many_numbers_none_is_drawn_again() -> None:
    drawn: list[int] = []

    def values(structure: Structure, _family: Family, _rng: np.random.Generator) -> Arrays:
        drawn.append(1)
        return {"x": np.resize(np.float32((-0.5, 1.25, 2.0)), structure.axes["N"])}

    many = Workload(name="tiny", kind="tiny", axes={"N": null_kernels.FEW_ANSWERS + 1})
    said = verdict(relu(-1, 1, values=values, families=(Family.NORMAL,), workloads=(many,)))
    assert "the null kernel 'previous output' passes" in said
    assert len(drawn) == 2
