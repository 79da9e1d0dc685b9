"""What the device is, told by two drivers' interfaces, and that it is well."""

from __future__ import annotations

from pathlib import Path

from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.sandbox.run.device import nvml
from kernelwright.sandbox.run.device.device_files import DeviceFiles
from kernelwright.sandbox.run.device.health import probe


def test_the_device_is_well_and_both_interfaces_agree(
    way: DeviceFiles, device: nvml.Device, cache: Path
) -> None:
    health = probe(Workshop(BareJail(), cache), way)
    assert health.is_well, health.reason
    facts = health.facts
    assert facts["name"] == device.name
    assert 10 * int(facts["major"]) + int(facts["minor"]) == device.capability
    assert abs(int(facts["memory_bytes"]) - device.memory_bytes) < 0.1 * device.memory_bytes
    assert int(facts["l2_bytes"]) > 0
    assert int(facts["sms"]) > 0


def test_a_snapshot_has_clocks(device: nvml.Device) -> None:
    with nvml.open_nvml() as module:
        seen = nvml.snapshot(module, device.uuid)
    assert seen.sm_clock_mhz is None or seen.sm_clock_mhz > 0
    assert seen.free_bytes is None or 0 < seen.free_bytes <= device.memory_bytes
    assert not nvml.explain_unstable(seen, seen) or seen.processes or seen.reasons


def test_only_the_leased_device_is_visible(
    way: DeviceFiles, device: nvml.Device, cache: Path
) -> None:
    """Its number within the process is 0, whatever its number is outside."""
    assert way.ordinal == 0
    assert way.environment["CUDA_VISIBLE_DEVICES"] == device.uuid
    assert probe(Workshop(BareJail(), cache), way).facts["name"] == device.name
