"""The gates of the referee, written down a second time, and calls on memory of our own."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from kernelwright.kernelbench.codecs import host_dtype
from kernelwright.kernelbench.dtypes import DTYPES, dtype_of
from kernelwright.kernelbench.precision import SUM_FACTOR, Precision
from kernelwright.kernelbench.problem import (
    Arrays,
    BaselineCall,
    Expected,
    Family,
    Problem,
    Structure,
    Tensor,
)


class Judged(NamedTuple):
    """What the gates say of one output."""

    g1: float
    """Worst error over its limit; a pass is at most 1."""
    nrmse: float
    is_exact: bool
    worst_relative: float
    problems: list[str]


def judge(y: np.ndarray, expected: Expected, precision: Precision, family: Family) -> Judged:
    """Holds one output against every gate that the family asks for."""
    # What a quantiser has before it rounds is a number.
    y = y.astype(np.float32) if expected.is_code else y
    value, kind = expected.value, y.dtype
    assert y.shape == value.shape
    if kind.kind in "iu":
        is_exact = bool(np.array_equal(y, value.astype(kind)))
        return Judged(0.0, 0.0, is_exact, 0.0, [] if is_exact else ["not bit for bit"])
    with np.errstate(over="ignore"):
        rounded = value.astype(kind).astype(np.float32)
    y = y.astype(np.float32)
    special = ~(np.isfinite(y) & np.isfinite(rounded))
    is_placed = bool(np.array_equal(y[special], rounded[special], equal_nan=True))
    y, value = np.where(special, 0, y), np.where(special, 0, value)
    error = np.abs(y.astype(np.float64) - value)
    if expected.is_code:
        error = np.maximum(error - 0.5, 0.0)
    scale = np.where(special, 0, expected.scale)
    limit = SUM_FACTOR * precision.u_acc * np.sqrt(expected.terms) * scale
    # A product that underflows is off by half of the smallest denormal.
    limit = limit + 2 * precision.u_out * np.abs(value) + 2.0**-149 * np.asarray(expected.terms)
    if kind != np.float32:
        # What one rounding to a narrow type explains says nothing.
        unit = DTYPES[kind.name].roundoff
        _, exponents = np.frexp(np.abs(value) + limit)
        limit = limit + 2.0**-7 * unit * np.abs(value)
        # Of what is rounded at random either neighbour will do: a step, and not half of it.
        half = np.maximum(np.ldexp(unit, exponents - 1), DTYPES[kind.name].smallest / 2)
        error = np.maximum(error - half * (1 if expected.streams is None else 2), 0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(error == 0, 0.0, error / limit)
        size = np.abs(value) if kind == np.float32 else np.maximum(np.abs(value), scale)
        relative = np.where(error == 0, 0.0, error / size)
    rms = float(np.sqrt(np.mean(np.square(value)))) if value.size else 0.0
    # What is lost below the normal range is nothing beside a normal number.
    most = float(np.max(expected.terms, initial=1.0))
    lost = 2.0**-124 + 2.0**-149 * most
    off = max(float(np.sqrt(np.mean(np.square(error)))) - lost, 0.0) if value.size else 0.0
    # Where terms cancel the answer is noise beside what its sum passes through.
    one_sided = family in (Family.SORTED, Family.ALTERNATING)
    share = 0.5 if one_sided else 1 / np.sqrt(np.maximum(expected.terms, 1.0))
    walk = np.broadcast_to(scale * share, value.shape)
    rms = max(rms, float(np.sqrt(np.mean(np.square(walk)))) if value.size else 0.0)
    nrmse = off / rms if rms else (0.0 if off == 0 else np.inf)
    g1 = float(ratio.max(initial=0.0)) if np.isfinite(error).all() else np.inf
    is_exact = bool(np.array_equal(y, value.astype(kind).astype(np.float32)))
    worst = float(relative.max(initial=0.0)) if np.isfinite(error).all() else np.inf
    found = [] if is_placed else ["NaN or infinities misplaced"]
    if not g1 <= 1:
        found.append(f"G1 {g1:.3g}")
    # Sorted neighbours round alike.
    factor = SUM_FACTOR if family is Family.SORTED else 2
    if not nrmse <= max(precision.nrmse, factor * precision.u_acc * np.sqrt(most)):
        found.append(f"NRMSE {nrmse:.3g}")
    if (expected.is_exact or family is Family.EXACT) and not is_exact:
        found.append("not bit for bit")
    last = 0.0 if kind == np.float32 else 2.0**-7 * DTYPES[kind.name].roundoff
    if family is Family.PROBE and not worst <= precision.probe + last:
        found.append(f"probe {worst:.3g}")
    return Judged(g1, nrmse, is_exact, worst, found)


def complaints(
    problem: Problem, outputs: Arrays, truth: dict[str, Expected], family: Family
) -> list[str]:
    """What the gates hold against a set of outputs; empty for a pass."""
    return [
        f"{name}: {text}"
        for name, expected in truth.items()
        for text in judge(outputs[name], expected, problem.precision, family).problems
    ]


def new_array(tensor: Tensor, structure: Structure) -> np.ndarray:
    """Zeros of its shape and type."""
    return np.zeros(tensor.extent(structure.axes), host_dtype(dtype_of(tensor.dtype)))


def poison(array: np.ndarray) -> np.ndarray:
    """Filled with what no answer is: NaN, or a number that few answers are."""
    array.fill(85 if array.dtype.kind in "iu" else np.nan)
    return array


def new_call(problem: Problem, structure: Structure) -> BaselineCall:
    """A call on fresh memory with the structure filled in and outputs poisoned."""
    inputs = {t.name: new_array(t, structure) for t in problem.inputs}
    for name, array in structure.arrays.items():
        inputs[name][...] = array
    outputs = {t.name: poison(new_array(t, structure)) for t in problem.outputs}
    return BaselineCall(dict(structure.axes), inputs, outputs)


@pytest.fixture(scope="session")
def gates() -> Callable[[Problem, Arrays, dict[str, Expected], Family], list[str]]:
    """The function that lists what the gates hold against a set of outputs."""
    return complaints


@pytest.fixture(scope="session")
def call_for() -> Callable[[Problem, Structure], BaselineCall]:
    """The function that makes a call on fresh memory."""
    return new_call
