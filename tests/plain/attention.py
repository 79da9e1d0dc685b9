"""Second implementations: attention, and what goes with its caches."""

from __future__ import annotations

import numpy as np

from kernelwright.kernelbench.problem import Arrays, Structure

from .collect import Implementation

BLOCK = 64
"""Keys whose exponentials share a maximum until they are joined with others."""


def _join_blocks(q: np.ndarray, k: np.ndarray, v: np.ndarray, is_seen: np.ndarray) -> np.ndarray:
    """Softmax-weighted sums, block by block of keys, in the arrays' type; each is rescaled to the
    maximum so far. `is_seen` tells which keys a query has."""
    t = q.dtype.type
    top = np.full((*q.shape[:-1], 1), -np.inf, t)
    total, sums = np.zeros_like(top), np.zeros((*q.shape[:-1], v.shape[-1]), t)
    for start in range(0, k.shape[-2], BLOCK):
        part = slice(start, start + BLOCK)
        logits = (q @ k[..., part, :].mT) / np.sqrt(t(q.shape[-1]))
        logits = np.where(is_seen[..., part], logits, t(-np.inf))
        joined = np.maximum(top, logits.max(-1, keepdims=True))
        anchor = np.where(np.isfinite(joined), joined, t(0))
        risen, shrunk = np.exp(logits - anchor), np.exp(top - anchor)
        total = total * shrunk + np.add.accumulate(risen, -1)[..., -1:]
        sums, top = sums * shrunk + risen @ v[..., part, :], joined
    answer: np.ndarray = sums / total
    return answer


def _attention_prefill(s: Structure, i: Arrays, t: type) -> np.ndarray:
    q, k, v = (i[name].astype(t) for name in "qkv")
    tokens = np.arange(s.axes["S"])
    return _join_blocks(q, k[:, None], v[:, None], tokens <= tokens[:, None])


def _attention_decode_gqa(_: Structure, i: Arrays, t: type) -> np.ndarray:
    q, o = i["q"].astype(t), np.empty(i["q"].shape, t)
    for b, pages in enumerate(i["table"]):
        k, v = (
            np.swapaxes(i[n][pages].astype(t), 0, 1).reshape(len(o[b]), -1, q.shape[-1])
            for n in "kv"
        )
        o[b] = _join_blocks(q[b], k, v, np.arange(k.shape[1])[None] < i["lengths"][b])
    return o


PLAIN: dict[str, Implementation] = {
    "attention_prefill": _attention_prefill,
    "attention_decode_gqa": _attention_decode_gqa,
}
