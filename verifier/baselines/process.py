# SPDX-License-Identifier: Apache-2.0
"""The referee's end of the baseline process: starts it, prepares the baselines, calls them.

A baseline that this machine cannot run is left out and the reason is kept; a baseline whose answer
is wrong by the same gates that candidates meet is left out as well.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from ...errors import PrerequisiteError, SandboxError
from ...kernelbench.problem import Family, Problem, Structure
from ...kernelbench.rows import Rows, RowTurns, take_rows
from ...sandbox.builders.workshop import Workshop
from ...sandbox.definitions.jailed import JailedTree
from ...sandbox.definitions.talk import house_command, house_paths
from ...sandbox.isolation.model import Confinement
from ...sandbox.isolation.trusted import TrustedTree
from ...sandbox.run.arena import MOST_SHIFT, Arena, Slot, TensorRegion, footprint
from ...sandbox.run.gate import Gate
from ...sandbox.run.process import cpu_ns
from ...sandbox.run.sealed_memory import PAGE
from ...sandbox.run.starting import thread_environment
from ..truth import gates
from ..truth.trials import Item, make_item

_KEPT = ("PATH", "HOME", "LANG", "PYTHONPATH", "TMPDIR", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
_ANSWER_S = 240.0  # whatever is asked, on a busy machine; compiling has a limit of its own
BASELINE_SHARE = 8
"""One in so many rows of a large answer is held against the truth."""
_LEAST_S = 0.05  # a time-out of zero would mean that nobody waits at all


def _nothing() -> None:
    """Ahead of a call whose inputs are there."""


class NotReady(Exception):
    """A baseline took longer than the preparation may, or ended the process as it was prepared; the
    process is of no use any more."""

    def __init__(self, baseline: str, ended: str = "") -> None:
        """`ended` says how it ended the process; empty: it was late."""
        super().__init__(baseline)
        self.baseline = baseline
        self.ended = ended


@dataclass(frozen=True)
class BaselinePlace:
    """Where baselines run."""

    device: str = ""
    """Torch's name for it; empty: the CPUs, over the memory of the calls."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """By which the driver shows the one device."""
    nodes: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    """What a jail must show of it."""


@dataclass(frozen=True)
class _Question:
    """What every baseline is asked on one slot."""

    slot: Slot
    before: Item
    """The values that it is prepared on."""
    item: Item
    """Others, for the call that is judged."""
    rows: Rows | None
    judged: Item
    """The same in these rows, of an answer that is judged in parts."""

    @classmethod
    def draw(cls, problem: Problem, slot: Slot, rng: np.random.Generator) -> Self:
        """Once for all baselines: of a large workload this takes longer than they do."""
        before = make_item(problem, slot.structure, Family.NORMAL, rng)
        item = make_item(problem, slot.structure, Family.UNIFORM, rng)
        if not item.is_parted:
            return cls(slot, before, item, None, item)
        drawn = RowTurns(rng).take(slot.structure.axes["M"], BASELINE_SHARE)
        rows = take_rows(slot.structure, drawn)
        return cls(slot, before, item, rows, item.part(rows))

    def lay(self, item: Item) -> None:
        """Puts its values where the slot has them."""
        for key, array in item.inputs.items():
            self.slot.inputs[key][...] = array

    def explain_wrong(self, problem: Problem) -> str:
        """What is wrong with the answer that is there; empty: nothing."""
        outputs = self.slot.outputs
        if self.rows:
            outputs = self.rows.take(problem, outputs)
        for output, expected in self.judged.expected.items():
            checks = gates.check_output(
                output,
                outputs[output],
                expected,
                problem.precision,
                Family.UNIFORM,
                poison=None,
            )
            if failed := gates.first_failure(checks):
                return f"its answer is wrong: {failed.name}: {failed.detail}"
        return ""


class BaselineProcess:
    """One process with every baseline of a problem prepared on a structure's slots."""

    def __init__(
        self,
        workshop: Workshop,
        problem: Problem,
        structure: Structure,
        *,
        slots: int,
        place: BaselinePlace | None = None,
        is_warm: bool = False,
        instances: int = 1,
    ) -> None:
        """Raises PrerequisiteError where the device cannot be used.

        Args:
            is_warm: A device's L2 cache holds the inputs of a call.
            instances: So many calls are made at a time.
        """
        where = place or BaselinePlace()
        self._problem = problem
        self._instances = instances
        self._prepared = {each.name for each in problem.baselines if each.is_prepared}
        inputs, outputs = footprint(problem, structure.axes)
        held = sum(array.nbytes + 2 * PAGE for array in structure.arrays.values())
        self.shift = int(np.random.default_rng().integers(0, MOST_SHIFT))
        """Of all calls that are timed in its memory."""
        self.arena = Arena(slots * (inputs + held) + 2 * MOST_SHIFT, slots * outputs + MOST_SHIFT)
        """The memory of its calls, in which candidates are timed as well."""
        ours, theirs = socket.socketpair()
        self._channel = ours
        self._is_given_up = False
        self._lines = ours.makefile("rb")
        self._gate = Gate()
        is_written = any(each.writes_inputs for each in problem.baselines)
        fds = self.arena.open_fds(is_written=is_written)
        # A pipe that nobody reads would stop a library that warns at length.
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        with theirs:
            self._process = self._start(workshop, theirs.fileno(), fds, where)
        try:
            self._gate.watch(self._process.pid)
            self._open(fds, where.device, _kept_by(workshop, problem) / "compiled", is_warm)
            self._place(structure, slots)
        except BaseException:
            self.close()
            raise
        finally:
            self._gate.close_fds()
            for fd in fds:
                os.close(fd)

    def _start(
        self,
        workshop: Workshop,
        channel: int,
        fds: tuple[int, int],
        where: BaselinePlace,
    ) -> TrustedTree | JailedTree:
        """The process: in a jail where a user's file has baselines of its own."""
        module, cpus = "verifier.baselines.host", ",".join(map(str, workshop.cpus))
        kept = _kept_by(workshop, self._problem)
        env = {**_environment(workshop, kept, self._instances), **where.environment}
        passed = (channel, *fds, *self._gate.fds)
        if self._problem.text:
            return JailedTree(
                workshop,
                house_command(module, str(channel), cpus),
                Confinement(
                    readable=(*house_paths(), *where.readable),
                    devices=where.nodes,
                    writable=(kept,),
                    pass_fds=passed,
                    env=env,
                    cpus=workshop.cpus,
                ),
                self._words,
            )
        # What compiles below it would go on with nobody to take its result.
        command = [sys.executable, "-m", f"kernelwright.{module}", str(channel), cpus]
        return TrustedTree(command, env, passed, self._words.fileno())

    def _open(self, fds: tuple[int, int], device: str, compiled: Path, is_warm: bool) -> None:
        opened = self._send(
            {
                "do": "open",
                "problem": self._problem.name,
                "text": self._problem.text,
                "fds": list(fds),
                "sizes": list(self.arena.sizes),
                "gate": self._gate.fds,
                "device": device,
                "is_warm": is_warm,
                "instances": self._instances,
                "compiled": str(compiled),
            }
        )
        if not opened["ok"]:
            raise PrerequisiteError(
                f"the baselines cannot run on this GPU: {opened['why']}",
                hint="install a torch that is built for it (pytorch.org says which)",
            )

    def _place(self, structure: Structure, slots: int) -> None:
        self.slots = [
            self.arena.place_apart(self._problem, structure, self.shift) for _ in range(slots)
        ]
        for slot in self.slots:
            self._send(
                {
                    "do": "slot",
                    "slot": slot.index,
                    "axes": slot.structure.axes,
                    "inputs": _places(slot.input_regions),
                    "outputs": _places(slot.output_regions),
                }
            )

    @property
    def pid(self) -> int:
        """The process that runs the baselines."""
        return self._process.pid

    def prepare(
        self, names: tuple[str, ...], rng: np.random.Generator, within_s: float = _ANSWER_S
    ) -> tuple[list[str], dict[str, str]]:
        """Prepares and checks the baselines; gives the names that run, and why others do not.

        Raises:
            NotReady: the time that all of them have together was over, or one of them has ended the
                process; it must go.
        """
        usable, missing = [], {}
        ends = time.monotonic() + within_s
        asked = [_Question.draw(self._problem, slot, rng) for slot in self.slots]
        for name in names:
            try:
                why = self._prepare(name, asked, ends)
            except SandboxError as error:
                raise NotReady(name, str(error)) from error
            if why:
                missing[name] = why
            else:
                usable.append(name)
        return usable, missing

    def load(self, name: str, library: Path) -> None:
        """A native kernel of the problem, built as a candidate is, as one more baseline.

        It is trusted: `benchmarks/fairness.py` puts one kernel into both seats with it.
        """
        self._send({"do": "load", "baseline": name, "library": str(library)})

    def add_copy(self, name: str, moved: int) -> None:
        """A copy within the process, which moves so many bytes, as one more baseline."""
        self._send({"do": "add_copy", "baseline": name, "moved": moved})

    def call(
        self,
        name: str,
        slots: list[Slot],
        release: Callable[[], None] = _nothing,
        rest: Callable[[], None] = _nothing,
    ) -> int:
        """Nanoseconds of one call on a slot's inputs, or of several at a time.

        As with a candidate, the process is stopped while `release` writes the inputs and in `rest`,
        and watches a gate, awake, before that opens. What a prepared one makes of new values it
        makes in a call before this one.
        """
        steps = [release, rest]
        if name in self._prepared:
            for slot in slots:
                self._go(name, [slot], steps[:1], refresh=True)
                steps = [_nothing, rest]
        return self._go(name, slots, steps)

    def _go(
        self,
        name: str,
        slots: list[Slot],
        ahead: list[Callable[[], None]],
        *,
        refresh: bool = False,
    ) -> int:
        nonce = secrets.randbits(32) or 1
        numbers = [slot.index for slot in slots]
        asked = {"baseline": name, "slots": numbers, "nonce": nonce, "refresh": refresh}
        self._stop()
        for step in ahead:
            step()
        self._gate.thaw(lambda: self._tell({"do": "call", **asked}))
        self._gate.open(nonce)
        try:
            spent = int(self._receive()["ns"])
        except OSError as error:
            raise self._failure(str(error)) from error
        # What a library does behind its answer is not to disturb whoever is timed next.
        self._stop()
        return spent

    def _stop(self) -> None:
        """Has the process stand still until it is asked again."""
        self._gate.freeze(lambda: cpu_ns(self._process.pid))

    def count(self, name: str, slot: Slot) -> tuple[int, int] | str:
        """How many operations one call of a baseline by torch takes, at the least and at the most
        (counting.py), or why they cannot be counted."""
        answer = self._send({"do": "count", "baseline": name, "slot": slot.index})
        if not answer["ok"]:
            return str(answer["why"])
        if answer["unknown"]:
            return f"it calls {', '.join(map(str, answer['unknown']))}"
        if not answer["least"]:
            return "it computes with nothing of torch"
        return int(answer["least"]), int(answer["most"])

    def touch(self) -> None:
        """Has it touch its memory, once there are other pages: no timed call is to find them."""
        self._send({"do": "touch"})

    def peaks(self) -> dict[str, float]:
        """What the device reaches, measured now (baseline_device.Device.peaks); or nothing."""
        answer = self._send({"do": "peaks"})
        return {name: float(value) for name, value in answer.get("peaks", {}).items()}

    def give_up(self) -> None:
        """Whoever waits for an answer of it gets an error at once. From any thread; it still has
        to be closed."""
        self._is_given_up = True
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends the process with all that it started, and gives the memory back."""
        self._channel.close()
        self._process.close()
        self._gate.close()
        self._words.close()
        self._lines.close()
        self.slots = []
        self.arena.close()

    def _prepare(self, name: str, asked: list[_Question], ends: float) -> str:
        for question in asked:
            question.lay(question.before)
            try:
                answer = self._send(
                    {"do": "prepare", "baseline": name, "slot": question.slot.index},
                    max(_LEAST_S, ends - time.monotonic()),
                )
            except TimeoutError as error:
                raise NotReady(name) from error
            if not answer["ok"]:
                return str(answer["why"])
        # Other values at the same addresses: a baseline that kept a copy would fail here.
        for question in asked:
            question.lay(question.item)
            self.call(name, [question.slot])
            if why := question.explain_wrong(self._problem):
                return why
        return ""

    def _send(self, request: dict[str, Any], within_s: float | None = None) -> dict[str, Any]:
        """The answer. TimeoutError where a time was given and it is over."""
        try:
            self._channel.settimeout(within_s or _ANSWER_S)
            self._tell(request)
            return self._receive()
        except TimeoutError as error:
            if within_s is not None:
                raise
            raise self._failure(str(error)) from error
        except OSError as error:
            raise self._failure(str(error)) from error

    def _tell(self, request: dict[str, Any]) -> None:
        self._gate.release()
        self._channel.sendall(json.dumps(request).encode() + b"\n")

    def _receive(self) -> dict[str, Any]:
        line = self._lines.readline()
        if not line:
            raise self._failure("it closed its channel")
        return json.loads(line)  # type: ignore[no-any-return]

    def _failure(self, reason: str) -> SandboxError:
        return SandboxError(f"the baseline process failed ({reason}): {self._last_words()}")

    def _last_words(self) -> str:
        if self._is_given_up:
            return "nobody waits for it any more"
        try:
            status = self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            return "it is still running"
        self._words.seek(0)
        words = self._words.read().decode("utf-8", "replace").strip().splitlines()
        return (words[-1] if words else f"exit status {status}")[:400]


def _places(regions: dict[str, TensorRegion]) -> dict[str, list[object]]:
    return {name: [r.offset, r.dtype, list(r.shape)] for name, r in regions.items()}


def _kept_by(workshop: Workshop, problem: Problem) -> Path:
    """Where compilers keep what they make: a user's problem in a folder of its own, since whoever
    loads from there runs what it left."""
    own = Path("own") / f"{problem.name}-{problem.version}" if problem.text else Path()
    folder = workshop.folder / own
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _environment(workshop: Workshop, kept_in: Path, instances: int) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in _KEPT}
    cache = kept_in / "inductor"
    cache.mkdir(parents=True, exist_ok=True)
    return {
        **kept,
        **thread_environment(len(workshop.cpus), instances),
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
