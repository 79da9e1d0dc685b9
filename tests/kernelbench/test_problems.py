"""Oracles against second implementations; honest kernels pass every gate, downcasts do not."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.codecs import host_dtype
from kernelwright.kernelbench.dtypes import BFLOAT16, dtype_of
from kernelwright.kernelbench.problem import Arrays, Expected, Family, Problem, Structure
from kernelwright.kernelbench.sizes import HIDDEN_INPUTS, HIDDEN_OUTPUTS
from kernelwright.tests.plain.collect import Implementation, collect
from kernelwright.tests.sampling import at_most, one_in

Gates = Callable[[Problem, Arrays, dict[str, Expected], Family], list[str]]
ALL = registry.names()
NAMES = [name for name in ALL if registry.get(name).policies]
"""Those that are written for float32; of the others test_quantised.py says what is theirs."""
MANY = 9
"""Problems of which a run tries each thing that takes a second or more of each."""
TRIED = at_most(MANY, NAMES)


def _sum(x: np.ndarray) -> np.ndarray:
    """A naive sequential sum along the last axis, in the dtype of x."""
    return np.add.accumulate(x, axis=-1)[..., -1:]


def _sparse(s: Structure, data: np.ndarray) -> csr_matrix:
    shape = (s.axes["M"], s.axes["K"])
    return csr_matrix((data, s.arrays["indices"], s.arrays["indptr"]), shape=shape)


def _rows(s: Structure) -> list[slice]:
    return [slice(a, b) for a, b in itertools.pairwise(s.arrays["indptr"].tolist())]


def _gspmm(s: Structure, i: Arrays, t: type) -> np.ndarray:
    a, b = i["values"].astype(t), i["B"].astype(t)
    c = np.zeros((s.axes["M"], s.axes["N"]), t)
    for row, part in enumerate(_rows(s)):
        if part.start == part.stop:
            continue
        products = a[part, None] * b[s.arrays["indices"][part]]
        if s.axes["reduce"] == 0:
            c[row] = products.max(0)
        else:
            c[row] = np.add.accumulate(products)[-1] * (t(1) / t(len(products)))
    return c


def _sddmm(s: Structure, i: Arrays, t: type) -> np.ndarray:
    rows = np.repeat(np.arange(s.axes["M"]), np.diff(s.arrays["indptr"]))
    u, v = i["U"].astype(t)[rows], i["V"].astype(t)[s.arrays["indices"]]
    return _sum(u * v)[:, 0]


def _edge_softmax(s: Structure, i: Arrays, t: type) -> np.ndarray:
    e = i["e"].astype(t)
    alpha = np.empty_like(e)
    for part in _rows(s):
        if part.start < part.stop:
            alpha[part] = _softmax_rows(e[part].T).T
    return alpha


def _softmax_rows(x: np.ndarray) -> np.ndarray:
    risen = np.exp(x - x.max(-1, keepdims=True))
    return risen / _sum(risen)


def _softmax_backward(_: Structure, i: Arrays, t: type) -> np.ndarray:
    y, dy = i["y"].astype(t), i["dy"].astype(t)
    return y * (dy - _sum(y * dy))


def _layernorm(_: Structure, i: Arrays, t: type) -> np.ndarray:
    x, n = i["x"].astype(t), t(i["x"].shape[1])
    centred = x - _sum(x) / n
    rstd = t(1) / np.sqrt(_sum(centred * centred) / n + t(1e-5))
    return centred * rstd * i["gamma"].astype(t) + i["beta"].astype(t)


def _rmsnorm(_: Structure, i: Arrays, t: type) -> np.ndarray:
    x, n = i["x"].astype(t), t(i["x"].shape[1])
    return x * (t(1) / np.sqrt(_sum(x * x) / n + t(1e-6))) * i["gamma"].astype(t)


def _bias_gelu(_: Structure, i: Arrays, t: type) -> np.ndarray:
    s = i["x"].astype(t) + i["bias"].astype(t)
    return t(0.5) * s * (t(1) + np.tanh(t(0.7978845608028654) * (s + t(0.044715) * s * s * s)))


def _swiglu(s: Structure, i: Arrays, t: type) -> np.ndarray:
    gate, other = np.split(i["x"].astype(t), [s.axes["N"]], axis=1)
    small = np.exp(-np.abs(gate))
    return gate * (np.where(gate < 0, small, t(1)) / (t(1) + small)) * other


def _rope(_: Structure, i: Arrays, t: type) -> np.ndarray:
    a, b = np.split(i["x"].astype(t), 2, axis=2)
    cos, sin = i["cos"].astype(t)[:, None], i["sin"].astype(t)[:, None]
    return np.concatenate((a * cos - b * sin, b * cos + a * sin), 2)


def _hadamard(s: Structure, i: Arrays, t: type) -> np.ndarray:
    """A butterfly: every sum has as many terms as there are stages."""
    y, apart = i["x"].astype(t), 1
    while apart < s.axes["N"]:
        a, b = np.moveaxis(y.reshape(len(y), -1, 2, apart), 2, 0)
        y, apart = np.stack((a + b, a - b), 2).reshape(y.shape), 2 * apart
    return y * (t(1) / np.sqrt(t(s.axes["N"])))


def _w8a8_linear(_: Structure, i: Arrays, t: type) -> np.ndarray:
    """Sums of whole numbers, which float64 holds as int32 does."""
    sums = (i["x"].astype(np.float64) @ i["w"].astype(np.float64).T).astype(t)
    return sums * (i["sx"].astype(t)[:, None] * i["sw"].astype(t)) + i["bias"].astype(t)


def _residual_rmsnorm(s: Structure, i: Arrays, t: type) -> Arrays:
    h, n = i["x"].astype(t) + i["residual"].astype(t), t(s.axes["N"])
    y = h * (t(1) / np.sqrt(_sum(h * h) / n + t(1e-6))) * i["gamma"].astype(t)
    top = np.abs(y).max(1, keepdims=True)
    codes = y * (t(127) / np.where(top > 0, top, t(1)))
    return {"h": h, "q": np.rint(codes) if t is np.float32 else codes, "scale": top[:, 0] / t(127)}


def _gemm(_: Structure, i: Arrays, t: type) -> np.ndarray:
    a, b = i["A"].astype(t), i["B"].astype(t)
    c = np.zeros((a.shape[0], b.shape[1]), t)
    for k in range(a.shape[1]):
        c += a[:, k : k + 1] * b[k]
    return c


PLAIN: dict[str, Implementation] = {
    "spmv_csr": lambda s, i, t: _sparse(s, i["values"].astype(t)) @ i["x"].astype(t),
    "spmm_csr": lambda s, i, t: _sparse(s, i["values"].astype(t)) @ i["B"].astype(t),
    "gspmm_reduce": _gspmm,
    "sddmm_csr": _sddmm,
    "edge_softmax": _edge_softmax,
    "softmax": lambda _, i, t: _softmax_rows(i["x"].astype(t)),
    "softmax_backward": _softmax_backward,
    "layernorm": _layernorm,
    "rmsnorm": _rmsnorm,
    "bias_gelu": _bias_gelu,
    "swiglu": _swiglu,
    "rope": _rope,
    "hadamard_transform": _hadamard,
    "w8a8_linear": _w8a8_linear,
    "residual_rmsnorm": _residual_rmsnorm,
    "gemm": _gemm,
    **collect(),
}
"""Each operator as a plain user would write it, in any dtype, with sequential sums."""


def _compute(problem: Problem, s: Structure, inputs: Arrays, t: type) -> Arrays:
    """What the plain one gives, by name."""
    found = PLAIN[problem.name](s, inputs, t)
    return found if isinstance(found, dict) else {problem.outputs[0].name: found}


def _dense_truth(problem: Problem, s: Structure, inputs: Arrays) -> Arrays:
    """The answers by dense float64 matrices for the sparse ones, else the plain ones in float64."""
    name = problem.outputs[0].name
    if problem.name in ("spmv_csr", "spmm_csr"):
        right = inputs["x" if problem.name == "spmv_csr" else "B"].astype(np.float64)
        return {name: _sparse(s, inputs["values"].astype(np.float64)).toarray() @ right}
    if problem.name == "sddmm_csr":
        rows = np.repeat(np.arange(s.axes["M"]), np.diff(s.arrays["indptr"]))
        full = inputs["U"].astype(np.float64) @ inputs["V"].astype(np.float64).T
        return {name: np.asarray(full[rows, s.arrays["indices"]])}
    return _compute(problem, s, inputs, np.float64)


def _structures(problem: Problem) -> list[Structure]:
    """The tiny workload and hidden shapes; sequential sums of wide ones would take minutes."""
    small = [problem.structure(w) for w in problem.workloads if w.kind == "tiny"]
    drawn = problem.variations(small[0], np.random.default_rng(5))
    narrow = (s for s in drawn if max(s.axes.values()) < 1 << 16)
    return small + list(itertools.islice(narrow, 14))


def _largest_rows(problem: Problem) -> list[Structure]:
    return [problem.structure(w) for w in problem.workloads if w.kind == "adversarial"]


@pytest.mark.parametrize("name", NAMES)
def test_oracle_agrees_with_a_second_implementation(name: str) -> None:
    problem = registry.get(name)
    rng = np.random.default_rng(1)
    for structure in _structures(problem):
        inputs = problem.values(structure, Family.NORMAL, rng)
        second = _dense_truth(problem, structure, inputs)
        for output, expected in problem.oracle(structure, inputs).items():
            bound = 1e-12 * expected.scale + 1e-12 * np.abs(expected.value) + 1e-300
            if expected.is_exact:  # products are rounded to float32 before they are compared
                bound = 2.0**-24 * np.abs(expected.value)
            assert (np.abs(expected.value - second[output]) <= bound).all()
            assert expected.value.dtype == np.float64
            assert np.asarray(expected.scale).dtype == np.float64


@pytest.mark.parametrize("name", NAMES)
def test_values_have_the_declared_shapes_and_are_finite(name: str) -> None:
    problem = registry.get(name)
    rng = np.random.default_rng(2)
    for structure in _structures(problem)[:8]:
        for family in problem.families:
            inputs = problem.values(structure, family, rng)
            floats = [t for t in problem.inputs if not t.is_index]
            assert list(inputs) == [t.name for t in floats]
            for tensor in floats:
                array = inputs[tensor.name]
                assert array.shape == tensor.extent(structure.axes)
                assert array.dtype == host_dtype(dtype_of(tensor.dtype))
                assert array.flags.c_contiguous
                assert family is Family.NONFINITE or np.isfinite(array).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIED)
def test_honest_float32_passes_every_family(name: str, gates: Gates) -> None:
    problem = registry.get(name)
    rng = np.random.default_rng(3)
    for structure in _structures(problem) + _largest_rows(problem):
        for family in problem.families:
            inputs = problem.values(structure, family, rng)
            truth = problem.oracle(structure, inputs)
            with np.errstate(invalid="ignore", over="ignore"):
                outputs = _compute(problem, structure, inputs, np.float32)
            found = gates(problem, outputs, truth, family)
            assert not found, (structure.axes, family, found)


def _tf32(x: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


DOWNCASTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fp16": lambda x: x.astype(np.float16).astype(np.float32),
    "bf16": lambda x: x.astype(host_dtype(BFLOAT16)).astype(np.float32),
    "tf32": _tf32,
}


@pytest.mark.slow
@pytest.mark.parametrize("cast", DOWNCASTS)
@pytest.mark.parametrize("name", TRIED)
def test_a_silent_downcast_is_rejected(name: str, cast: str, gates: Gates) -> None:
    problem = registry.get(name)
    rng = np.random.default_rng(4)
    tiny = _structures(problem)[0]
    for structure in (tiny, *_largest_rows(problem)):
        rejected_by = set()
        for family in problem.families:
            inputs = problem.values(structure, family, rng)
            truth = problem.oracle(structure, inputs)
            with np.errstate(invalid="ignore", over="ignore"):
                lowered = {
                    key: DOWNCASTS[cast](array) if array.dtype.kind == "f" else array
                    for key, array in inputs.items()
                }
                outputs = _compute(problem, structure, lowered, np.float32)
            if gates(problem, outputs, truth, family):
                rejected_by.add(family)
        assert Family.NORMAL in rejected_by
        if Family.PROBE in problem.families:
            assert Family.PROBE in rejected_by


@pytest.mark.parametrize("name", NAMES)
def test_constant_answers_are_rejected_by_every_family(name: str, gates: Gates) -> None:
    problem = registry.get(name)
    rng = np.random.default_rng(6)
    structure = _structures(problem)[0]
    for family in problem.families:
        inputs = problem.values(structure, family, rng)
        for output, expected in problem.oracle(structure, inputs).items():
            value = expected.value
            for answer in (0.0, 1.0, float(value[np.isfinite(value)].mean())):
                y = np.full(value.shape, answer, np.float32)
                found = gates(problem, {output: y}, {output: expected}, family)
                assert found, (output, family, answer)


@pytest.mark.parametrize("name", [n for n in NAMES if registry.get(n).backward_of])
def test_a_backward_is_the_derivative_of_its_forward(name: str) -> None:
    """Against central differences of the forward's float64 oracle, along random directions."""
    backward = registry.get(name)
    forward = registry.get(backward.backward_of)
    rng = np.random.default_rng(12)
    structure = forward.structure(forward.workload("tiny"))
    for _ in range(4):
        inputs = forward.values(structure, Family.UNIFORM, rng)
        answers = {key: found.value for key, found in forward.oracle(structure, inputs).items()}
        given = {key: value.astype(np.float32) for key, value in answers.items()}
        gradients = {f"d{key}": rng.standard_normal(v.shape) for key, v in answers.items()}
        given |= {key: value.astype(np.float32) for key, value in gradients.items()}
        assert list(given) == [tensor.name for tensor in backward.inputs]
        found = backward.oracle(structure, given)

        def loss(at: Arrays, given: Arrays = given) -> float:
            answer = forward.oracle(structure, at)
            return sum(float((given[f"d{k}"] * e.value).sum()) for k, e in answer.items())

        for key, array in inputs.items():
            x = array.astype(np.float64)
            way = rng.standard_normal(x.shape)
            step = 1e-6
            above, below = {**inputs, key: x + step * way}, {**inputs, key: x - step * way}
            slope = (loss(above) - loss(below)) / (2 * step)
            gradient = found[f"d{key}"].value
            assert abs(slope - float((gradient * way).sum())) <= (
                1e-5 * np.abs(gradient).sum() + 1e-7
            )


def test_a_cancelling_variance_is_rejected(gates: Gates) -> None:
    problem = registry.get("layernorm")
    structure = problem.structure(problem.workload("tiny"))
    inputs = problem.values(structure, Family.LARGE, np.random.default_rng(7))
    x, n = inputs["x"], np.float32(structure.axes["N"])
    mean = _sum(x) / n
    variance = _sum(x * x) / n - mean * mean
    with np.errstate(invalid="ignore"):
        y = (x - mean) / np.sqrt(variance + np.float32(1e-5)) * inputs["gamma"] + inputs["beta"]
    truth = problem.oracle(structure, inputs)
    assert gates(problem, {"y": y}, truth, Family.LARGE)


def test_softmax_without_the_maximum_is_rejected(gates: Gates) -> None:
    problem = registry.get("softmax")
    structure = problem.structure(problem.workload("tiny"))
    inputs = problem.values(structure, Family.LARGE, np.random.default_rng(8))
    with np.errstate(over="ignore", invalid="ignore"):
        risen = np.exp(inputs["x"])
        y = risen / risen.sum(1, keepdims=True)
    truth = problem.oracle(structure, inputs)
    assert gates(problem, {"y": y}, truth, Family.LARGE)


@pytest.mark.parametrize("name", ALL)
def test_costs_are_those_of_the_definition(name: str) -> None:
    problem = registry.get(name)
    for workload in problem.workloads:
        axes = problem.structure(workload).axes
        tensors = sum(
            dtype_of(t.dtype).bytes * np.prod(t.extent(axes), dtype=float) for t in problem.tensors
        )
        assert problem.bytes_moved(axes) == tensors
        assert problem.flops(axes) > 0


@pytest.mark.parametrize("name", ALL)
def test_variations_never_end_and_stay_small(name: str) -> None:
    problem = registry.get(name)
    base = problem.structure(problem.default_workload)
    drawn = list(itertools.islice(problem.variations(base, np.random.default_rng(9)), 90))
    assert len(drawn) == 90
    for structure in drawn:
        assert tuple(structure.axes) == tuple(problem.axes)
        assert problem.bytes_moved(structure.axes) <= HIDDEN_INPUTS + HIDDEN_OUTPUTS
    assert any(1 in structure.axes.values() for structure in drawn)


@pytest.mark.parametrize("name", [n for n in NAMES if "sparse" in registry.get(n).tags])
def test_sparse_variations_have_the_hard_rows(name: str) -> None:
    problem = registry.get(name)
    base = problem.structure(problem.workload("tiny"))
    lengths = [
        np.diff(structure.arrays["indptr"])
        for structure in itertools.islice(problem.variations(base, np.random.default_rng(1)), 40)
    ]
    assert any((row == 0).any() for row in lengths)
    assert any(row.max() > 20 * max(row.mean(), 1) for row in lengths)
    assert all(row.sum() > 0 for row in lengths)


@pytest.mark.parametrize("name", ALL)
def test_a_problem_has_three_kinds_of_workloads_and_a_source(name: str) -> None:
    problem = registry.get(name)
    assert {"tiny", "realistic", "adversarial"} <= {w.kind for w in problem.workloads}
    assert len({w.name for w in problem.workloads}) == len(problem.workloads)
    assert problem.source
    assert problem.definition
    assert len(problem.baselines) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(3, TRIED))
def test_honest_float32_passes_the_realistic_workloads(name: str, gates: Gates) -> None:
    problem = registry.get(name)
    rng = np.random.default_rng(10)
    for workload in problem.workloads:
        if workload.kind != "realistic":
            continue
        structure = problem.structure(workload)
        for family in (Family.NORMAL, Family.SORTED, *problem.families[-2:]):
            inputs = problem.values(structure, family, rng)
            truth = problem.oracle(structure, inputs)
            with np.errstate(invalid="ignore", over="ignore"):
                outputs = _compute(problem, structure, inputs, np.float32)
            found = gates(problem, outputs, truth, family)
            assert not found, (workload.name, family, found)
