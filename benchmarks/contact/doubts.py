"""What speaks against measuring on a device, seen before anything is begun on it."""

from __future__ import annotations

from typing import Any

from kernelwright.sandbox.run.device import nvml


def why_unusable(device: nvml.Device) -> str:
    """Why nothing can be measured on it at all; empty: nothing is known."""
    if device.has_mig:
        return f"{device.name} is divided into MIG instances"
    if device.compute_mode not in (None, nvml.ComputeMode.DEFAULT):
        mode = nvml.ComputeMode(device.compute_mode).name.lower().replace("_", " ")
        return f"{device.name} is in the compute mode {mode}"
    return ""


def list_doubts(module: Any, device: nvml.Device) -> list[str]:
    """All that makes figures of it doubtful now."""
    found = [why_unusable(device)]
    seen = nvml.snapshot(module, device.uuid)
    if seen.processes:
        count = len(seen.processes)
        found.append(f"{count} other process{'es' * (count > 1)} computed on the device")
    for reason, words in nvml.SLOWDOWN.items():
        if seen.reasons is not None and reason in seen.reasons:
            found.append(f"its clocks are held down by {words}")
    return [words for words in found if words]
