"""What leads the reason of a wrong Triton kernel: the line, and what would make it right."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.tests.court import Court
from kernelwright.traces.records import Status

BUGS = Path(__file__).parent.parent / "hostile" / "triton_bugs" / "bug"
PADDED = """
import torch
import triton
import triton.language as tl


@triton.jit
def norm(x, g, b, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * N + at, mask=at < N, other=0.0)
    d = v - tl.sum(v, 0) / N
    r = 1.0 / tl.sqrt(tl.sum(d * d, 0) / N + 1e-5)
    w = tl.load(g + at, mask=at < N, other=0.0)
    c = tl.load(b + at, mask=at < N, other=0.0)
    tl.store(y + row * N + at, d * r * w + c, mask=at < N)


def run(M, N, x, gamma, beta):
    y = torch.empty_like(x)
    norm[(M,)](x, gamma, beta, y, N, BLOCK=triton.next_power_of_2(N))
    return y
"""
NO_OTHER = """
import torch
import triton
import triton.language as tl


@triton.jit
def norm(x, g, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * N + at, mask=at < N)
    r = 1.0 / tl.sqrt(tl.sum(v * v, 0) / N + 1e-6)
    w = tl.load(g + at, mask=at < N, other=0.0)
    tl.store(y + row * N + at, v * r * w, mask=at < N)


def run(M, N, x, gamma):
    y = torch.empty_like(x)
    norm[(M,)](x, gamma, y, N, BLOCK=triton.next_power_of_2(N))
    return y
"""
CAUSES = {
    "wrong_identity": ("softmax", 'right with other=-float("inf")', "tl.load(x"),
    "reduced_precision": ("gemm", 'right with input_precision="ieee"', "tl.dot("),
    "uninitialised_accumulator": ("gemm", "set it to zero before", "tl.atomic_add("),
    "missing_tail": ("rmsnorm", "", "tl.store("),
    "wrong_program_id": ("gemm", "C[", "tl.store("),
    "padded": ("layernorm", "the first wrong answer", "tl.store("),
    "no_other": ("rmsnorm", "undefined without other= and reach the answer", "tl.load(x"),
}
SOURCES = {"padded": PADDED, "no_other": NO_OTHER}


@pytest.mark.slow
@pytest.mark.parametrize("name", CAUSES)
def test_the_line_leads_the_reason(court: Court, name: str) -> None:
    problem, words, code = CAUSES[name]
    source = SOURCES.get(name) or (BUGS / f"{name}.py").read_text("utf-8")
    verdict = court.look(source, problem, "triton", seed=b"causes")
    assert verdict.status is Status.INCORRECT
    reason = verdict.reasons[0]
    assert reason.startswith("line "), reason
    assert words in reason
    line = int(reason.removeprefix("line ").partition(":")[0])
    assert code in source.splitlines()[line - 1]
    # The figure of the gate follows.
    assert "; " in reason
