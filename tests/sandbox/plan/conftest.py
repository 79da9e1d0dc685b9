"""Candidates to declare launches for, and what reads them."""

from __future__ import annotations

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.features import features
from kernelwright.kernelbench.problem import Problem, Structure
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.plan import Launches, Plan, PlanFault, parse, resolve

CUDA = """\
// A licence.
/*---
language = "cuda"
[knobs]
ROWS = 4
[[launch]]
kernel = "spmm_row"
when   = "avg_row < 32"
grid   = ["cdiv(M, ROWS)", "cdiv(N, 32)"]
block  = [32, 4]
shared_bytes = 0
args   = ["M", "N", "indptr", "indices", "values", "B", "C", "partial", "nnz", {f32 = 1e-5}]
[[launch]]
zero = "C"
[scratch.partial]
shape = ["M", "N"]
dtype = "float32"
---*/
extern "C" __global__ __launch_bounds__(128) void spmm_row(
    int M, int N, const int* __restrict__ indptr, const int* indices,
    const float* __restrict__ values, const float* B, float* C, float4* partial, long long n,
    float eps) {}
static __device__ float helper(float x) { return x; }
template <typename T, int V = 4> __global__ void reduce(const T* x, T* y, int n) {}
"""

TRITON = '''\
"""
---
language = "triton"
[knobs]
BLOCK = 64
[[launch]]
kernel = "rows"
grid = ["M", "cdiv(N, BLOCK)"]
args = ["M", "N", "indptr", "indices", "values", "B", "C"]
constexpr = {BLOCK = "BLOCK", TYPE = "tl.float32", NAME = "'relu'", WIDE = true, K = "N"}
num_warps = 4
---
"""
import triton
import triton.language as tl


@triton.jit
def rows(M, N, indptr, indices, values, B_ptr, C_ptr, BLOCK: tl.constexpr, TYPE: tl.constexpr,
         NAME: tl.constexpr, WIDE: tl.constexpr, K: tl.constexpr, EXTRA: tl.constexpr = 1):
    pass
'''


class Bench:
    """Parses and resolves candidates for one workload."""

    def __init__(self, problem: Problem, structure: Structure) -> None:
        self.problem = problem
        self.structure = structure

    def plan(self, source: str, language: str = "cuda") -> Plan:
        """The plan, which there must be."""
        found = parse(source, language)
        assert isinstance(found, Plan), found.sentence
        return found

    def outcome(
        self, source: str, language: str = "cuda", target: str = "sm_90"
    ) -> Launches | PlanFault:
        """What becomes of a candidate."""
        plan = parse(source, language)
        if isinstance(plan, PlanFault):
            return plan
        axes, facts = self.structure.axes, features(self.structure)
        return resolve(plan, self.problem, axes, facts, architecture(target))

    def launches(self, source: str, language: str = "cuda", target: str = "sm_90") -> Launches:
        """The launches, which there must be."""
        found = self.outcome(source, language, target)
        assert isinstance(found, Launches), found.sentence
        return found

    def fault(self, source: str, language: str = "cuda", target: str = "sm_90") -> PlanFault:
        """The fault, which there must be."""
        found = self.outcome(source, language, target)
        assert isinstance(found, PlanFault), found
        return found


@pytest.fixture(scope="session")
def spmm() -> Bench:
    """Sparse times dense on its tiny workload: M = K = 1000, N = 32, six entries to a row."""
    problem = registry.get("spmm_csr")
    return Bench(problem, problem.structure(problem.workload("tiny")))
