"""The referee's end of the baseline process: starts it, prepares the baselines, calls them.

A baseline that this machine cannot run is left out and the reason is kept; a baseline whose answer
is wrong by the same gates that candidates meet is left out as well.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SandboxError
from ..kernelbench.problem import Family, Problem, Structure
from ..sandbox.run.process import thread_environment
from . import gates
from .arena import Arena, Region, Slot, footprint
from .trials import make_item

_KEPT = ("PATH", "HOME", "LANG", "PYTHONPATH", "TMPDIR", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
_ANSWER_S = 240.0  # torch.compile's first compilation on a busy machine


class BaselineProcess:
    """One process with every baseline of a problem prepared on a structure's slots."""

    def __init__(
        self,
        problem: Problem,
        structure: Structure,
        *,
        slots: int,
        cpus: tuple[int, ...],
        cache_dir: Path,
    ) -> None:
        self._problem = problem
        inputs, outputs = footprint(problem, structure.axes)
        self._arena = Arena(slots * inputs, slots * outputs)
        ours, theirs = socket.socketpair()
        self._channel = ours
        self._lines = ours.makefile("rb")
        fds = self._arena.open_fds(is_trusted=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kernelwright.verifier.baseline_host", str(theirs.fileno())],
            pass_fds=(theirs.fileno(), *fds),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=_environment(len(cpus), cache_dir),
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )
        theirs.close()
        try:
            self._send({"do": "open", "problem": problem.name, "fds": list(fds),
                        "sizes": list(self._arena.sizes)})  # fmt: skip
            self.slots = [self._arena.place(problem, structure) for _ in range(slots)]
            for slot in self.slots:
                self._send({
                    "do": "slot", "slot": slot.index, "axes": slot.structure.axes,
                    "inputs": _places(slot.input_regions), "outputs": _places(slot.output_regions),
                })  # fmt: skip
        except BaseException:
            self.close()
            raise
        finally:
            for fd in fds:
                os.close(fd)

    @property
    def pid(self) -> int:
        """The process that runs the baselines."""
        return self._process.pid

    def prepare(
        self, names: tuple[str, ...], rng: np.random.Generator
    ) -> tuple[list[str], dict[str, str]]:
        """Prepares and checks the baselines; gives the names that run, and why others do not."""
        usable, missing = [], {}
        for name in names:
            why = self._prepare(name, rng)
            if why:
                missing[name] = why
            else:
                usable.append(name)
        return usable, missing

    def call(self, name: str, slots: list[Slot]) -> int:
        """Nanoseconds of one call on each slot's inputs as they are now, added up."""
        request = {"do": "call", "baseline": name, "slots": [slot.index for slot in slots]}
        return int(self._send(request)["ns"])

    def close(self) -> None:
        """Ends the process and gives the memory back."""
        self._channel.close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()
        self._lines.close()
        self.slots = []
        self._arena.close()

    def _prepare(self, name: str, rng: np.random.Generator) -> str:
        for slot in self.slots:
            item = make_item(self._problem, slot.structure, Family.NORMAL, rng)
            for key, array in item.inputs.items():
                slot.inputs[key][...] = array
            answer = self._send({"do": "prepare", "baseline": name, "slot": slot.index})
            if not answer["ok"]:
                return str(answer["why"])
        # Other values at the same addresses: a baseline that kept a copy would fail here.
        for slot in self.slots:
            item = make_item(self._problem, slot.structure, Family.UNIFORM, rng)
            for key, array in item.inputs.items():
                slot.inputs[key][...] = array
            self.call(name, [slot])
            for output, expected in item.expected.items():
                checks = gates.check_output(
                    output, slot.outputs[output], expected, self._problem.precision,
                    Family.UNIFORM, poison=None,
                )  # fmt: skip
                failed = gates.first_failure(checks)
                if failed:
                    return f"its answer is wrong: {failed.name}: {failed.detail}"
        return ""

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            self._channel.settimeout(_ANSWER_S)
            self._channel.sendall(json.dumps(request).encode() + b"\n")
            line = self._lines.readline()
        except OSError as error:
            line = b""
            reason = str(error)
        else:
            reason = "it closed its channel"
        if not line:
            raise SandboxError(f"the baseline process failed ({reason}): {self._last_words()}")
        return json.loads(line)  # type: ignore[no-any-return]

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)
        if self._process.poll() is None or self._process.stderr is None:
            return "it is still running"
        words = self._process.stderr.read().decode("utf-8", "replace").strip().splitlines()
        return (words[-1] if words else f"exit status {self._process.returncode}")[:400]


def _places(regions: dict[str, Region]) -> dict[str, list[object]]:
    return {name: [r.offset, r.dtype, list(r.shape)] for name, r in regions.items()}


def _environment(cpus: int, cache_dir: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in _KEPT}
    cache = cache_dir / "inductor"
    cache.mkdir(parents=True, exist_ok=True)
    return {
        **kept,
        **thread_environment(cpus),
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
