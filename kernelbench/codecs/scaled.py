# SPDX-License-Identifier: Apache-2.0
"""Scaled codes: integers or small floats times a scale for each tensor, row, channel or group.

Everything is computed in float64 from the values and from scales as they are stored, so each code
is rounded once; decoded values are exact in float64 where scales are float32 or narrower.

Sources: the affine mapping is that of Jacob et al., "Quantization and Training of Neural Networks
for Efficient Integer-Arithmetic-Only Inference" (2018), with the range made to hold zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ...errors import UsageError
from ..dtypes import FLOAT32, DType
from .elements import Overflow, encode, first_place, float64_of, round_steps
from .packing import Integers


class Scope(StrEnum):
    """What shares one scale, of values of shape (..., K)."""

    TENSOR = "tensor"
    """All; scales have shape (1, ..., 1)."""
    ROW = "row"
    """What differs in the last index alone; scales have shape (..., 1)."""
    CHANNEL = "channel"
    """What has the same last index; scales have shape (1, ..., 1, K)."""
    GROUP = "group"
    """So many neighbours along the last axis; scales have shape (..., K / group)."""


@dataclass(frozen=True)
class Scheme:
    """How values are quantised."""

    codes: Integers | DType
    """What is stored for each value; a float type saturates."""
    scope: Scope
    group: int = 0
    """Values of a group; 0 for other scopes."""
    has_zero_points: bool = False
    """Whether codes are of the range from the least value to the largest, each with zero;
    else of -amax to amax, without the lowest code of signed integers."""
    scale: DType = FLOAT32
    """The float type in which scales are stored, rounded to nearest."""

    def __post_init__(self) -> None:
        if (self.scope is Scope.GROUP) != (self.group > 0):
            raise UsageError(
                f"a scale for each {self.scope} with group = {self.group}",
                hint="groups, and nothing else, have a size of at least 1",
            )
        if not (self.scale.is_float and self.scale.has_nan):
            raise UsageError(f"scales of {self.scale}", hint="store them in float32 or float16")
        if isinstance(self.codes, Integers):
            if not (self.codes.is_signed or self.has_zero_points):
                raise UsageError(
                    f"{self.codes} without zero points cannot be negative",
                    hint="declare zero points or signed integers",
                )
        elif self.has_zero_points or self.codes.is_scale or not self.codes.is_float:
            raise UsageError(
                f"codes of {self.codes}{' with zero points' * self.has_zero_points}",
                hint="declare Integers, or without zero points a float type such as float8_e4m3fn",
            )

    @property
    def largest_code(self) -> float:
        """What amax is encoded as where there are no zero points: 127 of int8, 448 of e4m3."""
        return self.codes.highest if isinstance(self.codes, Integers) else self.codes.largest


@dataclass(frozen=True)
class Scaled:
    """Values as codes and scales."""

    codes: np.ndarray
    """Of the values' shape: int8, uint8 or the host's type of the float."""
    scales: np.ndarray
    """Positive, of the shape that the scope says."""
    zero_points: np.ndarray | None
    """The codes of zero, of the scales' shape and the codes' type; None where there are none."""


def encode_scaled(
    values: np.ndarray, scheme: Scheme, *, random: np.ndarray | None = None
) -> Scaled:
    """Values as codes with scales: amax / largest code, or (largest - least) / (codes - 1).

    A scale that would be zero is 1 where all values are zero, else the smallest of its type. With
    zero points a code is round(value / scale) + zero point, and the zero point is
    round(lowest code - least value / scale), both kept within the codes.

    Args:
        values: finite floats of shape (..., K), with at least one axis.
        scheme: what is stored, and what shares a scale.
        random: uniform uint32 of the values' shape, for stochastic rounding of codes; scales and
            zero points go to the nearest always.

    Raises:
        UsageError: if a value is not finite, if K is no multiple of the group, or if a scale is
            too large for its type.
    """
    exact = float64_of(values)
    if not np.isfinite(exact).all():
        at = first_place(~np.isfinite(exact))
        raise UsageError(
            f"the value at {at} is {exact[at]}, which no scale can hold",
            hint="remove it, or use a block format, whose scale can be NaN",
        )
    parts = _split(exact, scheme)
    noise = None if random is None else _split(random, scheme)
    least, most = _reduce(np.minimum, parts, scheme), _reduce(np.maximum, parts, scheme)
    if scheme.has_zero_points:
        assert isinstance(scheme.codes, Integers)
        # By halves: the whole range may be beyond float64.
        steps = scheme.codes.highest - scheme.codes.lowest
        wanted = (most / 2 - least / 2) / (steps / 2)
    else:
        wanted = np.maximum(most, -least) / scheme.largest_code
    scales = _scales(wanted, least == most, scheme)
    codes, zeros = _codes(parts, scales.astype(np.float64), least, scheme, noise)
    return Scaled(
        codes.reshape(values.shape),
        _drop_group_axis(scales, scheme),
        None if zeros is None else _drop_group_axis(zeros, scheme),
    )


def decode_scaled(scaled: Scaled, scheme: Scheme) -> np.ndarray:
    """(code - zero point) * scale in float64, of the codes' shape.

    Nothing is rounded, unless scales are float64 themselves.

    Raises:
        UsageError: if the codes' last axis is no multiple of the group.
    """
    steps = _split(scaled.codes, scheme).astype(np.float64)
    is_group = scheme.scope is Scope.GROUP
    if scaled.zero_points is not None:
        zeros = scaled.zero_points
        steps = steps - (zeros[..., None] if is_group else zeros)
    scales = scaled.scales.astype(np.float64)
    found: np.ndarray = steps * (scales[..., None] if is_group else scales)
    return found.reshape(scaled.codes.shape)


def split_blocks(values: np.ndarray, size: int) -> np.ndarray:
    """A view of shape (..., K / size, size) of values of shape (..., K).

    Raises:
        UsageError: if there is no axis, or K is no multiple of the size.
    """
    if not values.ndim or values.shape[-1] % size:
        raise UsageError(
            f"the last axis of shape {values.shape} has no whole blocks of {size}",
            hint=f"pad it with zeros to a multiple of {size}",
        )
    return values.reshape(*values.shape[:-1], values.shape[-1] // size, size)


def _split(values: np.ndarray, scheme: Scheme) -> np.ndarray:
    if scheme.scope is Scope.GROUP:
        return split_blocks(values, scheme.group)
    # Without an axis there are no rows and no channels; one value is a tensor of one row.
    return split_blocks(values, 1).reshape(values.shape)


def _reduce(extreme: np.ufunc, parts: np.ndarray, scheme: Scheme) -> np.ndarray:
    """The least or largest of what shares a scale, and of zero, with axes of length 1."""
    last = parts.ndim - 1
    axes = {
        Scope.TENSOR: tuple(range(parts.ndim)),
        Scope.CHANNEL: tuple(range(last)),
    }.get(scheme.scope, (last,))
    found: np.ndarray = extreme.reduce(parts, axis=axes, keepdims=True, initial=0.0)
    return found


def _scales(wanted: np.ndarray, is_zero: np.ndarray, scheme: Scheme) -> np.ndarray:
    scales = encode(
        np.where(is_zero, 1.0, np.maximum(wanted, scheme.scale.smallest)),
        scheme.scale,
        overflow=Overflow.NONFINITE,
    )
    wide = ~np.isfinite(scales.astype(np.float64))
    if wide.any():
        raise UsageError(
            f"a scale of {wanted[wide][0]:g} is more than {scheme.scale} can hold",
            hint="store scales in a wider type",
        )
    return scales


def _codes(
    parts: np.ndarray,
    scales: np.ndarray,
    least: np.ndarray,
    scheme: Scheme,
    random: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Codes, and the codes of zero where the scheme has them."""
    steps = parts / scales
    kind = scheme.codes
    if not isinstance(kind, Integers):
        return encode(steps, kind, overflow=Overflow.SATURATE, random=random), None
    zeros = None
    whole = round_steps(steps, random)
    lowest = -kind.highest
    if scheme.has_zero_points:
        lowest = kind.lowest
        zeros = np.clip(np.rint(kind.lowest - least / scales), lowest, kind.highest)
        whole = whole + zeros
    codes = np.clip(whole, lowest, kind.highest).astype(kind.host)
    return codes, None if zeros is None else zeros.astype(kind.host)


def _drop_group_axis(scales: np.ndarray, scheme: Scheme) -> np.ndarray:
    """Without the axis along which a group was reduced."""
    return scales[..., 0] if scheme.scope is Scope.GROUP else scales
