# SPDX-License-Identifier: Apache-2.0
"""Drawn numbers as tensors of their type hold them, and what an oracle is given of these.

Families and the `values` of problems draw float32. A tensor of a narrower type holds what is
nearest to that, after it was brought into the type's range where it lies beyond; the truth is that
of the numbers that the tensor holds.
"""

from __future__ import annotations

import numpy as np

from .codecs import host_dtype
from .dtypes import DTYPES, DType, dtype_of
from .problem import Arrays, Family, Tensor

SUMMED = 64.0
"""Factors of a float16 product are no larger, so that most of its sums are finite."""
LARGE_CODES = 0.75
"""Share of an integer type's largest from which its LARGE ones lie, all of one sign: a thousand
products of int8 are beyond what float32 counts exactly, and none of 130,000 beyond int32."""
MANY = 1 / 64
"""Share of elements beyond the range from which all are scaled; fewer are cut off at its end."""
_FLOAT32_DENORMAL, _LIFT = 2.0**-126, 2.0**113
"""What is denormal in float32 is lifted by so much to be denormal in float16."""


def store(
    array: np.ndarray, tensor: Tensor, family: Family, *, is_summed: bool, is_constant: bool
) -> np.ndarray:
    """The numbers of a draw as the tensor holds them, C-contiguous.

    Args:
        array: as it was drawn; what is no float32 stays as it is, and is refused where it has
            another type than the tensor.
        is_summed: whether it is a factor of long sums, whose results have its type.
        is_constant: whether its numbers mean something: they are rounded, and not scaled.
    """
    dtype = dtype_of(tensor.dtype)
    host = host_dtype(dtype)
    if array.dtype == host or array.dtype != np.float32:
        return array
    if dtype.is_integral:
        return _quantise(array, dtype, family, is_constant=is_constant)
    if not is_constant and not dtype.is_wide:
        array = _bring_into_range(array, min(SUMMED, dtype.largest) if is_summed else dtype.largest)
    with np.errstate(over="ignore"):
        found: np.ndarray = array.astype(host)
    return found


def widen(arrays: Arrays, *, also_integers: bool) -> Arrays:
    """What an oracle is given: narrow floats in float32, which holds them all.

    Args:
        also_integers: small ones as well, of a file that was written for floats.
    """
    return {
        name: array.astype(np.float32) if _is_narrow(array, also_integers) else array
        for name, array in arrays.items()
    }


def _is_narrow(array: np.ndarray, also_integers: bool) -> bool:
    known = DTYPES.get(array.dtype.name)
    return known is not None and known.bytes < 4 and (known.is_float or also_integers)


def _bring_into_range(array: np.ndarray, most: float) -> np.ndarray:
    size = np.abs(array)
    beyond = np.isfinite(array) & (size > most)
    if beyond.any():
        if np.count_nonzero(beyond) > MANY * array.size:
            largest = float(size[np.isfinite(array)].max())
            array = array * np.float32(2.0 ** np.floor(np.log2(most / largest)))
        else:
            array = np.where(beyond, np.copysign(np.float32(most), array), array)
    is_tiny = (size > 0) & (size < _FLOAT32_DENORMAL)
    lifted: np.ndarray = array * np.where(is_tiny, np.float32(_LIFT), np.float32(1))
    return lifted


def _make_large(array: np.ndarray) -> np.ndarray:
    """The same order of sizes, from LARGE_CODES to 1, with the sign of the first; 0 stays 0."""
    size = np.abs(array)
    filled = LARGE_CODES + (1 - LARGE_CODES) * size / (size.max(initial=0.0) or 1.0)
    sign = -1.0 if array.size and array.flat[0] < 0 else 1.0
    large: np.ndarray = np.where(size > 0, sign * filled, 0.0).astype(array.dtype)
    return large


def _quantise(array: np.ndarray, dtype: DType, family: Family, *, is_constant: bool) -> np.ndarray:
    """Whole numbers: small ones as they are, others such that the largest becomes the type's
    largest (absmax quantisation); LARGE ones near that, so that sums show what a narrow one loses.
    """
    most = 2 ** (dtype.bits - 1) - 1
    if most > 1 << 24:
        # float32 has no such largest number, but the one behind it.
        array = array.astype(np.float64)
    if family is Family.LARGE and not is_constant:
        array = _make_large(array)
    if family is not Family.EXACT and not is_constant:
        largest = float(np.abs(array).max(initial=0.0)) or 1.0
        array = array * (most / largest)
    if not np.issubdtype(host_dtype(dtype), np.signedinteger):
        array = np.abs(array)
    quantised: np.ndarray = np.clip(np.rint(array), -most, most).astype(host_dtype(dtype))
    return quantised
