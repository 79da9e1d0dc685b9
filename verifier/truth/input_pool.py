# SPDX-License-Identifier: Apache-2.0
"""Fresh inputs for timed calls, at the price of a copy.

Drawing a million normal values takes longer than most kernels, and hundreds of pairs are needed to
see a few percent. So each array of a timed call is a random window, along the first axis, of values
that were drawn before, with random low bits of the mantissas: no element repeats where it was, and
a row only where two windows of either kind lie alike, one pair in as many as there are low bits.
The values and the offsets never leave the referee.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from ...kernelbench.problem import Arrays, Family, Problem, Structure
from ...kernelbench.rows import shrink
from .trials import Item

DRAWS = 3
"""Whole draws that windows are taken of."""
NOISE_BITS = {"float32": 12, "float16": 4, "bfloat16": 3}
"""Low bits that are random in each call, of the 23, 10 and 7 of a mantissa: values change by up to
2^-11, 2^-6 and 2^-4 of themselves, far more than any gate forgives."""
ROUGH = 0.99
"""Share of elements with low bits from which an array is taken for one of real numbers."""


@dataclass(frozen=True)
class Pool:
    """The secret values of all timed calls of a session."""

    problem: Problem
    held: Arrays
    noise: Arrays
    """By type: in integers of its width, twice as many as the largest array has elements."""
    constants: Arrays = field(default_factory=dict)
    """What noise may not change."""

    @classmethod
    def draw(cls, problem: Problem, structure: Structure, rng: np.random.Generator) -> Self:
        """Values for calls on this structure and on its twins, which have the same sizes."""
        small = shrink(problem, structure, rng)
        draws = [problem.values(small, Family.NORMAL, rng) for _ in range(DRAWS)]
        held = {
            name: np.concatenate([draw[name] for draw in draws])
            for name in draws[0]
            if name not in problem.constants and all(_is_rough(draw[name]) for draw in draws)
        }
        noise: Arrays = {}
        for array in sorted(held.values(), key=lambda each: -each.size):
            kind, most = array.dtype.name, 1 << NOISE_BITS[array.dtype.name]
            if kind not in noise:
                noise[kind] = rng.integers(0, most, 2 * array.size // DRAWS, _bits(array).dtype)
        constants = {name: draws[0][name] for name in problem.constants if name in draws[0]}
        return cls(problem, held, noise, constants)

    def item(self, structure: Structure, rng: np.random.Generator) -> Item:
        """Inputs of one call; drawn anew where the pool cannot hold one of them."""
        names = [tensor.name for tensor in self.problem.inputs if not tensor.is_index]
        shapes = {t.name: t.extent(structure.axes) for t in self.problem.inputs}
        fixed = {name: a for name, a in self.constants.items() if a.shape == shapes[name]}
        if all(name in self.held or name in fixed for name in names):
            inputs = {
                name: fixed[name]
                if name in fixed
                else self._draw_like(self.held[name], shapes[name], rng)
                for name in names
            }
        else:
            inputs = self.problem.values(structure, Family.NORMAL, rng)
        return Item(self.problem, structure, inputs, Family.NORMAL)

    def _draw_like(
        self, values: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator
    ) -> np.ndarray:
        """An array of this shape, window by window."""
        fresh, drawn = np.empty(shape, values.dtype), self.noise[values.dtype.name]
        most = len(values) // DRAWS
        for start in range(0, shape[0], most):
            into = _bits(fresh[start : start + most])
            first = int(rng.integers(len(values) - len(into) + 1))
            at = int(rng.integers(drawn.size - into.size + 1))
            noise = drawn[at : at + into.size].reshape(into.shape)
            window = _bits(values[first : first + len(into)])
            np.bitwise_xor(window, noise, out=into)
        return fresh


def _bits(array: np.ndarray) -> np.ndarray:
    """As unsigned integers of the same width."""
    return array.view(f"u{array.itemsize}")


def _is_rough(array: np.ndarray) -> bool:
    """Whether the elements may take noise: floats, and no values that mean something exactly.

    A zero or a one of a mask has no low bits; noise would make a denormal of the one and blur the
    other.
    """
    bits = NOISE_BITS.get(array.dtype.name)
    if bits is None or array.ndim == 0 or not array.size:
        return False
    # Of random low bits all are 0 in one number of so many.
    share = ROUGH * (1 - 2.0**-bits)
    return bool(np.count_nonzero(_bits(array) & ((1 << bits) - 1)) >= share * array.size)
