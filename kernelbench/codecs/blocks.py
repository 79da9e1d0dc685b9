# SPDX-License-Identifier: Apache-2.0
"""Block formats: MX, whose scales are powers of two, and NVFP4, whose scales have two levels.

Blocks lie along the last axis. What is not finite makes its whole block NaN, through the scale.
Codes stand one to a byte here; `packing.py` puts 4-bit ones together.

Sources: OCP Microscaling Formats (MX) Specification 1.0, section 6.3, for the scale of a block;
NVIDIA, "Pretraining Large Language Models with NVFP4" (2025) and the manuals of cuDNN and
Transformer Engine for NVFP4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...errors import UsageError
from ..dtypes import FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E8M0FNU, FLOAT32, DType
from .elements import Overflow, encode, float64_of
from .scaled import split_blocks

MX_BLOCK = 32
NVFP4_BLOCK = 16
MX_ELEMENTS = (FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1FN)
"""Elements of MXFP8, in either type, and of MXFP4."""


@dataclass(frozen=True)
class MX:
    """Values of an MX format."""

    codes: np.ndarray
    """Elements, of the values' shape (..., K) and of the host's type."""
    scales: np.ndarray
    """Of shape (..., K / 32), in e8m0."""


@dataclass(frozen=True)
class NVFP4:
    """Values in NVFP4."""

    codes: np.ndarray
    """Elements, of the values' shape (..., K), in e2m1."""
    scales: np.ndarray
    """Of shape (..., K / 16), in e4m3, never negative."""
    tensor_scale: np.float32
    """Of all blocks."""


def encode_mx(values: np.ndarray, element: DType, *, random: np.ndarray | None = None) -> MX:
    """Values in blocks of 32 with one power of two each.

    The power is floor(log2 amax) - emax, where emax is the exponent of the element type's largest
    number, kept within those of e8m0. Elements are value / scale, and saturate. A block of zeros
    has the smallest scale; one that holds NaN or an infinity has NaN as its scale and codes of 0.

    Args:
        values: floats of shape (..., K); K is a multiple of 32.
        element: one of MX_ELEMENTS.
        random: uniform uint32 of the values' shape, for stochastic rounding of elements.

    Raises:
        UsageError: if the element type is none of MX, or if K does not divide.
    """
    if element not in MX_ELEMENTS:
        raise UsageError(
            f"{element} is no element of an MX format here",
            hint=f"known: {', '.join(map(str, MX_ELEMENTS))}",
        )
    parts = split_blocks(float64_of(values), MX_BLOCK)
    amax, is_nan = _largest(parts)
    _, behind = np.frexp(amax)
    power = behind - 1 - (math.frexp(element.largest)[1] - 1)
    power = np.clip(power, FLOAT8_E8M0FNU.least_exponent, math.frexp(FLOAT8_E8M0FNU.largest)[1] - 1)
    power = np.where(amax == 0, FLOAT8_E8M0FNU.least_exponent, power)
    steps = np.ldexp(np.where(is_nan, 0.0, parts), -power)
    scales = np.where(is_nan, np.nan, np.ldexp(1.0, power))[..., 0]
    return MX(
        _elements(steps, element, random),
        encode(scales, FLOAT8_E8M0FNU, overflow=Overflow.NONFINITE),
    )


def decode_mx(mx: MX) -> np.ndarray:
    """Element times scale in float64, of the codes' shape; nothing is rounded.

    Raises:
        UsageError: if the codes have no whole blocks.
    """
    elements = split_blocks(mx.codes.astype(np.float64), MX_BLOCK)
    found: np.ndarray = elements * mx.scales.astype(np.float64)[..., None]
    return found.reshape(mx.codes.shape)


def encode_nvfp4(values: np.ndarray, *, random: np.ndarray | None = None) -> NVFP4:
    """Values in blocks of 16 with a scale each, times one scale of the tensor.

    The tensor's scale is amax / (6 * 448) in float32, and 1 where all is zero; a block's is
    amax of the block / 6 / tensor's scale in e4m3, to nearest. Elements are
    value / (block's scale * tensor's scale) and saturate. All quotients are of float64: a kernel
    that multiplies with float32 reciprocals may differ by one code where this is near a tie.

    A block so small that its scale rounds to 0 is zero. One that holds NaN or an infinity has NaN
    as its scale and codes of 0, and no part in the tensor's amax.

    Args:
        values: floats of shape (..., K); K is a multiple of 16.
        random: uniform uint32 of the values' shape, for stochastic rounding of elements.

    Raises:
        UsageError: if K does not divide, or the tensor's scale is too large for float32.
    """
    parts = split_blocks(float64_of(values), NVFP4_BLOCK)
    amax, is_nan = _largest(parts)
    tensor_scale = _tensor_scale(float(np.max(amax, initial=0.0)))
    wanted = np.where(is_nan, np.nan, amax / FLOAT4_E2M1FN.largest / float(tensor_scale))
    scales = encode(wanted, FLOAT8_E4M3FN, overflow=Overflow.SATURATE)
    stored = scales.astype(np.float64)
    divisor = np.where(stored > 0, stored, 1.0) * float(tensor_scale)
    steps = np.where(stored > 0, parts, 0.0) / divisor
    return NVFP4(_elements(steps, FLOAT4_E2M1FN, random), scales[..., 0], tensor_scale)


def decode_nvfp4(nvfp4: NVFP4) -> np.ndarray:
    """Element times both scales in float64, of the codes' shape; nothing is rounded.

    Raises:
        UsageError: if the codes have no whole blocks.
    """
    elements = split_blocks(nvfp4.codes.astype(np.float64), NVFP4_BLOCK)
    scales = nvfp4.scales.astype(np.float64)[..., None] * float(nvfp4.tensor_scale)
    found: np.ndarray = elements * scales
    return found.reshape(nvfp4.codes.shape)


def _tensor_scale(amax: float) -> np.float32:
    """Of all blocks, as it is stored."""
    wanted = amax / (FLOAT4_E2M1FN.largest * FLOAT8_E4M3FN.largest)
    if not amax:
        return np.float32(1.0)
    if wanted > FLOAT32.largest:
        raise UsageError(
            f"the largest value, {amax:g}, makes a scale beyond float32",
            hint="scale the tensor down first",
        )
    return np.float32(max(wanted, FLOAT32.smallest))


def _elements(steps: np.ndarray, element: DType, random: np.ndarray | None) -> np.ndarray:
    """Blocks as elements, of the shape of the values that they are."""
    flat = steps.reshape(*steps.shape[:-2], steps.shape[-2] * steps.shape[-1])
    return encode(flat, element, overflow=Overflow.SATURATE, random=random)


def _largest(parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """amax of each block, 0 where it is not finite, and whether that is so; of shape (..., 1)."""
    is_nan = ~np.isfinite(parts).all(axis=-1, keepdims=True)
    amax = np.max(np.abs(np.where(is_nan, 0.0, parts)), axis=-1, keepdims=True, initial=0.0)
    return amax, is_nan
