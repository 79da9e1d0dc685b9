# SPDX-License-Identifier: Apache-2.0
"""Multi-scale deformable attention: each query's head reads a few places of several maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import ROUNDINGS
from ..families import blemish, draw, noise
from ..lookups import draw_maps, list_maps, place_near, weigh_samples
from ..problem import Expected, Family, Inputs, Structure

PROBLEM = {
    "title": "Multi-scale deformable attention: bilinear samples of several maps, weighted",
    "definition": "y[i,h,:] = sum over l, p of weight[i,h,l,p] * the map of level l and head h at "
    "(loc * (columns, rows) - 0.5), loc = loc[i,h,l,p,:], bilinear between its elements, 0 "
    "outside; a level's map is value[first:, h, :] by rows, first = elements of the levels before",
    "source": "Deformable DETR, arXiv 2010.04159",
    "headline": "better than DETR in a tenth of its epochs, as reported",
    "tags": ["gather", "attention"],
    "is_row_wise": True,
    "axes": {
        "M": "queries",
        "H": "heads",
        "L": "levels",
        "P": "places on each level",
        "S": "elements of all levels, or more",
        "D": "channels of a head",
    },
    "lengths": {"L": 8, "P": 32},
    "least": {"S": 8},
    "inputs": {
        "value": "float32[S, H, D]: the maps, one level behind the other",
        "shapes": "int32[L, 2]: rows and columns of each level's map",
        "loc": "float32[M, H, L, P, 2]: across and down, from 0 to 1 within the map",
        "weight": "float32[M, H, L, P]: of a query and head they sum to 1",
    },
    "bound": ["shapes"],
    "outputs": {"y": "float32[M, H, D]"},
    "flops": "8 * M * H * L * P * D + 20 * M * H * L * P",
    "workloads": {
        "realistic": {"1000x8x3x4x8400x32": "decoder", "1360x8x4x4x1360x32": "encoder"},
        "tiny": {"tiny": {"M": 20, "H": 3, "L": 2, "P": 4, "S": 100, "D": 20}},
        "adversarial": {"257x3x5x3x1009x33": "odd sizes", "4099x1x1x1x9x5": "small maps"},
    },
    "held": "M * H * L * P * D",
    "families": "large nonfinite",
    "nrmse": 1e-4,
    "accuracy": "n = 4 L P + 16, s = sum over samples and corners of weight |value| times (w + "
    "what 3 (1 + |place|) / 16 is in place of w's factor of either axis): a place is rounded up to "
    "3 times. None is within 1/64 of a map's element. NaN is in value alone; no infinities.",
}


def values(structure: Structure, family: Family, rng: np.random.Generator) -> Inputs:
    """Places some elements around a point of each query, and a few anywhere, also outside."""
    M, H, L, P, S, D = structure.axes.values()
    shapes, value = draw_maps(S, L, rng), draw(family, (S, H * D), rng, varies=1)
    blemish(family, value, rng, (np.nan,))
    weight = np.exp(noise((M, H, L * P), rng))
    weight /= weight.sum(-1, keepdims=True)
    loc = place_near(shapes, (M, H, L, P), rng)
    return value.reshape(S, H, D), shapes, loc, weight.reshape(M, H, L, P)


def oracle(value: Any, shapes: Any, loc: Any, weight: Any, H: int, D: int) -> Expected:
    """The definition in float64, as products with sparse matrices."""
    shares, laws = weigh_samples(shapes, loc, weight)
    rows = value.reshape(-1, D)[: shares.shape[1]].astype(np.float64)
    found, scale = (each.reshape(-1, H, D) for each in (shares @ rows, laws @ np.abs(rows)))
    return Expected(found, scale, 4 * weight[0, 0].size + ROUNDINGS)


def by_compile(torch: Any, value: Any, shapes: Any, loc: Any, weight: Any) -> Any:
    """grid_sample of each level, in float32 whatever the tensors are."""
    y, sample = torch.zeros(()), torch.nn.functional.grid_sample
    for level, (first, size) in enumerate(list_maps(shapes.tolist())):
        maps = value[first : first + size[0] * size[1]].float().permute(1, 2, 0)
        grid = 2 * loc[:, :, level].float().transpose(0, 1) - 1
        found = sample(maps.unflatten(2, size), grid, align_corners=False)
        y = y + (found * weight[:, :, level].float().transpose(0, 1)[:, None]).sum(-1)
    return y.permute(2, 0, 1)
