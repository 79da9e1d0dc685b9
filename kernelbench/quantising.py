# SPDX-License-Identifier: Apache-2.0
"""What problems share that quantise to 4-bit floats: blocks far apart, and torch's way to codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .problem import Family, Prepared

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


def vary_blocks(
    family: Family, x: np.ndarray, size: int, octaves: int, rng: np.random.Generator
) -> None:
    """Makes blocks of a matrix smaller by powers of two each, and a few of them zeros, of either
    sign. Those of NORMAL, from which timed calls are made, have no zeros."""
    blocks = x.reshape(len(x), -1, size)
    powers = np.exp2(-rng.integers(0, octaves, blocks.shape[:2]).astype(np.float32))
    if family is not Family.NORMAL:
        powers[rng.random(powers.shape) < 1 / EMPTY_SHARE] = 0
    blocks *= powers[..., None]


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


def decode_groups(codes: Any, zeros: Any, scales: Any) -> Any:
    """Weights in groups (rows, groups, size), in float32, of codes of that shape."""
    return (codes.float() - zeros.float().unsqueeze(-1)) * scales.float().unsqueeze(-1)


def split_nibbles(torch: Any, packed: Any) -> Any:
    """The codes of bytes (..., n), twice as many."""
    return torch.stack((packed & 15, packed >> 4), -1).flatten(-2)


def copy_both(quantise: Callable[[], tuple[Any, Any]], *outputs: Any) -> Prepared:
    """What quantises into two outputs."""

    def compute() -> None:
        for output, found in zip(outputs, quantise(), strict=True):
            output.copy_(found)

    return compute
