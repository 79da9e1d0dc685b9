"""What leads the reason of a wrong Triton kernel: the line, and what would make it right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.traces.records import Protocol, Status
from kernelwright.verifier import emulation
from kernelwright.verifier.draft import Draft
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.session import Session

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

Judge = Callable[[str, str], tuple[Status, str]]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    cache = tmp_path_factory.mktemp("cache")
    cache.chmod(0o755)
    opened: dict[str, Session] = {}

    def judge(problem: str, source: str) -> tuple[Status, str]:
        if problem not in opened:
            workload = registry.get(problem).workload("tiny")
            task = Task(problem=problem, workload=workload, target="sm_90",
                        languages=("triton",), cache_dir=str(cache))  # fmt: skip
            try:
                opened[problem] = Session.open(task)
            except PrerequisiteError as error:
                pytest.skip(str(error))
        session = opened[problem]
        if not session.is_emulated or session.device is None:
            pytest.skip("this machine has the device")
        order = Order(source=source, language="triton", protocol=Protocol.FULL)
        verdict = emulation.look(Draft(order, session, b"causes"), session.device)
        return verdict.status, verdict.reasons[0] if verdict.reasons else ""

    yield judge
    for session in opened.values():
        session.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", CAUSES)
def test_the_line_leads_the_reason(judge: Judge, name: str) -> None:
    problem, words, code = CAUSES[name]
    source = SOURCES.get(name) or (BUGS / f"{name}.py").read_text("utf-8")
    status, reason = judge(problem, source)
    assert status is Status.INCORRECT
    assert reason.startswith("line "), reason
    assert words in reason
    line = int(reason.removeprefix("line ").partition(":")[0])
    assert code in source.splitlines()[line - 1]
    # The figure of the gate follows.
    assert "; " in reason
