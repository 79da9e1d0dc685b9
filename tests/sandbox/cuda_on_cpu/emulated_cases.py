"""Every CUDA source that is right, by name."""

from __future__ import annotations

from emulated_features import atomic_sums, idioms, matrix_product, two_steps, warps
from emulated_operators import axpy, histogram, reduction, sgemm, softmax, spmm

RIGHT = {
    "spmm": spmm,
    "sgemm": sgemm,
    "reduce float": reduction,
    "reduce double": lambda: reduction("double"),
    "softmax": softmax,
    "axpy": axpy,
    "histogram": histogram,
    "wmma": matrix_product,
    "warps": warps,
    "two steps": two_steps,
    "idioms": idioms,
    "atomic sums": atomic_sums,
}
