# SPDX-License-Identifier: Apache-2.0
"""Builds a Triton candidate for a target that need not be there: cubins and launches, or a reason.

The candidate's module is executed in a jail, by a child of a warm process (`warm`, and inside the
jail `triton_on_cpu`). Its launches come from the plan in its front matter or, where it has none,
from its own host code, which runs once for each structure on tensors without contents; either way
Triton specialises on the actual arguments, so that structures share a cubin only where it is right
for both.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pydantic import TypeAdapter

from ...kernelbench.languages import TRITON
from ...kernelbench.problem import Problem, Structure
from ...kernelbench.products import device_of
from ...kernelbench.targets import Architecture, Vendor
from ..isolation.model import End
from ..plan.model import ZERO_FILL, Dtype, Launch, Launches, Specialisation
from . import cache, compatibility, diagnostics, toolchain, triton_result
from .model import BuildFailed, Built, DeviceBuilt, Unsupported
from .triton_result import BuiltPart, ClaimError, Configurations
from .warm import BUILD_S, LeftBehind, StoppedError, WarmProcess
from .workshop import Workshop

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = 4
"""Raised whenever the recipe changes: old cache entries are then not found."""
_NO_DEVICE_SMS = 100
"""Multiprocessors that host code is told of where no data sheet is known for the target."""
_UNKNOWN_L2 = 32 << 20
_LAUNCHES = TypeAdapter(tuple[Launches, tuple[Configurations, ...]])


@dataclass(frozen=True)
class TritonBuilt:
    """Device code with the launches of every structure that was asked for."""

    device: DeviceBuilt
    launches: tuple[Launches, ...]
    """In the order of the structures, all over the same kernels."""
    configurations: tuple[Configurations, ...] = ()
    """Of kernels under @triton.autotune: what may be chosen for another build."""
    seconds: float = 0.0


@dataclass(frozen=True)
class TritonRequest:
    """One candidate to be built."""

    source: str
    problem: Problem
    structures: tuple[Structure, ...]
    plans: tuple[Launches, ...] | None = None
    """The plan's launches for each structure; None: the host code is recorded."""
    entry: str = "run"
    """The entry point of the host code: `run` or `ModelNew`."""
    choices: Mapping[str, int] | None = None
    """For autotuned kernels which configuration is built; the first unless said."""


Result = TritonBuilt | BuildFailed | Unsupported


class TritonBuilder:
    """Warm processes for one target, as many as builds run side by side. Thread-safe."""

    def __init__(
        self,
        workshop: Workshop,
        architecture: Architecture,
        *,
        workers: int = 1,
        timeout_s: float = BUILD_S,
        newest: int = toolchain.ANY_RELEASE,
    ) -> None:
        """Starts one process at once, so that it is warm when the first source comes.

        Args:
            newest: The last major release whose code the driver loads, which is to run it.

        Raises:
            PrerequisiteError: no assembler of Triton's makes such code.
        """
        self._environment = compatibility.triton_settings(newest)
        self.architecture = architecture
        self._workshop = workshop
        self._workers = workers
        self._timeout_s = timeout_s
        self._free: queue.LifoQueue[WarmProcess] = queue.LifoQueue()
        self._lock = threading.Lock()
        self._all: list[WarmProcess] = []
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends all processes."""
        for process in self._all:
            process.close()

    def await_ready(self) -> None:
        """Waits until a process is warm. Raises SandboxError."""
        with self._process() as process:
            process.await_ready()

    def build(self, request: TritonRequest) -> Result:
        """Builds one candidate for every structure of the request.

        Raises:
            SandboxError, StorageError: the harness failed, not the source.
        """
        started = time.monotonic()
        keys = [self._key(request, number) for number in range(len(request.structures))]
        found = [self._load_kept(key) for key in keys]
        wanted = [number for number, each in enumerate(found) if each is None]
        if wanted:
            made = self._build(request, wanted)
            if not isinstance(made, list):
                return made
            for number, each in zip(wanted, made, strict=True):
                found[number] = each
                self._keep(keys[number], each)
        whole = [each for each in found if each is not None]
        device, launches = triton_result.join_parts([part for part, _ in whole])
        seconds = time.monotonic() - started
        return TritonBuilt(device, launches, whole[0][1] if whole else (), seconds)

    def _start(self) -> None:
        settings = {"target": gpu_target(self.architecture)}
        process = WarmProcess(
            self._workshop, settings, environment=self._environment, timeout_s=self._timeout_s
        )
        self._all.append(process)
        self._free.put(process)

    @contextmanager
    def _process(self) -> Iterator[WarmProcess]:
        """A process of one's own; one that stopped is replaced when the next is needed."""
        with self._lock:
            if self._free.empty() and len(self._all) < self._workers:
                self._start()
        process = self._free.get()
        is_usable = False
        try:
            yield process
            is_usable = process.is_lasting or not process.is_used
        finally:
            if is_usable:
                self._free.put(process)
            else:
                self._replace(process)

    def _replace(self, process: WarmProcess) -> None:
        with self._lock:
            process.close()
            self._all.remove(process)
            self._start()

    def _build(
        self, request: TritonRequest, wanted: Sequence[int]
    ) -> list[_Made] | BuildFailed | Unsupported:
        with suppress(UnicodeEncodeError):
            files = _files(request, wanted, self.architecture)
            try:
                with self._process() as process:
                    left = process.build(files)
                    return self._read(left, request, wanted, process.facts["compiler"])
            except StoppedError as stopped:
                return _stopped_failure(stopped)
        return BuildFailed("the source holds a character that UTF-8 cannot hold")

    def _read(
        self, left: LeftBehind, request: TritonRequest, wanted: Sequence[int], compiler: str
    ) -> list[_Made] | BuildFailed | Unsupported:
        said = triton_result.log(left)
        if left.status != 0:
            reason, is_resource = _explain_end(left.status)
            return BuildFailed(reason, said, is_resource=is_resource, seconds=left.seconds)
        try:
            told = triton_result.outcome(left)
            reason = diagnostics.clean(told.reason)
            if told.outcome == "unsupported":
                return Unsupported((reason,), said, left.seconds)
            if told.outcome == "failed":
                return BuildFailed(reason, said, seconds=left.seconds)
            tuned = tuple(
                Configurations(each.kernel, each.chosen, tuple(each.configurations))
                for each in told.configurations
            )
            return [
                (
                    triton_result.part(
                        left,
                        at,
                        request.problem,
                        request.structures[number],
                        self.architecture,
                        compiler,
                    ),
                    tuned,
                )
                for at, number in enumerate(wanted)
            ]
        except ClaimError as error:
            return BuildFailed(diagnostics.clean(str(error)), said, seconds=left.seconds)

    def _key(self, request: TritonRequest, number: int) -> str:
        structure = request.structures[number]
        arrays = {
            name: hashlib.sha256(array.tobytes()).hexdigest()
            for name, array in structure.arrays.items()
        }
        plan = request.plans[number] if request.plans is not None else None
        return cache.key_of(
            {
                "format": FORMAT,
                "language": TRITON.name,
                "triton": version("triton"),
                "torch": version("torch"),
                "target": self.architecture.build_name,
                "source": request.source.encode(errors="surrogatepass").hex(),
                "problem": [
                    [t.name, t.dtype, t.shape, t.is_index] for t in request.problem.tensors
                ],
                "axes": structure.axes,
                "arrays": arrays,
                "plan": repr(plan),
                "entry": request.entry,
                "choices": dict(request.choices or {}),
                "settings": self._environment,
            }
        )

    def _load_kept(self, key: str) -> _Made | None:
        device = self._workshop.cache.load_device(key)
        recording = self._workshop.cache.load(key)
        if device is None or recording is None:
            return None
        launches, tuned = _LAUNCHES.validate_json(recording.artefact)
        return BuiltPart(device, launches), tuned

    def _keep(self, key: str, made: _Made) -> None:
        (device, launches), tuned = made
        raw = _LAUNCHES.dump_json((launches, tuned))
        digest = hashlib.sha256(raw).hexdigest()
        self._workshop.cache.store_device(key, device)
        self._workshop.cache.store(key, Built(raw, digest, 0.0))


_Made = tuple[BuiltPart, tuple[Configurations, ...]]


def _stopped_failure(stopped: StoppedError) -> BuildFailed:
    outcome = stopped.outcome
    if outcome.end is End.SIGNALLED:
        name = signal.Signals(outcome.code).name
        return BuildFailed(f"the source ended its builder by {name}", seconds=stopped.seconds)
    why = "it leaves processes that cannot be ended" if outcome.end is End.EXITED else stopped
    return BuildFailed(f"the build was stopped: {why}", is_resource=True, seconds=stopped.seconds)


def _explain_end(status: int) -> tuple[str, bool]:
    """What a build's end means that left no result."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return "the build was stopped: cpu time", True
        return f"the build died of {signal.Signals(number).name}", number == signal.SIGKILL
    return f"the build left by itself with exit status {os.WEXITSTATUS(status)}", False


def _files(
    request: TritonRequest, wanted: Sequence[int], architecture: Architecture
) -> dict[str, bytes]:
    problem = request.problem
    files, structures = {}, []
    for at, number in enumerate(wanted):
        structure = request.structures[number]
        plan = request.plans[number] if request.plans is not None else None
        structures.append(
            {
                "axes": structure.axes,
                "shapes": {t.name: list(t.extent(structure.axes)) for t in problem.tensors},
                "calls": calls(plan) if plan is not None else None,
                "scratch": [[s.name, s.dtype, list(s.shape)] for s in plan.scratch] if plan else [],
            }
        )
        for tensor in problem.inputs:
            if tensor.is_index:
                files[f"index{at}.{tensor.name}"] = structure.arrays[tensor.name].tobytes()
    told = {
        "source": request.source,
        "entry": request.entry,
        "choices": dict(request.choices or {}),
        "inputs": [[t.name, t.dtype, t.is_index] for t in problem.inputs],
        "outputs": [[t.name, t.dtype, False] for t in problem.outputs],
        "structures": structures,
        "properties": properties(architecture),
    }
    return {**files, "request.json": json.dumps(told, ensure_ascii=False).encode()}


def gpu_target(architecture: Architecture) -> list[str | int]:
    """What Triton calls it: backend, name, threads of a warp."""
    if architecture.vendor is Vendor.AMD:
        return ["hip", architecture.name, architecture.warp]
    return ["cuda", architecture.capability, architecture.warp]


def properties(architecture: Architecture) -> dict[str, Any]:
    """What host code may ask of the device, and what the emulation takes it for."""
    device = device_of(architecture.name)
    return {
        "target": gpu_target(architecture),
        "version": architecture.version,
        "capability": architecture.capability,
        "max_shared_mem": architecture.shared_per_block,
        "max_num_regs": architecture.registers.total,
        "multiprocessor_count": device.sms if device else _NO_DEVICE_SMS,
        "max_threads_per_sm": architecture.warp * architecture.max_warps,
        "l2_bytes": int((device.l2_mb if device else 0) * (1 << 20)) or _UNKNOWN_L2,
        "warpSize": architecture.warp,
        "sm_clock_rate": 1_500_000,
        "mem_clock_rate": 1_500_000,
        "mem_bus_width": 5120,
    }


def calls(plan: Launches) -> list[dict[str, Any]]:
    """The launches of a plan as programs inside a jail read them."""
    return [_call(launch, plan) for launch in plan.launches]


def _call(launch: Launch, plan: Launches) -> dict[str, Any]:
    arguments = [[int(a.kind), a.value, a.offset] for a in launch.arguments]
    if launch.kernel == ZERO_FILL:
        return {"kernel": None, "arguments": arguments}
    special = plan.specialisations[launch.kernel]
    # A plan's grid counts blocks, Triton's counts programs.
    grid = [launch.grid[0] // special.num_ctas, *launch.grid[1:]]
    return {
        "kernel": special.kernel,
        "grid": grid,
        "arguments": arguments,
        "constants": {name: _constant(value) for name, value in special.constants},
        "options": _options(special),
    }


def _constant(value: Any) -> Any:
    return {"dtype": value.name} if isinstance(value, Dtype) else value


def _options(special: Specialisation) -> dict[str, int]:
    options = {
        "num_warps": special.num_warps,
        "num_stages": special.num_stages,
        "num_ctas": special.num_ctas,
    }
    return {**options, "maxnreg": special.maxnreg} if special.maxnreg else options
