"""What NVML's answers are made into, and what counts as a disturbed block."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.run.device import nvml
from kernelwright.tests.sandbox.run.device.fake_nvml import H200, FakeNvml

pytestmark = pytest.mark.jail

UUID = H200["nvmlDeviceGetUUID"]


def test_a_device_is_read_whole() -> None:
    with nvml.open_nvml(FakeNvml()) as module:
        (device,) = nvml.devices(module)
    assert (device.name, device.architecture, device.minor) == ("NVIDIA H200", "sm_90", 3)
    assert (device.has_ecc, device.has_mig, device.is_persistent) == (True, False, True)
    assert (device.power_limit_w, device.sm_clock_mhz, device.memory_clock_mhz) == (700, 1980, 3201)
    assert device.driver == "580.95.05"


def test_old_bindings_answer_in_bytes() -> None:
    table = {**H200, "nvmlDeviceGetUUID": b"GPU-1", "nvmlDeviceGetName": b"Tesla T4"}
    (device,) = nvml.devices(FakeNvml([table], driver=b"470.1"))
    assert (device.uuid, device.name, device.driver) == ("GPU-1", "Tesla T4", "470.1")


def test_what_a_driver_does_not_tell_is_not_known() -> None:
    needed = ("UUID", "Name", "CudaComputeCapability", "MemoryInfo")
    table = {f"nvmlDeviceGet{name}": H200[f"nvmlDeviceGet{name}"] for name in needed}
    fake = FakeNvml([table])
    (device,) = nvml.devices(fake)
    assert (device.minor, device.has_ecc, device.power_limit_w) == (None, None, None)
    seen = nvml.snapshot(fake, UUID)
    assert (seen.sm_clock_mhz, seen.reasons, seen.processes) == (None, None, None)
    assert nvml.explain_unstable(seen, seen) == []


def test_a_device_that_cannot_be_asked_is_passed_over() -> None:
    """A container sees the number of all devices, and no more than that of most."""
    hidden = {"nvmlDeviceGetUUID": "GPU-0"}
    (device,) = nvml.devices(FakeNvml([hidden, dict(H200)]))
    assert (device.index, device.uuid) == (1, UUID)


def test_memory_that_is_shared_with_the_host_has_no_figure() -> None:
    table = {k: v for k, v in H200.items() if k != "nvmlDeviceGetMemoryInfo"}
    (device,) = nvml.devices(FakeNvml([table]))
    assert device.memory_bytes == 0


def test_the_reasons_are_found_under_their_old_name() -> None:
    table = {k: v for k, v in H200.items() if k != "nvmlDeviceGetCurrentClocksEventReasons"}
    table["nvmlDeviceGetCurrentClocksThrottleReasons"] = 0x8
    assert nvml.snapshot(FakeNvml([table]), UUID).reasons == nvml.Reason.HARDWARE_SLOWDOWN


def test_without_a_driver_the_reason_and_the_remedy_are_told() -> None:
    fake = FakeNvml(fails_with="NVML Shared Library Not Found")
    with (
        pytest.raises(PrerequisiteError, match="Shared Library Not Found") as found,
        nvml.open_nvml(fake),
    ):
        pass
    assert "driver" in found.value.hint
    assert fake.is_open == 0


def test_it_is_closed_whatever_happens() -> None:
    fake = FakeNvml()
    with pytest.raises(ZeroDivisionError), nvml.open_nvml(fake):
        raise ZeroDivisionError
    assert fake.is_open == 0


@pytest.fixture
def calm() -> nvml.Snapshot:
    return nvml.snapshot(FakeNvml(), UUID)


def test_a_calm_block_is_stable(calm: nvml.Snapshot) -> None:
    assert (calm.temperature_c, calm.power_w, calm.energy_j) == (41, 312.45, 9000.0)
    assert nvml.explain_unstable(calm, calm) == []
    assert nvml.explain_unstable(calm, replace(calm, sm_clock_mhz=1890)) == []


def busy(*clocks: int, memory: int = 3201) -> list[nvml.Reading]:
    return [nvml.Reading(clock, memory, nvml.Reason(0)) for clock in clocks]


IDLE = nvml.Reading(345, 1593, nvml.Reason.IDLE)


@pytest.mark.parametrize(
    ("bit", "words"),
    [
        (0x4, "the power limit"),
        (0x8, "a slowdown by the hardware"),
        (0x20, "heat (by the driver)"),
        (0x40, "heat (by the hardware)"),
        (0x80, "the power supply's brake"),
    ],
)
def test_each_slowdown_is_named(calm: nvml.Snapshot, bit: int, words: str) -> None:
    slowed = replace(calm, reasons=nvml.Reason(bit))
    for pair in ((calm, slowed), (slowed, calm)):
        assert nvml.explain_unstable(*pair) == [f"clocks were held down by {words}"]


def test_settings_of_clocks_are_no_slowdown(calm: nvml.Snapshot) -> None:
    settings = replace(calm, reasons=nvml.Reason(0x1 | 0x2 | 0x10 | 0x100))
    assert nvml.explain_unstable(calm, settings) == []


def test_clocks_that_fell_in_a_block_are_told_though_the_device_idles_around_it(
    calm: nvml.Snapshot,
) -> None:
    around = replace(calm, sm_clock_mhz=345, reasons=nvml.Reason.IDLE)
    fell = [IDLE, *busy(1980, 1980, 1755, 1740), IDLE]
    assert nvml.explain_unstable(around, around, readings=fell) == [
        "the SM clock fell from 1980 to 1740 MHz (12%)"
    ]
    of_memory = [*busy(1980, 1980), *busy(1980, 1980, memory=2619)]
    assert nvml.explain_unstable(around, around, readings=of_memory) == [
        "the memory clock fell from 3201 to 2619 MHz (18%)"
    ]


@pytest.mark.parametrize(
    "readings",
    [
        busy(345, 1200, 1980, 1980, 1980),  # it rises as work begins
        busy(1980, 1935, 1965, 1920, 1980),  # within the tolerance
        busy(1980, 1980, 1980, 1200, 1980, 1980),  # once, between two kernels
        [IDLE, *busy(1980, 1980), IDLE, IDLE],
        [nvml.Reading(clock, None, None) for clock in (1980, 345, 345)],  # whether idle: not told
        [],
    ],
)
def test_clocks_that_tell_nothing_of_the_block(
    calm: nvml.Snapshot, readings: list[nvml.Reading]
) -> None:
    assert nvml.explain_unstable(calm, calm, readings=readings) == []


def test_clocks_are_read_while_the_block_runs() -> None:
    seen = threading.Event()

    class Watched(FakeNvml):
        def _answer(self, handle: int, asked: tuple[Any, ...]) -> Any:
            if threading.current_thread() is not threading.main_thread():
                seen.set()
            return super()._answer(handle, asked)

    fake = Watched()
    with nvml.watch_device(fake, UUID) as finish:
        assert seen.wait(30)
        assert finish().reasons == ()
    assert not [one for one in threading.enumerate() if one.name == "kw-clocks"]


def test_other_processes_are_counted(calm: nvml.Snapshot) -> None:
    alone, shared = replace(calm, processes=(71,)), replace(calm, processes=(71, 900, 901))
    assert nvml.explain_unstable(alone, alone, own=[71]) == []
    assert nvml.explain_unstable(alone, shared, own=[71]) == [
        "2 other processes computed on the device"
    ]
    assert nvml.explain_unstable(calm, replace(calm, processes=(5,))) == [
        "1 other process computed on the device"
    ]
    # In a container the pids are the host's: only their number can be held against ours.
    assert nvml.explain_unstable(calm, replace(calm, processes=(40071,)), own=[71]) == []
    assert len(nvml.explain_unstable(calm, replace(calm, processes=(40071, 40072)), own=[71])) == 1


def test_a_block_is_watched_from_its_start_to_its_end() -> None:
    fake = FakeNvml()
    with nvml.watch_device(fake, UUID, own=[7]) as finish:
        fake.tables[0]["nvmlDeviceGetComputeRunningProcesses"] = [
            SimpleNamespace(pid=7),
            SimpleNamespace(pid=8),
        ]
        disturbed = finish()
    assert disturbed.before.processes == ()
    assert disturbed.after.processes == (7, 8)
    assert disturbed.reasons == ("1 other process computed on the device",)
