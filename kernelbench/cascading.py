# SPDX-License-Identifier: Apache-2.0
"""Cascaded group attention, in float64: heads one after the other, with what each may lose.

A scale s stands for an error of u sqrt(n) s. Each step has its own, the sum of |terms|, and what
the steps before it lost, to first order. Errors of elements are taken as independent of each other,
so that their squares are summed: bounds on their sums would grow tenfold with every head.
"""

from __future__ import annotations

import numpy as np

from .attending import LARGE_SPREAD, normalise, widen_weights
from .dense import ROUNDINGS, blocks_of_rows
from .families import draw, noise
from .problem import Expected, Family, Inputs, Pair

KEY, TAPS = 16, 5
"""Elements of a query and a key; rows and columns of a filter (EfficientViT, M0 to M3)."""
SPREADS = (-1.0, 1.0)
"""The logarithm to the base 2 of a logit's standard deviation, about: errors grow from head to head
by what logits are."""


def draw_layer(
    family: Family, shape: tuple[int, int, int, int], rng: np.random.Generator
) -> Inputs:
    """x in the family's form; w, conv and proj that keep numbers about as large as they are. Logits
    have a deviation out of SPREADS, those of LARGE's last head one of LARGE_SPREAD.

    Args:
        shape: images, tokens, heads, and channels of a head.
    """
    images, tokens, heads, width = shape
    total = heads * width
    form = Family.NORMAL if family is Family.LARGE else family
    x = normalise(draw(form, (images, tokens, total), rng))
    w = noise((heads, width, 2 * KEY + width), rng) / np.float32(np.sqrt(width))
    conv = noise((heads, TAPS, TAPS, KEY), rng) / np.float32(TAPS)
    conv *= (2.0 ** rng.uniform(*SPREADS, (heads, 1, 1, 1))).astype(np.float32)
    if family is Family.LARGE:
        conv[-1] *= np.float32(LARGE_SPREAD)
    return x, w, conv, noise((total, total), rng) / np.float32(np.sqrt(total))


def attend_in_turn(
    x: np.ndarray, w: np.ndarray, conv: np.ndarray, proj: np.ndarray, grid: tuple[int, int]
) -> Expected:
    """The answers, some images at a time.

    Args:
        x: [M, H*W, G*D]; w: [G, D, 32+D]; conv: [G, 5, 5, 16]; proj: [G*D, G*D].
        grid: rows and columns of tokens.
    """
    x, w, conv, proj = (each.astype(np.float64) for each in (x, w, conv, proj))
    terms = len(proj) + x.shape[1] + ROUNDINGS
    value, scale = np.empty(x.shape), np.empty(x.shape)
    for part in blocks_of_rows((len(x), x[0].size + x.shape[1] ** 2)):
        value[part], scale[part] = _attend(x[part], w, conv, proj, grid, terms)
    return Expected(value, scale, terms)


def _attend(
    x: np.ndarray,
    w: np.ndarray,
    conv: np.ndarray,
    proj: np.ndarray,
    grid: tuple[int, int],
    terms: float,
) -> Pair:
    """y and its scale."""
    width = w.shape[1]
    o, lost = np.zeros((2, *x.shape[:2], width))
    value, scale, squares = np.zeros((3, *x.shape))
    for g in range(len(w)):
        own = slice(g * width, (g + 1) * width)
        e = x[..., own] + o
        e_lost = np.hypot(lost, np.abs(e) / np.sqrt(terms) if g else 0.0)
        a, k, v = np.split(e @ w[g], (KEY, 2 * KEY), -1)
        losses = np.hypot(np.abs(e) @ np.abs(w[g]), np.sqrt(e_lost**2 @ w[g] ** 2))
        a_lost, k_lost, v_lost = np.split(losses, (KEY, 2 * KEY), -1)
        q = _convolve(a, conv[g], grid)
        own_lost = _convolve(np.abs(a), np.abs(conv[g]), grid)
        q_lost = np.hypot(own_lost, np.sqrt(_convolve(a_lost**2, conv[g] ** 2, grid)))
        o, lost = _average((q, k, v), (q_lost, k_lost, v_lost), terms)
        passed = np.where(o > 0, o, 0.0)
        value += passed @ proj[own]
        scale += passed @ np.abs(proj[own])
        squares += lost**2 @ proj[own] ** 2
    return value, np.hypot(scale, np.sqrt(squares))


def _convolve(maps: np.ndarray, filters: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
    """Tokens by channels times a filter of each channel, 0 outside of the grid."""
    images = maps.reshape(len(maps), *grid, KEY)
    padded = np.pad(images, ((0, 0), (TAPS // 2,) * 2, (TAPS // 2,) * 2, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (TAPS, TAPS), axis=(1, 2))
    found: np.ndarray = np.einsum("ihwcrs,rsc->ihwc", windows, filters)
    return found.reshape(maps.shape)


def _average(heads: tuple[np.ndarray, ...], lost: tuple[np.ndarray, ...], terms: float) -> Pair:
    """Values weighted by a softmax, and their scale, of queries, keys and values that are off."""
    (q, k, v), (q_lost, k_lost, v_lost) = heads, lost
    root = np.sqrt(KEY)
    logits = q @ k.mT / root
    distance = logits.max(-1, keepdims=True) - logits
    weights = np.exp(-distance)
    weights /= weights.sum(-1, keepdims=True)
    reach = np.abs(q) @ np.abs(k).mT + distance + np.abs(logits)
    own = widen_weights(weights, reach, np.full((1, 1, 1), terms)) @ np.abs(v)
    # Of a logit, squared; a weight moves its value and their mean against each other.
    moved = (q_lost**2 @ (k**2).mT + q**2 @ (k_lost**2).mT) / KEY
    found, shares = weights @ v, weights**2
    squares = (shares * moved) @ v**2 + (shares * moved).sum(-1, keepdims=True) * found**2
    return found, np.sqrt(own**2 + squares + shares @ v_lost**2)
