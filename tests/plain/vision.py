"""Second implementations: what vision and graphics look up."""

from __future__ import annotations

import numpy as np

from kernelwright.kernelbench.problem import Arrays, Structure

from .collect import Implementation


def _encode_by_hash(_: Structure, i: Arrays, t: type) -> np.ndarray:
    """All levels at once; interpolated along one axis after the other."""
    table = i["table"].astype(t)
    s = i["x"].astype(np.float32)[:, None] * i["size"].astype(np.float32)[:, None]
    g = np.trunc(s)
    f, cell, level = (s - g).astype(t), g.astype(np.uint32), np.arange(len(table))
    primes = np.array([1, 2654435761, 805459861], np.uint32)

    def look_up(*step: int) -> np.ndarray:
        a, b, c = np.moveaxis((cell + np.array(step, np.uint32)) * primes, -1, 0)
        found: np.ndarray = table[level, (a ^ b ^ c) % table.shape[1]]
        return found

    def blend(*step: int) -> np.ndarray:
        if len(step) == 3:
            return look_up(*step)
        along = f[..., len(step), None]
        found: np.ndarray = blend(*step, 0) * (t(1) - along) + blend(*step, 1) * along
        return found

    return blend()


def _attend_to_maps(_: Structure, i: Arrays, t: type) -> np.ndarray:
    """A sample of maps with zeros around them at a time, interpolated across, and then down."""
    value, loc, weight = (i[name].astype(t) for name in ("value", "loc", "weight"))
    y, first = np.zeros((*loc.shape[:2], value.shape[2]), t), 0
    head = np.arange(loc.shape[1])
    for level, (rows, columns) in enumerate(i["shapes"].astype(int)):
        maps = value[first : first + rows * columns].reshape(rows, columns, *value.shape[1:])
        maps = np.pad(maps, ((2, 2), (2, 2), (0, 0), (0, 0)))
        first += rows * columns
        for p in range(loc.shape[3]):
            place = loc[:, :, level, p] * np.array((columns, rows), t) + t(1.5)
            place = np.clip(place, t(0), np.array((columns + 2, rows + 2), t))
            u, r = np.moveaxis(place.astype(int), -1, 0)
            f, g = (place[..., d, None] - (u, r)[d][..., None].astype(t) for d in (0, 1))
            lines = [
                maps[r + e, u, head] * (t(1) - f) + maps[r + e, u + 1, head] * f for e in (0, 1)
            ]
            y += weight[:, :, level, p, None] * (lines[0] * (t(1) - g) + lines[1] * g)
    return y


def _pass_through(_: Structure, i: Arrays, t: type) -> np.ndarray:
    """A unit at a time, layer by layer."""
    h = i["x"].astype(t)
    layers = [i["first"], *i["middle"], i["last"]]
    for number, layer in enumerate(layers):
        units = [(h * column.astype(t)).sum(1) for column in layer.T]
        h = np.stack(units, 1)
        if number < len(layers) - 1:
            h[h < 0] = 0
    return h


PLAIN: dict[str, Implementation] = {
    "hashgrid_encode": _encode_by_hash,
    "tiny_mlp_fused": _pass_through,
    "ms_deform_attn": _attend_to_maps,
}
