"""The third part: what each jail enforces of a job that has a device, and of one that has none.

The canary is a hostile program on the CPU; with the device's nodes a job may do what the driver
insists on as it starts, until the runner's own filter (docs/device.md). What cheats do on the
device itself is the tests' part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernelwright.errors import KernelwrightError
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation import BubblewrapJail, LandlockJail
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.sandbox.isolation.canary import probe
from kernelwright.sandbox.isolation.model import Confinement, Jail, Job, Limits
from kernelwright.sandbox.run.device import health, nvml
from kernelwright.sandbox.run.device.device_files import DeviceFiles, access

from .work import Work

JAILS = {"bubblewrap": BubblewrapJail, "landlock": LandlockJail}
WITHOUT, WITH = "without a device", "with a device"


@dataclass(frozen=True)
class WithDevice:
    """A jail whose jobs are given a device, as those of candidates are."""

    jail: Jail
    way: DeviceFiles

    @property
    def name(self) -> str:
        """The jail's own."""
        return self.jail.name

    def is_available(self) -> str | None:
        """See Jail."""
        return self.jail.is_available()

    def start(self, command: Sequence[str], confinement: Confinement, limits: Limits) -> Job:
        """See Jail."""
        given = replace(
            confinement,
            devices=(*confinement.devices, *self.way.nodes),
            readable=(*confinement.readable, *self.way.readable),
        )
        return self.jail.start(command, given, limits)


def collect(work: Work) -> None:
    """Each jail, with and without; then whether the device is well."""
    with nvml.open_nvml() as module:
        way = access(nvml.devices(module)[0])
    missing = {name: reason for name, made in JAILS.items() if (reason := made().is_available())}
    for name, made in JAILS.items():
        for how in (WITHOUT, WITH):
            unit = f"{name} {how}"
            if work.is_kept(unit):
                continue
            jail: Any = made()
            if reason := missing.get(name):
                _tell_missing(work, unit, name, how, reason, is_only=len(missing) == len(JAILS))
                continue
            try:
                asked = WithDevice(jail, way) if how == WITH else jail
                found = probe(asked, _folder(work, unit))
            except (KernelwrightError, OSError) as error:
                work.fail(unit, f"{error}\n{getattr(error, 'hint', '')}", jail=name, how=how)
                continue
            rows = {row: [c.state.value, c.how] for row, c in found.capabilities.items()}
            work.keep(unit, jail=name, how=how, rows=rows, lacking=list(found.lacking))
    if not work.is_kept("afterwards"):
        told = health.probe(Workshop(BareJail(), work.folder), way)
        if told.is_well:
            work.keep("afterwards", is_well=True)
        else:
            work.fail("afterwards", told.reason, is_well=False)


def _tell_missing(
    work: Work, unit: str, name: str, how: str, reason: str, *, is_only: bool
) -> None:
    """A jail that does not work here is a fact where another one confines, else a failure."""
    if is_only:
        work.fail(unit, f"no jail works: {name}: {reason}", jail=name, how=how)
    else:
        work.keep(unit, jail=name, how=how, missing=reason)


def _folder(work: Work, unit: str) -> Path:
    """What the canary found is kept by jail: each way has a folder of its own."""
    folder = work.folder / unit.replace(" ", "-")
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    return folder
