"""Second implementations: arithmetic on integers and narrow codes."""

from __future__ import annotations

import numpy as np

from kernelwright.kernelbench.problem import Arrays, Structure

from .collect import Implementation


def _exponential(x: np.ndarray, unit: float, n: int) -> np.ndarray:
    """As I-ViT's paper has it, in floats that hold every number."""
    x = x + np.floor(x / 2) - np.floor(x / 16)
    x = np.maximum(x, -n * unit)
    q = np.floor(x / -unit)
    r = x + unit * q
    return np.asarray(np.floor((r / 2 + unit) * 2 ** (n - q)))


def _shiftmax(_: Structure, i: Arrays, _t: type) -> Arrays:
    x, unit = i["x"].astype(np.float64), float(i["unit"][0])
    e = _exponential(x - x.max(1, keepdims=True), unit, 15)
    total = np.zeros((len(x), 1))
    for j in range(x.shape[1]):
        total += e[:, j : j + 1]
    factor = np.floor((2.0**31 - 1) / np.minimum(total, 2.0**31 - 1))
    return {"y": np.floor(e * factor / 2**24)}


def _shiftgelu(_: Structure, i: Arrays, _t: type) -> Arrays:
    x, unit = i["x"].astype(np.float64), float(i["unit"][0])
    top = x.max(1, keepdims=True)
    e, most = _exponential(x - top, unit, 23), _exponential(-top, unit, 23)
    factor = np.floor((2.0**31 - 1) / np.minimum(e + most, 2.0**31 - 1))
    return {"y": x * np.floor(e * factor / 2**24)}


def _int_layernorm(s: Structure, i: Arrays, _t: type) -> Arrays:
    """The mean in whole numbers: half up, and one less at a tie whose number above is odd."""
    x, n = i["x"].astype(np.int64), s.axes["N"]
    total = x.sum(1, keepdims=True)
    mean = (2 * total + n) // (2 * n)
    mean -= ((2 * total + n) % (2 * n) == 0) & (mean % 2 == 1)
    d = (x - mean).astype(np.float64)
    variance = np.add.accumulate(d * d, axis=1)[:, -1:]
    root = np.full_like(variance, 2.0**16)
    for _ in range(10):
        root = np.floor((root + np.floor(variance / root)) / 2)
    return {"y": np.floor(d * np.floor((2.0**31 - 1) / root) / 2) + i["bias"].astype(np.float64)}


def _w8a8_outlier_linear(_: Structure, i: Arrays, t: type) -> np.ndarray:
    """Outliers one by one, as they stand in the list."""
    w = i["w"].astype(np.float64)
    total = (i["x"].astype(np.float64) @ w.T).astype(t) * i["sx"].astype(t)[:, None]
    apart = np.zeros_like(total)
    for at, column in enumerate(i["columns"].tolist()):
        apart += i["outliers"][:, at : at + 1].astype(t) * w[:, int(column)].astype(t)
    return (total + apart) * i["sw"].astype(t)


def _apmm_bipolar(s: Structure, i: Arrays, _t: type) -> Arrays:
    """Plane by plane, by the bits that differ."""
    w, x = (np.unpackbits(i[name], axis=2).astype(np.float32) for name in "wx")
    y = np.zeros((len(w), len(x)))
    for p in range(s.axes["P"]):
        for q in range(s.axes["Q"]):
            both = w[:, p] @ x[:, q].T
            differ = w[:, p].sum(1)[:, None] + x[:, q].sum(1) - 2 * both
            y += 2.0 ** (p + q) * (64 * s.axes["G"] - 2 * differ.astype(np.float64))
    return {"y": y}


def _bits(octets: np.ndarray, size: int) -> np.ndarray:
    """Whole numbers (..., size) from bits in the order of bytes, lowest first; the last is the
    sign's."""
    bits = np.unpackbits(octets, axis=-1, bitorder="little").astype(np.int64)
    bits = bits.reshape(*octets.shape[:-1], size, -1)
    worth = 1 << np.arange(bits.shape[-1])
    worth[-1] *= -1
    return np.asarray(bits @ worth)


def _w6ax_gemm(_: Structure, i: Arrays, t: type) -> Arrays:
    """Token by token, all groups of its products at once, then a running sum over groups."""
    x, w = (_bits(i[name], 128) for name in "xw")
    y = np.zeros((len(x), len(w)), t)
    for at, token in enumerate(x):
        sums = np.einsum("ngk,gk->ng", w, token).astype(t)
        terms = sums * i["sx"][at].astype(t) * i["sw"].astype(t)
        y[at] = np.add.accumulate(terms, axis=1)[:, -1]
    return {"y": y}


def _lut_gemv(s: Structure, i: Arrays, t: type) -> np.ndarray:
    """Plane by plane: where bits are 1 twice the activations, less the sum of all."""
    x, total = i["x"].astype(t), np.zeros((s.axes["M"], s.axes["N"]), t)
    bits = np.unpackbits(i["w"].astype(np.uint8), axis=2, bitorder="little").astype(t)
    for g in range(s.axes["G"]):
        part = slice(128 * g, 128 * g + 128)
        own = x[:, part]
        for p in range(s.axes["P"]):
            sums = 2 * (bits[:, p, part] @ own.T) - own.sum(1)
            total += t(2**p) * sums * i["scales"][:, g : g + 1].astype(t)
    return total


PLAIN: dict[str, Implementation] = {
    "apmm_bipolar": _apmm_bipolar,
    "w6ax_gemm": _w6ax_gemm,
    "lut_gemv": _lut_gemv,
    "w8a8_outlier_linear": _w8a8_outlier_linear,
    "int_layernorm": _int_layernorm,
    "shiftgelu": _shiftgelu,
    "shiftmax": _shiftmax,
}
