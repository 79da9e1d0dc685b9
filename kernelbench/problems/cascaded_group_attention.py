# SPDX-License-Identifier: Apache-2.0
"""Attention whose heads have channels of their own, and each what the head before it gave.

Batch norms are folded into the weights; biases are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cascading import KEY, TAPS, attend_in_turn, draw_layer
from ..problem import Expected, Family, Inputs

PROBLEM = {
    "title": "Cascaded group attention of images",
    "definition": "N = H*W tokens, H rows of W. For g = 0, 1, ...: e = x[m,:,g*D:g*D+D] + o[g-1] "
    "(o[-1] = 0); (a, k, v) = e w[g], of 16, 16 and D columns; q[n,c] = sum over r, s < 5 of "
    "conv[g,r,s,c] * a[.,c] at (row + r - 2, column + s - 2), 0 outside of H by W; o[g][n,:] = "
    "sum over j < N of p[j] v[j,:], p the softmax over j of (sum over c of q[n,c] k[j,c]) / 4. "
    "y[m] = relu(o[0], o[1], ... side by side) proj",
    "source": "EfficientViT, arXiv 2305.07027, without biases",
    "headline": "model M5: 40.4 % more images a second than MobileNetV3-Large, V100, as reported",
    "tags": ["dense", "attention", "contraction", "chained"],
    "is_row_wise": True,
    "axes": {
        "M": "images, or windows of them",
        "H": "rows of tokens",
        "W": "columns of tokens",
        "G": "heads",
        "D": "channels of a head",
    },
    "lengths": {"H": 7, "W": 7, "G": 6, "D": 96},
    "inputs": {
        "x": "float32[M, H*W, G*D]: tokens by rows, channels of all heads side by side",
        "w": "float32[G, D, 32+D]: of each head columns of a, of k, then of v",
        "conv": "float32[G, 5, 5, 16]: a filter of each column of a, not turned",
        "proj": "float32[G*D, G*D]: from rows to columns",
    },
    "outputs": {"y": "float32[M, H*W, G*D]: as x"},
    "flops": "64 * M * H * W * G * D + 2 * M * H * W * G * D * D + 832 * M * H * W * G + "
    "2 * M * H * W * H * W * G * D + 54 * M * H * W * H * W * G + 2 * M * H * W * G * D * G * D",
    "held": "4 * M * H * W * H * W + 4 * M * H * W * D",  # scores and a few rows of a head
    "workloads": {
        "realistic": {
            "256x7x7x4x32": "M4's first stage, 64 images of a batch of 2,048, four windows each",
            "128x4x4x4x96": "M4's last stage, 128 images of a batch of 2,048",
        },
        "tiny": {"tiny": {"M": 3, "H": 4, "W": 5, "G": 2, "D": 12}},
        "adversarial": {"33x7x5x3x37": "odd sizes", "501x2x3x1x17": "smaller than a filter"},
    },
    "families": "-constant large",
    "nrmse": 2e-5,
    "accuracy": "n = G D + N + 16, s = what each step rounds and, to first order, what those "
    "before it lost. LARGE has logits in its last head whose exponentials overflow unless a "
    "maximum is subtracted. All numbers are finite.",
}


def values(
    family: Family, rng: np.random.Generator, M: int, H: int, W: int, G: int, D: int
) -> Inputs:
    """Tokens in the family's form, and weights that keep numbers about as large as they are."""
    return draw_layer(family, (M, H * W, G, D), rng)


def oracle(x: Any, w: Any, conv: Any, proj: Any, H: int, W: int) -> Expected:
    """The definition in float64."""
    return attend_in_turn(x, w, conv, proj, (H, W))


def by_compile(torch: Any, x: Any, w: Any, conv: Any, proj: Any, H: int, W: int, D: int) -> Any:
    """A head after the other; halves as float32, so that no step between is rounded."""
    x, w, conv, proj = (each.float() for each in (x, w, conv, proj))
    filters, convolve = conv.permute(0, 3, 1, 2)[:, :, None], torch.nn.functional.conv2d
    found, o = [], torch.zeros(())
    for g in range(len(w)):
        a, k, v = ((x[..., g * D : g * D + D] + o) @ w[g]).split((KEY, KEY, D), -1)
        maps = a.mT.unflatten(2, (H, W))
        q = convolve(maps, filters[g], padding=TAPS // 2, groups=KEY).flatten(2).mT
        o = (q @ k.mT * KEY**-0.5).softmax(-1) @ v
        found.append(o.relu())
    return torch.cat(found, -1) @ proj
