"""The operators in float64, with small awkward inputs and a ctypes call for each."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.codecs import host_dtype
from kernelwright.kernelbench.dtypes import dtype_of
from kernelwright.kernelbench.problem import Expected, Family, Problem, Structure, Tensor

Array = np.ndarray[Any, np.dtype[Any]]
U = 2.0**-24


class Case(NamedTuple):
    """One call: scalars in C order, inputs in C order, the truth and its error bound."""

    label: str
    scalars: tuple[int, ...]
    inputs: tuple[Array, ...]
    truth: Array
    bound: Array
    dtype: Any = np.float32
    """Of the output."""
    others: tuple[tuple[Array, Array, Any], ...] = ()
    """Truth, bound and type of the outputs behind it."""

    @property
    def outputs(self) -> tuple[tuple[Array, Array, Any], ...]:
        """Truth, bound and type of each, in C order."""
        return ((self.truth, self.bound, self.dtype), *self.others)


DRAWN = 24
"""Hidden shapes of a problem that a recipe is called with where no cases are written for it."""


def by_law(name: str, rng: np.random.Generator) -> Iterator[Case]:
    """The cases of a problem, in another precision or not: its tiny workload and hidden shapes of
    it, each with one of its families in turn, held to the law of its precision (gate G1)."""
    problem = registry.get(name)
    asked = (Family.NORMAL, Family.NONFINITE, Family.EXACT, Family.OUTLIERS, Family.PROBE)
    families = [each for each in asked if each in problem.families]
    tiny = problem.structure(problem.workload("tiny"))
    shapes: list[Structure] = [*[tiny] * len(families)]
    shapes += itertools.islice(problem.variations(tiny, rng), DRAWN)
    for shape, family in zip(shapes, itertools.cycle(families), strict=False):
        values = problem.values(shape, family, rng)
        expected = problem.oracle(shape, values)
        held = [hold(problem, output, expected[output.name], family) for output in problem.outputs]
        drawn = {**shape.arrays, **values}
        inputs = tuple(drawn[tensor.name] for tensor in problem.inputs)
        scalars = tuple(shape.axes[axis] for axis in problem.axes)
        yield Case(f"{family} {dict(shape.axes)}", scalars, inputs, *held[0], tuple(held[1:]))


def hold(
    problem: Problem, output: Tensor, expected: Expected, family: Family
) -> tuple[Array, Array, Any]:
    """Truth, bound and type of one output."""
    truth, dtype = np.asarray(expected.value), host_dtype(dtype_of(output.dtype))
    if expected.is_held_exact(family, dtype_of(output.dtype)):
        return truth.astype(dtype).astype(float), np.zeros(truth.shape), dtype
    precision = expected.hold(problem.precision_of(output.name))
    terms = np.maximum(1, expected.terms)
    with np.errstate(all="ignore"):
        limit = precision.limit(np.abs(truth), expected.scale, terms)
        limit += precision.underflow * terms
        if expected.streams is not None:
            # Rounded at random: a whole step, and not half of it.
            limit += precision.half_step(np.abs(truth))
        if truth.ndim > 1:
            rows = np.square(np.where(np.isfinite(truth), truth, 0)).mean(-1, keepdims=True)
            limit += precision.u_acc * np.sqrt(rows)
    return truth, limit, dtype


def bound(truth: Array, scale: Array | float, terms: Array | float) -> Array:
    """The elementwise gate: 2 u sqrt(terms) scale + 2 u |truth|, and the smallest normal float."""
    return 2 * U * np.sqrt(terms) * scale + 2 * U * np.abs(truth) + np.full(truth.shape, 1.2e-38)


def patterns(rng: np.random.Generator) -> Iterator[tuple[str, int, Array, Array]]:
    """CSR patterns as (label, K, indptr, indices)."""
    degrees = {
        "one row": [5],
        "one empty row": [0],
        "all empty": [0] * 7,
        "huge row among empty ones": [0, 0, 9000, 0, 1],
        "many": [*rng.integers(0, 9, 211), 700, 0, 0, 333],
    }
    for label, counts in degrees.items():
        K = max(1, max(counts) * 2)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        rows = [np.sort(rng.choice(K, c, replace=False)) for c in counts]
        yield label, K, indptr, np.concatenate(rows).astype(np.int32)


def normal(rng: np.random.Generator, *shape: int) -> Array:
    if rng.random() < 0.2:
        return np.full(shape, rng.uniform(0.1, 1), dtype=np.float32)  # rounding errors of a kind
    return rng.standard_normal(shape).astype(np.float32)


def by_row(indptr: Array, terms: Array, reduce: Callable[..., Any] = np.sum) -> Array:
    """A reduction per CSR row of an array with one entry per non-zero; empty rows give 0."""
    out: Array = np.zeros((len(indptr) - 1, *terms.shape[1:]))
    for i, (begin, end) in enumerate(itertools.pairwise(indptr)):
        if end > begin:
            out[i] = reduce(terms[begin:end], axis=0)
    return out


def spmv_csr(rng: np.random.Generator) -> Iterator[Case]:
    for label, K, indptr, indices in patterns(rng):
        values, x = normal(rng, len(indices)), normal(rng, K)
        terms = values.astype(float) * x[indices].astype(float)
        truth = by_row(indptr, terms)
        limit = bound(truth, by_row(indptr, np.abs(terms)), np.maximum(1, np.diff(indptr)))
        scalars = (len(indptr) - 1, K, len(indices))
        yield Case(label, scalars, (indptr, indices, values, x), truth, limit)
        if len(indices) == 5:
            values[2], x[indices[0]] = np.nan, np.inf
            truth = by_row(indptr, values.astype(float) * x[indices])
            yield Case("nan", scalars, (indptr, indices, values, x), truth, limit)


def spmm_csr(rng: np.random.Generator) -> Iterator[Case]:
    for label, K, indptr, indices in patterns(rng):
        for N in (1, 3, 33, 150):
            values, B = normal(rng, len(indices)), normal(rng, K, N)
            terms = values[:, None].astype(float) * B[indices].astype(float)
            truth = by_row(indptr, terms)
            length = np.maximum(1, np.diff(indptr))[:, None]
            limit = bound(truth, by_row(indptr, np.abs(terms)), length)
            scalars = (len(indptr) - 1, N, K, len(indices))
            yield Case(f"{label}, N={N}", scalars, (indptr, indices, values, B), truth, limit)


def gspmm_reduce(rng: np.random.Generator) -> Iterator[Case]:
    for label, K, indptr, indices in patterns(rng):
        for N, reduce in itertools.product((1, 3, 33, 150), (0, 1)):
            values, B = normal(rng, len(indices)), normal(rng, K, N)
            if label == "many" and N == 33:
                B[indices[::50], 7], B[indices[1::70], 9] = np.nan, -np.inf
                values[::90] = 0.0
            with np.errstate(invalid="ignore"):
                terms = values[:, None].astype(float) * B[indices].astype(float)
                truth = by_row(indptr, terms, np.mean if reduce else np.max)
                scale = by_row(indptr, np.abs(terms), np.mean)
                length = np.maximum(1, np.diff(indptr))[:, None]
                limit = bound(truth, scale if reduce else 0.0, length)
            scalars = (len(indptr) - 1, N, K, len(indices), reduce)
            inputs = (indptr, indices, values, B)
            yield Case(f"{label}, N={N}, reduce={reduce}", scalars, inputs, truth, limit)


def sddmm_csr(rng: np.random.Generator) -> Iterator[Case]:
    for label, K, indptr, indices in patterns(rng):
        for D in (1, 3, 33, 150):
            M = len(indptr) - 1
            U, V = normal(rng, M, D), normal(rng, K, D)
            row = np.repeat(np.arange(M), np.diff(indptr))
            terms = U[row].astype(float) * V[indices].astype(float)
            truth = terms.sum(axis=1)
            limit = bound(truth, np.abs(terms).sum(axis=1), D)
            scalars = (M, K, D, len(indices))
            yield Case(f"{label}, D={D}", scalars, (indptr, indices, U, V), truth, limit)


def edge_softmax(rng: np.random.Generator) -> Iterator[Case]:
    for label, _, indptr, indices in patterns(rng):
        for H in (1, 2, 3, 4, 8, 16, 20, 64):
            e = normal(rng, len(indices), H) * np.float32(5)
            if label == "many" and H == 4:
                e[::31, 1], e[::57, 2], e[40:, 3] = np.nan, np.inf, -np.inf
            row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
            with np.errstate(invalid="ignore"):
                gap = e.astype(float) - by_row(indptr, e.astype(float), np.max)[row]
                total = by_row(indptr, np.exp(gap))[row]
                truth = np.exp(gap) / total
            length = np.diff(indptr)[row][:, None]
            limit = bound(truth, truth * (2 + np.minimum(np.abs(np.nan_to_num(gap)), 110)), length)
            yield Case(
                f"{label}, H={H}", (len(indptr) - 1, H, len(indices)), (indptr, e), truth, limit
            )


def matrices(rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    for M, N in ((1, 1), (1, 3), (5, 33), (3, 1000), (67, 64), (2, 5003)):
        yield f"{M}x{N}", normal(rng, M, N)
    yield "large", normal(rng, 4, 70) * np.float32(1e4)


def softmax(rng: np.random.Generator) -> Iterator[Case]:
    cases = list(matrices(rng))
    special = normal(rng, 6, 37)
    special[0, 3], special[1, 4], special[2, 36] = np.nan, np.inf, -np.inf
    special[3] = -np.inf
    special[4] = np.where(np.arange(37) % 2, 3.4e38, -3.4e38)
    special[5, 1:] = -np.inf
    for label, x in [*cases, ("special", special)]:
        with np.errstate(invalid="ignore"):
            e = np.exp(x.astype(float) - x.astype(float).max(axis=1, keepdims=True))
            truth = e / e.sum(axis=1, keepdims=True)
            # Rounding x - max costs |x - max| units in the last place of the result.
            gap = np.nan_to_num(x.astype(float).max(axis=1, keepdims=True) - x, posinf=0.0)
        limit = bound(truth, truth * (2 + np.minimum(gap, 110)), 1.0)
        yield Case(label, x.shape, (x,), truth, limit)


def softmax_backward(rng: np.random.Generator) -> Iterator[Case]:
    for label, x in matrices(rng):
        e = np.exp(normal(rng, *x.shape).astype(float))
        y = (e / e.sum(axis=1, keepdims=True)).astype(np.float32)
        weight, gradient = y.astype(float), x.astype(float)
        total = (weight * gradient).sum(axis=1, keepdims=True)
        truth = weight * (gradient - total)
        size = (weight * np.abs(gradient)).sum(axis=1, keepdims=True)
        limit = bound(truth, weight * (np.abs(gradient) + size), max(4, x.shape[1]))
        yield Case(label, x.shape, (y, x), truth, limit)


def with_special(rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    yield from matrices(rng)
    special = normal(rng, 4, 37)
    special[0, 3], special[1, 4], special[2, 36] = np.nan, np.inf, -np.inf
    yield "special", special


def layernorm(rng: np.random.Generator) -> Iterator[Case]:
    for label, x in [*with_special(rng), ("far from zero", normal(rng, 3, 513) + np.float32(1000))]:
        M, N = x.shape
        gamma, beta = normal(rng, N), normal(rng, N)
        with np.errstate(invalid="ignore"):
            centred = x.astype(float) - x.astype(float).mean(axis=1, keepdims=True)
            deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
            truth = centred / deviation * gamma + beta
            # The mean itself is rounded: an absolute error of |x| units in the last place.
            scale = (np.abs(x) + np.abs(centred) * 4) / deviation * np.abs(gamma) + np.abs(beta)
        yield Case(label, (M, N), (x, gamma, beta), truth, bound(truth, scale, 16.0))


def rmsnorm(rng: np.random.Generator) -> Iterator[Case]:
    for label, x in with_special(rng):
        M, N = x.shape
        gamma = normal(rng, N)
        with np.errstate(invalid="ignore"):
            root = np.sqrt((x.astype(float) ** 2).mean(axis=1, keepdims=True) + 1e-6)
            truth = x / root * gamma
        yield Case(label, (M, N), (x, gamma), truth, bound(truth, np.abs(truth), 16 + N / 16))


def bias_gelu(rng: np.random.Generator) -> Iterator[Case]:
    for label, x in [*with_special(rng), ("wide", normal(rng, 9, 401) * np.float32(8))]:
        M, N = x.shape
        bias = normal(rng, N)
        z = (x + bias).astype(float)
        with np.errstate(invalid="ignore", over="ignore"):
            u = np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)
            truth = z / (1 + np.exp(-2 * u))  # 1 + tanh(u) would cancel in the tail
            # Units in the last place of u are multiplied by |2u| where the tail is small.
            scale = np.abs(truth) * (4 + 4 * np.minimum(np.abs(u), 100)) + 1e-30 * np.abs(z)
        yield Case(label, (M, N), (x, bias), truth, bound(truth, scale, 1.0))


def gemm(rng: np.random.Generator) -> Iterator[Case]:
    shapes = (
        (1, 1, 1),
        (1, 3, 33),
        (33, 1, 3),
        (13, 65, 300),
        (100, 130, 600),
        (5, 33, 0),
        (96, 128, 64),
    )
    for M, N, K in shapes:
        A, B = normal(rng, M, K), normal(rng, K, N)
        if K == 300:
            A[2, 5], B[7, 3] = np.nan, np.inf
        with np.errstate(invalid="ignore"):
            truth = A.astype(float) @ B.astype(float)
            limit = bound(truth, np.abs(A).astype(float) @ np.abs(B).astype(float), max(1, K))
        yield Case(f"{M}x{N}x{K}", (M, N, K), (A, B), truth, limit)


OPERATORS: dict[str, Callable[[np.random.Generator], Iterator[Case]]] = {
    "spmv_csr": spmv_csr,
    "spmm_csr": spmm_csr,
    "gspmm_reduce": gspmm_reduce,
    "sddmm_csr": sddmm_csr,
    "edge_softmax": edge_softmax,
    "softmax": softmax,
    "softmax_backward": softmax_backward,
    "layernorm": layernorm,
    "rmsnorm": rmsnorm,
    "bias_gelu": bias_gelu,
    "swiglu": partial(by_law, "swiglu"),
    "rope": partial(by_law, "rope"),
    "hadamard_transform": partial(by_law, "hadamard_transform"),
    "w8a8_linear": partial(by_law, "w8a8_linear"),
    "residual_rmsnorm": partial(by_law, "residual_rmsnorm"),
    "gemm": gemm,
}


def call(function: Any, case: Case) -> list[Array]:
    """Calls the C function on copies of the inputs; outputs start as NaN between guards."""
    guard = 64
    padded = [
        np.full(truth.size + 2 * guard, 85 if np.dtype(dtype).kind in "iu" else np.nan).astype(
            dtype
        )
        for truth, _, dtype in case.outputs
    ]
    for each in padded:
        each[:guard] = each[-guard:] = 96
    arrays = [np.ascontiguousarray(a).copy() for a in case.inputs]
    before = [a.copy() for a in arrays]
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
    outs = [ctypes.c_void_p(each.ctypes.data + each.itemsize * guard) for each in padded]
    function(*(ctypes.c_int(s) for s in case.scalars), *pointers, *outs)
    for each in padded:
        assert (each[:guard] == 96).all(), f"{case.label}: written before an output"
        assert (each[-guard:] == 96).all(), f"{case.label}: written after an output"
    for kept, now in zip(before, arrays, strict=True):
        assert kept.tobytes() == now.tobytes(), f"{case.label}: an input was changed"
    return [
        each[guard:-guard].reshape(truth.shape).copy()
        for each, (truth, _, _) in zip(padded, case.outputs, strict=True)
    ]


def assert_right(function: Any, case: Case) -> None:
    """Holds a call against its truth; NaN and infinities must stand where they should."""
    for found, output in zip(call(function, case), case.outputs, strict=True):
        assert_near(case.label, found.astype(float), *output)


def assert_near(label: str, found: Array, truth: Array, bound: Array, dtype: Any) -> None:
    """Holds one output, in float64, against its truth."""
    with np.errstate(over="ignore"):
        rounded = truth.astype(dtype).astype(float)
    for kind in (np.isnan, np.isposinf, np.isneginf):
        np.testing.assert_array_equal(kind(found), kind(rounded), err_msg=label)
    finite = np.isfinite(rounded)
    error = np.abs(found[finite] - truth[finite])
    limit = np.broadcast_to(bound, truth.shape)[finite]
    if (worst := error > limit).any():
        with np.errstate(divide="ignore", invalid="ignore"):
            at = int(np.nanargmax(error / limit))
        raise AssertionError(
            f"{label}: {int(worst.sum())} of {error.size} wrong, the worst "
            f"{found[finite][at]} for {truth[finite][at]} (limit {limit[at]:.3g})"
        )
