"""Compiles the fake driver, and says how a process gets to it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from kernelwright.sandbox.run.binary import compiler
from kernelwright.sandbox.run.device.device_files import DeviceFiles, read_by_drivers

SOURCE = Path(__file__).with_name("fake_cuda.cpp")


def fake_driver(folder: Path) -> Path:
    """`libcuda.so.1` in a folder of its own."""
    built = folder / "driver" / "libcuda.so.1"
    built.parent.mkdir()
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread"]
    command = [compiler(), *flags, str(SOURCE), "-o", str(built)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return built


def fake_access(library: Path, extra: Mapping[str, str] | None = None) -> DeviceFiles:
    """The fake device: a node that does nothing, and all else that a real one is given."""
    return DeviceFiles(
        library,
        "",
        nodes=(Path("/dev/null"),),
        readable=(library.parent, *read_by_drivers()),
        extra=extra or {},
    )
