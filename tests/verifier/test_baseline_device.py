"""What baselines on a device are held to, as far as a machine without one can tell."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelwright.kernelbench.problem import BaselineCall
from kernelwright.verifier.baselines import device


def test_baselines_compute_as_exactly_as_candidates_must() -> None:
    said: list[str] = []
    matmul = SimpleNamespace(
        allow_tf32=True,
        allow_fp16_reduced_precision_reduction=True,
        allow_bf16_reduced_precision_reduction=True,
    )
    cudnn = SimpleNamespace(allow_tf32=True)
    torch = SimpleNamespace(
        set_float32_matmul_precision=said.append,
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=matmul), cudnn=cudnn),
    )
    device._demand_exactness(torch, "fp32-sums")
    assert said == ["highest"]
    assert not any(vars(matmul).values())
    assert not cudnn.allow_tf32
    device._demand_exactness(torch, "tf32")
    assert said == ["highest", "high"]
    assert (matmul.allow_tf32, cudnn.allow_tf32) == (True, True)
    assert not matmul.allow_fp16_reduced_precision_reduction


def test_a_peak_is_measured_of_each_arithmetic_that_torch_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(device, "REPEATS", 1)
    tried = object.__new__(device.TorchDevice)
    vars(tried).update(_torch=torch, _name="cpu")
    found = tried._products(32)
    # TF32 is the tensor cores' alone.
    assert found.keys() == {"fp32", "fp16", "bf16", "int8"}
    assert all(rate > 0 for rate in found.values())


class SimulatedDevice:
    """Host and device as two clocks, in microseconds: the host enqueues, the device comes after."""

    FLUSH_US = 80.0

    def __init__(self) -> None:
        self.host = self.device = 0.0

    def enqueue(self, takes_us: float) -> None:
        self.device = max(self.device, self.host) + takes_us

    def wait(self) -> None:
        self.host = max(self.host, self.device)

    def event(self, enable_timing: bool) -> Any:
        assert enable_timing
        at = SimpleNamespace(us=0.0)

        def record() -> None:
            self.enqueue(0.0)
            at.us = self.device

        return SimpleNamespace(
            at=at,
            record=record,
            query=lambda: self.host >= at.us,
            elapsed_time=lambda last: (last.at.us - at.us) / 1e3,
        )

    def torch_device(self) -> device.TorchDevice:
        found = object.__new__(device.TorchDevice)
        found._torch = SimpleNamespace(
            cuda=SimpleNamespace(Event=self.event, synchronize=self.wait)
        )
        found._name, found._covers, found._kept = "cuda", {}, []
        found._flush = SimpleNamespace(fill_=lambda _: self.enqueue(self.FLUSH_US))
        return found


def call(simulated: SimulatedDevice, host_us: float, kernel_us: float) -> Callable[[], None]:
    def thunk() -> None:
        simulated.host += host_us
        simulated.enqueue(kernel_us)

    return thunk


@pytest.mark.parametrize("host_us", [5.0, 79.0, 400.0, 3000.0])
def test_a_baseline_is_not_charged_for_what_its_launches_take_the_host(host_us: float) -> None:
    """torch.compile needs 15 µs for softmax on an H100, and its host now and then 300."""
    simulated = SimulatedDevice()
    thunk = call(simulated, host_us, 15.0)
    timed = simulated.torch_device()
    assert [timed.time_ns(thunk) for _ in range(3)] == pytest.approx([15_000] * 3, abs=1)


def test_inputs_of_a_warm_call_are_copied_ahead_of_it_and_not_timed() -> None:
    simulated = SimulatedDevice()
    timed, copied = simulated.torch_device(), []

    def copy(kept: str) -> None:
        simulated.enqueue(30.0)
        copied.append(kept)

    timed._kept = [(SimpleNamespace(copy_=copy), name) for name in ("x", "gamma")]
    thunk = call(simulated, 5.0, 15.0)
    assert timed.time_ns(thunk) == pytest.approx(15_000, abs=1)
    assert copied == ["x", "gamma"]


def test_what_is_uploaded_to_a_warm_device_is_kept_beside() -> None:
    torch = pytest.importorskip("torch")
    x, y = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    given = BaselineCall({"M": 2, "N": 3}, {"x": x}, {"y": y})
    for is_warm in (True, False):
        held = object.__new__(device.TorchDevice)
        vars(held).update(_torch=torch, _name="cpu", _mirrors={}, _kept=[], _is_warm=is_warm)
        held.add(given)
        x += 6
        held.upload(given)
        assert [copy.tolist() for _, copy in held._kept] == [x.tolist()] * is_warm


def test_a_host_that_is_late_once_is_asked_again() -> None:
    simulated = SimulatedDevice()
    late = iter([20.0, 20.0, 700.0, *[20.0] * 9])
    timed = simulated.torch_device()

    def thunk() -> None:
        call(simulated, next(late), 15.0)()

    assert [timed.time_ns(thunk) for _ in range(4)] == pytest.approx([15_000] * 4, abs=1)


def test_a_call_that_waits_for_the_device_is_timed_with_its_host() -> None:
    simulated = SimulatedDevice()
    timed = simulated.torch_device()

    def thunk() -> None:
        simulated.wait()
        call(simulated, 200.0, 15.0)()

    assert timed.time_ns(thunk) == pytest.approx(215_000, abs=1)
    assert timed._covers[thunk] == device.MOST_FLUSHES
