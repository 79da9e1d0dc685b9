"""Second implementations: convolutions, state spaces and encodings."""

from __future__ import annotations

import numpy as np

from kernelwright.kernelbench.problem import Arrays, Structure

from .collect import Implementation


def _convolve_causally(_: Structure, i: Arrays, t: type) -> np.ndarray:
    """Windows of a padded sequence, times the taps."""
    x = np.pad(i["x"].astype(t), ((0, 0), (0, 0), (3, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, 4, axis=2)
    p = np.add.accumulate(windows * i["w"].astype(t)[:, None], axis=3)[..., -1]
    p = p + i["bias"].astype(t)[:, None]
    return p / (t(1) + np.exp(-p))


def _convolve(_: Structure, i: Arrays, t: type) -> np.ndarray:
    """Windows of the images; all of one times a filter, summed by numpy's own loops."""
    x, w = i["x"].astype(t), i["w"].astype(t)
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    y: np.ndarray = np.einsum("icpqrs,fcrs->ifpq", windows, w)
    return y


def _convolve_by_channel(_: Structure, i: Arrays, t: type) -> np.ndarray:
    """The whole image times each place of a filter, moved, where it stays within the image."""
    x, w = i["x"].astype(t), i["w"].astype(t)
    (height, width), y = x.shape[2:], np.zeros(x.shape, t)
    for r, s in np.ndindex(w.shape[1:]):
        down, right = r - w.shape[1] // 2, s - w.shape[1] // 2
        rows = slice(max(0, -down), max(0, min(height, height - down)))
        columns = slice(max(0, -right), max(0, min(width, width - right)))
        part = x[:, :, max(0, down) : height + min(0, down)][..., max(0, right) :]
        part = part[..., : max(0, width - abs(right))]
        if part.size:
            y[:, :, rows, columns] += w[:, r, s, None, None] * part
    return y


def _update_state(_: Structure, i: Arrays, t: type) -> Arrays:
    """One state after the other, with a running sum."""
    state, x, z, dt, b, c = (i[name].astype(t) for name in ("state", "x", "z", "dt", "B", "C"))
    kept, after = np.exp(dt * i["A"].astype(t)), np.empty_like(state)
    y = i["D"].astype(t)[:, None] * x
    for n in range(state.shape[3]):
        added = dt[:, :, None] * b[:, n, None, None] * x
        after[..., n] = kept[:, :, None] * state[..., n] + added
        y = y + c[:, n, None, None] * after[..., n]
    return {"after": after, "y": y * (z / (t(1) + np.exp(-z)))}


def _scan(_: Structure, i: Arrays, t: type) -> np.ndarray:
    """Step by step."""
    x, dt, b, c = (i[name].astype(t) for name in ("x", "dt", "B", "C"))
    kept, y = np.exp(dt * i["A"].astype(t)), np.empty_like(x)
    state = np.zeros((*x.shape[:1], *x.shape[2:], b.shape[2]), t)
    for step in range(x.shape[1]):
        state = state * kept[:, step, :, None, None]
        state += (x[:, step] * dt[:, step, :, None])[..., None] * b[:, step, None, None]
        y[:, step] = np.add.accumulate(state * c[:, step, None, None], axis=3)[..., -1]
    return y


def _convolve_codes(s: Structure, i: Arrays, t: type) -> np.ndarray:
    """Sums of codes, then for each place what the taps that lie within weigh, times zero."""
    x, w, half = i["x"].astype(np.float64), i["w"].astype(np.float64), s.axes["R"] // 2
    around = ((0, 0), (half, half), (half, half), (0, 0))
    shape = w.shape[1:3]
    sums, inside = (
        np.lib.stride_tricks.sliding_window_view(np.pad(each, around), shape, axis=(1, 2))
        for each in (x, np.ones_like(x[:1, ..., :1]))
    )
    products = np.einsum("ipqcrs,frsc->ipqf", sums, w)
    weights = np.einsum("ipqrs,frs->ipqf", inside[..., 0, :, :], w.sum(3))
    found = (products - weights * float(i["zero"][0])).astype(t)
    return found * i["scale"].astype(t) + i["bias"].astype(t)


PLAIN: dict[str, Implementation] = {
    "causal_conv1d": _convolve_causally,
    "conv2d_nchw": _convolve,
    "conv2d_w8a8": _convolve_codes,
    "depthwise_conv": _convolve_by_channel,
    "ssm_state_update": _update_state,
    "mamba2_ssd_chunk_scan": _scan,
}
