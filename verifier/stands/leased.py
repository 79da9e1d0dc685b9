# SPDX-License-Identifier: Apache-2.0
"""The device that a session measures on: found, leased, watched, and given up where it is ill.

A target whose device is present is measured; one that is absent is emulated. Nothing here builds,
runs or judges a candidate.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from ...errors import PrerequisiteError
from ...kernelbench.arithmetic import FP32
from ...kernelbench.products import Product as DataSheet
from ...kernelbench.products import device_of, product
from ...kernelbench.targets import ARCHITECTURES, ARITHMETIC
from ...sandbox.builders.compatibility import major_of
from ...sandbox.builders.workshop import Workshop
from ...sandbox.run.device import nvml as driver
from ...sandbox.run.device.device_files import DeviceFiles, access
from ...sandbox.run.device.health import Health, probe
from ...sandbox.run.device.lease import DeviceBook, Lease
from ...sandbox.run.device.nvml import ComputeMode, Device
from ...traces.records import Check
from ..baselines.process import BaselinePlace, BaselineProcess
from ..clock import roofline
from ..clock.roofline import Peaks

UNDISTURBED = "device undisturbed"
_L2_TIMES = 4.0
"""An L2 cache is faster than its memory by about so much; only makes the modelled floor lower."""
REMEDY = (
    "a later run probes it and takes it back once it is well; if it stays ill, its administrator "
    "must look at it (`kernelwright doctor` shows it)"
)


@dataclass(frozen=True)
class Machine:
    """How this machine's devices are reached; the parts that a test replaces."""

    nvml: Any = None
    """Anything with the functions of `pynvml`; None: that module."""
    reach: Callable[[Device], DeviceFiles] = access
    torch_device: str = "cuda"
    """Where the baselines run."""
    allowed: tuple[str, ...] | None = None
    """UUIDs, their beginnings, or numbers of the devices that may be used; None: all."""

    def devices(self, target: str = "") -> list[Device]:
        """The devices that a target can be measured on; none where no driver answers."""
        try:
            with driver.open_nvml(self.nvml) as module:
                found = driver.devices(module)
        except PrerequisiteError:
            return []
        return [
            device
            for device in found
            # One that is divided is not to be had whole.
            if device.architecture in ARCHITECTURES
            and not device.has_mig
            and target in ("", device.architecture)
            and self._is_allowed(device)
        ]

    def _is_allowed(self, device: Device) -> bool:
        if self.allowed is None:
            return True
        return any(
            device.index == int(word)
            if word.isdecimal()
            else word.startswith("GPU-") and device.uuid.startswith(word)
            for word in self.allowed
        )


@dataclass
class Leased:
    """A device that is ours until `close`."""

    device: Device
    access: DeviceFiles
    place: BaselinePlace
    workshop: Workshop
    _lease: Lease
    _nvml: Any
    _stack: ExitStack = field(default_factory=ExitStack)
    residents: list[Callable[[], int | None]] = field(default_factory=list)
    """Each gives the pid of a process of ours that stays on the device, once there is one: the
    baselines of every workload that shares this lease."""

    @classmethod
    def take(cls, machine: Machine, devices: list[Device], workshop: Workshop) -> Self:
        """Leases the first of these devices that is free and well.

        Raises:
            PrerequisiteError: none is, the driver's library is missing, or a device admits one
                process at a time.
        """
        devices = _require_shareable(devices)
        book = DeviceBook.in_cache(workshop.folder)
        ways = {device.uuid: machine.reach(device) for device in devices}
        with ExitStack() as stack:
            module = stack.enter_context(driver.open_nvml(machine.nvml))
            held = stack.enter_context(
                book.lease(list(ways), lambda uuid: probe(workshop, ways[uuid]))
            )
            device = next(one for one in devices if one.uuid == held.uuid)
            way = ways[held.uuid]
            return cls(
                device,
                way,
                BaselinePlace(machine.torch_device, way.shown, way.nodes, way.readable),
                workshop,
                held,
                module,
                stack.pop_all(),
            )
        raise AssertionError

    def close(self) -> None:
        """Gives the device back. May be called twice."""
        self._stack.close()

    @property
    def versions(self) -> dict[str, str]:
        """What figures of this device depend on."""
        return {"device": self.device.name, "driver": self.device.driver}

    @property
    def loads_up_to(self) -> int:
        """The last major release of CUDA whose code its driver loads, as far as it tells."""
        return major_of(self.device.cuda)

    @property
    def data_sheet(self) -> DataSheet | None:
        """The product of this name, else the one that stands for its architecture."""
        named = product(self.device.name, self.device.sms)
        return named or device_of(self.device.architecture)

    def illness(self) -> str:
        """Why the device cannot be used now; empty: it can, if need be because a probe says so."""
        note = DeviceBook.in_cache(self.workshop.folder).why_quarantined(self.device.uuid)
        if note is None or self._probe_quarantined(note.reason).is_well:
            return ""
        return self.out_of_use(note.reason)

    def probe_after(self, failure: str) -> str:
        """Probes the device after a candidate failed on it; why it is out of use now, or empty."""
        health = self._lease.recover(lambda _: probe(self.workshop, self.access), failure)
        return "" if health.is_well else self.out_of_use(f"{failure}; {health.reason}")

    def out_of_use(self, why: str) -> str:
        """The sentence for a verdict."""
        return f"{self.device.name} is in quarantine: {why}; {REMEDY}"

    @contextmanager
    def watch_block(self, candidate: int) -> Iterator[list[Check]]:
        """Fills the list with a check of the block: whether anything disturbed the device in it.

        Args:
            candidate: The pid of its process; it and the residents are no strangers.
        """
        checks: list[Check] = []
        own = {candidate, *(pid for ask in self.residents if (pid := ask()))}
        with driver.watch_device(self._nvml, self.device.uuid, own) as finish:
            yield checks
            seen = finish()
        checks.append(
            Check(
                name=UNDISTURBED,
                passed=not seen.reasons,
                detail="; ".join(seen.reasons) or "clocks, heat, power and other processes",
            )
        )

    def peaks(self, process: BaselineProcess, *, anew: bool = False) -> Peaks | None:
        """What the device reaches: measured once per device and driver, else by its data sheet."""
        place = self.workshop.folder / "peaks" / f"device-{self._key()}.json"
        found = roofline.keep(place, lambda: self._measured_peaks(process), anew=anew)
        return found or self.modelled_peaks()

    def _measured_peaks(self, process: BaselineProcess) -> Peaks | None:
        """What torch reaches on the device now; None where it cannot tell."""
        found = process.peaks()
        if not found:
            return None
        return Peaks(
            bandwidth_gbs=found["memory_gbs"],
            llc_bandwidth_gbs=found["l2_gbs"],
            cache_bandwidth_gbs=found["l2_gbs"],
            flops_gflops=found[FP32],
            tensor_gflops={k: found[k] for k in ARITHMETIC if k in found and k != FP32},
            l2_bytes=int(found["l2_bytes"]),
            llc_bytes=int(found["l2_bytes"]),
            cpus=(),
            compiler="torch",
            cache_source=f"measured on {self.device.name}",
        )

    def modelled_peaks(self) -> Peaks | None:
        """Those of the data sheet; None where the table has none."""
        sheet = self.data_sheet
        if sheet is None:
            return None
        near = _L2_TIMES * sheet.memory_gbs
        return Peaks(
            bandwidth_gbs=sheet.memory_gbs,
            llc_bandwidth_gbs=near,
            cache_bandwidth_gbs=near,
            flops_gflops=1e3 * sheet.tflops[FP32],
            tensor_gflops={k: 1e3 * rate for k, rate in sheet.tflops.items() if k != FP32},
            l2_bytes=0,
            llc_bytes=0,
            cpus=(),
            compiler="none",
            cache_source=f"{sheet.name}, {sheet.source}",
        )

    def _probe_quarantined(self, why: str) -> Health:
        """A probe of our quarantined device; well: the note goes."""
        health = probe(self.workshop, self.access)
        if health.is_well:
            self._lease.release()
        else:
            self._lease.quarantine(why)
        return health

    def _key(self) -> str:
        asked = [self.device.uuid, self.device.driver, self.place.device, list(ARITHMETIC)]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]


def _require_shareable(devices: list[Device]) -> list[Device]:
    """Those on which a baseline and a candidate can be at one time. Raises PrerequisiteError."""
    found = [d for d in devices if d.compute_mode in (None, ComputeMode.DEFAULT)]
    if devices and not found:
        mode = ComputeMode(devices[0].compute_mode or 0)
        raise PrerequisiteError(
            f"{devices[0].name} is in the compute mode {mode.name.lower().replace('_', ' ')}, and "
            "baselines are held against candidates in another process",
            hint="an administrator can change it: nvidia-smi -c DEFAULT",
        )
    return found
