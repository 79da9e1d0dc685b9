# SPDX-License-Identifier: Apache-2.0
"""How a runner reaches one device: the driver's library, its nodes, and what the library reads."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ....errors import PrerequisiteError
from .nvml import DRIVER_FOLDERS, Device

LIBRARY = "libcuda.so.1"
_SHARED_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/dxg")
"""Since 570 the driver does not start where it cannot open `nvidia-uvm-tools`."""
_INSTANCES = "/dev/nvidia-caps"
"""The nodes of MIG instances."""
_READ_BY_DRIVER = (
    "/proc/driver/nvidia",
    "/proc/driver/nvidia-uvm",
    "/proc/devices",
    "/sys/bus/pci",
    "/sys/devices",
    "/etc/nvidia",
)


_NO_MPS = "/nonexistent"
"""Where no daemon listens: through MPS a client's fault would be everybody's."""


@dataclass(frozen=True)
class DeviceFiles:
    """One device, as a process is given it."""

    library: Path
    uuid: str = ""
    """Empty: the first that the driver shows."""
    nodes: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    ordinal: int = 0
    """Its number within the process."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """More variables of the environment."""
    is_known_to_loader: bool = True
    """Whether programs that load the library by its name find it."""

    @property
    def environment(self) -> dict[str, str]:
        """What the driver's library finds: one device, no cache on disk, everything loaded at once.

        With lazy loading a kernel's first launch would also load it.
        """
        return {
            **self.shown,
            "CUDA_CACHE_DISABLE": "1",
            "CUDA_MODULE_LOADING": "EAGER",
            # It loads others of its own by name.
            "LD_LIBRARY_PATH": str(self.library.parent),
            **self.extra,
        }

    @property
    def shown(self) -> dict[str, str]:
        """What a process of torch is told: which device, and the library where it is hidden."""
        found = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_MPS_PIPE_DIRECTORY": _NO_MPS}
        if self.uuid:
            found["CUDA_VISIBLE_DEVICES"] = self.uuid
        if not self.is_known_to_loader:
            found["LD_LIBRARY_PATH"] = str(self.library.parent)
        return found


def access(device: Device) -> DeviceFiles:
    """How to reach a device of this machine.

    Raises:
        PrerequisiteError: the driver's library or the device's node is missing.
    """
    names = [*_SHARED_NODES, f"/dev/nvidia{device.index if device.minor is None else device.minor}"]
    nodes = [Path(name) for name in names if Path(name).exists()]
    if device.has_mig and Path(_INSTANCES).is_dir():
        nodes += sorted(Path(_INSTANCES).iterdir())
    if Path("/dev/nvidiactl").exists() and not Path("/dev/nvidia-uvm").exists():
        raise PrerequisiteError(
            "/dev/nvidia-uvm is missing, without which CUDA does not start",
            hint="run `nvidia-modprobe -u -c 0` (or any CUDA program) once as root",
        )
    library = find_library()
    readable = [*read_by_drivers()]
    if not library.is_relative_to("/usr"):
        readable.append(library.parent)
    is_known = any(path.exists() for path in _as_the_loader_knows())
    return DeviceFiles(
        library, device.uuid, tuple(nodes), tuple(readable), is_known_to_loader=is_known
    )


def read_by_drivers() -> tuple[Path, ...]:
    """What the driver's library reads on this machine, beside what any program does."""
    return tuple(Path(name) for name in _READ_BY_DRIVER if Path(name).exists())


@functools.lru_cache(maxsize=1)
def find_library() -> Path:
    """The driver's library: as the loader knows it, else where it usually lies.

    Raises:
        PrerequisiteError: there is none.
    """
    known = [Path(folder) / LIBRARY for folder in DRIVER_FOLDERS]
    for path in (*_as_the_loader_knows(), *known):
        if path.exists():
            return path.resolve().parent / LIBRARY
    raise PrerequisiteError(
        f"{LIBRARY} is not on this machine",
        hint="install NVIDIA's driver, or start the container with its libraries "
        "(docker --gpus all); --target cpu needs none",
    )


@functools.lru_cache(maxsize=1)
def _as_the_loader_knows() -> tuple[Path, ...]:
    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig"):
        if Path(program).exists():
            told = subprocess.run(
                [program, "-p"], capture_output=True, text=True, timeout=20, check=False
            ).stdout
            lines = [line for line in told.splitlines() if line.strip().startswith(LIBRARY)]
            # A machine may hold a 32-bit one, too.
            lines.sort(key=lambda line: "x86-64" not in line and "AArch64" not in line)
            return tuple(Path(line.rpartition("=> ")[2].strip()) for line in lines)
    return ()
