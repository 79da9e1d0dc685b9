# SPDX-License-Identifier: Apache-2.0
"""The doctor's questions about NVIDIA devices and the tools that look into them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import Config
from ..errors import KernelwrightError, PrerequisiteError
from .finding import Finding, Severity

if TYPE_CHECKING:
    from ..sandbox.run.device.nvml import Device, Snapshot

NOT_NEEDED = "none is needed: --target cpu works without one"


def gpu(config: Config, nvml: Any = None) -> Iterator[Finding]:
    """Every device as the driver tells it, and whether it can be used now."""
    from ..sandbox.run.device import nvml as facts

    try:
        with facts.open_nvml(nvml) as module:
            found = facts.devices(module)
            for device in found:
                yield _device(config, device, facts.snapshot(module, device.uuid))
    except PrerequisiteError as error:
        yield Finding("gpu", Severity.WARN, str(error), error.hint)
        return
    if not found:
        yield Finding("gpu", Severity.WARN, "the driver shows no device", NOT_NEEDED)
        return
    yield from _check_numbering(config, found)
    yield from _reach(found[0])
    yield from _check_loading(config, found[0])


def _check_numbering(config: Config, found: list[Device]) -> Iterator[Finding]:
    """CUDA numbers devices by speed unless CUDA_DEVICE_ORDER is set, and nvidia-smi by place."""
    is_mixed = len({device.name for device in found}) > 1
    if is_mixed and any(word.isdecimal() for word in config.devices or ()):
        yield Finding(
            "gpu",
            Severity.WARN,
            f"devices {', '.join(config.devices or ())} are taken by nvidia-smi's numbers; other "
            "programs count different devices by speed",
            "name them by UUID (nvidia-smi -L), or set CUDA_DEVICE_ORDER=PCI_BUS_ID everywhere",
        )


def _device(config: Config, device: Device, now: Snapshot) -> Finding:
    from ..kernelbench.targets import ARCHITECTURES
    from ..sandbox.run.device.lease import DeviceBook

    words = [
        device.name,
        device.architecture,
        f"{device.memory_bytes / 2**30:.0f} GiB",
        f"driver {device.driver}",
    ]
    words += [f"{now.temperature_c} °C"] if now.temperature_c is not None else []
    if now.power_w is not None and device.power_limit_w is not None:
        words.append(f"{now.power_w:.0f} of {device.power_limit_w:.0f} W")
    words += [f"ECC {'on' if device.has_ecc else 'off'}"] if device.has_ecc is not None else []
    text = ", ".join(words)
    if device.architecture not in ARCHITECTURES:
        return Finding(
            "gpu",
            Severity.WARN,
            f"{text}; kernels cannot be built for it",
            f"use one of {', '.join(ARCHITECTURES)}",
        )
    book = DeviceBook.in_cache(config.cache_dir)
    note = book.why_quarantined(device.uuid)
    if note is not None:
        return Finding(
            "gpu",
            Severity.WARN,
            f"{text}; in quarantine: {note.reason}",
            "the next run probes it; if it stays ill, its administrator must look at it",
        )
    if device.has_mig:
        return Finding(
            "gpu",
            Severity.WARN,
            f"{text}; it is divided into MIG instances",
            "give the container one instance, or a whole device: counters and clocks are shared",
        )
    held = book.holder(device.uuid)
    busy = f"; held by {held}" if held else ""
    others = f"; {len(now.processes)} processes compute on it" if now.processes else ""
    return Finding("gpu", Severity.PASS, text + busy + others)


def _reach(device: Device) -> Iterator[Finding]:
    """Whether a runner could get to it: the driver's library and the nodes."""
    from ..sandbox.run.device.device_files import access

    try:
        found = access(device)
    except KernelwrightError as error:
        yield Finding("gpu", Severity.WARN, str(error), error.hint)
        return
    nodes = ", ".join(node.name for node in found.nodes) or "no device nodes"
    yield Finding("gpu", Severity.PASS, f"{found.library}; {nodes}")


def _check_loading(config: Config, device: Device) -> Iterator[Finding]:
    """Whether the driver loads what our compilers make."""
    from ..kernelbench.languages import languages_on
    from ..kernelbench.targets import target_of
    from ..sandbox.builders import toolchain
    from ..sandbox.builders.compatibility import compiler_for, major_of

    told = f"CUDA {device.cuda // 1000}.{device.cuda % 1000 // 10}" if device.cuda else "unknown"
    for language in languages_on(target_of(device.architecture)):
        try:
            toolchain.prefer(config.cuda_home, config.cuda_compiler)
            compiler = compiler_for(language.name, major_of(device.cuda))
        except KernelwrightError as error:
            yield Finding("gpu", Severity.WARN, f"{language}: {error}", error.hint)
        else:
            yield Finding(
                "gpu", Severity.PASS, f"{language}: {compiler}; the driver's release is {told}"
            )


def ncu(_: Config, search: str | None = None, parameters: Path | None = None) -> Iterator[Finding]:
    """Nsight Compute, and whether the driver lets it read counters."""
    import os

    from ..verifier.profile import nsight

    found = nsight.find_ncu(search)
    if found is None:
        yield Finding(
            "ncu",
            Severity.WARN,
            "Nsight Compute is not installed: profiles rest on timings",
            "apt-get install nsight-compute, or put the toolkit's ncu on the PATH",
        )
        return
    text = f"Nsight Compute {found.version} at {found.path}"
    restricted = nsight.counters_are_restricted(parameters or nsight.PARAMETERS)
    if restricted and os.geteuid() != 0:
        yield Finding(
            "ncu", Severity.WARN, f"{text}; counters are for administrators", nsight.ALLOW
        )
    else:
        yield Finding("ncu", Severity.PASS, text)


def sanitizer(_: Config, search: str | None = None) -> Iterator[Finding]:
    """compute-sanitizer, which looks at device code before it is promoted."""
    from ..verifier.stands import device_sanitizer

    found = device_sanitizer.find(search)
    if found is None:
        yield Finding(
            "sanitizer",
            Severity.WARN,
            "compute-sanitizer is not installed: device code is promoted without it, and the "
            "verdict says so",
            "apt-get install cuda-sanitizer, or put the toolkit's compute-sanitizer on the PATH",
        )
    else:
        yield Finding("sanitizer", Severity.PASS, str(found))
