# SPDX-License-Identifier: Apache-2.0
"""Outside of the jail in which a user's problem runs: asks it for values and answers.

What comes back is held against what the problem declares; nothing of it is executed. Whatever the
file does wrong is the user's to mend: a UsageError with its line.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ...errors import SandboxError, UsageError
from ...kernelbench.dtypes import DTYPES
from ...kernelbench.problem import Arrays, Expected, Family, Problem, Structure, Tensor
from ..builders.workshop import Workshop
from ..interpreter import FLAGS, drop_nested_paths, homes, interpreter
from ..isolation import choose
from ..isolation.model import Confinement, Job, Limits, Outcome
from ..run.host_code import packages
from ..run.starting import thread_environment
from .inside import KEPT_STRUCTURES
from .wire import Message, WireError, receive, send

START_S, ANSWER_S = 120.0, 120.0
"""Until it is up, and until it answers."""
LIMITS = Limits(
    # It lives as long as the referee does; each answer has a deadline of its own.
    wall_s=30 * 86_400.0,
    cpu_s=30 * 86_400.0,
    memory_bytes=16 << 30,
    processes=256,
    open_files=256,
)
_HOUSE = Path(__file__).resolve().parents[2]
_ROOMS = (
    "__init__.py", "version.py", "config.py", "errors.py", "extras.py", "kernelbench", "sandbox",
    "traces", "verifier",
)  # fmt: skip
"""What of our house programs in such jails import."""
_HELD = "as the definition holds it"
"""In the cache of a structure: its number there."""
_START = Path(__file__).with_name("start.py")


@contextmanager
def open_problem(problem: Problem, workshop: Workshop | None = None) -> Iterator[Problem]:
    """The problem with functions that can be called: a user's in a jail, the best one of this
    machine where no workshop says which."""
    if not problem.text:
        yield problem
        return
    definition = Definition(problem, workshop or Workshop(choose(), Path()))
    try:
        yield definition.problem()
    finally:
        definition.close()


def house_command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module of ours in a jail. Raises PrerequisiteError."""
    folders = os.pathsep.join(str(folder) for folder in packages())
    return [str(interpreter()), *FLAGS, str(_START), str(_HOUSE), folders, module, *arguments]


def house_paths() -> tuple[Path, ...]:
    """What a jail must show for it. Raises PrerequisiteError."""
    rooms = [path for name in _ROOMS if (path := _HOUSE / name).exists()]
    return drop_nested_paths(interpreter(), *homes(), *packages(), *rooms)


@dataclass(frozen=True)
class _Asked:
    """A request, and what its answer may take."""

    message: Message
    arrays: Sequence[np.ndarray]
    most_bytes: int


class Definition:
    """One user's problem in a jail of its own. Thread-safe: one request at a time."""

    def __init__(self, problem: Problem, workshop: Workshop, place: str = "") -> None:
        """Starts it and runs the file.

        Args:
            problem: as it is read (kernelbench/definition.py).
            place: what the file is called in an error.

        Raises:
            UsageError: the file raises, ends, or takes too long.
            SandboxError: the jail failed.
        """
        self._problem, self._place = problem, place or f"{problem.name}.py"
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._held: OrderedDict[int, None] = OrderedDict()
        self._ended = ""
        self._channel, theirs = socket.socketpair()
        confinement = Confinement(
            readable=house_paths(),
            pass_fds=(theirs.fileno(),),
            env={**thread_environment(len(workshop.cpus)), "PYTHONDONTWRITEBYTECODE": "1"},
            cpus=workshop.cpus,
            may_fork=False,
            may_mark=False,
        )
        with theirs:
            command = house_command("sandbox.definitions.inside", str(theirs.fileno()))
            try:
                self._job: Job = workshop.jail.start(command, confinement, LIMITS)
            except BaseException:
                self._channel.close()
                raise
        try:
            self._await_ready()
            text = {"name": problem.name, "text": problem.text, "place": self._place}
            self._ask("runs", _Asked({"do": "load", **text}, (), 0))
        except BaseException:
            self.close()
            raise

    def problem(self) -> Problem:
        """The problem, with functions that ask this process."""
        return replace(self._problem, values=self.values, oracle=self.oracle)

    def values(self, structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
        """See Problem. Raises UsageError where the file fails or gives what it may not."""
        seed = int(rng.integers(1 << 62))
        wanted = [tensor for tensor in self._problem.inputs if not tensor.is_index]
        asked = {"do": "values", "family": family.value, "seed": seed}
        with self._lock:
            message, arrays = self._ask_of(structure, "values", asked, {}, wanted, parts=1)
        found = self._name("values", message, arrays, wanted)
        for tensor in wanted:
            self._ensure_like(tensor, structure, found[tensor.name], tensor.dtype)
            if family is not Family.NONFINITE and not np.isfinite(found[tensor.name]).all():
                self._refuse("values", f"{tensor.name} is not finite in the family {family}")
        return found

    def oracle(self, structure: Structure, inputs: Arrays) -> dict[str, Expected]:
        """See Problem. Raises UsageError where the file fails or gives what it may not."""
        wanted = self._problem.outputs
        with self._lock:
            message, arrays = self._ask_of(
                structure, "oracle", {"do": "oracle"}, inputs, wanted, parts=3
            )
        names, exact = message.get("names"), message.get("exact", [])
        if names != [t.name for t in wanted] or len(arrays) != 3 * len(wanted):
            self._refuse("oracle", f"it answers {names}, not {[t.name for t in wanted]}")
        found = {}
        for at, tensor in enumerate(wanted):
            value, scale, terms = arrays[3 * at : 3 * at + 3]
            self._ensure_like(tensor, structure, value, "float64")
            try:
                np.broadcast_to(scale, value.shape), np.broadcast_to(terms, value.shape)
            except ValueError:
                self._refuse("oracle", f"the scale of {tensor.name} has shape {scale.shape}")
            if not (np.isfinite(terms).all() and (scale >= 0).all()):
                self._refuse("oracle", f"a scale of {tensor.name} is negative or no number")
            found[tensor.name] = Expected(
                value, scale, float(terms) if terms.ndim == 0 else terms, bool(exact[at])
            )
        return found

    def close(self) -> Outcome:
        """Ends the process. May be called twice."""
        self._channel.close()
        return self._job.kill()

    def _ask_of(
        self,
        structure: Structure,
        function: str,
        asked: Message,
        inputs: Mapping[str, np.ndarray],
        wanted: Sequence[Tensor],
        parts: int,
    ) -> tuple[Message, list[np.ndarray]]:
        """A request about a structure, whose arrays are sent where they are not there any more."""
        number = structure.cache.setdefault(_HELD, next(self._numbers))
        sent = {} if number in self._held else structure.arrays
        self._held[number] = None
        self._held.move_to_end(number)
        while len(self._held) > KEPT_STRUCTURES:
            self._held.popitem(last=False)
        told = {
            "structure": number,
            "axes": structure.axes,
            "index": list(sent),
            "names": [*sent, *inputs],
        }
        sizes = [int(np.prod(t.extent(structure.axes), dtype=object)) for t in wanted]
        most = parts * (8 * sum(sizes) + 64)
        arrays = [*sent.values(), *inputs.values()]
        return self._ask(function, _Asked({**asked, **told}, arrays, most))

    def _ask(self, function: str, asked: _Asked) -> tuple[Message, list[np.ndarray]]:
        if self._ended:
            raise UsageError(self._ended, hint=self._hint(function))
        self._channel.settimeout(ANSWER_S)
        try:
            send(self._channel, asked.message, asked.arrays)
            message, arrays = receive(self._channel, asked.most_bytes)
        except TimeoutError:
            self._end(function, f"it gave no answer within {ANSWER_S:g} s")
        except (WireError, OSError) as error:
            self._end(function, str(error))
        if "why" in message:
            self._refuse(function, str(message["why"])[:400], int(message.get("line") or 0))
        return message, arrays

    def _await_ready(self) -> None:
        self._channel.settimeout(START_S)
        try:
            receive(self._channel, 0)
        except (WireError, OSError) as error:
            words = self._job.kill().stderr.decode("utf-8", "replace").strip().splitlines()
            raise SandboxError(
                f"the process of the problem {self._problem.name} did not start ({error}): "
                f"{words[-1][:300] if words else 'no words'}"
            ) from error

    def _end(self, function: str, why: str) -> NoReturn:
        """The process is of no use any more."""
        outcome = self._job.kill()
        how = f"{outcome.end} {outcome.detail or outcome.code or ''}".strip()
        words = outcome.stderr.decode("utf-8", "replace").strip().splitlines()
        self._ended = f"{self._place}: {function}: {why} ({how})"
        if words:
            self._ended += f": {words[-1][:300]}"
        raise UsageError(self._ended, hint=self._hint(function))

    def _refuse(self, function: str, why: str, line: int = 0) -> NoReturn:
        place = f"{self._place}:{line}" if line else self._place
        raise UsageError(f"{place}: {function}: {why}", hint=self._hint(function))

    def _hint(self, function: str) -> str:
        return (
            f"mend {function} in that file; it runs in a jail: without files, network or processes"
        )

    def _name(
        self, function: str, message: Message, arrays: list[np.ndarray], wanted: Sequence[Tensor]
    ) -> Arrays:
        names = message.get("names")
        if names != [tensor.name for tensor in wanted] or len(arrays) != len(wanted):
            self._refuse(function, f"it gives {names}, not {[t.name for t in wanted]}")
        return dict(zip(names, arrays, strict=True))

    def _ensure_like(
        self, tensor: Tensor, structure: Structure, array: np.ndarray, dtype: Any
    ) -> None:
        wanted = tensor.extent(structure.axes)
        name = DTYPES[dtype].name if dtype in DTYPES else dtype
        if array.shape != wanted or array.dtype != np.dtype(name):
            axes = ", ".join(f"{axis}={value}" for axis, value in structure.axes.items())
            self._refuse(
                "oracle" if dtype == "float64" else "values",
                f"{tensor.name} is {array.dtype}{list(array.shape)} and must be "
                f"{name}{list(wanted)} for {axes}",
            )
