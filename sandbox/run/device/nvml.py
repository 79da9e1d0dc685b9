# SPDX-License-Identifier: Apache-2.0
"""What the driver tells of NVIDIA devices through NVML: what they are, and how they are just now.

Reads only; it never sets a clock, a limit or a mode. NVML is the module `pynvml` of nvidia-ml-py,
or anything with its functions. What a driver does not tell is None, and nothing here decides a
verdict: `explain_unstable` says in sentences why a timing block should be repeated.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import Any, NamedTuple

from ....errors import PrerequisiteError

CLOCK_TOLERANCE = 0.05
"""Clocks that fell by more than this share make a block unstable (gpu.md §4.5)."""
LOW_SHARE = 0.25
"""Of the readings in a block, how many must be so low: one alone may lie between two kernels."""
READING_S = 0.05
"""From one reading of the clocks to the next."""

DRIVER_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
)
"""Where distributions, container runtimes, WSL and NixOS put the driver's libraries."""
_LIBRARY = "libnvidia-ml.so.1"

_CLOCK_SM, _CLOCK_MEMORY = 1, 2
_TEMPERATURE_GPU = 0
_HALF_WIDE = (70, 72, 75, 80)
"""Compute capabilities with 64 fp32 lanes in an SM; later ones have 128."""


class Reason(IntFlag):
    """Why clocks are not at their highest: NVML's bits."""

    IDLE = 0x1
    APPLICATION_CLOCKS = 0x2
    POWER_CAP = 0x4
    HARDWARE_SLOWDOWN = 0x8
    SYNC_BOOST = 0x10
    THERMAL_SLOWDOWN = 0x20
    HARDWARE_THERMAL_SLOWDOWN = 0x40
    POWER_BRAKE = 0x80
    DISPLAY_CLOCKS = 0x100


SLOWDOWN = {
    Reason.POWER_CAP: "the power limit",
    Reason.HARDWARE_SLOWDOWN: "a slowdown by the hardware",
    Reason.THERMAL_SLOWDOWN: "heat (by the driver)",
    Reason.HARDWARE_THERMAL_SLOWDOWN: "heat (by the hardware)",
    Reason.POWER_BRAKE: "the power supply's brake",
}
"""The bits that make a timing unstable."""


class ComputeMode(IntEnum):
    """Who may compute on a device: NVML's numbers."""

    DEFAULT = 0
    EXCLUSIVE_THREAD = 1
    PROHIBITED = 2
    EXCLUSIVE_PROCESS = 3


@dataclass(frozen=True)
class Device:
    """What a device is; none of it changes while the driver is loaded."""

    index: int
    """NVML's number: the order of the PCI bus."""
    uuid: str
    name: str
    capability: int
    """90 for compute capability 9.0."""
    memory_bytes: int
    driver: str
    minor: int | None = None
    """N of /dev/nvidiaN."""
    has_ecc: bool | None = None
    has_mig: bool | None = None
    """Whether it is divided into instances, which are then the devices."""
    is_persistent: bool | None = None
    """Whether the driver stays loaded while nobody uses the device."""
    compute_mode: int | None = None
    """One of ComputeMode. Baselines and candidates are in processes of their own at one time."""
    power_limit_w: float | None = None
    sm_clock_mhz: int | None = None
    """The highest that it can have."""
    memory_clock_mhz: int | None = None
    cuda: int | None = None
    """The release of CUDA that the driver is of: 13000."""
    cores: int | None = None
    """Lanes of fp32 arithmetic of all multiprocessors."""

    @property
    def sms(self) -> int | None:
        """Multiprocessors; None where the driver does not tell the cores."""
        if not self.cores:
            return None
        return self.cores // (64 if self.capability in _HALF_WIDE else 128)

    @property
    def architecture(self) -> str:
        """`sm_90`."""
        return f"sm_{self.capability}"


@dataclass(frozen=True)
class Snapshot:
    """How a device is at one moment."""

    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    reasons: Reason | None
    temperature_c: int | None
    power_w: float | None
    energy_j: float | None
    """Since the driver was loaded."""
    free_bytes: int | None
    processes: tuple[int, ...] | None
    """Pids of what computes on it. In a container they may be those of the host."""


class Reading(NamedTuple):
    """The clocks at one moment of a block."""

    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    reasons: Reason | None

    @property
    def is_busy(self) -> bool:
        """Whether the clocks are those of work; an idle device has its lowest ones."""
        return self.reasons is not None and Reason.IDLE not in self.reasons


@contextmanager
def open_nvml(nvml: Any = None) -> Iterator[Any]:
    """NVML, initialised for the block.

    Raises:
        PrerequisiteError: nvidia-ml-py or the driver is missing, or they do not work together.
    """
    module = nvml or _module()
    try:
        module.nvmlInit()
    except module.NVMLError as error:
        raise PrerequisiteError(
            f"no NVIDIA GPU can be used here ({error})",
            hint="install NVIDIA's driver, or give the container the device (docker --gpus all); "
            "--target cpu needs none",
        ) from error
    try:
        yield module
    finally:
        module.nvmlShutdown()


def devices(nvml: Any) -> list[Device]:
    """Every device that can be asked, in the order of the PCI bus.

    NVML also counts those that a container was not given, and those that fell off the bus.
    """
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            found.append(_device(nvml, index))
        except nvml.NVMLError:
            continue
    return found


def snapshot(nvml: Any, uuid: str) -> Snapshot:
    """How the device is now."""
    ask = _Asking(nvml, nvml.nvmlDeviceGetHandleByUUID(uuid))
    clocks = _reading(ask)
    memory = ask.query("nvmlDeviceGetMemoryInfo")
    processes = ask.query("nvmlDeviceGetComputeRunningProcesses")
    return Snapshot(
        **clocks._asdict(),
        temperature_c=ask.number("nvmlDeviceGetTemperature", _TEMPERATURE_GPU),
        power_w=_scale(ask.number("nvmlDeviceGetPowerUsage"), 1e-3),
        energy_j=_scale(ask.number("nvmlDeviceGetTotalEnergyConsumption"), 1e-3),
        free_bytes=None if memory is None else int(memory.free),
        processes=None if processes is None else tuple(sorted(int(p.pid) for p in processes)),
    )


def explain_unstable(
    before: Snapshot, after: Snapshot, own: Collection[int] = (), readings: Sequence[Reading] = ()
) -> list[str]:
    """Why a block between two snapshots should be repeated; empty where nothing speaks for it.

    Args:
        own: The pids of our own runners.
        readings: Of the clocks while the block ran, in order. Before and after it the device is
            idle or nearly so: of its clocks under work only these tell.
    """
    found = [
        f"clocks were held down by {words}"
        for bit, words in SLOWDOWN.items()
        if any(s.reasons is not None and bit in s.reasons for s in (before, after))
    ]
    busy = [reading for reading in readings if reading.is_busy]
    found += _list_falls("SM", [reading.sm_clock_mhz for reading in busy])
    found += _list_falls("memory", [reading.memory_clock_mhz for reading in busy])
    if others := max(_count_others(before, own), _count_others(after, own)):
        found.append(f"{others} other process{'es' * (others > 1)} computed on the device")
    return found


class Disturbance(NamedTuple):
    """What is known of a timing block on a device."""

    before: Snapshot
    after: Snapshot
    reasons: tuple[str, ...]


@contextmanager
def watch_device(
    nvml: Any, uuid: str, own: Collection[int] = ()
) -> Iterator[Callable[[], Disturbance]]:
    """Takes a snapshot now; what it yields takes the second one and says what happened between.

    In between a thread reads the clocks.
    """
    before = snapshot(nvml, uuid)
    ask = _Asking(nvml, nvml.nvmlDeviceGetHandleByUUID(uuid))
    readings: list[Reading] = []
    is_over = threading.Event()

    def read() -> None:
        while not is_over.wait(READING_S):
            readings.append(_reading(ask))

    def finish() -> Disturbance:
        is_over.set()
        reader.join()
        after = snapshot(nvml, uuid)
        return Disturbance(before, after, tuple(explain_unstable(before, after, own, readings)))

    reader = threading.Thread(target=read, name="kw-clocks", daemon=True)
    reader.start()
    try:
        yield finish
    finally:
        is_over.set()
        reader.join()


def _module() -> Any:
    try:
        import pynvml
    except ImportError as error:
        raise PrerequisiteError(
            "nvidia-ml-py is not installed", hint="pip install nvidia-ml-py"
        ) from error
    # It asks the loader by name, which does not know every folder; a loaded library is found.
    for folder in DRIVER_FOLDERS:
        if (path := Path(folder) / _LIBRARY).exists():
            with suppress(OSError):
                ctypes.CDLL(str(path))
                break
    return pynvml


class _Asking:
    """Questions about one device; one that the driver does not answer is None."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle

    def query(self, function: str, *arguments: int) -> Any:
        if not hasattr(self._nvml, function):
            return None
        try:
            return getattr(self._nvml, function)(self._handle, *arguments)
        except self._nvml.NVMLError:
            return None

    def number(self, function: str, *arguments: int) -> int | None:
        value = self.query(function, *arguments)
        return None if value is None else int(value)

    def switch(self, function: str) -> bool | None:
        """A mode, or the first of the current and the pending one."""
        value = self.query(function)
        if isinstance(value, list | tuple):
            value = value[0]
        return None if value is None else bool(value)


def _device(nvml: Any, index: int) -> Device:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    ask = _Asking(nvml, handle)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    memory = ask.query("nvmlDeviceGetMemoryInfo")
    return Device(
        index=index,
        uuid=_word(nvml.nvmlDeviceGetUUID(handle)),
        name=_word(nvml.nvmlDeviceGetName(handle)),
        capability=10 * major + minor,
        # Where host and device share one memory there is no figure.
        memory_bytes=0 if memory is None else int(memory.total),
        driver=_word(nvml.nvmlSystemGetDriverVersion()),
        minor=ask.number("nvmlDeviceGetMinorNumber"),
        has_ecc=ask.switch("nvmlDeviceGetEccMode"),
        has_mig=ask.switch("nvmlDeviceGetMigMode"),
        is_persistent=ask.switch("nvmlDeviceGetPersistenceMode"),
        compute_mode=ask.number("nvmlDeviceGetComputeMode"),
        power_limit_w=_scale(ask.number("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
        sm_clock_mhz=ask.number("nvmlDeviceGetMaxClockInfo", _CLOCK_SM),
        memory_clock_mhz=ask.number("nvmlDeviceGetMaxClockInfo", _CLOCK_MEMORY),
        cuda=_cuda(nvml),
        cores=ask.number("nvmlDeviceGetNumGpuCores"),
    )


def _cuda(nvml: Any) -> int | None:
    """What cuDriverGetVersion tells, without a context."""
    try:
        return int(nvml.nvmlSystemGetCudaDriverVersion_v2())
    except (nvml.NVMLError, AttributeError):
        return None


def _reading(ask: _Asking) -> Reading:
    reasons = ask.number("nvmlDeviceGetCurrentClocksEventReasons")
    if reasons is None:
        # Its name before NVML 12.
        reasons = ask.number("nvmlDeviceGetCurrentClocksThrottleReasons")
    return Reading(
        sm_clock_mhz=ask.number("nvmlDeviceGetClockInfo", _CLOCK_SM),
        memory_clock_mhz=ask.number("nvmlDeviceGetClockInfo", _CLOCK_MEMORY),
        reasons=None if reasons is None else Reason(reasons),
    )


def _list_falls(which: str, clocks: Sequence[int | None]) -> list[str]:
    """Whether a clock fell; that it rises as work begins is no disturbance."""
    known = [clock for clock in clocks if clock]
    highest, low = 0, []
    for clock in known:
        highest = max(highest, clock)
        if clock < (1 - CLOCK_TOLERANCE) * highest:
            low.append(clock)
    if len(low) <= LOW_SHARE * len(known):
        return []
    share = 1 - min(low) / highest
    return [f"the {which} clock fell from {highest} to {min(low)} MHz ({share:.0%})"]


def _count_others(seen: Snapshot, own: Collection[int]) -> int:
    """How many processes are not ours. Pids of another namespace can only be counted."""
    if seen.processes is None:
        return 0
    foreign = [pid for pid in seen.processes if pid not in own]
    is_our_namespace = len(foreign) < len(seen.processes)
    return len(foreign) if is_our_namespace else max(0, len(foreign) - len(own))


def _scale(value: int | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _word(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
