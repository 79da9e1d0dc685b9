# SPDX-License-Identifier: Apache-2.0
"""What problems of quantised numbers share: blocks and scales far apart, and torch's way to codes
and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .coded import CODECS
from .families import blemish, draw, full_mantissa
from .integers import draw_whole
from .problem import Family, Pair

BOUNDS = (
    (0.25, False),
    (0.75, True),
    (1.25, False),
    (1.75, True),
    (2.5, False),
    (3.5, True),
    (5.0, False),
)
"""Between neighbours of e2m1, and whether a tie goes up: to the even code."""
EMPTY_SHARE = 64
"""One block in so many is all zeros."""


STEPS = 8
"""Scales of groups differ by powers of two up to this one."""
SCALED = 6
"""Scales of rows differ by powers of two between the negative of this and it."""


def falling_powers(
    first: int, end: int, shape: tuple[int, ...], rng: np.random.Generator
) -> np.ndarray:
    """Powers of two, float32: of exponents from -first down to, not including, -end."""
    powers: np.ndarray = np.exp2(-rng.integers(first, end, shape).astype(np.float32))
    return powers


def draw_scales(family: Family, powers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Scales between these powers of two and the next, a few of them NaN in NONFINITE; of EXACT the
    powers themselves."""
    scales = powers if family is Family.EXACT else powers * full_mantissa(powers.shape, rng)
    blemish(family, scales, rng, (np.nan,))
    return scales


def draw_blocks(
    family: Family, shape: tuple[int, int], size: int, octaves: int, rng: np.random.Generator
) -> np.ndarray:
    """A matrix whose blocks are smaller than others by powers of two, and a few of them zeros, of
    either sign. Those of NORMAL, from which timed calls are made, have no zeros; DENORMAL is as
    small as it is."""
    x = draw(family, shape, rng, varies=0)
    if family is Family.DENORMAL:
        return x
    blocks = x.reshape(len(x), -1, size)
    powers = falling_powers(0, octaves, blocks.shape[:2], rng)
    if family is not Family.NORMAL:
        powers[rng.random(powers.shape) < 1 / EMPTY_SHARE] = 0
    blocks *= powers[..., None]
    return x


def scale_rows(family: Family, rows: np.ndarray, codec: str, rng: np.random.Generator) -> Pair:
    """Rows that reach a codec's largest number each, and what each is to be multiplied with, far
    apart; of EXACT the rows as they are."""
    scale = np.exp2(rng.integers(-SCALED, SCALED + 1, len(rows)).astype(np.float32))
    if family is Family.EXACT:
        return rows, scale
    most = np.abs(rows).max(1)
    held = np.where(most > 0, most / np.float32(CODECS[codec].largest), np.float32(1))
    return rows / held[:, None], scale * held


def split_blocks(x: np.ndarray, size: int) -> Pair:
    """The blocks of each row in float32, (rows, blocks, size), and the largest magnitude of each:
    NaN where it holds NaN or an infinity."""
    blocks = x.astype(np.float32).reshape(len(x), -1, size)
    largest = np.abs(blocks).max(2)
    return blocks, np.where(np.isfinite(largest), largest, np.float32(np.nan))


def pack_e2m1(torch: Any, steps: Any) -> Any:
    """Numbers (..., 2 n) as bytes of two codes each, in int32: each bound that is passed is one
    more."""
    size = steps.abs()
    codes = (steps.view(torch.int32) >> 28) & 8
    for bound, is_up in BOUNDS:
        codes = codes + ((size >= bound) if is_up else (size > bound))
    pairs = codes.unflatten(-1, (-1, 2))
    return pairs[..., 0] | pairs[..., 1] << 4


def to_mxfp4(torch: Any, x: Any, M: int, G: int) -> tuple[Any, Any]:
    """Bytes and scales of MXFP4, of x (M, 32 G), in torch's operations."""
    blocks = x.float().view(M, G, 32)
    amax = blocks.abs().amax(2, keepdim=True)
    is_whole = amax < float("inf")
    # The exponent as a float32 has it, which biases it as a scale does.
    power = ((amax.view(torch.int32) >> 23) - 2).clamp_(min=0)
    # 2^-e in two factors: one alone would be beyond float32.
    half = (127 - power) // 2
    first = ((half + 127) << 23).view(torch.float32)
    second = ((127 - power - half + 127) << 23).view(torch.float32)
    codes = torch.where(is_whole, pack_e2m1(torch, blocks * first * second), 0)
    scales = torch.where(is_whole, power, 255)
    return codes.to(torch.uint8).view(M, 16 * G), scales.to(torch.uint8).view(M, G)


def to_steps(x: np.ndarray, size: int, bits: int) -> np.ndarray:
    """Numbers of each block as whole multiples of a power of two, at most 2^bits of it and none of
    them -0, as bfloat16 holds them. Sums with any signs have few bits, and are odd: no sum of a
    block is 0, unless all of it is."""
    blocks = x.reshape(len(x), -1, size)
    _, above = np.frexp(np.abs(blocks).max(2, keepdims=True))
    step = np.maximum(above - bits, -133)  # the least of bfloat16
    whole = np.rint(np.ldexp(blocks, -step)).astype(np.int64)
    # From 256 on bfloat16 has even numbers alone.
    is_even = (np.where(abs(whole) < 256, whole, 0).sum(2, keepdims=True) & 1) == 0
    place = np.abs(whole).argmin(2, keepdims=True)
    least = np.take_along_axis(whole, place, 2)
    size_then = np.where(np.abs(least) < 256, np.abs(least) ^ 1, 255)
    is_changed = is_even & whole.any(2, keepdims=True)
    changed = np.where(is_changed, np.where(least < 0, -size_then, size_then), least)
    np.put_along_axis(whole, place, changed, 2)
    found: np.ndarray = np.ldexp(whole.astype(np.float32), step)
    return found.reshape(x.shape)


def hadamard_matrix(library: Any, one: Any, size: int) -> Any:
    """Sylvester's matrix of signs (size, size), a power of two, from a matrix of one 1: of numpy or
    torch, where `library` is."""
    found = one
    while len(found) < size:
        above, below = (library.concatenate((found, each), 1) for each in (found, -found))
        found = library.concatenate((above, below), 0)
    return found


def to_nvfp4(torch: Any, x: Any, tensor_scale: Any, M: int, G: int) -> tuple[Any, Any]:
    """Bytes and scales of NVFP4, of x (M, 16 G), in torch's operations."""
    blocks = x.float().view(M, G, 16)
    amax = blocks.abs().amax(2, keepdim=True)
    is_whole = amax < float("inf")
    scales = (amax / (6 * tensor_scale)).clamp(max=448.0).to(torch.float8_e4m3fn)
    stored = scales.float()
    is_used = is_whole & (stored > 0)
    factors = torch.where(is_used, 1 / (stored * tensor_scale), 0.0)
    codes = torch.where(is_used, pack_e2m1(torch, blocks * factors), 0)
    found = torch.where(is_whole, scales.view(torch.uint8), 0x7F)
    return codes.to(torch.uint8).view(M, 8 * G), found.view(M, G)


def decode_groups(torch: Any, codes: Any, zeros: Any, scales: Any, size: int) -> Any:
    """Weights in groups (rows, groups, size), in float32.

    Args:
        codes, zeros: of each weight and of each group, bytes; of 4 bits two in a byte, the first in
            the low nibble.
        scales: (rows, groups).
    """
    weights = _unpack(torch, codes, (*scales.shape, size)).float()
    offsets = _unpack(torch, zeros, scales.shape).float()
    return (weights - offsets.unsqueeze(-1)) * scales.float().unsqueeze(-1)


def _unpack(torch: Any, codes: Any, shape: tuple[int, ...]) -> Any:
    """The codes of bytes, which are as many or half as many."""
    if codes.numel() < math.prod(shape):
        codes = torch.stack((codes & 15, codes >> 4), -1)
    return codes.view(shape)


def draw_narrow(
    family: Family, shape: tuple[int, ...], bits: int, rng: np.random.Generator
) -> np.ndarray:
    """Whole numbers of so many bits, int64: of NORMAL, which is timed, and of NONFINITE every one
    is as likely as another; of LARGE all are near the largest, and sums as large as can be."""
    most = (1 << bits - 1) - 1
    if family in (Family.NORMAL, Family.NONFINITE):
        return rng.integers(-most - 1, most + 1, shape)
    if family is Family.LARGE:
        return rng.integers(most - 3, most + 1, shape)
    return draw_whole(family, shape, rng, most)


def pack_sixes(numbers: np.ndarray) -> np.ndarray:
    """Bytes (..., 3 n) of whole numbers (..., 4 n) of 6 bits: four of them in three, the first in
    the lowest bits."""
    a, b, c, d = (numbers[..., at::4].astype(np.int64) & 63 for at in range(4))
    word = a | b << 6 | c << 12 | d << 18
    octets = np.stack((word & 255, word >> 8 & 255, word >> 16), -1).astype(np.uint8)
    return octets.reshape(*numbers.shape[:-1], -1)


def widen_codes(library: Any, octets: Any, size: int) -> Any:
    """Whole numbers (rows, groups, size) that bytes stand for, of 8 bits or of 6: arrays of numpy,
    or tensors of torch, where `library` is."""
    if octets.shape[-1] == size:
        return octets.view(library.int8)
    a, b, c = (octets[..., at::3] for at in range(3))
    codes = (a & 63, a >> 6 | (b & 15) << 2, b >> 4 | (c & 3) << 4, c >> 2)
    # The sign is the highest of 6 bits: two places up it is a byte's.
    found = library.stack(tuple(code << 2 for code in codes), -1).view(library.int8) >> 2
    return found.reshape(*octets.shape[:-1], size)
