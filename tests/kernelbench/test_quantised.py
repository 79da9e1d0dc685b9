"""Problems with codes: their truth by a second way, and the mistakes that are made there."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.codecs import (
    UINT4,
    Layout,
    codes_of,
    elements_of,
    encode_mx,
    encode_nvfp4,
    host_dtype,
    pack,
    unpack,
)
from kernelwright.kernelbench.dtypes import FLOAT4_E2M1FN, FLOAT8_E4M3FN, dtype_of
from kernelwright.kernelbench.problem import Arrays, Expected, Family, Problem, Structure
from kernelwright.tests.plain.collect import Implementation as Plain
from kernelwright.tests.plain.collect import collect

Gates = Callable[[Problem, Arrays, dict[str, Expected], Family], list[str]]
Implementation = Callable[[Structure, Arrays], Arrays]
CODED = [name for name in registry.names() if not registry.get(name).policies]
FOUR = ("uint4", "float4_e2m1fn")
STEPS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
MIDDLES = (STEPS[1:] + STEPS[:-1]) / 2


def _sum_pairwise(terms: np.ndarray) -> np.ndarray:
    return terms.astype(np.float32).sum(-1, dtype=np.float32)


def _nibbles(words: np.ndarray) -> np.ndarray:
    return unpack(words, Layout(UINT4)).astype(np.float32)


def _gemv(s: Structure, i: Arrays) -> Arrays:
    groups = (s.axes["M"], 2 * s.axes["H"], 32)
    weights = _nibbles(i["q"]).reshape(groups) - _nibbles(i["zeros"])[..., None]
    weights *= i["scales"].astype(np.float32)[..., None]
    return {"y": _sum_pairwise(weights.reshape(s.axes["M"], -1) * i["x"].astype(np.float32))}


def _fp8(_: Structure, i: Arrays) -> Arrays:
    a, b = (elements_of(i[name], FLOAT8_E4M3FN).astype(np.float32) for name in "AB")
    found = _sum_pairwise(a[:, None, :] * b[None])
    return {"C": found * i["scale_a"][:, None] * i["scale_b"]}


def _wxa16(s: Structure, i: Arrays) -> Arrays:
    groups = (s.axes["N"], s.axes["G"], 64)
    codes = i["q"].astype(np.float32) if s.axes["W"] == 64 else _nibbles(i["q"]).reshape(groups)
    weights = (codes - i["zeros"].astype(np.float32)[..., None]) * i["scales"].astype(np.float32)[
        ..., None
    ]
    flat = weights.reshape(s.axes["N"], -1)
    return {"C": _sum_pairwise(i["x"].astype(np.float32)[:, None, :] * flat[None])}


def _mxfp4(_: Structure, i: Arrays) -> Arrays:
    found = encode_mx(i["x"], FLOAT4_E2M1FN)
    return {"q": pack(codes_of(found.codes), Layout(UINT4)), "scales": codes_of(found.scales)}


def _mxfp4_rotated(s: Structure, i: Arrays) -> Arrays:
    """The rotation by halves: sums of both halves of a block, and differences, each rotated."""
    blocks = i["x"].astype(np.float32).reshape(s.axes["M"], s.axes["G"], 32)

    def rotate(a: np.ndarray) -> np.ndarray:
        if a.shape[-1] == 1:
            return a
        left, right = np.split(a, 2, -1)
        return np.concatenate((rotate(left + right), rotate(left - right)), -1)

    with np.errstate(invalid="ignore"):
        turned = rotate(blocks) / np.sqrt(np.float32(32))
    return _mxfp4(s, {"x": turned.reshape(i["x"].shape)})


def _nvfp4(s: Structure, i: Arrays) -> Arrays:
    """Each number is looked up among the middles between codes, a tie to the even one."""
    x = i["x"].astype(np.float32).reshape(s.axes["M"], s.axes["G"], 16)
    given, amax = i["tensor_scale"][0], np.abs(x).max(2)
    known = elements_of(np.arange(127, dtype=np.uint8), FLOAT8_E4M3FN).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        scales = _look_up(amax / (np.float32(6) * given), (known[1:] + known[:-1]) / 2)
        number = known[scales].astype(np.float32)
        steps = x * (np.float32(1) / (number * given))[..., None]
    is_used = np.isfinite(amax) & (number > 0)
    codes = _look_up(np.abs(steps), MIDDLES) | (np.signbit(steps) << 3)
    codes = np.where(is_used[..., None], codes, 0).reshape(s.axes["M"], -1)
    scales = np.where(np.isfinite(amax), scales, 0x7F).astype(np.uint8)
    return {"q": pack(codes, Layout(UINT4)), "scales": scales}


def _look_up(numbers: np.ndarray, middles: np.ndarray) -> np.ndarray:
    below = np.searchsorted(middles, numbers, "left")
    above = np.searchsorted(middles, numbers, "right")
    return np.where(below % 2 == 0, below, above).astype(np.int64)


def _in_float32(name: str, plain: Plain, s: Structure, i: Arrays) -> Arrays:
    found = plain(s, i, np.float32)
    return found if isinstance(found, dict) else {registry.get(name).outputs[0].name: found}


COLLECTED: dict[str, Implementation] = {
    name: partial(_in_float32, name, plain) for name, plain in collect().items()
}
PLAIN: dict[str, Implementation] = {
    "gemv_w4a16": _gemv,
    "fp8_gemm_rowwise": _fp8,
    "mxfp4_quantize": _mxfp4,
    "mxfp4_quantize_hadamard": _mxfp4_rotated,
    "nvfp4_quantize": _nvfp4,
    "wxa16_gemm": _wxa16,
    **{name: each for name, each in COLLECTED.items() if not registry.get(name).policies},
}
"""Each operator as a plain user would write it: in float32, rounded once at the end."""


def _structures(problem: Problem, most: int = 1 << 17) -> list[Structure]:
    """The tiny workload and small hidden shapes."""
    tiny = problem.structure(problem.workload("tiny"))
    drawn = itertools.islice(problem.variations(tiny, np.random.default_rng(5)), 60)
    small = (s for s in drawn if problem.flops(s.axes) < 24 * most)
    return [tiny, *itertools.islice(small, 10)]


def _written(problem: Problem, found: Arrays) -> Arrays:
    """In the types of the outputs."""
    types = {t.name: host_dtype(dtype_of(t.dtype)) for t in problem.outputs}
    with np.errstate(all="ignore"):
        return {name: array.astype(types[name]) for name, array in found.items()}


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_kernel_passes_every_family(name: str, gates: Gates) -> None:
    problem, rng = registry.get(name), np.random.default_rng(3)
    for structure in _structures(problem):
        for family in problem.families:
            inputs = problem.values(structure, family, rng)
            truth = problem.oracle(structure, inputs)
            with np.errstate(all="ignore"):
                output = _written(problem, PLAIN[name](structure, inputs))
            found = gates(problem, output, truth, family)
            assert not found, (structure.axes, family, found)


@pytest.mark.parametrize("name", CODED)
def test_values_are_of_the_declared_types_and_hide_no_code(name: str) -> None:
    problem, rng = registry.get(name), np.random.default_rng(2)
    structure = problem.structure(problem.workload("tiny"))
    for family in problem.families:
        inputs = problem.values(structure, family, rng)
        for tensor in (each for each in problem.inputs if not each.is_index):
            array = inputs[tensor.name]
            assert array.shape == tensor.extent(structure.axes)
            assert array.dtype == host_dtype(dtype_of(tensor.dtype))
    inputs = problem.values(structure, Family.NORMAL, rng)
    coded = ["q"] if name == "wxa16_gemm" else [n for n, c in problem.codes.items() if c in FOUR]
    for codes in (inputs[each] for each in coded if each in inputs):
        assert set(range(16)) <= set((codes & 15).reshape(-1).tolist())


def _swap(words: np.ndarray) -> np.ndarray:
    return words << 4 | words >> 4


def _of_neighbour(array: np.ndarray) -> np.ndarray:
    return np.roll(array, 1, -1)


def _reverse(octets: np.ndarray, size: int) -> np.ndarray:
    """The bytes of each group of so many the other way round."""
    return octets.reshape(-1, size)[:, ::-1].reshape(octets.shape)


def _highest_first(planes: np.ndarray) -> np.ndarray:
    return np.packbits(np.unpackbits(planes, axis=-1, bitorder="little"), axis=-1)


def _leave_out_columns(i: Arrays) -> Arrays:
    x = i["x"].copy()
    x[:, i["columns"]] = 0
    return {**i, "x": x}


MISTAKES: dict[str, dict[str, Callable[[Arrays], Arrays]]] = {
    "spqr_gemv": {
        "no outliers": lambda i: {**i, "outliers": np.zeros_like(i["outliers"])},
        "halves of a word swapped": lambda i: {**i, "words": i["words"][..., ::-1].copy()},
        "no offsets": lambda i: {**i, "tiles": i["tiles"] * np.float16([1, 0, 1, 0])},
        "the tile of a neighbour": lambda i: {**i, "tiles": _of_neighbour(i["tiles"])},
        "outliers begin a row late": lambda i: {**i, "row_ptr": np.roll(i["row_ptr"], 1)},
    },
    "gemv_w4a16": {
        "nibbles swapped": lambda i: {**i, "q": _swap(i["q"])},
        "zero points swapped": lambda i: {**i, "zeros": _swap(i["zeros"])},
        "zero points taken for 8": lambda i: {**i, "zeros": np.full_like(i["zeros"], 0x88)},
        "the scale of a neighbour": lambda i: {**i, "scales": _of_neighbour(i["scales"])},
    },
    "wxa16_gemm": {
        "nibbles swapped": lambda i: {**i, "q": _swap(i["q"])},
        "no zero points": lambda i: {**i, "zeros": np.zeros_like(i["zeros"])},
        "the scale of a neighbour": lambda i: {**i, "scales": _of_neighbour(i["scales"])},
    },
    "fp8_gemm_rowwise": {
        "the scale of the row before": lambda i: {**i, "scale_a": _of_neighbour(i["scale_a"])},
        "the last bit lost": lambda i: {**i, "A": i["A"] & 0xFE},
        "denormal codes are zero": lambda i: {
            **i,
            "A": np.where(i["A"] & 0x78 == 0, i["A"] & 0x80, i["A"]).astype(np.uint8),
        },
    },
    "nvfp4_quantize": {
        "no scale of all": lambda i: {**i, "tensor_scale": np.ones_like(i["tensor_scale"])},
        "the sign lost": lambda i: {**i, "x": np.abs(i["x"])},
    },
    "apmm_bipolar": {
        "bits from the highest on": lambda i: {**i, "x": _highest_first(i["x"])},
        "planes from the highest on": lambda i: {**i, "w": i["w"][:, ::-1]},
        "bits of w turned over": lambda i: {**i, "w": ~i["w"]},
    },
    "w6ax_gemm": {
        "bytes of a triple reversed": lambda i: {**i, "w": _reverse(i["w"], 3)},
        "the highest bit lost": lambda i: {**i, "w": i["w"] & np.uint8(0x7F)},
        "activations' scale of a neighbour": lambda i: {**i, "sx": _of_neighbour(i["sx"])},
        "one scale of a row of weights": lambda i: {
            **i,
            "sw": np.broadcast_to(i["sw"][:, :1], i["sw"].shape),
        },
    },
    "conv2d_w8a8": {
        "no zero point": lambda i: {**i, "zero": np.zeros_like(i["zero"])},
        "a zero point of the other sign": lambda i: {**i, "zero": -i["zero"]},
        "a filter's rows and columns swapped": lambda i: {**i, "w": i["w"].swapaxes(1, 2)},
    },
    "lut_gemv": {
        "bits from the highest on": lambda i: {**i, "w": _highest_first(i["w"])},
        "planes from the highest on": lambda i: {**i, "w": i["w"][:, ::-1]},
        "nibbles swapped": lambda i: {**i, "w": _swap(i["w"])},
        "the scale of a neighbour": lambda i: {**i, "scales": _of_neighbour(i["scales"])},
    },
    "w8a8_outlier_linear": {
        "outliers counted twice": lambda i: {**i, "outliers": 2 * i["outliers"]},
        "codes of outlier columns left out": _leave_out_columns,
        "outliers in steps of their token": lambda i: {
            **i,
            "outliers": i["outliers"] * i["sx"][:, None],
        },
        "columns in another order": lambda i: {**i, "columns": np.sort(i["columns"])},
        "no outliers": lambda i: {**i, "outliers": np.zeros_like(i["outliers"])},
    },
    "mxfp4_quantize": {
        "the sign lost": lambda i: {**i, "x": np.abs(i["x"])},
    },
    "mxfp4_quantize_hadamard": {
        "blocks begin a number late": lambda i: {**i, "x": _of_neighbour(i["x"])},
        "a block the other way round": lambda i: {**i, "x": _reverse(i["x"], 32)},
    },
}
"""By problem: what a wrong kernel takes its inputs for."""
SHOWN_BY = {"denormal codes are zero": Family.DENORMAL, "the sign lost": Family.ALTERNATING}
"""The family that shows it; others by what is timed."""


@pytest.mark.parametrize(
    ("name", "mistake"), [(name, each) for name, found in MISTAKES.items() for each in found]
)
def test_inputs_that_are_taken_for_others_show(name: str, mistake: str, gates: Gates) -> None:
    problem, rng = registry.get(name), np.random.default_rng(4)
    structure = problem.structure(problem.workload("tiny"))
    family = SHOWN_BY.get(mistake, Family.NORMAL)
    inputs = problem.values(structure, family, rng)
    truth = problem.oracle(structure, inputs)
    with np.errstate(all="ignore"):
        output = {**COLLECTED, **PLAIN}[name](structure, MISTAKES[name][mistake](inputs))
    assert gates(problem, _written(problem, output), truth, family), mistake


def _truncated(numbers: np.ndarray) -> np.ndarray:
    return np.searchsorted(STEPS, np.abs(numbers), "right") - 1


def _halves_up(numbers: np.ndarray) -> np.ndarray:
    return np.searchsorted(MIDDLES, np.abs(numbers), "right")


def _halves_down(numbers: np.ndarray) -> np.ndarray:
    return np.searchsorted(MIDDLES, np.abs(numbers), "left")


@pytest.mark.parametrize("wrong", [_truncated, _halves_up, _halves_down])
@pytest.mark.parametrize("name", ["mxfp4_quantize", "nvfp4_quantize"])
def test_a_number_that_is_rounded_otherwise_shows(
    name: str, wrong: Callable[[np.ndarray], np.ndarray], gates: Gates
) -> None:
    """Ties are drawn, and each is decided: in one draw of a dozen at the latest."""
    problem, rng = registry.get(name), np.random.default_rng(6)
    structure = problem.structure(problem.workload("tiny"))
    size, refused = (32 if name == "mxfp4_quantize" else 16), 0
    for _ in range(12):
        inputs = problem.values(structure, Family.NORMAL, rng)
        truth = problem.oracle(structure, inputs)
        right = PLAIN[name](structure, inputs)
        scales = right["scales"].astype(np.float64)
        if name == "mxfp4_quantize":
            factors = np.exp2(127 - scales)
        else:
            held = elements_of(right["scales"], FLOAT8_E4M3FN).astype(np.float32)
            with np.errstate(divide="ignore"):
                factors = np.where(held > 0, 1 / (held * inputs["tensor_scale"][0]), 0)
        x = inputs["x"].astype(np.float32).reshape(*scales.shape, size)
        steps = x * factors[..., None].astype(np.float32)
        codes = wrong(steps) | (np.signbit(steps) << 3)
        codes = np.where((factors > 0)[..., None], codes, 0).reshape(len(x), -1)
        given = {**right, "q": pack(codes.astype(np.uint8), Layout(UINT4))}
        refused += bool(gates(problem, given, truth, Family.NORMAL))
    assert refused, wrong


def test_the_scales_of_nvfp4_are_those_of_the_library_but_near_ties() -> None:
    """That one divides in float64, and takes the scale of all from the numbers."""
    problem, rng = registry.get("nvfp4_quantize"), np.random.default_rng(7)
    structure = problem.structure(problem.workload("tiny"))
    x = problem.values(structure, Family.LAPLACE, rng)["x"]
    other = encode_nvfp4(x)
    inputs = {"x": x, "tensor_scale": np.array([other.tensor_scale], np.float32)}
    found = problem.oracle(structure, inputs)
    assert np.mean(found["scales"].value == codes_of(other.scales)) > 0.98
    assert np.mean(found["q"].value == pack(codes_of(other.codes), Layout(UINT4))) > 0.95
