"""Interpreted candidates whose work buffers hold narrow elements, by a plan and by host code."""

from __future__ import annotations

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Structure
from kernelwright.sandbox.isolation.model import Jail
from kernelwright.tests.interpreting import interpreted

SOFTMAX = registry.get("softmax")
# An odd number of elements: rows meet inside words.
SMALL = Structure({"M": 5, "N": 33})
KERNELS = """
import torch
import triton
import triton.language as tl


@triton.jit
def split(x, high, low, total, TYPE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < total)
    tl.store(high + at, v.to(TYPE), mask=at < total)
    tl.store(low + at, v - v.to(TYPE).to(tl.float32), mask=at < total)


@triton.jit
def softmax(high, low, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < N
    v = tl.load(high + row * N + at, mask=mask, other=-float("inf")).to(tl.float32)
    v += tl.load(low + row * N + at, mask=mask, other=0.0)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * N + at, e / tl.sum(e, 0), mask=mask)
"""
PLAN = '''"""
---
[[launch]]
kernel = "split"
grid = ["cdiv(M * N, 33)"]
args = ["x", "high", "low", "M * N"]
constexpr = {TYPE = "TYPE_HERE", BLOCK = 64}
[[launch]]
kernel = "softmax"
grid = ["M"]
args = ["high", "low", "y", "N"]
constexpr = {BLOCK = 64}
[scratch.high]
shape = ["M", "N"]
dtype = "DTYPE_HERE"
[scratch.low]
shape = ["M", "N"]
dtype = "float32"
---
"""
'''


def planned(dtype: str, written: str) -> str:
    plan = PLAN.replace("DTYPE_HERE", dtype).replace("TYPE_HERE", written)
    return plan + KERNELS.replace("tl.program_id(0) * BLOCK", "tl.program_id(0) * 33").replace(
        "at < total", "(at < total) & (at < tl.program_id(0) * 33 + 33)"
    )


@pytest.mark.jail
@pytest.mark.parametrize(
    ("dtype", "written"),
    [("float16", "tl.float16"), ("bfloat16", "bf16"), ("float8_e4m3fn", "tl.float8e4nv")],
)
def test_a_plan_may_have_narrow_work_buffers(dtype: str, written: str, jail: Jail) -> None:
    ran = interpreted(planned(dtype, written), SOFTMAX, [SMALL], jail, calls=3)
    assert ran.status is None, (ran.reason, ran.log[-2000:])
    assert ran.right == 3


@pytest.mark.jail
def test_programs_that_meet_in_a_narrow_element_are_a_race(jail: Jail) -> None:
    source = (
        planned("float16", "tl.float16")
        .replace("0) * 33 + 33)", "0) * 33 + 34)")
        .replace("v.to(TYPE), mask", "(v + tl.program_id(0)).to(TYPE), mask")
    )
    ran = interpreted(source, SOFTMAX, [SMALL], jail, calls=1)
    assert "in no order" in ran.reason
    assert "(high)" in ran.reason
