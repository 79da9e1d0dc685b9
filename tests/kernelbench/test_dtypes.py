"""Element types: their figures are numpy's and torch's, and tensors hold only what is judged."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from pydantic import ValidationError

from kernelwright.errors import UnknownNameError
from kernelwright.kernelbench.dtypes import DTYPES, INT32, TENSORS, DType, Kind, dtype_of
from kernelwright.kernelbench.precision import STRICT_FP32
from kernelwright.kernelbench.problem import FLUSHED, Tensor
from kernelwright.kernelbench.registry import problems

ALL = list(DTYPES.values())
KINDS = {"f": Kind.FLOAT, "i": Kind.SIGNED, "u": Kind.UNSIGNED, "b": Kind.BOOL}


@pytest.mark.parametrize("dtype", [each for each in ALL if each.in_numpy], ids=str)
def test_numpy_agrees(dtype: DType) -> None:
    told = np.dtype(dtype.name)
    assert (told.itemsize, KINDS[told.kind]) == (dtype.bytes, dtype.kind)
    if dtype.is_float:
        facts = np.finfo(told)
        assert dtype.roundoff == facts.eps / 2
        assert dtype.smallest_normal == facts.smallest_normal
        assert dtype.smallest == facts.smallest_subnormal
        assert dtype.largest == facts.max


@pytest.mark.parametrize("dtype", [each for each in ALL if not each.in_numpy], ids=str)
def test_ml_dtypes_agrees(dtype: DType) -> None:
    told = np.dtype(getattr(ml_dtypes, dtype.name))
    facts = ml_dtypes.finfo(told)
    assert (told.itemsize, facts.bits) == (dtype.bytes, dtype.bits)
    assert dtype.roundoff == facts.eps / 2
    assert dtype.smallest_normal == facts.smallest_normal
    assert dtype.smallest == facts.smallest_subnormal
    assert dtype.largest == facts.max


@pytest.mark.parametrize("dtype", [each for each in ALL if not each.in_numpy], ids=str)
def test_what_is_no_number_is_as_declared(dtype: DType) -> None:
    codes = np.arange(1 << dtype.bits, dtype=np.uint32).astype(f"u{dtype.bytes}")
    with np.errstate(invalid="ignore"):
        numbers = codes.view(getattr(ml_dtypes, dtype.name)).astype(np.float64)
    assert np.isnan(numbers).any() == dtype.has_nan
    assert np.isinf(numbers).any() == dtype.has_infinity
    assert np.nanmax(numbers[np.isfinite(numbers)]) == dtype.largest
    assert (0.0 not in numbers and (numbers > 0).sum() == 255) == dtype.is_scale


@pytest.mark.parametrize("dtype", [each for each in ALL if not each.packed_bits], ids=str)
def test_torch_agrees(dtype: DType) -> None:
    told = getattr(torch, dtype.name)
    assert told.itemsize == dtype.bytes
    assert told.is_floating_point == dtype.is_float != dtype.is_integral
    if dtype.is_float:
        facts = torch.finfo(told)
        assert dtype.roundoff == facts.eps / 2
        assert (dtype.smallest_normal, dtype.largest) == (facts.tiny, facts.max)


def test_torch_packs_what_shares_a_byte() -> None:
    packed = [each for each in ALL if each.packed_bits]
    assert [each.name for each in packed] == ["float4_e2m1fn"]
    for each in packed:
        assert 8 * getattr(torch, f"{each.name}_x2").itemsize == 2 * each.bits


def test_no_two_types_share_a_word() -> None:
    for words in ("spellings", "vectors", "pairs"):
        found = [word for each in ALL for word in getattr(each, words)]
        assert len(found) == len(set(found)), words


def test_what_does_not_round_has_no_roundoff() -> None:
    assert INT32.roundoff == 0.0
    with pytest.raises(UnknownNameError, match="float23"):
        dtype_of("float23")


def test_the_usual_precision_is_that_of_float32() -> None:
    assert (STRICT_FP32.u_acc, STRICT_FP32.u_out, STRICT_FP32.probe) == (2**-24, 2**-24, 2**-22)
    assert (STRICT_FP32.underflow, FLUSHED) == (2**-149, 2**-126)


@pytest.mark.parametrize("dtype", TENSORS, ids=str)
def test_what_is_judged_has_a_name_in_entry_points(dtype: DType) -> None:
    assert dtype.c


def test_every_problem_holds_what_is_judged() -> None:
    known = {dtype.name for dtype in TENSORS}
    assert {t.dtype for problem in problems() for t in problem.tensors} <= known


def test_a_tensor_holds_a_type_that_there_is() -> None:
    assert Tensor(name="x", dtype="bfloat16", shape=("N",)).dtype == "bfloat16"
    with pytest.raises(ValidationError, match="is none of float64, float32"):
        Tensor(name="x", dtype="float23", shape=("N",))
