# SPDX-License-Identifier: Apache-2.0
"""What problems on state-space models share: decays as trained models have them, and gates."""

from __future__ import annotations

import numpy as np

from .problem import Pair

STEPS = (1e-3, 0.1)
"""Of dt, in equal ratios, as Mamba-2 begins its training (arXiv 2405.21060)."""
RATES = (1.0, 16.0)
"""Of -A, as it begins."""


def draw_decays(shape: tuple[int, ...], rng: np.random.Generator) -> Pair:
    """dt of this shape, and A of its last axis."""
    low, high = np.log(STEPS)
    dt = np.exp(rng.uniform(low, high, shape)).astype(np.float32)
    return dt, -rng.uniform(*RATES, shape[-1]).astype(np.float32)


def gate(value: np.ndarray, size: np.ndarray, z: np.ndarray) -> Pair:
    """Values times SiLU of z, and their magnitudes: an exponential of -z is off by u |z| of itself,
    of which a sigmoid passes on 1 less its own size."""
    sigma = 1.0 / (1.0 + np.exp(-z))
    weight = np.abs(z) * sigma * (1.0 + np.abs(z) * (1.0 - sigma))
    return value * z * sigma, size * weight
