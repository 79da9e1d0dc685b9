"""A leased device and what candidates are run with on it; without a device everything is skipped.

These tests were written against NVIDIA's documentation and the fake driver of
tests/sandbox/run/device; what they assert of figures are bounds that hold on any device. The end of
a run says on which device kernels were run, or that none was (attempt.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from kernelwright.errors import KernelwrightError, PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.machine import usable_cpus
from kernelwright.kernelbench.problem import Family, Problem, Structure
from kernelwright.kernelbench.targets import ARCHITECTURES, architecture
from kernelwright.sandbox.builders.compatibility import major_of
from kernelwright.sandbox.builders.toolchain import ANY_RELEASE
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation import BubblewrapJail, LandlockJail
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.sandbox.isolation.model import Jail
from kernelwright.sandbox.run.arena import Arena, footprint
from kernelwright.sandbox.run.begun import Plane
from kernelwright.sandbox.run.device import nvml
from kernelwright.sandbox.run.device.device_files import DeviceFiles, access
from kernelwright.sandbox.run.device.health import Health, probe
from kernelwright.sandbox.run.device.lease import DeviceBook, Lease
from kernelwright.sandbox.run.device.program import device_program
from kernelwright.sandbox.run.device.replay import PlacedCall, host_command
from kernelwright.sandbox.run.device.runner import DeviceRunner
from kernelwright.tests.gpu.attempt import (
    JAIL,
    REQUIRED,
    Attempt,
    asked_jail,
    is_weak_accepted,
)
from kernelwright.tests.gpu.kernels import HONEST
from kernelwright.traces.records import Check
from kernelwright.verifier.clock.timed_sides import CandidateSide
from kernelwright.verifier.stands.cuda_candidate import CudaCandidate
from kernelwright.verifier.stands.gpu_candidates import GpuGround
from kernelwright.verifier.truth.trials import Item, make_item

ROOM = 32 << 20
"""For launch tables, work buffers and shifts, beside the tensors."""
TIMEOUT_S = 30.0


ATTEMPT = Attempt()
COLLECTED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            config.stash[COLLECTED] = True


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run that was to try a device and did not is no success."""
    if (
        os.environ.get(REQUIRED)
        and not ATTEMPT.has_run
        and session.exitstatus == pytest.ExitCode.OK
    ):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last words, behind pytest's own."""
    if not config.stash.get(COLLECTED, False):
        return
    is_plain = ATTEMPT.has_run and not is_weak_accepted()
    colour = {"green": True} if is_plain else {"red": True, "bold": True}
    terminal = config.get_terminal_writer()
    terminal.sep("=", ATTEMPT.sentence(), **colour)


@pytest.fixture(scope="session")
def devices() -> list[nvml.Device]:
    """The devices of this machine that kernels can be built for."""
    try:
        with nvml.open_nvml() as module:
            found = nvml.devices(module)
    except PrerequisiteError as error:
        pytest.skip(str(error))
    known = [device for device in found if device.architecture in ARCHITECTURES]
    if not known:
        pytest.skip(f"no device that kernels can be built for among {[d.name for d in found]}")
    return known


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpu-cache")
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def leased(devices: list[nvml.Device], cache: Path) -> Iterator[Lease]:
    """One of them, for as long as the tests run."""
    workshop = Workshop(BareJail(), cache)
    by_uuid = {device.uuid: device for device in devices}

    def tried(uuid: str) -> Health:
        return probe(workshop, access(by_uuid[uuid]))

    with DeviceBook.in_cache(cache).lease(list(by_uuid), tried) as found:
        yield found


@pytest.fixture(scope="session")
def device(devices: list[nvml.Device], leased: Lease) -> nvml.Device:
    found = next(device for device in devices if device.uuid == leased.uuid)
    ATTEMPT.device = found.name
    return found


@pytest.fixture(scope="session")
def way(device: nvml.Device) -> DeviceFiles:
    """How a runner gets to the device."""
    try:
        return access(device)
    except PrerequisiteError as error:
        pytest.skip(str(error))


@dataclass
class Bench:
    """Builds CUDA sources for the device and runs them there, each in a process of its own."""

    way: DeviceFiles
    target: str
    workshop: Workshop
    problem: Problem
    structure: Structure
    newest: int = ANY_RELEASE
    """The last major release of CUDA whose code the driver loads."""
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    runner: DeviceRunner | None = None
    """The one of the newest `side`."""
    arena: Arena | None = None

    def build(self, source: str) -> CudaCandidate:
        """Raises Failed."""
        ground = GpuGround(
            self.workshop, self.problem, architecture(self.target), self.structure, self.newest
        )
        return CudaCandidate.build(ground, source, seed=1)

    @contextmanager
    def side(
        self, source: str, *, slots: int = 2, timeout_s: float = TIMEOUT_S
    ) -> Iterator[CandidateSide]:
        """The candidate's process, with its slots laid out. Raises Failed and RunFault."""
        made = self.build(source)
        program = device_program(self.workshop, made.device, self.problem, self.way)
        needs = footprint(self.problem, self.structure.axes)
        with Arena(slots * needs[0] + ROOM, slots * needs[1] + ROOM) as arena:
            limits = program.limits(
                wall_s=300.0, cpu_s=600.0, memory_bytes=(8 << 30) + sum(arena.sizes)
            )
            inputs, outputs = arena.open_fds()
            try:
                runner = DeviceRunner(
                    self.workshop,
                    program,
                    Plane(inputs, outputs, *arena.sizes),
                    limits=limits,
                )
            finally:
                os.close(inputs)
                os.close(outputs)
            self.runner, self.arena = runner, arena
            ATTEMPT.jails.add(self.workshop.jail.name)
            with runner:
                side = CandidateSide(
                    "candidate",
                    runner,
                    arena,
                    self.problem,
                    self.rng,
                    timeout_s=timeout_s,
                    extra=made.extra,
                )
                side.place(self.structure, slots)
                yield side

    def item(self, family: Family = Family.NORMAL, structure: Structure | None = None) -> Item:
        return make_item(self.problem, structure or self.structure, family, self.rng)

    def checks(self, source: str, *, calls: int = 1) -> list[Check]:
        """What the referee finds of the last of some calls. Raises Failed and RunFault."""
        with self.side(source) as side:
            found: list[Check] = []
            for number in range(calls):
                found = side.answer(self.item(), side.slots[number % len(side.slots)])
        return found

    def outputs(self, source: str, *, calls: int = 1) -> np.ndarray:
        """The first output of the last call."""
        with self.side(source) as side:
            slot = side.slots[0]
            for _ in range(calls):
                side.answer(self.item(), slot)
            return next(iter(slot.outputs.values())).copy()

    @contextmanager
    def host(
        self, source: str, folder: Path, *, calls: int, is_separate: bool
    ) -> Iterator[tuple[CudaCandidate, list[str]]]:
        """One call of the candidate as a program of its own."""
        with self.side(source, slots=1) as side:
            side.answer(self.item(), side.slots[0])
            assert self.arena is not None
            call = PlacedCall(self.arena.copy_of_inputs(), self.arena.sizes[1])
        made = self.build(source)
        yield (
            made,
            host_command(
                self.workshop,
                folder,
                made.device,
                self.problem,
                call,
                self.way,
                calls=calls,
                is_separate=is_separate,
            ),
        )


def _bench(way: DeviceFiles, device: nvml.Device, jail: Jail, cache: Path, **axes: int) -> Bench:
    problem = registry.get("bias_gelu")
    workload = registry.workload_for(problem, "" if axes else "tiny", **axes)
    return Bench(
        way,
        device.architecture,
        Workshop(jail, cache, usable_cpus()),
        problem,
        problem.structure(workload),
        major_of(device.cuda),
    )


@pytest.fixture
def jail() -> Jail:
    try:
        return asked_jail()
    except PrerequisiteError as error:
        pytest.skip(f"no jail works here ({JAIL}=bare does without): {error}")


@pytest.fixture
def bench(way: DeviceFiles, device: nvml.Device, jail: Jail, cache: Path) -> Bench:
    """bias_gelu on a tiny workload."""
    return _bench(way, device, jail, cache)


@pytest.fixture
def large(way: DeviceFiles, device: nvml.Device, jail: Jail, cache: Path) -> Bench:
    """bias_gelu on 4 MiB."""
    return _bench(way, device, jail, cache, M=1024, N=1024)


@pytest.fixture(params=["bubblewrap", "landlock"])
def jailed(
    request: pytest.FixtureRequest, way: DeviceFiles, device: nvml.Device, cache: Path
) -> Bench:
    """The same in each jail that confines."""
    jail: Jail = {"bubblewrap": BubblewrapJail, "landlock": LandlockJail}[request.param]()
    try:
        reason = jail.is_available()
    except KernelwrightError as error:
        reason = str(error)
    if reason is not None:
        pytest.skip(f"{request.param} does not work here: {reason}")
    return _bench(way, device, jail, cache)


@pytest.fixture
def honest() -> str:
    """A kernel that is right."""
    return HONEST
