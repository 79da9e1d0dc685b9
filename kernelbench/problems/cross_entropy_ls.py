# SPDX-License-Identifier: Apache-2.0
"""Cross-entropy with smoothed labels and its logits' gradient; error laws: exponentials.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import ROUNDINGS, blocks_of_rows, sum_products
from ..exponentials import OFFSETS, add_noise, softmax_and_log_sum
from ..families import LONG_LOGITS, blemish, draw, is_thinned, noise, single_out
from ..problem import Expected, Family, Pair

PROBLEM = {
    "title": "Label-smoothed cross-entropy and the gradient of its logits",
    "definition": "p = softmax of the rows of x; q[i,j] = 0.1 / N + 0.9 (j = label[i]); "
    "loss[i] = -sum_j q[i,j] log p[i,j]; dx[i,j] = p[i,j] - q[i,j]; both are 0 where label[i] = -1",
    "source": "LightSeq2, arXiv 2110.05722; label smoothing, arXiv 1512.00567",
    "headline": "LightSeq2: training of Transformers 1.4 to 3.5 times as fast, as reported",
    "tags": ["dense", "normalisation", "training"],
    "is_row_wise": True,
    "axes": {"M": "tokens", "N": "words of the vocabulary"},
    "inputs": {
        "x": "float32[M, N]: logits, row-major",
        "label": "int32[M]: the right word, from 0 to N - 1; -1: the token does not count",
    },
    "bound": ["label"],
    "outputs": {"loss": "float32[M]: of each token", "dx": "float32[M, N]: gradient of x"},
    "flops": "8 * M * N",  # maximum, difference, exponential, two sums, product, q 2
    "workloads": {
        "realistic": {"128x32000": "a vocabulary of 32,000", "4096x1000": "a thousand classes"},
        "tiny": {"tiny": {"M": 64, "N": 200}},
        "adversarial": ["4099x33", "3x16381"],
    },
    "families": "-constant large nonfinite",  # of equal logits long sums round alike
    "nrmse": 1.5e-4,
    "accuracy": "dx: n = N, s = that of softmax + q. {softmax law} loss: n = N + 16, s = 2 + |max| "
    "+ log of the sum of exp(x - max) + sum of q |x|, and what the sum's exponentials lose. A NaN "
    "makes a token's answers NaN, and is drawn of tokens that count; infinities are not drawn.",
}
SMOOTH, IGNORED, LIFTS = 0.1, 1 / 8, np.array((0, 900), np.float32)


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> Pair:
    """Logits, of which most of a long row lie far below the others, each at a height of its own;
    of LARGE some overflow exp. One label of several does not count, and there is one that does."""
    x = add_noise(draw(family, (M, N), rng), family, rng)
    if family is Family.LARGE:
        x = noise(x.shape, rng) + rng.choice(OFFSETS, (M, 1))
        single_out(x, rng, lambda value, _: value + rng.choice(LIFTS, (M, 1)))
    sunk = is_thinned(np.arange(N), N, x.shape, rng, LONG_LOGITS)
    x[sunk] -= rng.uniform(300, 500, np.count_nonzero(sunk)).astype(np.float32)
    blemish(family, x, rng, (np.nan,))
    counts = (rng.random(M) > IGNORED) | np.isnan(x).any(1)
    counts[rng.integers(M)] = True
    return x, np.where(counts, rng.integers(0, N, M), -1).astype(np.int32)


def oracle(x: np.ndarray, label: np.ndarray, N: int) -> dict[str, Expected]:
    """The definition in float64."""
    (loss, size), (dx, scale) = np.zeros((2, len(x), 1)), np.zeros((2, *x.shape))
    for part in blocks_of_rows(x.shape):
        row, at = x[part].astype(np.float64), label[part, None]
        (p, law), (log, size[part]) = softmax_and_log_sum(row)
        q = SMOOTH / N + (1 - SMOOTH) * (np.arange(N) == at)
        dx[part], scale[part] = (at >= 0) * (p - q), law + q
        loss[part] = (at >= 0) * (log - sum_products(q, row))
        size[part] += sum_products(q, np.abs(row))
    size, terms = size[:, 0], N + ROUNDINGS
    return {"loss": Expected(loss[:, 0], size, terms), "dx": Expected(dx, scale, N)}


def by_compile(torch: Any, x: Any, label: Any, N: int) -> tuple[Any, Any]:
    """The definition, in float32 whatever the logits are."""
    logs = torch.log_softmax(x.float(), 1)
    counts, at = (label >= 0)[:, None], label.clamp(min=0).long()[:, None]
    loss = -(1 - SMOOTH) * logs.gather(1, at) - SMOOTH * logs.mean(1, keepdim=True)
    dx = (logs.exp() - SMOOTH / N).scatter_add(1, at, torch.full(at.shape, SMOOTH - 1))
    return torch.where(counts, loss, 0.0)[:, 0], torch.where(counts, dx, 0.0)
