# SPDX-License-Identifier: Apache-2.0
"""The backward of root-mean-square normalisation: gradients of its input and of its gain."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import gains
from ..families import draw
from ..gradients import draw_gradient, expect_gradients, write_each
from ..problem import Expected, Family, Inputs, Prepared

PROBLEM = {
    "title": "Backward of root-mean-square normalisation over rows",
    "definition": "h[i,j] = x[i,j] rstd[i], w[i,j] = dy[i,j] gamma[j]; dx[i,j] = rstd[i] (w[i,j] - "
    "h[i,j] mean_k(w[i,k] h[i,k])); dgamma[j] = sum_i dy[i,j] h[i,j]",
    "source": "RMSNorm, arXiv 1910.07467; its backward in robust-kbench, arXiv 2509.14279",
    "headline": "robust-kbench: its backward kernels reach 1.23 times torch's speed, as reported",
    "tags": ["dense", "backward", "training"],
    "axes": {"M": "rows", "N": "elements of a row"},
    "inputs": {
        "x": "float32[M, N]: the forward's input, row-major",
        "gamma": "float32[N]: gain",
        "rstd": "float32[M]: 1 / sqrt(mean_k x[i,k]^2 + 1e-6), as the forward kept it",
        "dy": "float32[M, N]: gradient of the forward's answer",
    },
    "outputs": {"dx": "float32[M, N]: gradient of x", "dgamma": "float32[N]: gradient of gamma"},
    "flops": "9 * M * N",  # w 1, h 1, their products' sum 2, dx 3, products' sum over rows 2
    "workloads": {
        "realistic": ["1024x4096", "8192x768"],
        "tiny": {"tiny": {"M": 64, "N": 200}},
        "adversarial": ["4099x33", "3x16383"],
    },
    "families": "-constant large nonfinite",  # of a constant gradient little is left
    "nrmse": 5e-5,
    "accuracy": "dx: n = N + 16, s = rstd (|w| + |h| mean of |w h|). dgamma: n = M + 16, s = the "
    "sum of |dy h| over rows. rstd is taken as given. A NaN in dy makes its row of dx NaN, and its "
    "column of dgamma; infinities are never drawn.",
}


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> Inputs:
    """What the forward had, and a gradient; of LARGE the gradient alone is."""
    x = draw(Family.NORMAL if family is Family.LARGE else family, (M, N), rng)
    rstd = 1.0 / np.sqrt(np.square(x, dtype=np.float64).mean(1) + 1e-6)
    return x, gains(N, rng), rstd.astype(np.float32), draw_gradient(family, (M, N), rng)


def oracle(
    x: np.ndarray, gamma: np.ndarray, rstd: np.ndarray, dy: np.ndarray
) -> tuple[Expected, ...]:
    """The definition in float64."""
    return expect_gradients(x, gamma, None, rstd, dy)[:2]


def by_torch(
    torch: Any, x: Any, gamma: Any, rstd: Any, dy: Any, dx: Any, dgamma: Any, N: int
) -> Prepared:
    """Without a tensor that is made anew; halves as float32, which are rounded once."""
    if x.dtype != torch.float32:
        return lambda: write_each((dx, dgamma), by_compile(x, gamma, rstd, dy, N))
    h, products, factor = torch.empty_like(x), torch.empty_like(x), rstd[:, None]

    def compute() -> None:
        torch.mul(x, factor, out=h)
        torch.sum(torch.mul(dy, h, out=products), 0, out=dgamma)
        mean = torch.mv(products, gamma).div_(N)[:, None]
        torch.mul(dy, gamma, out=dx).addcmul_(h, mean, value=-1).mul_(factor)

    return compute


def by_compile(x: Any, gamma: Any, rstd: Any, dy: Any, N: int) -> tuple[Any, Any]:
    """The definition; halves as float32."""
    factor, dy = rstd.float()[:, None], dy.float()
    h, w = x.float() * factor, dy * gamma.float()
    return (w - h * ((w * h).sum(1, keepdim=True) / N)) * factor, (dy * h).sum(0)
