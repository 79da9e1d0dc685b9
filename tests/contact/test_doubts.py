"""What is said of a device before anything is begun on it, each doubt with a cause."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kernelwright.benchmarks.contact.causes import explain
from kernelwright.benchmarks.contact.doubts import list_doubts, why_unusable
from kernelwright.sandbox.run.device import nvml
from kernelwright.tests.sandbox.run.device.fake_nvml import H200, FakeNvml


@pytest.mark.parametrize(
    ("told", "cause", "is_usable"),
    [
        ({"nvmlDeviceGetMigMode": [1, 1]}, "MIG", False),
        ({"nvmlDeviceGetComputeMode": 3}, "compute mode", False),
        (
            {"nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=7)]},
            "other processes",
            True,
        ),
        ({"nvmlDeviceGetCurrentClocksEventReasons": 0x4}, "clocks", True),
    ],
)
def test_each_doubt_has_a_cause(told: dict[str, object], cause: str, is_usable: bool) -> None:
    module = FakeNvml([{**H200, **told}])
    (device,) = nvml.devices(module)
    (words,) = list_doubts(module, device)
    assert explain(words).name == cause
    assert (why_unusable(device) == "") == is_usable


def test_of_a_device_that_is_free_and_whole_nothing_is_doubted() -> None:
    module = FakeNvml()
    assert list_doubts(module, nvml.devices(module)[0]) == []
