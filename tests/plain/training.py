"""Second implementations: what training needs beside forward passes."""

from __future__ import annotations

import numpy as np

from kernelwright.kernelbench.problem import Arrays, Structure

from .collect import Implementation


def _sum(x: np.ndarray) -> np.ndarray:
    """A naive sequential sum along the last axis."""
    return np.add.accumulate(x, axis=-1)[..., -1:]


def _rmsnorm_backward(_: Structure, i: Arrays, t: type) -> Arrays:
    """By the products with x itself: the factor comes in its third power."""
    x, gamma, rstd, dy = (i[name].astype(t) for name in ("x", "gamma", "rstd", "dy"))
    r = rstd[:, None]
    scaled = _sum(dy * gamma * (x * r)) / t(x.shape[1])
    dx = dy * gamma * r - x * r * (r * scaled)
    dgamma = np.zeros_like(gamma)
    for row, factor, gradient in zip(x, rstd, dy, strict=True):
        dgamma += gradient * (row * factor)
    return {"dx": dx, "dgamma": dgamma}


def _layernorm_backward(_: Structure, i: Arrays, t: type) -> Arrays:
    """Row by row: the gradient less its parts along ones and along the normalised row."""
    x, gamma, mean, rstd, dy = (i[name].astype(t) for name in ("x", "gamma", "mean", "rstd", "dy"))
    h, n = (x - mean[:, None]) * rstd[:, None], t(x.shape[1])
    w = dy * gamma
    along = h * (_sum(w * h) / n)
    gain, shift = np.zeros_like(gamma), np.zeros_like(gamma)
    for row, gradient in zip(h, dy, strict=True):
        gain += gradient * row
        shift += gradient
    return {"dx": rstd[:, None] * (w - _sum(w) / n - along), "dgamma": gain, "dbeta": shift}


def _cross_entropy_ls(_: Structure, i: Arrays, t: type) -> Arrays:
    """Through the logarithms of the answers, of which each row has a weighted mean."""
    x, label, count = i["x"].astype(t), i["label"], t(i["x"].shape[1])
    top = x.max(1, keepdims=True)
    logs = x - top - np.log(_sum(np.exp(x - top)))
    counts, is_right = label[:, None] >= 0, np.arange(x.shape[1]) == label[:, None]
    right = np.take_along_axis(logs, np.maximum(label, 0)[:, None], 1)
    loss = np.where(counts, -t(0.9) * right - t(0.1) * (_sum(logs) / count), t(0))[:, 0]
    dx = np.where(counts, np.exp(logs) - t(0.1) / count - t(0.9) * is_right, t(0))
    return {"loss": loss, "dx": dx}


def _fused_adam(_: Structure, i: Arrays, t: type) -> Arrays:
    """With the corrections in the rate and in the root's divisor, as torch's own has them."""
    p, g, m, v, (rate, c1, c2) = (i[name].astype(t) for name in ("p", "g", "m", "v", "step"))
    mean = m + t(1 - 0.9) * (g - m)
    square = t(0.999) * v + t(1 - 0.999) * (g * g)
    way = mean / (np.sqrt(square) / np.sqrt(c2) + t(1e-8))
    return {"p1": p * (t(1) - rate * t(0.01)) - rate / c1 * way, "m1": mean, "v1": square}


def _elementwise_chain(_: Structure, i: Arrays, t: type) -> np.ndarray:
    """Each operation as a function of numpy's own."""
    calls = (np.add, np.subtract, np.multiply, np.divide, lambda v, c: np.abs(np.subtract(c, v)))
    v = i["x"].astype(t)
    for kind, constant in zip(i["code"].astype(int), i["c"].astype(t), strict=True):
        v = calls[kind](v, constant)
    return v


def _galore_adam_step(_: Structure, i: Arrays, t: type) -> Arrays:
    """A column of the projection at a time: each adds its part of the update to the weight."""
    w, g, p, m, v, (rate, c1, c2) = (i[n].astype(t) for n in ("W", "G", "P", "m", "v", "step"))
    mean, square, moved = np.empty_like(m), np.empty_like(v), np.zeros_like(w)
    for k, column in enumerate(p.T):
        r = np.sum(column[:, None] * g, axis=0)
        mean[k] = m[k] + t(1 - 0.9) * (r - m[k])
        square[k] = t(0.999) * v[k] + t(1 - 0.999) * (r * r)
        way = mean[k] / (np.sqrt(square[k]) / np.sqrt(c2) + t(1e-8))
        moved += column[:, None] * way
    return {"W1": w - rate / c1 * moved, "m1": mean, "v1": square}


def _tiled_mlp(_: Structure, i: Arrays, t: type) -> np.ndarray:
    """A few columns of the layer between at a time; a sigmoid that nothing overflows in."""
    x, gate, up, down = (i[name].astype(t) for name in ("x", "gate", "up", "down"))
    y = np.zeros(x.shape, t)
    for first in range(0, len(down), 64):
        part = slice(first, first + 64)
        g, u = x @ gate[:, part], x @ up[:, part]
        small = np.exp(-np.abs(g))
        share = np.where(g < 0, small, t(1)) / (t(1) + small)
        y += (g * share * u) @ down[part]
    return y


def _gradnorm_lorp_step(_: Structure, i: Arrays, t: type) -> Arrays:
    """A column of the weight at a time: its gradient less the part along it, and what that adds."""
    names = ("V", "G", "g", "P", "Q", "m", "v", "step")
    w, g, gain, p, q, m, v, (rate, c1, c2) = (i[name].astype(t) for name in names)
    r = np.zeros_like(m)
    for j, (column, gradient) in enumerate(zip(w.T, g.T, strict=True)):
        squares = np.sum(column * column)
        d = (gradient * squares - column * np.sum(column * gradient)) / (squares * np.sqrt(squares))
        r += (p.T @ (d * gain[j]))[:, None] * q[j]
    mean = m + t(1 - 0.9) * (r - m)
    square = t(0.999) * v + t(1 - 0.999) * (r * r)
    way = mean / (np.sqrt(square) / np.sqrt(c2) + t(1e-8))
    return {"V1": w - p @ (q @ (rate / c1 * way).T).T, "m1": mean, "v1": square}


PLAIN: dict[str, Implementation] = {
    "rmsnorm_backward": _rmsnorm_backward,
    "layernorm_backward": _layernorm_backward,
    "cross_entropy_ls": _cross_entropy_ls,
    "fused_adam": _fused_adam,
    "elementwise_chain": _elementwise_chain,
    "galore_adam_step": _galore_adam_step,
    "tiled_mlp": _tiled_mlp,
    "gradnorm_lorp_step": _gradnorm_lorp_step,
}
