"""A fake driver, and a stage on which its kernels are run by the real device runner in a jail."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.sandbox.builders.model import Built, DeviceBuilt, KernelFacts
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.isolation.model import Jail
from kernelwright.sandbox.plan.model import Launches
from kernelwright.sandbox.run import call_table
from kernelwright.sandbox.run.begun import Plane
from kernelwright.sandbox.run.call_table import ENTRY_BYTES, TABLE_BYTES, Passed, Role
from kernelwright.sandbox.run.device.device_files import DeviceFiles
from kernelwright.sandbox.run.device.program import device_program
from kernelwright.sandbox.run.device.runner import DeviceRunner
from kernelwright.tests.sandbox.run.device.fake_driver import fake_access, fake_driver

GUARD = 4096


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("device-cache")
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def library(cache: Path) -> Path:
    """The fake driver, compiled."""
    return fake_driver(cache)


@pytest.fixture
def access_to(library: Path) -> Callable[..., DeviceFiles]:
    """The fake device, broken as asked."""

    def make(broken: str = "") -> DeviceFiles:
        extra = {"FAKE_CUDA": broken} if broken else {}
        return fake_access(library, extra)

    return make


@pytest.fixture
def jail() -> Jail:
    try:
        return choose("auto")
    except PrerequisiteError as error:
        pytest.skip(f"no jail works here: {error}")


@dataclass
class Placed:
    """What the referee sees of one slot: x is the input, y the output."""

    x: np.ndarray
    y: np.ndarray
    y_guards: tuple[np.ndarray, np.ndarray]
    scratch: list[np.ndarray]


class Memory:
    """One memfd that regions are cut from, each between two guard bands."""

    def __init__(self, start: int) -> None:
        self.fd = os.memfd_create("kw-test")
        self.bytes = 1 << 22
        os.ftruncate(self.fd, self.bytes)
        self.view = np.frombuffer(mmap.mmap(self.fd, self.bytes), dtype=np.uint8)
        self._at = start

    def cut(self, size: int) -> tuple[int, np.ndarray]:
        offset = self._at + GUARD
        self._at = -(-(offset + size + GUARD) // 64) * 64
        return offset, self.view[offset : offset + size]


class Stage:
    """The memory of a runner, and the runner once it is started."""

    def __init__(self, jail: Jail, access: DeviceFiles, cache: Path, stack: ExitStack) -> None:
        self._workshop, self._access, self._stack = Workshop(jail, cache), access, stack
        self._inputs = Memory(TABLE_BYTES)
        self._outputs = Memory(0)
        for memory in (self._inputs, self._outputs):
            stack.callback(os.close, memory.fd)

    def place(
        self, slot: int, launches: Launches, *, words: int = 16, table: bytes | None = None
    ) -> Placed:
        """Lays out one call of softmax's signature with `words` elements in x and in y."""
        x_at, x = self._inputs.cut(4 * words)
        y_at, y = self._outputs.cut(4 * words)
        packed = launches.pack() if table is None else table
        table_at, region = self._inputs.cut(len(packed))
        region[...] = np.frombuffer(packed, dtype=np.uint8)
        work = [
            self._outputs.cut(int(np.prod(one.shape)) * np.dtype(one.dtype).itemsize)
            for one in launches.scratch
        ]
        arguments = [call_table.integer(4), call_table.integer(words // 4)]
        arguments += [Passed(Role.INPUT, x_at, 4 * words), Passed(Role.OUTPUT, y_at, 4 * words)]
        arguments += [Passed(Role.INPUT, table_at, len(packed))]
        arguments += [Passed(Role.OUTPUT, at, view.size) for at, view in work]
        self.write(slot, arguments)
        x.view(np.float32)[...] = np.arange(1, words + 1)
        y.view(np.uint32)[...] = 0x7FC0DEAD
        bands = (
            self._outputs.view[y_at - GUARD : y_at],
            self._outputs.view[y_at + 4 * words : y_at + 4 * words + GUARD],
        )
        for band in bands:
            band[...] = np.random.default_rng(slot).integers(0, 256, band.size, dtype=np.uint8)
        return Placed(x.view(np.float32), y.view(np.float32), bands, [view for _, view in work])

    def write(self, slot: int, arguments: list[Passed]) -> None:
        entry, start = call_table.pack_entry(arguments), slot * ENTRY_BYTES
        self._inputs.view[start : start + len(entry)] = np.frombuffer(entry, dtype=np.uint8)

    def memory(self) -> tuple[bytes, int]:
        """The inputs as bytes, and the size of the outputs."""
        return self._inputs.view.tobytes(), self._outputs.bytes

    def start(
        self, kernels: dict[str, int], *, image: bytes = b"FAKE sm_90", **changes: object
    ) -> DeviceRunner:
        """A runner with these kernels: symbol and number of parameters."""
        facts = tuple(
            KernelFacts(symbol, symbol, 32, 0, 0, 0, 0, (8,) * count)
            for symbol, count in kernels.items()
        )
        built = DeviceBuilt("sm_90a", (Built(image, "0" * 64, 0.1),), facts)
        program = device_program(self._workshop, built, registry.get("softmax"), self._access)
        inputs = os.open(f"/proc/self/fd/{self._inputs.fd}", os.O_RDONLY | os.O_CLOEXEC)
        self._stack.callback(os.close, inputs)
        plane = Plane(inputs, self._outputs.fd, self._inputs.bytes, self._outputs.bytes)
        return self._stack.enter_context(
            DeviceRunner(
                self._workshop,
                replace(program, **changes),
                plane,
                limits=program.limits(wall_s=60.0, cpu_s=60.0, memory_bytes=0),
            )
        )


@pytest.fixture
def stage_for(
    jail: Jail, access_to: Callable[..., DeviceFiles], cache: Path
) -> Iterator[Callable[..., Stage]]:
    with ExitStack() as stack:
        yield lambda broken="": Stage(jail, access_to(broken), cache, stack)


@pytest.fixture
def stage(stage_for: Callable[..., Stage]) -> Stage:
    return stage_for()
