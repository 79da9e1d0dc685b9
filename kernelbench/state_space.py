# SPDX-License-Identifier: Apache-2.0
"""What problems on state-space models share: decays as trained models have them, and gates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .problem import Inputs, Pair

STEPS = (1e-3, 0.1)
"""Of dt, in equal ratios, as Mamba-2 begins its training (arXiv 2405.21060)."""
RATES = (1.0, 16.0)
"""Of -A, as it begins."""
FORGOTTEN, FASTEST = 0.5, 10.0
"""Of the last step's heads with an A beyond FASTEST so many forget all that was before."""
FAR = (17.0, 200.0)
"""From exp(-17), less than a rounding of what is added, to exp(-200), which is 0: an exponential
without a bound makes any number of it. The last step alone does, since sums over a chunk that are
subtracted would lose their digits."""
FARTHEST = 0.5
"""Of those that are added something so many forget all."""
SILENT, NEAR = 0.5, 40.0
"""Of the heads that forget so many may be added nothing: all that is left is what is forgotten, by
exp(-NEAR) at most, since a denormal has few digits."""


def draw_decays(
    x: np.ndarray, rng: np.random.Generator, *, are_far: bool = True, silent: float = 0.0
) -> Inputs:
    """x, dt of its shape but for the last axis, and A of the last axis of dt; steps are along
    the axis before. Where decays are far some heads forget all at the last step, and add no more
    then than at others: x is that much smaller, and 0 in a share of them that is `silent`."""
    shape: tuple[int, ...] = x.shape[:-1]
    low, high = np.log(STEPS)
    dt = np.exp(rng.uniform(low, high, shape)).astype(np.float32)
    rates = rng.uniform(*RATES, shape[-1]).astype(np.float32)
    last = dt[..., -1, :]
    forgets = (rng.random(last.shape) < FORGOTTEN) & (rates > FASTEST) & are_far
    is_silent = forgets & (rng.random(last.shape) < silent)
    low, high = np.log(FAR)
    far = np.exp(rng.uniform(low, np.where(is_silent, np.log(NEAR), high)))
    far[~is_silent & (rng.random(last.shape) < FARTHEST)] = FAR[1]
    last[forgets] = (far.astype(np.float32) / rates)[forgets]
    x = x * np.minimum(1, np.float32(STEPS[1]) / dt)[..., None]
    x[..., -1, :, :][is_silent] = 0
    return x, dt, -rates


def gate(value: np.ndarray, size: np.ndarray, z: np.ndarray) -> Pair:
    """Values times SiLU of z, and their magnitudes: an exponential of -z is off by u |z| of itself,
    of which a sigmoid passes on 1 less its own size."""
    sigma = 1.0 / (1.0 + np.exp(-z))
    weight = np.abs(z) * sigma * (1.0 + np.abs(z) * (1.0 - sigma))
    return value * z * sigma, size * weight


HELD = 1 << 19
"""Decays between two steps of a chunk that `scan` holds at once."""
CHUNK = 64


def scan(power: np.ndarray, x: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """What states that decay by exp(power) and are added x b give times c, a chunk at a time.

    Args:
        power: [M, L, H], not positive.
        x: [M, L, H, P]; b, c: [M, L, N]; all of float64.
    """
    batch, steps, heads, width = x.shape
    chunk = min(CHUNK, math.isqrt(max(1, HELD // (batch * heads))) + 1, steps)
    y, state = np.empty(x.shape), np.zeros((batch, heads, width, b.shape[2]))
    for start in range(0, steps, chunk):
        part = slice(start, min(start + chunk, steps))
        total = power[:, part].cumsum(1)
        past = np.tri(total.shape[1], dtype=bool)[:, :, None]
        apart = np.exp(np.where(past, total[:, :, None] - total[:, None], -np.inf))
        apart *= (c[:, part] @ b[:, part].transpose(0, 2, 1))[..., None]
        inner = np.matmul(apart.transpose(0, 3, 1, 2), x[:, part].transpose(0, 2, 1, 3))
        outer = np.matmul(state, c[:, part].transpose(0, 2, 1)[:, None]).transpose(0, 3, 1, 2)
        y[:, part] = inner.transpose(0, 2, 1, 3) + outer * np.exp(total)[..., None]
        added = x[:, part] * np.exp(total[:, -1:] - total)[..., None]
        state *= np.exp(total[:, -1])[..., None, None]
        state += np.matmul(added.transpose(0, 2, 3, 1), b[:, part][:, None])
    return y


def scan_in_torch(torch: Any, x: Any, dt: Any, A: Any, B: Any, C: Any) -> Any:
    """The same with dt and A apart, as the listing of Mamba-2's paper has it, of any length."""
    steps, decay = x.shape[1], dt * A
    size = min(CHUNK, steps)

    def cut(each: Any) -> Any:
        ends = (0, 0) * (each.dim() - 2) + (0, -steps % size)
        return torch.nn.functional.pad(each, ends).unflatten(1, (-1, size))

    x, b, c, s = cut(x * dt[..., None]), cut(B), cut(C), cut(decay).cumsum(2)
    past = torch.ones(size, size, dtype=torch.bool, device=x.device).tril()[:, :, None]
    apart = torch.where(past, s[:, :, :, None] - s[:, :, None], -float("inf")).exp()
    y = torch.einsum("mtqsh,mtshp->mtqhp", apart * (c @ b.mT)[..., None], x)
    added = torch.einsum("mtsn,mtshp->mthpn", b, x * (s[:, :, -1:] - s).exp()[..., None])
    state, before = torch.zeros_like(added[:, 0]), []
    for chunk in range(added.shape[1]):
        before.append(state)
        state = state * s[:, chunk, -1, :, None, None].exp() + added[:, chunk]
    y += torch.einsum("mtqn,mthpn->mtqhp", c, torch.stack(before, 1)) * s.exp()[..., None]
    return y.flatten(1, 2)[:, :steps]
