"""Kernels as they are often written: right but for one step, and refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Arrays, Expected, Family, Problem
from kernelwright.tests.plain.convolution import PLAIN as CONVOLUTIONS

Gates = Callable[[Problem, Arrays, dict[str, Expected], Family], list[str]]
Kernel = Callable[[Arrays], np.ndarray]
Rounding = Callable[[np.ndarray], np.ndarray]
LARGEST = 2.0**31 - 1
DRAWS = 4
"""Of each family: what shows in ties alone shows in one of them."""


def _exponential(
    x: np.ndarray, unit: float, n: int, shift: Rounding = np.floor, *, is_bounded: bool = True
) -> np.ndarray:
    p = x + shift(x / 2) - shift(x / 16)
    p = np.maximum(p, -n * unit) if is_bounded else p
    q = np.floor(-p / unit)
    return np.asarray(np.floor(((p + unit * q) / 2 + unit) * 2.0 ** (n - q)))


def _divide(e: np.ndarray, total: np.ndarray) -> np.ndarray:
    return np.asarray(np.floor(e * np.floor(LARGEST / np.minimum(total, LARGEST)) / 2**24))


def _shiftmax(i: Arrays, shift: Rounding = np.floor, **steps: bool) -> np.ndarray:
    x, unit = i["x"].astype(np.float64), float(i["unit"][0])
    if steps.get("has_no_maximum"):
        return _divide(e := _exponential(x - 127, unit, 15), e.sum(1, keepdims=True))
    d = x - x.max(1, keepdims=True)
    if steps.get("is_of_floats"):
        e = np.exp(d / unit)
        return np.asarray(np.floor(127 * e / e.sum(1, keepdims=True)))
    e = _exponential(d, unit, 15, shift, is_bounded=not steps.get("is_unbounded"))
    return _divide(e, e.sum(1, keepdims=True))


def _shiftgelu(i: Arrays, shift: Rounding = np.floor, **steps: bool) -> np.ndarray:
    x, unit = i["x"].astype(np.float64), float(i["unit"][0])
    top = x.max(1, keepdims=True)
    if steps.get("has_one_maximum"):
        top = np.full_like(top, x.max())
    if steps.get("has_none_below_zero"):
        top = np.maximum(top, 0)
    e, most = _exponential(x - top, unit, 23, shift), _exponential(-top, unit, 23, shift)
    total = e if steps.get("lacks_the_other") else e + most
    factor = _divide(e, total)
    return factor * 1.0 if steps.get("lacks_x") else x * factor


def _half_up(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.floor(x + 0.5))


def _int_layernorm(
    i: Arrays, mean: Rounding = np.rint, half: Rounding = np.floor, steps: int = 10
) -> np.ndarray:
    x = i["x"].astype(np.float64)
    d = x - mean(x.sum(1, keepdims=True) / x.shape[1])
    variance = (d * d).sum(1, keepdims=True)
    root = np.full_like(variance, 2.0**16)
    for _ in range(steps):
        root = np.floor((root + np.floor(variance / root)) / 2)
    return np.asarray(half(d * np.floor(LARGEST / root) / 2) + i["bias"])


def _convolve(i: Arrays, *, has_bare_border: bool = False) -> np.ndarray:
    """With a bare border zeros stand around the image as codes, and zero is taken off them too."""
    problem = registry.get("conv2d_w8a8")
    structure = problem.structure(problem.workload("tiny"))
    half = structure.axes["R"] // 2
    if not has_bare_border:
        half = 0
    apart = {**i, "x": np.pad(i["x"], ((0, 0), (half, half), (half, half), (0, 0)))}
    found = CONVOLUTIONS["conv2d_w8a8"](structure, apart, np.float32)
    assert isinstance(found, np.ndarray)
    return found[:, half : found.shape[1] - half, half : found.shape[2] - half]


def _merge(i: Arrays, *, has_short_maximum: bool = False) -> np.ndarray:
    """With a short maximum it has the upper half of a float's bits."""
    is_full = i["size"] > 0
    m = np.where(is_full, i["m"].astype(np.float64), -np.inf)
    top = m.max(0).astype(np.float32)
    if has_short_maximum:
        top = (top.view(np.uint32) + np.uint32(0x8000) & np.uint32(0xFFFF0000)).view(np.float32)
    weights = np.where(is_full, i["size"] * np.exp(m - np.where(is_full.any(0), top, 0.0)), 0.0)
    total = weights.sum(0)[:, None]
    sums = (weights[..., None] * i["o"]).sum(0)
    return np.asarray(np.where(total > 0, sums / np.where(total > 0, total, 1.0), 0.0))


def _exponentiate(a: np.ndarray) -> np.ndarray:
    """As vectors of eight numbers do, with no bound below: halves of a power have 8 bits each."""
    n = np.rint(a / np.log(2)).astype(np.int32)
    halves = [(each + 127 << 23).view(np.float32) for each in (n >> 1, n - (n >> 1))]
    return np.asarray(np.exp(a - n * np.log(2)) * halves[0] * halves[1])


def _scan(i: Arrays, exp: Callable[[np.ndarray], np.ndarray] = np.exp) -> np.ndarray:
    x = (i["dt"][..., None] * i["x"]).astype(np.float64)
    state, y = 0.0, np.empty_like(x)
    for t in range(x.shape[1]):
        kept = exp(i["dt"][:, t] * i["A"])[..., None, None]
        state = state * kept + x[:, t, ..., None] * i["B"][:, t, None, None]
        y[:, t] = (state * i["C"][:, t, None, None]).sum(-1)
    return y


KERNELS: dict[str, tuple[Kernel, dict[str, Kernel]]] = {
    "shiftmax": (
        _shiftmax,
        {
            "shifts round to 0": partial(_shiftmax, shift=np.trunc),
            "shifts round to the nearest": partial(_shiftmax, shift=np.rint),
            "no bound below": partial(_shiftmax, is_unbounded=True),
            "127 for the maximum": partial(_shiftmax, has_no_maximum=True),
            "exponentials of floats": partial(_shiftmax, is_of_floats=True),
        },
    ),
    "shiftgelu": (
        _shiftgelu,
        {
            "shifts round to 0": partial(_shiftgelu, shift=np.trunc),
            "one maximum of all rows": partial(_shiftgelu, has_one_maximum=True),
            "a maximum is at least 0": partial(_shiftgelu, has_none_below_zero=True),
            "only one exponential below": partial(_shiftgelu, lacks_the_other=True),
            "the factor without x": partial(_shiftgelu, lacks_x=True),
        },
    ),
    "int_layernorm": (
        _int_layernorm,
        {
            "the mean rounded down": partial(_int_layernorm, mean=np.floor),
            "the mean rounded half up": partial(_int_layernorm, mean=_half_up),
            "the mean cut": partial(_int_layernorm, mean=np.trunc),
            "the half cut": partial(_int_layernorm, half=np.trunc),
            "nine steps": partial(_int_layernorm, steps=9),
            "steps until they are done": partial(_int_layernorm, steps=30),
        },
    ),
    "conv2d_w8a8": (
        _convolve,
        {"a border of code 0": partial(_convolve, has_bare_border=True)},
    ),
    "attention_partial_merge": (
        _merge,
        {"a maximum of eight bits": partial(_merge, has_short_maximum=True)},
    ),
    "mamba2_ssd_chunk_scan": (
        _scan,
        {"an exponential without a bound below": partial(_scan, exp=_exponentiate)},
    ),
}
"""By problem: the right one, and those that lack a step."""


def _refuse(name: str, kernel: Kernel, gates: Gates) -> bool:
    """Whether its answers are refused on some draw."""
    problem, rng = registry.get(name), np.random.default_rng(8)
    structure = problem.structure(problem.workload("tiny"))
    output = problem.outputs[0]
    for family in problem.families * DRAWS:
        inputs = problem.values(structure, family, rng)
        with np.errstate(all="ignore"):
            found = {output.name: kernel(inputs).astype(output.dtype)}
        if gates(problem, found, problem.oracle(structure, inputs), family):
            return True
    return False


@pytest.mark.parametrize("name", KERNELS)
def test_the_right_kernel_passes(name: str, gates: Gates) -> None:
    assert not _refuse(name, KERNELS[name][0], gates)


@pytest.mark.parametrize(
    ("name", "mistake"), [(name, each) for name, (_, known) in KERNELS.items() for each in known]
)
def test_a_step_that_is_left_out_or_rounded_otherwise_shows(
    name: str, mistake: str, gates: Gates
) -> None:
    assert _refuse(name, KERNELS[name][1][mistake], gates)
