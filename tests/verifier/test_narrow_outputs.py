# SPDX-License-Identifier: Apache-2.0
"""Answers of narrow types: what one rounding to nearest leaves passes, and nothing worse."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from kernelwright.errors import NotDiscriminatingError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.codecs import host_dtype
from kernelwright.kernelbench.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT8, DType, dtype_of
from kernelwright.kernelbench.problem import Expected, Family
from kernelwright.traces.records import Check
from kernelwright.verifier.truth import gates, null_kernels, poison, soundness
from kernelwright.verifier.truth.input_pool import Pool
from kernelwright.verifier.truth.trials import Item, make_item

HALVES = ("gemm_f16", "gemm_bf16", "softmax_f16", "rmsnorm_bf16", "spmm_csr_f16", "bias_gelu_bf16")
SHAPES, MOST_BYTES = 6, 1 << 20


def items(name: str) -> list[Item]:
    """Every family on the tiny workload, and on a few hidden shapes."""
    problem, rng = registry.get(name), np.random.default_rng(1)
    tiny = soundness.tiny_of(problem)
    drawn = [tiny, *itertools.islice(problem.variations(tiny, rng), SHAPES)]
    small = [s for s in drawn if problem.bytes_moved(s.axes) <= MOST_BYTES]
    return [make_item(problem, s, family, rng) for s in small for family in problem.families]


def judge(item: Item, output: str, got: np.ndarray) -> Check | None:
    expected, precision = item.expected[output], item.problem.precision
    return gates.first_failure(
        gates.check_output(output, got, expected, precision, item.family, poison=None)
    )


def truncate(value: np.ndarray, dtype: DType) -> np.ndarray:
    """Cut where the type's digits end."""
    with np.errstate(all="ignore"):
        bits = value.astype(np.float32).view(np.uint32)
        cut = bits & np.uint32((0xFFFFFFFF << (FLOAT32.digits - dtype.digits)) & 0xFFFFFFFF)
        found: np.ndarray = cut.view(np.float32).astype(host_dtype(dtype))
    return found


@pytest.mark.parametrize("name", HALVES)
def test_a_float32_answer_that_is_rounded_once_passes(name: str) -> None:
    rng = np.random.default_rng(2)
    for item in items(name):
        for output, expected in item.expected.items():
            dtype = host_dtype(dtype_of(item.problem.outputs[0].dtype))
            with np.errstate(all="ignore"):
                off = rng.uniform(-(2.0**-23), 2.0**-23, expected.value.shape)
                got = (expected.value * (1 + off)).astype(np.float32).astype(dtype)
            assert judge(item, output, got) is None, (item.structure.axes, item.family)


@pytest.mark.parametrize("name", HALVES)
def test_cutting_in_place_of_rounding_is_found(name: str) -> None:
    dtype, count = dtype_of(registry.get(name).outputs[0].dtype), 0
    for item in items(name):
        for output, expected in item.expected.items():
            cut = truncate(expected.value, dtype)
            with np.errstate(over="ignore"):
                is_other = cut != expected.value.astype(host_dtype(dtype))
            if item.family is Family.NORMAL and np.count_nonzero(is_other) > 100:
                count += 1
                assert judge(item, output, cut), item.structure.axes
    assert count


def test_a_second_rounding_on_the_way_is_found() -> None:
    """A float16 that was a bfloat16 before."""
    for item in items("gemm_f16"):
        if item.family is Family.NORMAL and item.expected["C"].value.size > 100:
            twice = item.expected["C"].value.astype(ml_dtypes.bfloat16).astype(np.float16)
            assert judge(item, "C", twice)


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16])
def test_what_nobody_wrote_is_seen(dtype: DType) -> None:
    got = np.ones((3, 5), host_dtype(dtype))
    for pattern in poison.PATTERNS:
        output = got.copy()
        poison.fill(output, pattern)
        assert poison.find_left(output, pattern).all()
        assert np.isnan(output.astype(np.float32)).all()
        output[0, 0] = 1
        assert poison.find_left(output, pattern).sum() == output.size - 1
        words = np.ascontiguousarray(output[1:].reshape(-1)).view(np.uint32)
        assert (words == poison.word_of(pattern, dtype.bytes)).all()
    assert not poison.is_telling(INT8)


def test_the_end_of_the_range_is_the_largest_number_or_infinity() -> None:
    expected = Expected(np.array([65519.0, 65520.1, 70000.0, 60000.0]), np.full(4, 7e4))
    precision = registry.get("gemm_f16").precision

    def passes(*got: float) -> bool:
        answer = np.array(got, np.float16)
        found = gates.check_output("C", answer, expected, precision, Family.NORMAL, poison=None)
        return gates.first_failure(found) is None

    with np.errstate(over="ignore"):
        assert passes(65504, 65504, np.inf, 60000)
        assert passes(np.inf, np.inf, np.inf, 60000)
        assert not passes(65504, 65504, 65504, 60000)
        assert not passes(65504, 65504, np.inf, np.inf)


def test_factors_in_bfloat16_are_no_tf32() -> None:
    def cut(array: np.ndarray, bits: int) -> np.ndarray:
        keep = np.uint32((0xFFFFFFFF << bits) & 0xFFFFFFFF)
        return (array.view(np.uint32) & keep).view(np.float32).astype(np.float64)

    seen = set()
    for item in items("gemm_tf32"):
        a, b = item.inputs["A"], item.inputs["B"]
        if item.family in (Family.PROBE, Family.NORMAL) and item.expected["C"].value.size > 100:
            assert judge(item, "C", (cut(a, 13) @ cut(b, 13)).astype(np.float32)) is None
            rounded = [x.astype(ml_dtypes.bfloat16).astype(np.float64) for x in (a, b)]
            if judge(item, "C", (rounded[0] @ rounded[1]).astype(np.float32)):
                seen.add(item.family)
    assert Family.PROBE in seen


@pytest.mark.parametrize("name", ["gemm_tf32x3", "gemm_tf32", "gemm_bf16", "gemm_f16"])
def test_fewer_digits_of_the_inputs_are_a_null_kernel(name: str) -> None:
    problem = registry.get(name)
    found = null_kernels.admit(problem, soundness.tiny_of(problem), np.random.default_rng(0))
    assert "null kernel 'downcast' rejected" in [check.name for check in found]


def test_int8_is_exact_and_uses_its_range() -> None:
    problem, rng = registry.get("gemm_int8"), np.random.default_rng(0)
    assert problem.precision.policy == "exact-integers"
    assert Family.PROBE not in problem.families
    item = make_item(problem, soundness.tiny_of(problem), Family.NORMAL, rng)
    a, b = item.inputs["A"], item.inputs["B"]
    assert a.dtype == np.int8
    assert np.abs(a.astype(int)).max() == 127
    right = a.astype(np.int32) @ b.astype(np.int32)
    assert judge(item, "C", right) is None
    right[3, 4] += 1
    assert judge(item, "C", right)


@pytest.mark.parametrize("name", ["softmax_f16", "softmax_bf16"])
def test_timed_inputs_are_never_the_same_again(name: str) -> None:
    problem, rng = registry.get(name), np.random.default_rng(0)
    structure = problem.structure(problem.workload("tiny"))
    pool = Pool.draw(problem, structure, rng)
    assert "x" in pool.held
    rows = [row.tobytes() for _ in range(20) for row in pool.item(structure, rng).inputs["x"]]
    assert len(set(rows)) == len(rows)


def test_halves_that_show_nothing_are_refused() -> None:
    """Of an answer with one element of few digits no downcast could be told."""
    problem = registry.get("spmv_csr_bf16")
    tiny = soundness.tiny_of(problem)
    try:
        found = null_kernels.admit(problem, tiny, np.random.default_rng(0))
    except NotDiscriminatingError as error:
        pytest.fail(str(error))
    assert all(check.passed for check in found)
