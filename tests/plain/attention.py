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


def _attention_partial_merge(s: Structure, i: Arrays, t: type) -> np.ndarray:
    """One part joins what there is after the other, as online softmax does."""
    o, m, sizes = (i[name].astype(t) for name in ("o", "m", "size"))
    top, total = np.full(s.axes["M"], -np.inf, t), np.zeros(s.axes["M"], t)
    sums = np.zeros(o.shape[1:], t)
    for part, high, size in zip(o, m, sizes, strict=True):
        joined = np.where(size > 0, np.maximum(top, high), top)
        anchor = np.where(np.isfinite(joined), joined, t(0))
        shrunk = np.exp(top - anchor)
        own = np.where(size > 0, size * np.exp(np.minimum(high - anchor, t(0))), t(0))
        total, top = total * shrunk + own, joined
        sums = sums * shrunk[:, None] + own[:, None] * part
    return sums / np.where(total > 0, total, t(1))[:, None]


def _linear_attention_relu(_: Structure, i: Arrays, t: type) -> np.ndarray:
    """Token by token the state grows by an outer product."""
    q, k, v = (i[name].astype(t) for name in "qkv")
    a, b = np.where(q > 0, q, t(0)), np.where(k > 0, k, t(0))
    state, total = np.zeros((*q.shape[::2], q.shape[2]), t), np.zeros(q.shape[::2], t)
    for j in range(q.shape[1]):
        state += b[:, j, :, None] * v[:, j, None]
        total += b[:, j]
    divisor = np.add.accumulate(a * total[:, None], -1)[..., -1:]
    return np.einsum("hnd,hde->hne", a, state) / (divisor + t(1e-6))


def _pair(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    """Complex numbers of their parts, without a product."""
    both = np.stack((real, imaginary), -1)
    pairs: np.ndarray = both.view(np.result_type(both, np.complex64))[..., 0]
    return pairs


def _lowrank_key_rope_gemm(s: Structure, i: Arrays, t: type) -> np.ndarray:
    """Pairs are complex numbers that are turned by others."""
    u, sv, cos, sin = (i[name].astype(t) for name in ("u", "sv", "cos", "sin"))
    pairs, k = s.axes["P"], np.empty((*i["chunk"].shape, 8, sv.shape[2]), t)
    for h, chunks in enumerate(i["chunk"]):
        tokens = 8 * chunks[:, None] + np.arange(8)
        z = u[tokens] @ sv[h]
        turned = _pair(z[..., :pairs], z[..., pairs:]) * _pair(cos[tokens], sin[tokens])
        k[h] = np.concatenate((turned.real, turned.imag), -1)
    return k


def _neighbor_attention(_: Structure, i: Arrays, t: type) -> np.ndarray:
    """List by list, of which the neighbours alone are looked at."""
    q, k, v = (np.swapaxes(i[name].astype(t), 1, 2) for name in "qkv")
    o = np.zeros(i["q"].shape, t)
    for m, n in enumerate(i["count"]):
        own = (each[m, :, :n] for each in (q, k, v))
        o[m, :n] = np.swapaxes(_join_blocks(*own, np.ones((n, n), bool)), 0, 1)
    return o


def _cascaded_group_attention(s: Structure, i: Arrays, t: type) -> np.ndarray:
    """Filters tap by tap, whose maps are moved; keys block by block."""
    x, w, conv, proj = (i[name].astype(t) for name in ("x", "w", "conv", "proj"))
    rows, columns, wide = s.axes["H"], s.axes["W"], s.axes["D"]
    found: list[np.ndarray] = []
    for g, head in enumerate(w):
        e = x[..., g * wide :][..., :wide]
        a, k, v = np.split((e + found[-1] if found else e) @ head, (16, 32), -1)
        padded = np.zeros((len(x), rows + 4, columns + 4, 16), t)
        padded[:, 2:-2, 2:-2] = a.reshape(len(x), rows, columns, 16)
        q = sum(
            padded[:, r : r + rows, u : u + columns] * conv[g, r, u]
            for r in range(5)
            for u in range(5)
        )
        q = np.reshape(q, a.shape)
        found.append(_join_blocks(q, k, v, np.ones((1, 1, k.shape[1]), bool)))
    return np.concatenate([np.maximum(o, t(0)) for o in found], -1) @ proj


PLAIN: dict[str, Implementation] = {
    "attention_prefill": _attention_prefill,
    "attention_decode_gqa": _attention_decode_gqa,
    "attention_partial_merge": _attention_partial_merge,
    "linear_attention_relu": _linear_attention_relu,
    "lowrank_key_rope_gemm": _lowrank_key_rope_gemm,
    "neighbor_attention": _neighbor_attention,
    "cascaded_group_attention": _cascaded_group_attention,
}
