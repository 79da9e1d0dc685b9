"""The referee's three ways of judging, opened for tests."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.sandbox.run.device.device_files import DeviceFiles
from kernelwright.tests.sandbox.run.device.fake_driver import fake_access
from kernelwright.tests.sandbox.run.device.fake_nvml import H200, FakeNvml
from kernelwright.traces.records import Status, Verdict
from kernelwright.verifier import evaluation
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.stands.leased import Machine
from kernelwright.verifier.stands.opening import open_stand
from kernelwright.verifier.stands.stand import Stand
from kernelwright.verifier.stands.verdict_draft import Draft

PROBLEM = "bias_gelu"
BUSY_MACHINE = {
    "two clocks",
    "CPU time ahead of the gate",
    "CPU time within calls",
    "roofline floor",
}
"""Checks of a timing that a busy machine can fail."""


def task(cache: Path, target: str = "cpu", *languages: str) -> Task:
    """On the tiny workload, held against one baseline."""
    return Task(
        problem=PROBLEM,
        workload=registry.get(PROBLEM).workload("tiny"),
        target=target,
        languages=languages,
        cache_dir=str(cache),
        baselines=("torch eager",),
    )


def opened(of: Task, machine: Machine | None = None) -> Stand:
    """Skips where this machine lacks what it takes."""
    try:
        return open_stand(of, machine or Machine(allowed=()))
    except PrerequisiteError as error:
        pytest.skip(str(error))


def machine(library: Path, broken: str = "", **told: object) -> Machine:
    """One fake H200, whose driver is broken as asked and tells this through NVML."""
    return machine_by(fake_access(library, {"FAKE_CUDA": broken} if broken else {}), **told)


def machine_by(way: DeviceFiles, **told: object) -> Machine:
    """One fake H200 that is reached so."""
    return Machine(FakeNvml([{**H200, **told}]), lambda _: way, "cpu")


def look(stand: Stand, order: Order, seed: bytes = b"a seed of 16 byte") -> Verdict:
    """One look: what is SUSPECT is not looked at again."""
    return evaluation.look(stand, Draft(order, stand.session, seed))


def on_device(kernel: str) -> str:
    """A candidate whose kernel the fake driver has under this name."""
    return f"""/*---
[[launch]]
kernel = "{kernel}"
grid = ["cdiv(M * N, 256)"]
block = [256]
args = ["M", "N", "x", "bias", "y"]
---*/
extern "C" __global__ void {kernel}(int M, int N, const float* x, const float* bias, float* y) {{
    const long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (long)M * N) y[i] = x[i] + bias[i % N];
}}
"""


def checks_of(verdict: Verdict) -> str:
    """The names of the checks in their order, without the workloads they were made on."""
    names = ("correct" if c.name.startswith("correct on") else c.name for c in verdict.checks)
    return ", ".join(name for name, _ in itertools.groupby(names))


def is_as_expected(verdict: Verdict, status: Status) -> bool:
    """Whether it has the status; where not, a busy machine spoilt its timing and nothing else."""
    if verdict.status is status:
        return True
    assert status in (Status.SCREENED, Status.VERIFIED), verdict.reasons
    assert verdict.status is Status.SUSPECT, verdict.reasons
    assert {c.name for c in verdict.checks if not c.passed} <= BUSY_MACHINE, verdict.reasons
    return False
