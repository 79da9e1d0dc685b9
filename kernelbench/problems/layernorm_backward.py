# SPDX-License-Identifier: Apache-2.0
"""The backward of layer normalisation: gradients of its input, its gain and its shift."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import gains
from ..families import draw, noise
from ..gradients import draw_gradient, expect_gradients
from ..problem import Expected, Family, Inputs, Prepared

PROBLEM = {
    "title": "Backward of layer normalisation over rows",
    "definition": "h[i,j] = (x[i,j] - mean[i]) rstd[i], w[i,j] = dy[i,j] gamma[j]; dx[i,j] = "
    "rstd[i] (w[i,j] - mean_k w[i,k] - h[i,j] mean_k(w[i,k] h[i,k])); dgamma[j] = sum_i dy[i,j] "
    "h[i,j]; dbeta[j] = sum_i dy[i,j]",
    "source": "Layer normalization, arXiv 1607.06450; LightSeq2, arXiv 2110.05722",
    "tags": ["dense", "backward", "training"],
    "axes": {"M": "rows", "N": "elements of a row"},
    "inputs": {
        "x": "float32[M, N]: the forward's input, row-major",
        "gamma": "float32[N]: gain",
        "mean": "float32[M]: of each row of x, as the forward kept it",
        "rstd": "float32[M]: 1 / sqrt(var + 1e-5), as the forward kept it",
        "dy": "float32[M, N]: gradient of the forward's answer",
    },
    "outputs": {"dx": "float32[M, N]: gradients", "dgamma": "float32[N]", "dbeta": "float32[N]"},
    "flops": "13 * M * N",  # w 1, h 2, means 3, dx 4, sums over rows 3
    "workloads": {
        "realistic": {"4096x1024": "4096 tokens, 1024 wide", "1024x4096": "wider rows"},
        "tiny": {"tiny": {"M": 64, "N": 200}},
        "adversarial": ["4099x33", "3x16383"],
    },
    "families": "-constant large nonfinite",  # of a constant gradient little is left
    "nrmse": 5e-5,
    "accuracy": "With r = |h| + |mean| rstd: dx: n = N + 16, s = rstd (|w| + mean of |w| + |h| "
    "mean of |w| r + |mean| rstd mean of |w h| + u (mean rstd)^2 mean of |w|). dgamma and dbeta: "
    "n = M + 16, s = sum of |dy| r and of |dy|. mean and rstd are as given; in LARGE the mean is "
    "16 times the deviation. A NaN in dy makes its row of dx NaN, and its columns of the others; "
    "infinities are never drawn.",
}


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> Inputs:
    """What the forward had, and a gradient. In LARGE that is large, too."""
    is_large = family is Family.LARGE
    x = 128 + 8 * noise((M, N), rng) if is_large else draw(family, (M, N), rng)
    mean = x.mean(1, dtype=np.float64)
    rstd = 1.0 / np.sqrt(x.var(1, dtype=np.float64) + 1e-5)
    dy = draw_gradient(family, (M, N), rng)
    return x, gains(N, rng), mean.astype(np.float32), rstd.astype(np.float32), dy


def oracle(
    x: np.ndarray, gamma: np.ndarray, mean: np.ndarray, rstd: np.ndarray, dy: np.ndarray
) -> tuple[Expected, ...]:
    """The definition in float64."""
    return expect_gradients(x, gamma, mean, rstd, dy)


def by_torch(
    torch: Any, x: Any, gamma: Any, mean: Any, rstd: Any, dy: Any, dx: Any, dgamma: Any, dbeta: Any
) -> Prepared:
    """What autograd calls, with places for its answers."""
    backward, shape, kept = torch.ops.aten.native_layer_norm_backward.out, [x.shape[1]], [True] * 3
    given = (dy, x, shape, mean[:, None], rstd[:, None], gamma, gamma, kept)
    return lambda: backward(*given, out0=dx, out1=dgamma, out2=dbeta)


def by_compile(x: Any, gamma: Any, mean: Any, rstd: Any, dy: Any, N: int) -> Any:
    """The definition; halves as float32, which are rounded once."""
    factor, dy = rstd.float()[:, None], dy.float()
    h, w = (x.float() - mean.float()[:, None]) * factor, dy * gamma.float()
    along = w.sum(1, keepdim=True) / N, (w * h).sum(1, keepdim=True) / N
    return (w - along[0] - h * along[1]) * factor, (dy * h).sum(0), dy.sum(0)
