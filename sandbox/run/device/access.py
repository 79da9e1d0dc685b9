"""How a runner reaches one device: the driver's library, its nodes, and what the library reads."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ....errors import PrerequisiteError
from .nvml import Device

LIBRARY = "libcuda.so.1"
_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
    "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
)  # fmt: skip
"""Where distributions, container runtimes, WSL and NixOS put the driver's libraries."""
_SHARED_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/dxg")
_INSTANCES = "/dev/nvidia-caps"
"""The nodes of MIG instances."""
_READ_BY_DRIVER = ("/proc/driver/nvidia", "/proc/devices", "/sys/bus/pci", "/sys/devices")


@dataclass(frozen=True)
class Access:
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

    @property
    def environment(self) -> dict[str, str]:
        """What the driver's library finds: one device, no cache on disk, everything loaded at once.

        With lazy loading a kernel's first launch would also load it.
        """
        found = {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_CACHE_DISABLE": "1",
            "CUDA_MODULE_LOADING": "EAGER",
            # It loads others of its own by name.
            "LD_LIBRARY_PATH": str(self.library.parent),
            **self.extra,
        }
        return found | ({"CUDA_VISIBLE_DEVICES": self.uuid} if self.uuid else {})


def access(device: Device) -> Access:
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
    readable = [Path(name) for name in _READ_BY_DRIVER if Path(name).exists()]
    if not library.is_relative_to("/usr"):
        readable.append(library.parent)
    return Access(library, device.uuid, tuple(nodes), tuple(readable))


@functools.lru_cache(maxsize=1)
def find_library() -> Path:
    """The driver's library: as the loader knows it, else where it usually lies.

    Raises:
        PrerequisiteError: there is none.
    """
    known = [Path(folder) / LIBRARY for folder in _FOLDERS]
    for path in (*_as_the_loader_knows(), *known):
        if path.exists():
            return path.resolve().parent / LIBRARY
    raise PrerequisiteError(
        f"{LIBRARY} is not on this machine",
        hint="install NVIDIA's driver, or start the container with its libraries "
        "(docker --gpus all); --target cpu needs none",
    )


def _as_the_loader_knows() -> list[Path]:
    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig"):
        if Path(program).exists():
            told = subprocess.run(
                [program, "-p"], capture_output=True, text=True, timeout=20, check=False
            ).stdout
            lines = [line for line in told.splitlines() if line.strip().startswith(LIBRARY)]
            # A machine may hold a 32-bit one, too.
            lines.sort(key=lambda line: "x86-64" not in line and "AArch64" not in line)
            return [Path(line.rpartition("=> ")[2].strip()) for line in lines]
    return []
