# SPDX-License-Identifier: Apache-2.0
"""What the backwards of normalisations share: the gradient that arrives, and gradients that are
summed over rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .dense import ROUNDINGS, blocks_of_rows, sum_products, sum_rows
from .families import blemish, draw, thin_columns
from .problem import Expected, Family

Gradients = tuple[Expected, Expected, Expected]


def draw_gradient(family: Family, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """A gradient whose rows and columns are summed: where either are long most of it is 0, since
    plain float32 sums of more terms of one sign drift. NONFINITE has NaN only."""
    gradient = draw(family, shape, rng)
    thin_columns(family, gradient, rng)
    thin_columns(family, gradient.T, rng)
    blemish(family, gradient, rng, (np.nan,))
    return gradient


U = 2.0**-24


def expect_gradients(
    x: np.ndarray,
    gamma: np.ndarray,
    mean: np.ndarray | None,
    rstd: np.ndarray,
    dy: np.ndarray,
) -> Gradients:
    """The gradients of x, gain and shift, float64, some rows at a time.

    Every element takes a few roundings of its own; sums have one for each term, and the mean
    products along a row reach each of its elements: hence the scales.

    Args:
        mean: of each row; None: nothing is subtracted, neither from x nor from its gradient.
    """
    rows, columns = x.shape
    value, scale = np.empty(x.shape), np.empty(x.shape)
    gain, shift = np.zeros((2, columns)), np.zeros((2, columns))
    for part in blocks_of_rows(x.shape):
        factor, gradient = rstd[part, None].astype(np.float64), dy[part].astype(np.float64)
        h = x[part].astype(np.float64)
        if mean is not None:
            h -= mean[part, None]
        h *= factor
        w = gradient * gamma
        value[part] = w - h * (sum_products(w, h) / columns)
        size, weight = np.abs(h), np.abs(w)
        # Some take x rstd less mean rstd, each rounded, for h: torch does in its sums and products.
        reach = size if mean is None else size + np.abs(mean[part, None]) * factor
        scale[part] = weight + size * (sum_products(weight, reach) / columns)
        far = reach - size
        scale[part] += far * (sum_products(weight, size) / columns)
        # What is lost in a sum is lost again where x is multiplied by it, and the mean.
        scale[part] += far**2 * (U * sum_rows(weight) / columns)
        if mean is not None:
            value[part] -= sum_rows(w) / columns
            scale[part] += sum_rows(weight) / columns
        value[part] *= factor
        scale[part] *= factor
        gain += np.einsum("ij,ij->j", gradient, h), np.einsum("ij,ij->j", np.abs(gradient), reach)
        shift += gradient.sum(0), np.abs(gradient).sum(0)
    return (
        Expected(value, scale, columns + ROUNDINGS),
        Expected(gain[0], gain[1], rows + ROUNDINGS),
        Expected(shift[0], shift[1], rows + ROUNDINGS),
    )


def write_each(outputs: Iterable[Any], found: Iterable[Any]) -> None:
    """Copies tensors to where they belong, which rounds them."""
    for to, each in zip(outputs, found, strict=True):
        to.copy_(each)
