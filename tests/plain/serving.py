"""Second implementations: layers as servers and mixtures of experts call them."""

from __future__ import annotations

import numpy as np

from kernelwright.kernelbench.problem import Arrays, Structure

from .collect import Implementation


def _gemv(_: Structure, inputs: Arrays, t: type) -> np.ndarray:
    products: np.ndarray = inputs["A"].astype(t) * inputs["x"].astype(t)
    return products.sum(1, dtype=t)


def _skinny_gemm(_: Structure, inputs: Arrays, t: type) -> np.ndarray:
    x, w = inputs["X"].astype(t), inputs["W"].astype(t)
    return np.stack([(row * w).sum(1, dtype=t) for row in x])


def _grouped_gemm(_: Structure, inputs: Arrays, t: type) -> np.ndarray:
    """Row by row: the expert of each is the last that begins at or before it."""
    x, w, bounds = inputs["X"].astype(t), inputs["W"].astype(t), inputs["seg_ptr"].astype(int)
    experts = np.searchsorted(bounds, np.arange(len(x)), side="right") - 1
    return np.stack([(x[i][:, None] * w[e]).sum(0, dtype=t) for i, e in enumerate(experts)])


def _monarch_mm(_: Structure, inputs: Arrays, t: type) -> np.ndarray:
    """The definition, by loops of einsum's own: no product of matrices."""
    x, r, left = (inputs[name].astype(t) for name in ("x", "R", "L"))
    h = np.einsum("bqp,ibp->ibq", r, x, optimize=False)
    y: np.ndarray = np.einsum("qlb,ibq->ilq", left, h, optimize=False)
    return y


def _token_topk_gather(s: Structure, inputs: Arrays, t: type) -> Arrays:
    """By sorting pairs of score and place."""
    score, features = inputs["score"].astype(t), inputs["features"].astype(t)
    places, count = np.arange(score.shape[1]), s.axes["W"] * s.axes["G"]
    kept = np.empty((len(score), count), t)
    y = np.empty((len(score), count, features.shape[2]), t)
    for b, row in enumerate(score):
        order = np.lexsort((places, -row))
        kept[b] = np.sort(order[:count])
        y[b] = features[b, kept[b].astype(int)]
    return {"kept": kept, "y": y}


def _kv_evict_topk(s: Structure, inputs: Arrays, t: type) -> Arrays:
    """By a mask of the tokens that stay, of pairs of score and place."""
    first, count, stay = s.axes["C"] + s.axes["E"], s.axes["C"], s.axes["C"] + s.axes["S"]
    given = [inputs[name].astype(t) for name in ("k", "v", "position")]
    made = [np.empty((len(each), stay, *each.shape[2:]), t) for each in given]
    for h, row in enumerate(inputs["score"].astype(t)):
        is_kept = np.arange(len(row)) >= first
        is_kept[np.lexsort((np.arange(first), -row[:first]))[:count]] = True
        for to, each in zip(made, given, strict=True):
            to[h] = each[h, is_kept]
    return dict(zip(("k_kept", "v_kept", "position_kept"), made, strict=True))


def _moe_route_permute(s: Structure, inputs: Arrays, t: type) -> Arrays:
    """Each expert's choices, one expert behind the other."""
    x, expert, weight = (inputs[name].astype(t) for name in ("x", "expert", "weight"))
    chosen = [np.argwhere(expert == e) for e in range(s.axes["E"])]
    tokens, choices = np.concatenate(chosen).T
    return {
        "rows": x[tokens],
        "gate": weight[tokens, choices],
        "place": (tokens * s.axes["K"] + choices).astype(t),
        "offsets": np.cumsum([0, *map(len, chosen)]).astype(t),
    }


PLAIN: dict[str, Implementation] = {
    "gemv": _gemv,
    "skinny_gemm": _skinny_gemm,
    "grouped_gemm": _grouped_gemm,
    "monarch_mm": _monarch_mm,
    "token_topk_gather": _token_topk_gather,
    "kv_evict_topk": _kv_evict_topk,
    "moe_route_permute": _moe_route_permute,
}
