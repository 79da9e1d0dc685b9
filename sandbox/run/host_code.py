# SPDX-License-Identifier: Apache-2.0
"""Host-code candidates: a Python module that our Python runner executes in a process of its own.

The contract of such a module for a problem with axes M, N, input x and output y is one of

    def run(M, N, x, y) -> None            writes y; parameters are given by name, and a function
                                           may leave out those it has no use for. One that takes
                                           no output returns them instead. One that takes **more
                                           is given all; what it returns counts, if it does.
    class ModelNew(torch.nn.Module)        `forward(x)` gets the inputs in their order and returns
                                           y, or a tuple where there are several outputs. It is made
                                           once for each combination of axes: parameters of its
                                           `__init__` that are named as axes get these, all others
                                           what the file's `get_init_inputs()` returns, a list as in
                                           KernelBench.

All tensors of the problem are inputs, weights too. Weights that a constructor makes are the
candidate's own: nothing is copied into them, no seed is set, and an answer that depends on them is
wrong.

Tensors lie in shared memory: inputs in read-only pages (writing one ends the process), outputs
writable. The objects stay from call to call while the referee uses the same memory. What is
returned must be plain tensors of exactly the right dtype and shape; the runner copies them, and
the copy is part of the time. Gradients are off. Threads are allowed, processes are not: what starts
a compiler (torch.compile, torch's C++ extensions) is UNSUPPORTED, with the line where it is used,
and so are Triton kernels where there is no device.

This module knows which interpreter runs and what it may read; `runner.py` is what runs.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from ...errors import PrerequisiteError
from ...kernelbench.problem import Problem
from ...traces.records import Status
from ..builders.model import Built
from ..builders.workshop import Workshop
from ..interpreter import FLAGS, drop_nested_paths, homes, interpreter
from ..isolation.allow_list import PYTHON
from .binary import refused_call_library
from .program import Descriptors, Program

RAISED, REFUSED = 90, 93
"""The runner's exit statuses where the candidate's code raised, and where it wanted what it cannot
have; `runner.py` holds the same."""
EXITS = {RAISED: "its code raised", REFUSED: "not supported in host code:"}
STATUSES = {REFUSED: Status.UNSUPPORTED}

_RUNNER = Path(__file__).with_name("runner.py")
RUNNER_FILES = (_RUNNER, *(Path(__file__).with_name(f"{name}.py") for name in ("contract", "crew")))
"""What the runner consists of."""

_PACKAGES = ("site-packages", "dist-packages")


def signature(problem: Problem, entry: str) -> dict[str, object]:
    """What a runner is told of its entry point and of what that is given."""
    return {
        "entry": entry,
        "axes": list(problem.axes),
        "inputs": [[t.name, t.dtype, list(t.shape)] for t in problem.inputs],
        "outputs": [[t.name, t.dtype, list(t.shape)] for t in problem.outputs],
    }


def runner_files(workshop: Workshop, built: Built, plan: Mapping[str, object]) -> dict[str, bytes]:
    """What a Python runner finds in its folder. Raises PrerequisiteError."""
    return {
        "candidate.py": built.artefact,
        "plan.json": json.dumps(plan).encode(),
        "refused_call.so": refused_call_library(workshop).read_bytes(),
    }


def host_program(workshop: Workshop, built: Built, problem: Problem, entry: str) -> Program:
    """The program of a checked module whose entry point is `entry`.

    Raises:
        PrerequisiteError: torch is not where packages are installed, or there is no compiler.
    """
    folders = packages()
    plan = {**signature(problem, entry), "packages": [str(folder) for folder in folders]}

    def command(given: Descriptors, folder: Path) -> list[str]:
        words = [*given.gated_words, str(folder)]
        return [str(interpreter()), *FLAGS, str(_RUNNER), *words]

    return Program(
        built,
        runner_files(workshop, built, plan),
        command,
        readable=(*drop_nested_paths(interpreter(), *homes(), *folders), *RUNNER_FILES),
        # torch alone takes seconds to import, many on a busy machine.
        start_timeout_s=120.0,
        load_timeout_s=30.0,
        memory_bytes=1 << 30,
        processes=256,
        open_files=256,
        calls=PYTHON,
        exits=EXITS,
        statuses=STATUSES,
        # Measured: 10 to 20 µs on an idle machine, up to 90 on one with three times its load.
        overhead_us=60.0,
    )


@functools.lru_cache(maxsize=1)
def packages() -> tuple[Path, ...]:
    """The folders of installed packages that a candidate can import from; torch is in one of them.

    Raises:
        PrerequisiteError: it is not.
    """
    found = tuple(
        dict.fromkeys(
            Path(entry).resolve()
            for entry in sys.path
            if Path(entry).name in _PACKAGES and Path(entry).is_dir()
        )
    )
    spec = importlib.util.find_spec("torch")
    home = Path(spec.origin).resolve().parent.parent if spec and spec.origin else None
    if home not in found:
        raise PrerequisiteError(
            "torch is not installed in this interpreter's site-packages, so that Python candidates "
            f"cannot be run (found: {home})",
            hint="install torch into the environment that kernelwright runs in",
        )
    return found
