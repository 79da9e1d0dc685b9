"""What holds of the gates for every problem: which errors pass, and that any order of sums does."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.precision import Precision
from kernelwright.kernelbench.problem import Arrays, Expected, Family, Structure
from kernelwright.tests.sampling import one_in
from kernelwright.traces.records import Check
from kernelwright.verifier.truth import gates
from kernelwright.verifier.truth.poison import PATTERNS

STEPS = (0, *(1 << power for power in range(25)))
"""Units in the last place that an answer is moved by."""
SEEDS = 12
LEAST_TOLD = 1e-6
"""Of the largest answer, as a share of its scale."""


def judged(
    got: np.ndarray, expected: Expected, precision: Precision, family: Family
) -> list[Check]:
    return gates.check_output("y", got, expected, precision, family, poison=PATTERNS[0])


def share(check: Check) -> float:
    """The figure as a share of its limit; infinite where it is not finite."""
    if check.figure is None:
        return 0.0 if check.passed else np.inf
    return check.figure / check.limit if check.limit else check.figure


def moved(value: np.ndarray, steps: int, where: np.ndarray) -> np.ndarray:
    """The float32 answer, its elements at `where` moved away from zero by so many steps."""
    bits = np.ascontiguousarray(value, dtype=np.float32).view(np.int32)
    return np.where(where, bits + np.int32(steps), bits).astype(np.int32).view(np.float32)


def drawn(name: str, family: Family, seed: int) -> tuple[Structure, Arrays, dict[str, Expected]]:
    """One hidden shape of a problem with inputs and answers; another one for each seed.

    Its answers are not all zero, or what rounding leaves of it: the gradient of a softmax over one
    element is nothing to move.
    """
    problem = registry.get(name)
    rng = np.random.default_rng(seed)
    base = problem.structure(problem.workload("tiny"))
    for structure in itertools.islice(problem.variations(base, rng), seed % 9, None):
        inputs = problem.values(structure, family, rng)
        truth = problem.oracle(structure, inputs)
        first = truth[problem.outputs[0].name]
        if not first.value.size:
            continue
        size, scale = np.abs(first.value), np.broadcast_to(first.scale, first.value.shape)
        is_told = size.max() > LEAST_TOLD * scale.flat[size.argmax()]
        if is_told or not np.isfinite(size).all():
            return structure, inputs, truth
    raise AssertionError("variations do not end")


@pytest.mark.parametrize("spread", ["everywhere", "one element", "a third"])
@pytest.mark.parametrize("name", one_in(6, registry.names()))
def test_what_passes_is_monotone_in_the_error(name: str, spread: str) -> None:
    problem = registry.get(name)
    for number, family in enumerate(problem.families):
        _, _, truth = drawn(name, family, number)
        expected = truth[problem.outputs[0].name]
        where = _places(expected.value, spread, np.random.default_rng(number))
        shares: dict[str, float] = {}
        passed = []
        for steps in STEPS:
            got = moved(expected.value, steps, where)
            found = judged(got, expected, problem.precision, family)
            passed.append(all(check.passed for check in found))
            for check in found:
                assert share(check) >= shares.get(check.name, 0.0), (family, check.name, steps)
                shares[check.name] = share(check)
        assert passed == sorted(passed, reverse=True), (family, passed)
        assert passed[0]
        assert not passed[-1], family


def _places(value: np.ndarray, spread: str, rng: np.random.Generator) -> np.ndarray:
    """Where an error is put: nowhere else than at the largest answer, or all over the output."""
    if spread == "everywhere":
        return np.ones(value.shape, dtype=bool)
    where = rng.random(value.shape) < 1 / 3 if spread == "a third" else np.zeros(value.shape, bool)
    where.flat[int(np.abs(value).argmax())] = True
    return where


Sums = Callable[[Structure, Arrays, np.random.Generator], np.ndarray]


def _total(terms: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Float32 sums along the last axis in a random order: one by one, or as a random tree."""
    terms = terms[..., rng.permutation(terms.shape[-1])]
    if rng.random() < 0.5:
        return np.add.accumulate(terms, axis=-1)[..., -1:]
    while (count := terms.shape[-1]) > 1:
        cut = int(rng.integers(0, count // 2 + 1)) * 2 or count // 2 * 2
        pairs = terms[..., 0:cut:2] + terms[..., 1:cut:2]
        terms = np.concatenate([terms[..., cut:], pairs], axis=-1)
    return terms


def _spmm(s: Structure, i: Arrays, rng: np.random.Generator) -> np.ndarray:
    rows = np.repeat(np.arange(s.axes["M"]), np.diff(s.arrays["indptr"]))
    order = rng.permutation(len(rows))
    products = i["values"][:, None] * i["B"][s.arrays["indices"]]
    sums = np.zeros((s.axes["M"], s.axes["N"]), np.float32)
    np.add.at(sums, rows[order], products[order])
    return sums


def _gemm(s: Structure, i: Arrays, rng: np.random.Generator) -> np.ndarray:
    parts = np.zeros((int(rng.integers(1, 5)), s.axes["M"], s.axes["N"]), np.float32)
    for k in rng.permutation(s.axes["K"]):
        parts[k % len(parts)] += i["A"][:, k : k + 1] * i["B"][k]
    return np.add.accumulate(parts[rng.permutation(len(parts))])[-1]


def _layernorm(s: Structure, i: Arrays, rng: np.random.Generator) -> np.ndarray:
    count = np.float32(s.axes["N"])
    centred = i["x"] - _total(i["x"], rng) / count
    variance = _total(centred * centred, rng) / count
    return centred / np.sqrt(variance + np.float32(1e-5)) * i["gamma"] + i["beta"]


def _softmax(_: Structure, i: Arrays, rng: np.random.Generator) -> np.ndarray:
    risen = np.exp(i["x"] - i["x"].max(1, keepdims=True))
    return risen / _total(risen, rng)


ANY_ORDER: dict[str, Sums] = {
    "spmm_csr": _spmm,
    "gemm": _gemm,
    "layernorm": _layernorm,
    "softmax": _softmax,
}


@pytest.mark.parametrize("name", ANY_ORDER)
def test_float32_sums_in_any_order_pass(name: str) -> None:
    problem = registry.get(name)
    for family in problem.families:
        for seed in range(SEEDS):
            structure, inputs, truth = drawn(name, family, seed)
            with np.errstate(invalid="ignore"):
                got = ANY_ORDER[name](structure, inputs, np.random.default_rng(seed))
            assert got.dtype == np.float32
            expected = truth[problem.outputs[0].name]
            failed = gates.first_failure(judged(got, expected, problem.precision, family))
            assert failed is None, (family, seed, structure.axes, failed)


def test_the_orders_that_were_tried_do_differ() -> None:
    shapes = (drawn("layernorm", Family.NORMAL, seed) for seed in itertools.count())
    structure, inputs, _ = next(shape for shape in shapes if shape[0].axes["N"] > 64)
    answers = [_layernorm(structure, inputs, np.random.default_rng(seed)) for seed in range(8)]
    assert len({answer.tobytes() for answer in answers}) > 4


def test_answers_at_the_end_of_the_normal_range_may_be_clamped_or_flushed() -> None:
    problem = registry.get("softmax")
    structure = problem.structure(problem.workload("3x16381"))
    x = np.full((3, 16381), -200, np.float32)  # half of each row is a block without its maximum
    x[:, :8000] = -30
    x[:, 5] = 0
    truth = problem.oracle(structure, {"x": x})["y"]
    for lowest in (-87.0, -np.inf):
        risen = np.exp(np.maximum(x, np.float32(lowest)))
        got = risen / risen.sum(1, keepdims=True)
        found = judged(got, truth, problem.precision, Family.NORMAL)
        assert gates.first_failure(found) is None


def test_small_answers_above_that_range_are_held_to_their_relative_error() -> None:
    value = np.random.default_rng(1).normal(size=(2, 8192))
    value[1] *= 1e-30
    got = value.astype(np.float32)
    got[1] *= np.float32(1.001)
    lax = Expected(value, np.abs(value) * 10, 1e6)
    failed = gates.first_failure(judged(got, lax, Precision(), Family.NORMAL))
    assert failed is not None
    assert failed.name == gates.NRMSE
