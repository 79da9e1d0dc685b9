"""What problems allow in each policy, and the peaks of products by arithmetic."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.arithmetic import Way, arithmetic_of
from kernelwright.kernelbench.products import DEVICES, Product
from kernelwright.kernelbench.targets import ARITHMETIC, Vendor, architecture

BY_CAPABILITY = {"fp16": 70, "int8": 72, "tf32": 80, "bf16": 80, "fp8": 89, "fp4": 100}
"""Since when tensor cores have a type (CUDA C++ Programming Guide, compute capabilities)."""


@pytest.mark.parametrize(
    ("name", "main", "others"),
    [
        ("gemm", (Way("fp32"),), (Way("bf16", 6),)),
        ("gemm_f16", (Way("fp16"),), (Way("fp32"),)),
        ("gemm_bf16", (Way("bf16"),), (Way("fp32"),)),
        ("gemm_tf32", (Way("tf32"),), (Way("fp32"),)),
        ("gemm_tf32x3", (Way("tf32", 3),), (Way("fp32"), Way("bf16", 6))),
        ("gemm_int8", (Way("int8"),), ()),
    ],
)
def test_a_policy_says_what_products_may_be_made_of(
    name: str, main: tuple[Way, ...], others: tuple[Way, ...]
) -> None:
    found = arithmetic_of(registry.get(name))
    assert (found.main, found.others, found.is_product) == (main, others, True)


def test_a_sparse_product_may_be_made_of_tf32_and_is_no_product_of_matrices() -> None:
    """Its tiles are the kernel's own idea: gathers bound it, and float32 is as honest."""
    found = arithmetic_of(registry.get("spmm_csr_tf32"))
    assert (found.main, found.others) == ((Way("tf32"),), (Way("fp32"),))
    assert not found.is_product


def test_of_indices_nothing_is_multiplied() -> None:
    """Of a sparse product in float16: int32 arrays say where, and are no arithmetic."""
    found = arithmetic_of(registry.get("spmm_csr_f16"))
    assert found.main == (Way("fp16"),)
    assert not found.is_product


def test_whole_numbers_that_tensor_cores_do_not_multiply_have_no_peak() -> None:
    problem = registry.get("gemm_int8")
    wide = [t.model_copy(update={"dtype": "int32"}) for t in problem.inputs]
    found = arithmetic_of(replace(problem, inputs=tuple(wide)))
    assert found.main == ()
    assert found.peak({"fp32": 1.0, "int8": 2.0}) is None


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
def test_a_product_has_the_peaks_that_its_tensor_cores_have(device: Product) -> None:
    chip = architecture(device.architecture)
    capability = chip.capability
    has = {kind for kind, least in BY_CAPABILITY.items() if capability >= least}
    if chip.vendor is Vendor.AMD:
        has = chip.matrix_kinds - {"fp64"}
    assert device.tflops.keys() - {"fp32", "fp64"} == has
    assert device.tflops.keys() <= set(ARITHMETIC)
    fp64 = capability in (80, 90, 100) or "fp64" in chip.matrix_kinds
    assert ("fp64" in device.tflops) == fp64
    assert "data sheet (" in device.source
    # Half the width, twice the rate, and more where GeForce holds back what it sums in float32.
    rates = [device.tflops[k] for k in ("tf32", "fp16", "fp8", "fp4") if k in device.tflops]
    assert all(1.9 < b / a < 4.1 for a, b in pairwise(rates))


def test_of_several_ways_the_fastest_bounds_and_only_where_the_main_one_is_known() -> None:
    three = arithmetic_of(registry.get("gemm_tf32x3"))
    a100 = {"fp32": 19.5, "tf32": 156.0, "bf16": 312.0}
    geforce = {"fp32": 35.6, "tf32": 35.6, "bf16": 71.0}
    for rates, way in ((a100, Way("tf32", 3)), (geforce, Way("fp32"))):
        for on_tensor_cores in (False, True):
            found = three.usual_peak(rates, on_tensor_cores=on_tensor_cores)
            assert found is not None
            assert found.way == way
    assert three.peak({"fp32": 19.5}) is None
    strict = arithmetic_of(registry.get("gemm"))
    for on_tensor_cores, way in ((False, Way("fp32")), (True, Way("bf16", 6))):
        found = strict.usual_peak(a100, on_tensor_cores=on_tensor_cores)
        assert found is not None
        assert found.way == way
