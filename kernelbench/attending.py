# SPDX-License-Identifier: Apache-2.0
"""What the problems share that are softmax-weighted sums of values.

How far an honest float32 kernel may be off: a logit x = q k / sqrt(D) takes u sqrt(D) times the sum
of its terms' magnitudes A, its distance to the row's maximum rounds once more, and the exponential
is a few units off (exponentials.py): relative errors of weights, each of which also moves all
others by the mean that is weighted by them. The sum of n values adds a random walk. So the scale is
the sum of p |v| (2 + (8 + r + E(r) + L/2u) / sqrt(n)) with r = max - x + |x| + sqrt(D) A.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .exponentials import EXP_ULPS, drift
from .families import draw
from .problem import Family, Inputs, Pair

SPREADS = (0.0, 2.0)
"""The logarithm to the base 2 of a logit's standard deviation, about."""
PAGE = 16
"""Tokens of a page of a cache."""
LARGE_SPREAD = 60.0
"""The same of LARGE: of few hundred logits one has an exponential beyond float32."""
LARGE_SHARE = 0.25
"""Of its queries: one key has nearly all the weight there, which hides what is made of others."""
BELOW = (100.0, 12_000.0)
"""In the mean so far below zero lie all logits of as many other queries of LARGE: below what has an
exponential, and below what a mask is that is not infinite."""
MOST_BELOW = 1000.0
"""Of a query's elements, about: halves hold eight times as much, and what is by chance larger."""


def draw_heads(
    family: Family, queries: tuple[int, ...], keys: tuple[int, ...], rng: np.random.Generator
) -> Inputs:
    """Queries, keys and values in the family's form; logits lie where a trained model's do."""
    spread = np.full((*queries[:-1], 1), 2.0 ** rng.uniform(*SPREADS), np.float32)
    form = Family.NORMAL if family is Family.LARGE else family
    if family is Family.LARGE:
        spread[rng.random(spread.shape) < LARGE_SHARE] = LARGE_SPREAD
    q, k = (normalise(draw(form, shape, rng)) for shape in (queries, keys))
    q *= spread
    if family is Family.LARGE:
        _draw_below(q, k, spread < LARGE_SPREAD, rng)
    share = np.float32(2.0 ** rng.uniform(-3, 3))
    return q * share, k * (1 / share), draw(form, keys, rng)


def _draw_below(q: np.ndarray, k: np.ndarray, can: np.ndarray, rng: np.random.Generator) -> None:
    """Leads all keys one way, and some queries that can the other way."""
    way = normalise(draw(Family.NORMAL, q.shape[-1:], rng))
    k += way
    low, high = np.log(BELOW)
    below = np.exp(rng.uniform(low, high, can.shape)) / np.sqrt(q.shape[-1])
    is_below = can & (rng.random(can.shape) < LARGE_SHARE)
    q -= np.where(is_below, np.minimum(below, MOST_BELOW), 0.0).astype(np.float32) * way


def normalise(drawn: np.ndarray) -> np.ndarray:
    """Without a mean, and with a mean square of 1, where there are different elements."""
    drawn -= drawn.mean()
    size = np.sqrt(np.square(drawn).mean(dtype=np.float64))
    normal: np.ndarray = drawn / np.float32(size if size > 0 else 1.0)
    return normal


def draw_pages(sequences: int, pages: int, rng: np.random.Generator) -> Pair:
    """Which pages each sequence has, and how many tokens: int32. Most fill three quarters of their
    pages or more; some have one token, or whole pages."""
    table = rng.permutation(sequences * pages).astype(np.int32).reshape(sequences, pages)
    lengths = PAGE * pages - rng.integers(0, PAGE // 4 * pages, sequences)
    short = rng.permutation(sequences)[: sequences // 4]
    lengths[short] = rng.integers(1, PAGE * pages + 1, len(short))
    lengths[short[::3]] = PAGE * rng.integers(1, pages + 1, len(short[::3]))
    lengths[short[1::3]] = 1
    return table, lengths.astype(np.int32)


def draw_counts(lists: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """How many of a list's places are taken, int32: most are half full or more, some are full, or
    have any number, or none."""
    count = rng.integers(most // 2, most, lists, np.int32, endpoint=True)
    some = rng.permutation(lists)[: lists // 4]
    count[some] = rng.integers(0, most, len(some), np.int32, endpoint=True)
    count[some[::3]] = most
    return count


def show_places(torch: Any, count: Any, most: int) -> tuple[Any, Any]:
    """Which keys each list's queries see, one at least, and which places are taken: as they are
    broadcast to scores (lists, heads, places, places), and to lists (lists, places, heads, D)."""
    places = torch.arange(most, device=count.device)
    seen = places < count.clamp(min=1)[:, None]
    return seen[:, None, None], (places < count[:, None])[:, :, None, None]


def gather_pages(torch: Any, k: Any, v: Any, table: Any, lengths: Any) -> tuple[Any, Any, Any]:
    """Keys and values of sequences in a row each, in float32, and what is added to logits: all but
    those of a sequence's own tokens are hidden."""
    keys, values = (each[table].transpose(1, 2).flatten(2, 3).float() for each in (k, v))
    is_own = torch.arange(keys.shape[2], device=k.device) < lengths[:, None, None, None]
    return keys, values, torch.where(is_own, 0.0, float("-inf"))


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, is_seen: np.ndarray) -> Pair:
    """The attention of heads in float64, and its scale where n is the keys that a row sees.

    Args:
        q: of each head queries, a row each; k, v: keys and values, a row of each token.
        is_seen: of each query and key, as it is broadcast; each query sees one at least.
    """
    q, k, v = (each.astype(np.float64) for each in (q, k, v))
    root = np.sqrt(q.shape[-1])
    logits = np.where(is_seen, q @ k.mT / root, -np.inf)
    distance = logits.max(-1, keepdims=True) - logits
    weights = np.exp(-distance)
    weights /= weights.sum(-1, keepdims=True)
    # sqrt(D) times the magnitudes' sum, which is divided by sqrt(D).
    reach = np.abs(q) @ np.abs(k).mT + np.where(is_seen, distance + np.abs(logits), 0.0)
    share = widen_weights(weights, reach, is_seen.sum(-1, keepdims=True))
    return weights @ v, share @ np.abs(v)


def attend_pages(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, table: np.ndarray, lengths: np.ndarray
) -> Pair:
    """As `attend`, of one query in each head, a sequence at a time."""
    value, scale = np.empty(q.shape), np.empty(q.shape)
    for b, length in enumerate(lengths):
        pages = table[b, : -(-length // PAGE)]
        keys, values = (np.concatenate(each[pages], 1)[:, :length] for each in (k, v))
        value[b], scale[b] = attend(q[b], keys, values, np.ones((1, length), bool))
    return value, scale


def widen_weights(weights: np.ndarray, reach: np.ndarray, count: np.ndarray) -> np.ndarray:
    """What magnitudes of values are weighted with in a scale.

    Args:
        weights: which sum up to 1 along the last axis.
        reach: what their exponents may be off by, in units of roundoff.
        count: of them.
    """
    mean = (weights * reach).sum(-1, keepdims=True) + EXP_ULPS
    mean += drift(weights).sum(-1, keepdims=True) * 2.0**23
    widened: np.ndarray = weights * (2.0 + (reach + mean) / np.sqrt(count))
    return widened
