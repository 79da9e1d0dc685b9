# SPDX-License-Identifier: Apache-2.0
"""A gated layer over tiles of a sequence, whose inner activations are never whole in memory.

Of a long sequence these are several times what goes in and what comes out: a tile of tokens, or of
columns, is used up before the next one is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..gated import draw_layer, expect_layer
from ..problem import Expected, Family, Inputs, Prepared

PROBLEM = {
    "title": "Gated layer (SwiGLU) over tiles of a sequence",
    "definition": "g = x gate, u = x up; h[i,f] = g[i,f] / (1 + exp(-g[i,f])) * u[i,f]; y = h down",
    "source": "Arctic long sequence training, arXiv 2506.13996, TiledMLP",
    "headline": "one such layer of Llama 3.1 8B at 256K tokens: about a tenth of the memory, as "
    "reported; whole: training at 469 times longer sequences on a node of 8 H100",
    "tags": ["dense", "contraction", "fused", "chained"],
    "is_row_wise": True,
    "axes": {
        "M": "tokens of a sequence",
        "D": "elements of a token",
        "F": "columns between, several times as many",
    },
    "least": {"F": 2},
    "inputs": {
        "x": "float32[M, D]: tokens, row-major",
        "gate": "float32[D, F]: weights of what is gated with, from rows to columns",
        "up": "float32[D, F]: weights of what is gated",
        "down": "float32[F, D]: weights of what comes out",
    },
    "outputs": {"y": "float32[M, D]: row-major"},
    "flops": "6 * M * D * F + 30 * M * F",  # an element of SwiGLU takes 30, as in swiglu
    "workloads": {
        "realistic": {
            "2048x256x896": "Llama 3.1 8B at a sixteenth of its widths, 2,048 of 256K tokens",
            "512x576x1536": "SmolLM 135M, 512 tokens",
        },
        "tiny": {"tiny": {"M": 21, "D": 24, "F": 70}},
        "adversarial": {"257x65x131": "odd sizes", "33x7x1009": "narrow tokens, many columns"},
    },
    "families": "large nonfinite",
    "nrmse": 2e-5,
    "accuracy": "n = D + F + 16; s = sum over f of |h down|, and with it, as the root of a sum of "
    "squares, what h is off by, times down: by silu(g) |x| |up| + |u| silu'(g) |x| |gate|. LARGE "
    "has gates whose exponentials overflow: sigmoids below 2^-120 may be flushed to 0. A NaN of x "
    "is in its whole row; no infinities.",
}


def values(family: Family, rng: np.random.Generator, M: int, D: int, F: int) -> Inputs:
    """As gated.py draws them: of a token's gates some are positive."""
    return draw_layer(family, M, D, F, rng)


def oracle(x: np.ndarray, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> Expected:
    """The definition in float64."""
    return expect_layer(x, gate, up, down)


def by_torch(torch: Any, x: Any, gate: Any, up: Any, down: Any, y: Any, D: int) -> Prepared:
    """Tiles of D tokens, as the paper has them; halves as float32, which are rounded once."""

    def compute() -> None:
        for part, to in zip(x.split(max(D, 64)), y.split(max(D, 64)), strict=True):
            to.copy_(by_compile(torch, part, gate, up, down))

    return compute


def by_compile(torch: Any, x: Any, gate: Any, up: Any, down: Any) -> Any:
    """The definition, all tokens at once."""
    x, gate, up, down = (each.float() for each in (x, gate, up, down))
    return (torch.nn.functional.silu(x @ gate) * (x @ up)) @ down
