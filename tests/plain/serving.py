"""Second implementations: layers as servers and mixtures of experts call them."""

from __future__ import annotations

import numpy as np

from kernelwright.kernelbench.problem import Arrays, Structure

from .collect import Implementation


def _gemv(_: Structure, inputs: Arrays, t: type) -> np.ndarray:
    products: np.ndarray = inputs["A"].astype(t) * inputs["x"].astype(t)
    return products.sum(1, dtype=t)


PLAIN: dict[str, Implementation] = {"gemv": _gemv}
