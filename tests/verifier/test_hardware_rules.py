"""What a GPU's arithmetic is held to: one rule for CUDA and Triton, as the hardware is documented.

Atomic sums flush denormals, exponentials to the base 2 of x log2(e) are honest, products in three
parts of TF32 are not float32.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import FLUSHED, Expected, Family
from kernelwright.sandbox.triton_on_cpu import products, rounding
from kernelwright.tests.court import Court
from kernelwright.tests.sampling import some_of
from kernelwright.traces.records import Check, Status, Verdict
from kernelwright.verifier.truth import gates

HERE = Path(__file__).parent / "hardware"
LANGUAGES = {".cu": "cuda", ".py": "triton"}
RIGHT = (
    ("spmm_csr", "spmm_atomic.cu"),
    ("spmm_csr", "spmm_atomic.py"),
    ("softmax", "softmax_exp2.cu"),
    ("softmax", "softmax_expf.cu"),
    ("softmax", "softmax_exp2.py"),
    ("gemm", "gemm_bf16x6.py"),
)
TRIED = some_of(
    RIGHT, lambda row: row[1] in ("spmm_atomic.cu", "softmax_exp2.py", "gemm_bf16x6.py")
)
"""In a sample each rule once."""
WRONG = (("gemm", "gemm_3xtf32.cu"), ("gemm", "gemm_tf32x3.py"))


def judged(court: Court, problem: str, name: str) -> Verdict:
    """The full verdict of a file on the target sm_90, emulated."""
    path = HERE / name
    return court.look(
        path.read_text("utf-8"), problem, LANGUAGES[path.suffix], seed=b"hardware rules!!"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "name"), TRIED, ids=[name for _, name in TRIED])
def test_what_hardware_does_is_right(court: Court, problem: str, name: str) -> None:
    verdict = judged(court, problem, name)
    assert verdict.status is Status.SCREENED, verdict.reasons


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.parametrize(("problem", "name"), WRONG, ids=[name for _, name in WRONG])
def test_three_products_in_tf32_are_not_float32(court: Court, problem: str, name: str) -> None:
    verdict = judged(court, problem, name)
    assert verdict.status is Status.INCORRECT, verdict.reasons
    assert gates.PROBE in " ".join(verdict.reasons)


def denormal_checks(target: str) -> list[Check]:
    problem = registry.get("spmm_csr").for_target(target)
    wanted = np.full(8, 3 * 2.0**-128)
    expected = Expected(wanted, np.abs(wanted), 2.0)
    got = np.zeros(8, np.float32)
    return gates.check_output("C", got, expected, problem.precision, Family.DENORMAL, poison=None)


def test_flushed_sums_are_right_on_a_gpu_alone() -> None:
    assert gates.first_failure(denormal_checks("sm_90")) is None
    failed = gates.first_failure(denormal_checks("cpu"))
    assert failed is not None
    assert failed.name == gates.SCALED


def test_a_sum_of_normal_numbers_gains_nothing_on_a_gpu() -> None:
    """The room for denormals is nothing beside a normal number."""
    precision = registry.get("spmm_csr").for_target("sm_90").precision
    assert precision.underflow == FLUSHED
    wanted = np.full(8, 2.0**-100)
    got = (wanted * (1 + 1e-5)).astype(np.float32)
    checks = gates.check_output(
        "C", got, Expected(wanted, wanted, 4.0), precision, Family.NORMAL, poison=None
    )
    assert gates.first_failure(checks) is not None


def worst(name: str) -> float:
    """The largest relative error of a product of two numbers under a split, in u."""
    rng = np.random.default_rng(3)
    a, b = (rng.uniform(1, 2, 20_000).astype(np.float32) for _ in range(2))
    split = products.SPLITS[name]
    left, right = (products.parts(x, split) for x in (a, b))
    made = sum(
        left[one].astype(np.float64) * right[other].astype(np.float64)
        for one, other in split.products
    )
    exact = a.astype(np.float64) * b.astype(np.float64)
    return float(np.max(np.abs(made / exact - 1))) * 2.0**24


def test_how_exact_products_of_parts_are() -> None:
    limit = registry.get("gemm").precision.probe * 2.0**24
    assert worst("TF32") > 1000
    assert worst("TF32x3") > limit
    assert worst("BF16x3") > 100
    assert worst("BF16x6") < limit


def test_exponentials_are_off_by_no_more_than_is_documented() -> None:
    x = np.random.default_rng(5).uniform(-80, 80, 100_000).astype(np.float32)
    # CUDA C++ Programming Guide: __expf(x), 2 + floor(abs(1.173 * x)) units in the last place.
    error = np.abs(rounding.exp(x) / np.exp(x.astype(np.float64)) - 1)
    assert np.all(error <= (2 + np.floor(np.abs(1.173 * x))) * 2.0**-23)
    assert np.max(error) > 20 * 2.0**-24
    base2 = np.abs(rounding.ex2(x) / np.exp2(x.astype(np.float64)) - 1)
    assert 2.0**-24 < np.max(base2) <= 2 * 2.0**-23
    assert list(rounding.ex2(np.float32([0, -np.inf, np.inf]))) == [1, 0, np.inf]
