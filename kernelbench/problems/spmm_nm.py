# SPDX-License-Identifier: Apache-2.0
"""Y = W X with two of each four weights kept (2:4), as sparse tensor cores take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..blocks import pruned_factors
from ..problem import Expected, Family, Inputs, Structure
from ..sparse import multiply

PROBLEM = {
    "title": "Product with 2:4 sparse weights (positions of 2 bits)",
    "definition": "Y[i,n] = sum over h < H and e < 4 of values[i,4h+e] * X[8h + 4(e/2) + "
    "(codes[i,h] >> 2e & 3), n]",
    "source": "Accelerating Sparse Deep Neural Networks, arXiv 2104.08378; NVIDIA's mma.sp",
    "headline": "twice the rate of dense tensor cores at most (A100, float16), as reported",
    "tags": ["pruned", "contraction"],
    "is_row_wise": True,
    "axes": {
        "M": "rows of W and Y",
        "N": "columns of X and Y",
        "H": "bytes of positions in a row: each of two groups of four columns",
    },
    "lengths": {"N": "grid y", "H": 2048},
    "inputs": {
        "values": "float32[M, 4*H]: the kept weights, two of each group of four columns",
        "codes": "uint8[M, H]: 2 bits of each: its column in its group of four, ascending",
        "X": "float32[8*H, N]: dense, row-major",
    },
    "bound": ["codes"],
    "outputs": {"Y": "float32[M, N]: row-major"},
    "flops": "8 * M * H * N",
    "workloads": {
        "realistic": {
            "1024x4096x64": {"M": 1024, "N": 64, "H": 512, "note": "down in BERT-large, 64 tokens"},
            "4096x1024x48": {"M": 4096, "N": 48, "H": 128, "note": "up in BERT-large, 48 tokens"},
        },
        "tiny": {"tiny": {"M": 40, "N": 20, "H": 6}},
        "adversarial": {
            "1021x72x33": {"M": 1021, "N": 33, "H": 9, "note": "odd sizes"},
            "3x1024x1": {"M": 3, "N": 1, "H": 128, "note": "a vector, and few rows"},
        },
    },
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = 4 H, s = sum of |values X|. {running sum} Zero times infinity is NaN; X is "
    "always finite: kernels may multiply it with a dense W's zeros.",
}
KEPT = np.array([0x4, 0x8, 0xC, 0x9, 0xD, 0xE], np.uint8)  # two ascending of four


def _elements(codes: np.ndarray, H: int) -> Structure:
    """The pattern of the kept weights."""
    octets = codes.astype(np.uint8)[..., None]
    columns = 8 * np.arange(H)[:, None] + [0, 0, 4, 4] + (octets >> np.arange(0, 8, 2) & 3)
    arrays = {"indptr": 4 * H * np.arange(len(codes) + 1), "indices": columns.reshape(-1)}
    return Structure({"M": len(codes), "K": 8 * H, "nnz": columns.size}, arrays)


def values(family: Family, rng: np.random.Generator, M: int, N: int, H: int) -> Inputs:
    """Every pair of columns as often as another."""
    low, high = rng.choice(KEPT, (2, M, H))
    codes = low | high << np.uint8(4)
    kept, dense = pruned_factors(_elements(codes, H), family, (8 * H, N), rng)
    return kept.reshape(M, 4 * H), codes, dense


def oracle(values: np.ndarray, codes: np.ndarray, X: np.ndarray, H: int) -> Expected:
    """The product in float64; the scale is |W||X|."""
    return Expected(*multiply(_elements(codes, H), values.reshape(-1), X, 8 * H), 4.0 * H)


def by_compile(torch: Any, values: Any, codes: Any, X: Any, H: int) -> Any:
    """Weights are scattered into a dense matrix, which is multiplied."""
    places = torch.stack([codes >> shift & 3 for shift in (0, 2, 4, 6)], -1).long()
    groups = torch.zeros(len(values), 2 * H, 4, device=X.device)
    groups = groups.scatter(2, places.view(-1, 2 * H, 2), values.float().view(-1, 2 * H, 2))
    return groups.flatten(1) @ X.float()
