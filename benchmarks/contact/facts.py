"""The first part: what the device is, how it stands, and with what it will be worked with."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib import metadata
from typing import Any

from kernelwright.config import Config
from kernelwright.errors import KernelwrightError
from kernelwright.sandbox.builders import toolchain
from kernelwright.sandbox.builders.compatibility import major_of
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.sandbox.run.device import nvml
from kernelwright.sandbox.run.device.device_files import access
from kernelwright.sandbox.run.device.health import probe
from kernelwright.verifier.profile import nsight
from kernelwright.verifier.stands import device_sanitizer

from .work import Work

PACKAGES = (
    "torch",
    "triton",
    "numpy",
    "nvidia-ml-py",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-runtime",
    "nvidia-cuda-nvdisasm",
    "cuda-bindings",
    "cupy-cuda13x",
)
ASKED = {
    "PCIe generation": ("nvmlDeviceGetCurrPcieLinkGeneration",),
    "PCIe lanes": ("nvmlDeviceGetCurrPcieLinkWidth",),
    "PCIe generation at most": ("nvmlDeviceGetMaxPcieLinkGeneration",),
    "PCIe lanes at most": ("nvmlDeviceGetMaxPcieLinkWidth",),
    "least and largest power limit, mW": ("nvmlDeviceGetPowerManagementLimitConstraints",),
    "default power limit, mW": ("nvmlDeviceGetPowerManagementDefaultLimit",),
    "SM clock of applications, MHz": ("nvmlDeviceGetApplicationsClock", 1),
    "memory clock of applications, MHz": ("nvmlDeviceGetApplicationsClock", 2),
    "bus of the memory, bits": ("nvmlDeviceGetMemoryBusWidth",),
    "VBIOS": ("nvmlDeviceGetVbiosVersion",),
    "ECC errors since the driver came, uncorrected": ("nvmlDeviceGetTotalEccErrors", 1, 0),
}
"""What NVML is asked beside what a Device holds: a function and what it is given."""
UNTOLD = ("uuid",)
"""What tells one device from all others does not belong on a page."""


def collect(work: Work) -> None:
    """Each fact by itself: what one asking meets costs no other."""
    asked: dict[str, Callable[[Work], dict[str, Any]]] = {
        "machine": _machine,
        "packages": _packages,
        "device": _device,
        "now": _now,
        "asked of NVML": _more,
        "probe": _probe,
        "tools": _tools,
        "counters": _counters,
    }
    for unit, ask in asked.items():
        if work.is_kept(unit):
            continue
        try:
            work.keep(unit, facts=ask(work))
        # What a strange machine's libraries raise is not known; the other facts are wanted anyway.
        except Exception as error:
            hint = getattr(error, "hint", "")
            work.fail(unit, f"{type(error).__name__}: {error}\n{hint}")


def _machine(_: Work) -> dict[str, Any]:
    return {
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()),
        "CPUs": len(os.sched_getaffinity(0)),
        "memory, GiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "user is root": os.geteuid() == 0,
        "in an environment": sys.prefix != sys.base_prefix,
    }


def _packages(_: Work) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def _device(_: Work) -> dict[str, Any]:
    with nvml.open_nvml() as module:
        facts = asdict(nvml.devices(module)[0])
    for name in UNTOLD:
        facts.pop(name)
    return facts


def _now(_: Work) -> dict[str, Any]:
    with nvml.open_nvml() as module:
        seen = nvml.snapshot(module, nvml.devices(module)[0].uuid)
    facts = asdict(seen)
    facts["reasons"] = None if seen.reasons is None else seen.reasons.name or "none"
    facts["processes"] = None if seen.processes is None else len(seen.processes)
    return facts


def _more(_: Work) -> dict[str, Any]:
    with nvml.open_nvml() as module:
        handle = module.nvmlDeviceGetHandleByIndex(nvml.devices(module)[0].index)
        found: dict[str, Any] = {}
        for words, (function, *given) in ASKED.items():
            try:
                value = getattr(module, function)(handle, *given)
            except (module.NVMLError, AttributeError):
                value = None
            found[words] = value.decode() if isinstance(value, bytes) else value
    return found


def _probe(work: Work) -> dict[str, Any]:
    with nvml.open_nvml() as module:
        device = nvml.devices(module)[0]
    health = probe(Workshop(BareJail(), work.folder), access(device))
    if not health.is_well:
        raise KernelwrightError(health.reason)
    return dict(health.facts)


def _tools(_: Work) -> dict[str, Any]:
    with nvml.open_nvml() as module:
        device = nvml.devices(module)[0]
    found: dict[str, Any] = {}
    try:
        found["NVRTC"] = toolchain.find_nvrtc(newest=major_of(device.cuda)).version
    except KernelwrightError as error:
        found["NVRTC"] = f"none that will do: {error}"
    ncu = nsight.find_ncu()
    found["Nsight Compute"] = ncu.version if ncu else None
    found["compute-sanitizer"] = device_sanitizer.find() is not None
    found["jail asked for"] = Config().jail
    return found


def _counters(_: Work) -> dict[str, Any]:
    restricted = nsight.counters_are_restricted()
    return {
        "kept to administrators, as the driver says": restricted,
        "we may read them": None if restricted is None else not restricted or os.geteuid() == 0,
    }
