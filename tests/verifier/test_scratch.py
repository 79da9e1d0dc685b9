"""Scratch: what the documents promise is what a candidate gets, on real sizes too."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Structure
from kernelwright.sandbox.plan.limits import MAX_SCRATCH, MAX_SCRATCH_BYTES
from kernelwright.sandbox.run.arena import Arena, Extra, footprint, room
from kernelwright.tests.court import Court
from kernelwright.traces.records import Depth, Status, Verdict

COPIED = """\
/*---
language = "cuda"

{buffers}
[[launch]]
kernel = "first"
grid = ["cdiv(M * N, 128)"]
block = [128]
args = ["M", "N", "x", "bias", {names}]

[[launch]]
kernel = "second"
grid = ["cdiv(M * N, 128)"]
block = [128]
args = ["M", "N", {names}, "y"]
---*/
extern "C" __global__ void first(int M, int N, const float* x, const float* bias, {parameters}) {{
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= M * N) return;
    const float v = x[i] + bias[i % N];
{writes}
}}

extern "C" __global__ void second(int M, int N, {parameters}, float* y) {{
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= M * N) return;
    const float v = {reads};
    y[i] = v / (1.0f + expf(-1.59576912f * v * (1.0f + 0.044715f * v * v)));
}}
"""


def source(shapes: list[str]) -> str:
    """bias_gelu by way of work buffers of these shapes, all of them used."""
    names = [f"w{number}" for number in range(len(shapes))]
    return COPIED.format(
        buffers="\n".join(
            f'[scratch.{name}]\ndtype = "float32"\nshape = [{shape}]\n'
            for name, shape in zip(names, shapes, strict=True)
        ),
        names=", ".join(f'"{name}"' for name in names),
        parameters=", ".join(f"float* {name}" for name in names),
        writes="\n".join(f"    {name}[i] = v;" for name in names),
        reads="".join(f"i % {len(names)} == {n} ? {name}[i] : " for n, name in enumerate(names))
        + "0.0f",
    )


def judged(court: Court, shapes: list[str]) -> Verdict:
    return court.look(
        source(shapes),
        "bias_gelu",
        "cuda",
        Depth.SCREEN,
        workload="",
        seed=b"scratch buffers!",
    )


@pytest.mark.parametrize(
    "shapes",
    [
        ['"M", "N"'] * MAX_SCRATCH,
        pytest.param([f'"max(M * N, {48 << 20})"'], marks=pytest.mark.slow),
        ['"12 * M", "N"'],
    ],
    ids=["as many buffers as are promised", "one of 192 MiB", "a dozen times the output"],
)
def test_what_is_promised_is_lent(court: Court, shapes: list[str]) -> None:
    verdict = judged(court, shapes)
    assert verdict.status is Status.SCREENED, verdict.reasons


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (['"M", "N"'] * (MAX_SCRATCH + 1), f"at most {MAX_SCRATCH}"),
        ([f'"{MAX_SCRATCH_BYTES // 4 + 1}"'], f"at most {MAX_SCRATCH_BYTES} "),
    ],
    ids=["buffers", "bytes"],
)
def test_more_is_refused_in_a_sentence(court: Court, shapes: list[str], words: str) -> None:
    verdict = judged(court, shapes)
    assert verdict.status in (Status.RESOURCE, Status.BUILD_FAILED)
    assert words in verdict.reasons[0]


def test_a_call_that_does_not_fit_is_not_placed() -> None:
    problem = registry.get("bias_gelu")
    structure: Structure = problem.structure(problem.workload("tiny"))
    inputs, outputs = footprint(problem, structure.axes)
    large = Extra(b"\0" * 64, (1 << 20, 1 << 20))
    assert room(large) > 2 << 20
    with Arena(inputs + 4096, outputs + (1 << 20)) as small:
        assert small.fits(problem, structure.axes)
        assert not small.fits(problem, structure.axes, large)
    with Arena(inputs + 8192, outputs + room(large)) as enough:
        slot = enough.place(problem, structure, extra=large)
        assert [len(view) for view in slot.scratch] == [1 << 20, 1 << 20]
        assert all(isinstance(view, np.ndarray) for view in slot.scratch)
