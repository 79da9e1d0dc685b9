"""Triton sources to be built, and what is asked of a builder."""

from __future__ import annotations

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Problem, Structure
from kernelwright.sandbox.builders.model import BuildFailed, Unsupported
from kernelwright.sandbox.builders.triton import TritonBuilder, TritonBuilt, TritonRequest
from kernelwright.sandbox.plan.model import Argument, ArgumentKind
from kernelwright.tests.interpreting import planned

SOFTMAX = registry.get("softmax")
SPMM = registry.get("spmm_csr")

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, M, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * N + at, mask=at < N, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * N + at, e / tl.sum(e, 0), mask=at < N)
"""
PLAN = (
    '''"""
---
[[launch]]
kernel = "softmax"
grid = ["M"]
args = ["x", "y", "M", "N"]
constexpr = {BLOCK = "next_pow2(N)"}
num_warps = 8
---
"""
'''
    + KERNEL
)
LAUNCH = "    softmax[(M,)](x, y, M, N, BLOCK=triton.next_power_of_2(N), num_warps=8)\n"
HOST = KERNEL + "\n\ndef run(M, N, x, y):\n" + LAUNCH


def host(before: str = "", after: str = "", parameters: str = "M, N, x, y") -> str:
    """Host code with more lines around the launch."""
    lines = (
        [f"    {line}\n" for line in before.splitlines()],
        [f"    {line}\n" for line in after.splitlines()],
    )
    return f"{KERNEL}\n\ndef run({parameters}):\n{''.join(lines[0])}{LAUNCH}{''.join(lines[1])}"


def shaped(m: int, n: int) -> Structure:
    return Structure({"M": m, "N": n})


def build(
    builder: TritonBuilder, source: str, *structures: Structure, problem: Problem = SOFTMAX
) -> TritonBuilt | BuildFailed | Unsupported:
    wanted = structures or (shaped(64, 200),)
    plans = [planned(source, problem, each) for each in wanted]
    return builder.build(
        TritonRequest(
            source,
            problem,
            wanted,
            plans=tuple(each for each in plans if each) if all(plans) else None,
            entry="ModelNew" if "class ModelNew" in source else "run",
        )
    )


def recorded(builder: TritonBuilder, source: str) -> TritonBuilt | BuildFailed | Unsupported:
    """Whatever its front matter says."""
    return builder.build(TritonRequest(source, SOFTMAX, (shaped(64, 200),)))


def built(
    builder: TritonBuilder, source: str, *structures: Structure, problem: Problem = SOFTMAX
) -> TritonBuilt:
    found = build(builder, source, *structures, problem=problem)
    assert isinstance(found, TritonBuilt), found
    return found


def unsupported(builder: TritonBuilder, source: str, problem: Problem = SOFTMAX) -> str:
    structure = problem.structure(problem.workload("tiny"))
    found = build(builder, source, structure, problem=problem)
    assert isinstance(found, Unsupported), found
    return found.reasons[0]


def failed(builder: TritonBuilder, source: str) -> str:
    found = build(builder, source)
    assert isinstance(found, BuildFailed), found
    assert len(found.reason.splitlines()) == 1
    return found.reason


def tensor(place: int, offset: int = 0) -> Argument:
    return Argument(ArgumentKind.TENSOR, place, offset)


def scratch(place: int, offset: int = 0) -> Argument:
    return Argument(ArgumentKind.SCRATCH, place, offset)


def number(value: int) -> Argument:
    return Argument(ArgumentKind.INTEGER, value)
