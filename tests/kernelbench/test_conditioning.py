"""Scales that are measured, where a problem's file gives none: right kernels pass, wrong do not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.cauchy import CHUNK, FARTHEST, KEPT_CHUNKS, Numbers
from kernelwright.kernelbench.conditioning import DRAWS, count_terms, measure_conditions
from kernelwright.kernelbench.definition import OWN, run_text
from kernelwright.kernelbench.dtypes import FLOAT32
from kernelwright.kernelbench.precision import STRICT_FP32
from kernelwright.kernelbench.problem import Expected, Family
from kernelwright.verifier.truth import gates

Function = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
ROWS, LONG = 40, 600


def product(of: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"y": of["a"] @ of["b"]}


def softmax(of: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    risen = np.exp(of["a"] - of["a"].max(1, keepdims=True))
    return {"y": risen / risen.sum(1, keepdims=True)}


def normalised(of: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    a = of["a"]
    return {"y": (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5)}


def above_one(of: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"y": np.exp(of["a"]) - 1}


def worst(expected: Expected, got: np.ndarray) -> float:
    """Of the error to its limit (gate G1)."""
    limit = 4 * STRICT_FP32.u_acc * np.sqrt(expected.terms) * expected.scale
    limit = limit + 2 * STRICT_FP32.u_out * np.abs(expected.value)
    return float(np.max(np.abs(got.astype(np.float64) - expected.value) / limit))


def drawn(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((ROWS, LONG), np.float32)
    return {"a": a * np.float32(2), "b": rng.standard_normal((LONG, ROWS), np.float32)}


def measured(oracle: Function, inputs: dict[str, np.ndarray]) -> Expected:
    terms = count_terms(oracle, inputs)
    return measure_conditions(oracle, inputs, terms, oracle(inputs))["y"]


def running_sum(of: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One sum after the other in float32, as a plain kernel has it."""
    y = np.zeros((ROWS, ROWS), np.float32)
    for k in range(LONG):
        y += of["a"][:, k, None] * of["b"][None, k]
    return {"y": y}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("oracle", "kernel"),
    [
        (product, running_sum),
        (product, product),
        (softmax, softmax),
        (normalised, normalised),
        (above_one, above_one),
        (above_one, lambda of: {"y": np.expm1(of["a"])}),
    ],
)
def test_what_computes_in_float32_is_right(oracle: Function, kernel: Function, seed: int) -> None:
    inputs = drawn(seed)
    expected = measured(oracle, inputs)
    assert worst(expected, kernel(inputs)["y"]) < 0.8


@pytest.mark.parametrize("oracle", [product, softmax, normalised])
def test_what_leaves_a_term_out_or_rounds_to_halves_is_wrong(oracle: Function) -> None:
    inputs = drawn(5)
    expected = measured(oracle, inputs)
    shorter = {"a": inputs["a"].copy(), "b": inputs["b"]}
    shorter["a"][:, 17] = 0
    halves = {name: array.astype(np.float16).astype(np.float32) for name, array in inputs.items()}
    assert worst(expected, oracle(shorter)["y"]) > 1
    assert worst(expected, oracle(halves)["y"]) > 1


@pytest.mark.parametrize(
    ("oracle", "count"), [(product, 2 * LONG), (softmax, LONG), (above_one, 1)]
)
def test_terms_are_counted(oracle: Function, count: int) -> None:
    assert count / 1.5 <= count_terms(oracle, drawn(2))["y"] <= 1.5 * count


def test_the_terms_of_a_single_answer_are_counted_roughly() -> None:
    inputs = drawn(2)
    counted = count_terms(lambda of: {"y": of["a"].sum()}, inputs)["y"]
    assert inputs["a"].size / 16 <= counted <= inputs["a"].size * 16


@pytest.mark.parametrize("oracle", [product, softmax, above_one])
def test_where_they_were_found_before_they_are_found_in_four_calls(
    oracle: Function,
) -> None:
    calls = 0

    def counting(of: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        nonlocal calls
        calls += 1
        return oracle(of)

    near: dict[str, int] = {}
    # Other data of the same shapes: only those count.
    first = count_terms(counting, drawn(1), near=near)
    alone, calls = calls, 0
    assert count_terms(counting, drawn(2), near=near) == first
    assert calls <= min(4, alone)
    # A wrong place to begin costs calls, and changes no answer.
    for wrong in (0, 2, 40):
        assert count_terms(oracle, drawn(2), near={"y": wrong}) == first


def test_moves_are_one_sequence_of_finite_numbers_of_cauchy() -> None:
    whole, parts = Numbers(), Numbers()
    sizes = (7, CHUNK - 3, 2 * CHUNK, 1, 0)
    found = whole.take(sum(sizes))
    assert np.array_equal(found, np.concatenate([parts.take(size) for size in sizes]))
    assert np.isfinite(Numbers().take(KEPT_CHUNKS * CHUNK)).all()
    # Half of them lie within 1, and a quarter beyond tan(3/8 pi).
    sizes_of = np.abs(found / FLOAT32.roundoff)
    assert np.mean(sizes_of < 1) == pytest.approx(0.5, abs=0.005)
    assert np.mean(sizes_of > 2.414) == pytest.approx(0.25, abs=0.005)
    assert sizes_of.max() <= FARTHEST


def test_scales_are_the_sums_of_the_terms() -> None:
    inputs = drawn(4)
    expected = measured(product, inputs)
    terms = 2 * np.abs(inputs["a"]).astype(np.float64) @ np.abs(inputs["b"])
    ratio = expected.scale / terms
    assert 1.5 < np.median(ratio) < 3.5
    assert np.quantile(ratio, 0.01) > 0.3


def test_the_same_inputs_have_the_same_scales() -> None:
    one, other = (measured(product, drawn(3)) for _ in range(2))
    assert np.array_equal(one.scale, other.scale)


def test_what_is_not_finite_leaves_its_scale_out() -> None:
    inputs = drawn(7)
    inputs["a"][3, 5] = np.inf
    inputs["a"][4, 5] = np.nan
    expected = measured(product, inputs)
    assert np.isfinite(expected.scale).all()
    checks = gates.check_output(
        "y",
        product(inputs)["y"].astype(np.float32),
        expected,
        STRICT_FP32,
        Family.NONFINITE,
        poison=None,
    )
    assert gates.first_failure(checks) is None


def gelu(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    x = inputs["x"]
    inner = x.dtype.type(0.7978845608) * (x + x.dtype.type(0.044715) * x**3)
    return {"y": x.dtype.type(0.5) * x * (x.dtype.type(1) + np.tanh(inner))}


def test_what_float64_loses_is_no_error_where_float32_loses_nothing() -> None:
    """Of arguments far from 0 alone: the gelu is the argument, or 0, in float32 and in float64."""
    x = np.array([[-7.2, 11, -30, 60, 24, -16]], np.float32)
    rounded = {"y": gelu({"x": x})["y"].astype(np.float64)}
    expected = measure_conditions(gelu, {"x": x}, {"y": 1.0}, rounded)["y"]
    assert expected.value[0, 0] == rounded["y"][0, 0] == 0
    assert 4 * FLOAT32.roundoff * expected.scale[0, 0] > 4e-16
    assert expected.scale[0, 0] < 1e-13 / FLOAT32.roundoff


def test_a_column_of_elements_is_looked_at_together() -> None:
    """A gelu of -9 is 0 in float64, and a right kernel of another form gives -4e-16."""
    x = np.linspace(-9, 9, 640, dtype=np.float32).reshape(-1, 1)
    x[1:] = np.random.default_rng(1).permutation(x[1:])
    rounded = {"y": gelu({"x": x})["y"].astype(np.float64)}
    expected = measure_conditions(gelu, {"x": x}, {"y": 1.0}, rounded)["y"]
    assert expected.value[0, 0] == 0
    assert 4 * FLOAT32.roundoff * expected.scale[0, 0] > 4e-16
    # It stays tight, too.
    assert expected.scale[0, 0] < 1e-6 / FLOAT32.roundoff


def test_values_alone_are_those_of_measured_answers_and_ask_the_file_twice() -> None:
    text, answer = registry.template_of("swi"), "return x / (1 + np.exp(-x)) * gate"
    assert answer in text
    text = text.replace(answer, f"ASKED.append(x.dtype)\n    {answer}") + "\nASKED = []\n"
    problem = run_text("swi", text, "swi.py")
    asked = sys.modules[f"{OWN}swi"].ASKED
    structure = problem.structure(problem.workload("tiny"))
    inputs = problem.values(structure, Family.NORMAL, np.random.default_rng(0))
    measured = problem.oracle(structure, inputs)["y"]
    assert len(asked) > DRAWS
    asked.clear()
    np.testing.assert_array_equal(problem.answer(structure, inputs)["y"], measured.value)
    assert asked == [np.float32, np.float64]


def test_values_of_scales_that_a_file_gives_are_its_own() -> None:
    problem = registry.get("softmax")
    structure = problem.structure(problem.workload("tiny"))
    inputs = problem.values(structure, Family.NORMAL, np.random.default_rng(0))
    expected = problem.oracle(structure, inputs)
    for name, value in problem.answer(structure, inputs).items():
        np.testing.assert_array_equal(value, expected[name].value)
