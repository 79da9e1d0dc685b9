"""Bundles for tests: small hand-written kernels with a verdict that says they were verified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import scipy.sparse as sp

from kernelwright.traces.export import (
    Ancestor,
    Bundle,
    Case,
    Measured,
    TensorSpec,
)
from kernelwright.traces.records import (
    Check,
    Depth,
    Measurement,
    Speedup,
    Status,
    Timing,
    Verdict,
    candidate_id,
)

PLAIN_FLAGS = ("-std=c++20", "-O2", "-march=native", "-fopenmp", "-fPIC", "-shared")

SPMM = """\
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) C[(long)i * N + j] = 0;
    for (int p = indptr[i]; p < indptr[i + 1]; ++p)
      for (int j = 0; j < N; ++j) C[(long)i * N + j] += values[p] * B[(long)indices[p] * N + j];
  }
}
"""

SDDMM = """\
extern "C" void sddmm_csr(int M, int K, int D, int nnz, const int* indptr, const int* indices,
                          const float* U, const float* V, float* E) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i)
    for (int p = indptr[i]; p < indptr[i + 1]; ++p) {
      float sum = 0;
      for (int d = 0; d < D; ++d) sum += U[(long)i * D + d] * V[(long)indices[p] * D + d];
      E[p] = sum;
    }
}
"""

GEMM = """\
extern "C" void gemm(int M, int N, int K, const float* A, const float* B, float* C) {
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += A[(long)i * K + k] * B[(long)k * N + j];
      C[(long)i * N + j] = sum;
    }
}
"""

ROW_SUMS = """\
extern "C" void row_sums(int M, int nnz, const int* indptr, const float* values, float* y) {
  for (int i = 0; i < M; ++i) {
    y[i] = 0;
    for (int p = indptr[i]; p < indptr[i + 1]; ++p) y[i] += values[p];
  }
}
"""

SOFTMAX = """\
#include <cmath>
extern "C" void softmax(int M, int N, const float* x, float* y) {
  for (int i = 0; i < M; ++i) {
    float top = -INFINITY, sum = 0;
    for (int j = 0; j < N; ++j) top = std::fmax(top, x[(long)i * N + j]);
    for (int j = 0; j < N; ++j) sum += y[(long)i * N + j] = std::exp(x[(long)i * N + j] - top);
    for (int j = 0; j < N; ++j) y[(long)i * N + j] /= sum;
  }
}
"""

DOUBLED = """\
extern "C" void doubled(int M, int N, const bfloat16* x, bfloat16* y) {
  for (int i = 0; i < M * N; ++i) y[i] = 2.0f * x[i];
}
"""

EXTREMES = """\
extern "C" void extremes(int M, int K, int N, int side, const float* x, float* value, int* place) {
  for (int i = 0; i < M; ++i) {
    int best = 0;
    for (int j = 1; j < N; ++j) {
      float a = x[i * N + j], b = x[i * N + best];
      if (side ? a < b : a > b) best = j;
    }
    for (int k = 0; k < K; ++k) {
      value[i * K + k] = x[i * N + best];
      place[i * K + k] = best;
    }
  }
}
"""


def verdict(source: str, problem: str, status: Status = Status.VERIFIED, **more: Any) -> Verdict:
    measurement = Measurement(
        workload="pubmed",
        candidate=Timing(median_us=812.5, low_us=800.0, high_us=830.0),
        baselines={"torch eager": Timing(median_us=1475.0, low_us=1450.0, high_us=1500.0)},
        speedup={"torch eager": Speedup(median=1.82, low=1.75, high=1.90)},
        best_baseline="torch eager",
        pairs=40,
    )
    known = {
        "candidate": candidate_id(source),
        "problem": problem,
        "workload": "pubmed",
        "language": "cpp",
        "target": "cpu",
        "protocol": Depth.CONFIRM,
        "status": status,
        "checks": (Check(name="G1 condition-scaled error", passed=True, figure=0.2, limit=1.0),),
        "measurements": (measurement,) if status is Status.VERIFIED else (),
        "reasons": () if status.is_pass else ("row 3 is wrong by 0.5",),
        "versions": {"cpu": "Example CPU 9000", "torch": "2.13.0", "compiler": "g++ 12.2.0"},
        "log": "/home/somebody/build/kernel.cpp:3: note: vectorised",
    }
    return Verdict.model_validate(known | more)


def bundle(problem: str, source: str, **more: Any) -> Bundle:
    candidate = candidate_id(source)
    known: dict[str, Any] = {
        "problem": problem,
        "title": problem,
        "definition": problem,
        "entry": problem,
        "candidate": candidate,
        "source": source,
        "language": "cpp",
        "verdict": verdict(source, problem),
        "campaign": "c-20261121-ab12",
        "lineage": (Ancestor("0" * 64, 1, "initial"), Ancestor(candidate, 7, "mutate")),
        "flags": PLAIN_FLAGS,
        "verified_at": 1_790_000_000.0,
    }
    return Bundle(**(known | more))


def spmm(source: str = SPMM, **more: Any) -> Bundle:
    known: dict[str, Any] = {
        "title": "Sparse matrix times dense matrix",
        "definition": "C = A B\nA is M x K in CSR, B is K x N dense",
        "axes": {"M": "rows of A", "N": "columns of B", "K": "columns of A", "nnz": "non-zeros"},
        "inputs": (
            TensorSpec("indptr", "int32", ("M+1",), is_index=True, meaning="row pointers"),
            TensorSpec("indices", "int32", ("nnz",), is_index=True),
            TensorSpec("values", "float32", ("nnz",)),
            TensorSpec("B", "float32", ("K", "N")),
        ),
        "outputs": (TensorSpec("C", "float32", ("M", "N")),),
        "cases": (spmm_case("tail", 17, 9, 5), spmm_case("wide", 4, 30, 33)),
        "measured": (Measured("pubmed", {"M": 40, "N": 8, "K": 40, "nnz": 200, "skew": 2}),),
    }
    return bundle("spmm_csr", source, **(known | more))


def spmm_case(name: str, rows: int, columns: int, width: int) -> Case:
    generator = np.random.default_rng(rows)
    matrix = sp.random_array(
        (rows, columns), density=0.3, format="csr", dtype=np.float32, rng=generator
    )
    dense = generator.normal(size=(columns, width)).astype(np.float32)
    inputs = {
        "indptr": matrix.indptr.astype(np.int32),
        "indices": matrix.indices.astype(np.int32),
        "values": matrix.data,
        "B": dense,
    }
    exact = matrix.astype(np.float64) @ dense.astype(np.float64)
    scale = abs(matrix).astype(np.float64) @ abs(dense).astype(np.float64)
    return Case(name, inputs, {"C": exact}, {"C": 2.0**-20 * scale})


def sddmm(source: str = SDDMM, **more: Any) -> Bundle:
    """A pattern without values."""
    generator = np.random.default_rng(11)
    matrix = sp.random_array((13, 8), density=0.3, format="csr", rng=generator)
    u, v = (generator.normal(size=(n, 6)).astype(np.float32) for n in (13, 8))
    rows = np.repeat(np.arange(13), np.diff(matrix.indptr))
    terms = u[rows].astype(np.float64) * v[matrix.indices]
    inputs = {"indptr": matrix.indptr, "indices": matrix.indices}
    inputs = {name: array.astype(np.int32) for name, array in inputs.items()}
    allowed = {"E": 2.0**-20 * abs(terms).sum(axis=1)}
    case = Case("small", {**inputs, "U": u, "V": v}, {"E": terms.sum(axis=1)}, allowed)
    known: dict[str, Any] = {
        "title": "Sampled dense-dense product",
        "axes": {"M": "rows", "K": "columns", "D": "features", "nnz": "entries"},
        "inputs": (
            TensorSpec("indptr", "int32", ("M+1",), is_index=True),
            TensorSpec("indices", "int32", ("nnz",), is_index=True),
            TensorSpec("U", "float32", ("M", "D")),
            TensorSpec("V", "float32", ("K", "D")),
        ),
        "outputs": (TensorSpec("E", "float32", ("nnz",)),),
        "cases": (case,),
    }
    return bundle("sddmm_csr", source, **(known | more))


def gemm(source: str = GEMM, **more: Any) -> Bundle:
    generator = np.random.default_rng(13)
    a, b = (generator.normal(size=size).astype(np.float32) for size in ((5, 7), (7, 3)))
    exact = a.astype(np.float64) @ b
    allowed = {"C": 2.0**-20 * (abs(a).astype(np.float64) @ abs(b))}
    known: dict[str, Any] = {
        "axes": {"M": "rows", "N": "columns", "K": "depth"},
        "inputs": (TensorSpec("A", "float32", ("M", "K")), TensorSpec("B", "float32", ("K", "N"))),
        "outputs": (TensorSpec("C", "float32", ("M", "N")),),
        "cases": (Case("small", {"A": a, "B": b}, {"C": exact}, allowed),),
    }
    return bundle("gemm", source, **(known | more))


def row_sums() -> Bundle:
    """Row pointers without columns, and the values."""
    values = np.array([1, -2, 4], dtype=np.float32)
    inputs = {"indptr": np.array([0, 2, 2, 3], dtype=np.int32), "values": values}
    exact = np.array([-1.0, 0.0, 4.0])
    known: dict[str, Any] = {
        "axes": {"M": "rows", "nnz": "entries"},
        "inputs": (
            TensorSpec("indptr", "int32", ("M+1",), is_index=True),
            TensorSpec("values", "float32", ("nnz",)),
        ),
        "outputs": (TensorSpec("y", "float32", ("M",)),),
        "cases": (Case("small", inputs, {"y": exact}, {"y": np.zeros(())}),),
    }
    return bundle("row_sums", ROW_SUMS, **known)


def softmax(source: str = SOFTMAX, **more: Any) -> Bundle:
    x = np.random.default_rng(3).normal(size=(6, 11)).astype(np.float32)
    x[2, 4] = -np.inf
    shifted = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    exact = shifted / shifted.sum(axis=1, keepdims=True)
    known: dict[str, Any] = {
        "title": "Softmax over rows",
        "definition": "y = exp(x - max) / sum",
        "axes": {"M": "rows", "N": "columns"},
        "inputs": (TensorSpec("x", "float32", ("M", "N")),),
        "outputs": (TensorSpec("y", "float32", ("M", "N")),),
        "cases": (Case("small", {"x": x}, {"y": exact}, {"y": 2.0**-20 * exact}),),
        "measured": (Measured("pubmed", {"M": 64, "N": 64}), Measured("long", {"M": 1, "N": 5000})),
    }
    return bundle("softmax", source, **(known | more))


def doubled(source: str = DOUBLED, **more: Any) -> Bundle:
    """Tensors of a type that numpy lacks, and C++ too."""
    x = np.random.default_rng(7).normal(size=(3, 5)).astype(ml_dtypes.bfloat16)
    exact = 2 * x.astype(np.float64)
    known: dict[str, Any] = {
        "axes": {"M": "rows", "N": "columns"},
        "inputs": (TensorSpec("x", "bfloat16", ("M", "N")),),
        "outputs": (TensorSpec("y", "bfloat16", ("M", "N")),),
        "cases": (Case("small", {"x": x}, {"y": exact}, {"y": 2.0**-8 * abs(exact)}),),
    }
    return bundle("doubled", source, **(known | more))


def extremes(source: str = EXTREMES, **more: Any) -> Bundle:
    """Two outputs, an axis that only an output has, and an attribute that no tensor has."""
    x = np.random.default_rng(5).normal(size=(4, 7)).astype(np.float32)
    cases = tuple(_extremes_case(x, side) for side in (0, 1))
    known: dict[str, Any] = {
        "axes": {"M": "rows", "K": "copies", "N": "columns", "side": "0 for max, 1 for min"},
        "inputs": (TensorSpec("x", "float32", ("M", "N")),),
        "outputs": (
            TensorSpec("value", "float32", ("M", "K")),
            TensorSpec("place", "int32", ("M", "K")),
        ),
        "cases": cases,
    }
    return bundle("extremes", source, **(known | more))


def _extremes_case(x: np.ndarray, side: int) -> Case:
    place = (np.argmin if side else np.argmax)(x, axis=1)
    value = x[np.arange(len(x)), place].astype(np.float64)
    outputs: Mapping[str, np.ndarray] = {
        "value": np.repeat(value[:, None], 3, axis=1),
        "place": np.repeat(place[:, None].astype(np.float64), 3, axis=1),
    }
    nothing = {name: np.zeros(()) for name in outputs}
    return Case(f"side {side}", {"x": x}, outputs, nothing, {"K": 3, "side": side})
