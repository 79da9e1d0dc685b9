"""The whole referee on the device: CUDA candidates are verified and timed, and fail as they should.

What is asserted of figures are bounds that hold on any device.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.sandbox.run.device import nvml
from kernelwright.tests.gpu.attempt import JAIL, is_weak_accepted
from kernelwright.tests.gpu.kernels import INDEX, source
from kernelwright.traces.records import Depth, Status
from kernelwright.verifier.evaluation import evaluate
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.stands.opening import open_stand
from kernelwright.verifier.stands.stand import Stand


@pytest.fixture(scope="module")
def stand(devices: list[nvml.Device], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    # A lease lies in the cache: the one that other tests hold is not in this one's way.
    cache = tmp_path_factory.mktemp("judged-cache")
    cache.chmod(0o755)
    problem = registry.get("bias_gelu")
    task = Task(
        problem=problem.name,
        workload=problem.workload("1024x3072"),
        target=devices[0].architecture,
        languages=("cuda",),
        cache_dir=str(cache),
        jail=os.environ.get(JAIL) or "auto",
        accept_weak_isolation=is_weak_accepted(),
    )
    try:
        opened = open_stand(task)
        opened.wait_prepared()
    except PrerequisiteError as error:
        pytest.skip(str(error))
    yield opened
    opened.close()


def test_an_honest_kernel_is_verified(stand: Stand, honest: str) -> None:
    verdict = evaluate(stand, Order(source=honest, language="cuda", protocol=Depth.CONFIRM))
    assert verdict.status is Status.VERIFIED, verdict.reasons
    assert not verdict.emulated
    assert verdict.measurement is not None
    assert verdict.measurement.roofline is not None
    assert 0 < verdict.measurement.roofline < 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("if (i < (long)M * N) y[i] = x[i] + bias[i % N];", Status.INCORRECT),
        ("y[i + (1l << 40)] = 0;", Status.CRASHED),
        ("while (((volatile float*)y)[0] != 12345.0f) {}", Status.TIMED_OUT),
    ],
)
def test_a_bad_kernel_is_a_result(stand: Stand, body: str, status: Status) -> None:
    verdict = evaluate(stand, Order(source=source(INDEX + body), language="cuda"))
    assert verdict.status is status, verdict.reasons
