# SPDX-License-Identifier: Apache-2.0
"""What problems of integer arithmetic share: whole numbers that are drawn, and I-ViT's exponential
of shifts.

The exponential follows Li and Gu, I-ViT: Integer-only Quantization for Efficient Vision Transformer
Inference, ICCV 2023 (arXiv 2207.01405): exp(s x) is taken for a power of two, whose exponent has a
whole part by a division and a linear rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .families import draw
from .problem import Expected, Family
from .torch_calls import turn

LARGEST = (1 << 31) - 1
"""Of int32: what a sum is cut to, and what it divides."""
KEPT_BITS = 24
"""Shifted out of a quotient of 31 bits: 7 are left, from 0 to 127."""


def draw_whole(
    family: Family, shape: tuple[int, ...], rng: np.random.Generator, most: int
) -> np.ndarray:
    """Whole numbers of a family, int64, from -most to most; some number has that size."""
    drawn = draw(family, shape, rng, varies=0)
    largest = np.abs(drawn).max(initial=0.0) or np.float32(1)
    return np.rint(drawn * (np.float32(most) / largest)).astype(np.int64)


def expect_whole(value: np.ndarray) -> Expected:
    """Answers that are right bit for bit."""
    found = value.astype(np.float64)
    return Expected(found, np.abs(found), is_exact=True)


def exponential(x: Any, unit: Any, n: int) -> Any:
    """exp(x / unit) * unit * 2^n, by shifts, of whole numbers: arrays of numpy or tensors of torch,
    in their type. What is less than -n units (of a power of two) is taken for that.

    Shifts to the right and the division round down, also numbers below 0.
    """
    x = (x + (x >> 1) - (x >> 4)).clip(min=-n * unit)
    whole = -x // unit
    return (x + unit * whole + 2 * unit) << (n - whole) >> 1


def add_outliers(codes: Any, w: Any, sx: Any, sw: Any, columns: Any, outliers: Any) -> Any:
    """Sums of codes times their scales, and what outlier columns add, in float32; tensors."""
    apart = outliers.float() @ w[:, columns].float().t()
    return (codes * sx.float()[:, None] + apart) * sw.float()


def to_bipolar(torch: Any, planes: Any) -> Any:
    """The numbers of planes of bits (rows, planes, bytes), each 1 or -1 times its power of two, as
    int8 (rows, 8 bytes); tensors. The eight numbers of a byte are looked up as one of 64 bits."""
    octets = torch.arange(256, device=planes.device)[:, None]
    signs = 2 * (octets >> torch.arange(8, device=planes.device) & 1) - 1
    powers = torch.arange(planes.shape[1], device=planes.device)[:, None]
    known = (signs << powers[..., None]).to(torch.int8).view(torch.int64).flatten()
    found = known.index_select(0, (planes + 256 * powers).flatten()).view(planes.shape)
    return sum(found.view(torch.int8).unbind(1))


def of_planes(planes: np.ndarray) -> np.ndarray:
    """The numbers of planes of bits (rows, planes, bytes), float64 (rows, 8 bytes); an array."""
    bits = np.unpackbits(planes.astype(np.uint8), axis=2, bitorder="little")
    return np.tensordot(2.0 ** np.arange(bits.shape[1]), bits * 2.0 - 1, (0, 1))


def draw_planes(
    family: Family, shape: tuple[int, int, int], rng: np.random.Generator
) -> np.ndarray:
    """Bytes of bits (rows, planes, bits): of NORMAL, from which timed calls are made, half of them
    are 1, of LARGE nearly all; in other families each plane of a row has its own share."""
    share = rng.random((*shape[:2], 1), np.float32)
    if family in (Family.NORMAL, Family.LARGE):
        share[:] = 0.5 if family is Family.NORMAL else 0.98
    if family is Family.CONSTANT:
        share = np.rint(share)
    return np.packbits(rng.random(shape, np.float32) < share, axis=2, bitorder="little")


def sum_taps(images: np.ndarray, filters: np.ndarray) -> np.ndarray:
    """The convolution of images (images, rows, columns, channels) with zeros around them and of
    square filters (filters, R, R, channels): one product for each of a filter's places."""
    (count, height, width, _), half = images.shape, filters.shape[1] // 2
    padded = np.pad(images, ((0, 0), (half, half), (half, half), (0, 0)))
    found = np.zeros((count, height, width, len(filters)))
    for r, s in np.ndindex(filters.shape[1:3]):
        found += padded[:, r : r + height, s : s + width] @ filters[:, r, s].T
    return found


def convolve_in_floats(torch: Any, x: Any, w: Any, zero: Any) -> Any:
    """Sums of the products of filters with what codes of images stand for; tensors. Wide enough to
    be exact, and then rounded to float32."""
    wide = torch.float32 if 255 * 128 * w[0].numel() < 1 << 24 else torch.float64
    images = (x.to(wide) - zero.to(wide)).permute(0, 3, 1, 2)
    filters = w.to(wide).permute(0, 3, 1, 2)
    sums = torch.nn.functional.conv2d(images, filters, padding=w.shape[1] // 2)
    return sums.permute(0, 2, 3, 1).float()


def multiply_taps(torch: Any, x: Any, w: Any, zero: Any) -> Any:
    """The same by a product of int8: the taps of each place side by side, zeros outside of images;
    what the zero point adds is taken off by the taps that lie within."""
    half, (height, width) = w.shape[1] // 2, x.shape[1:3]
    around = (0, 0, half, half, half, half)
    codes, inside = (
        torch.nn.functional.pad(each, around) for each in (x, torch.ones_like(x[:1, ..., :1]))
    )
    taps, is_inside = (
        torch.cat(
            [
                each[:, r : r + height, s : s + width]
                for r in range(2 * half + 1)
                for s in range(2 * half + 1)
            ],
            -1,
        )
        for each in (codes, inside)
    )
    sums = torch._int_mm(taps.flatten(0, 2), turn(w.flatten(1))).view(*x.shape[:3], -1)
    weights = is_inside.double() @ w.flatten(1, 2).double().sum(2).t()
    return (sums - weights * zero.double()).float()
