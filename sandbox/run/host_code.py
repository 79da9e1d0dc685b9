"""Host-code candidates: a Python module that our Python runner executes in a process of its own.

The contract of such a module for a problem with axes M, N, input x and output y is one of

    def run(M, N, x, y) -> None            writes y; parameters are given by name, and a function
                                           may leave out those it has no use for. One that takes
                                           no output returns them instead.
    class ModelNew(torch.nn.Module)        `forward(x)` gets the inputs in their order and returns
                                           y, or a tuple where there are several outputs. It is made
                                           once for each combination of axes, with those axes that
                                           its `__init__` names.

Tensors lie in shared memory: inputs in read-only pages (writing one ends the process), outputs
writable. The objects stay from call to call while the referee uses the same memory. What is
returned must be plain tensors of exactly the right dtype and shape; the runner copies them, and
the copy is part of the time. Gradients are off. Threads are allowed, processes are not: what starts
a compiler (torch.compile, Triton, torch's C++ extensions) fails.

This module knows which interpreter runs and what it may read; `runner.py` is what runs.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
from pathlib import Path

from ...errors import PrerequisiteError
from ...kernelbench.problem import Problem
from ..build.model import Built
from ..interpreter import FLAGS, homes, interpreter, needed
from .program import Descriptors, Program

RAISED = 90
"""The runner's exit status where the candidate's code raised; `runner.py` holds the same."""

_RUNNER = Path(__file__).with_name("runner.py")
_PACKAGES = ("site-packages", "dist-packages")


def host_program(built: Built, problem: Problem, entry: str) -> Program:
    """The program of a checked module whose entry point is `entry`.

    Raises:
        PrerequisiteError: torch is not where packages are installed.
    """
    folders = packages()
    plan = {
        "entry": entry,
        "axes": list(problem.axes),
        "inputs": [[t.name, t.dtype, list(t.shape)] for t in problem.inputs],
        "outputs": [[t.name, t.dtype, list(t.shape)] for t in problem.outputs],
        "packages": [str(folder) for folder in folders],
    }

    def command(given: Descriptors, folder: Path) -> list[str]:
        words = [*given.gated_words, str(folder)]
        return [str(interpreter()), *FLAGS, str(_RUNNER), *words]

    return Program(
        built,
        {"candidate.py": built.artefact, "plan.json": json.dumps(plan).encode()},
        command,
        readable=(*needed(interpreter(), *homes(), *folders), _RUNNER),
        # torch alone takes seconds to import, many on a busy machine.
        start_timeout_s=120.0,
        load_timeout_s=30.0,
        memory_bytes=1 << 30,
        processes=256,
        open_files=256,
        exits={RAISED: "its code raised"},
        # Measured: 10 to 20 µs on an idle machine, up to 90 on one with three times its load.
        overhead_us=60.0,
    )


@functools.lru_cache(maxsize=1)
def packages() -> tuple[Path, ...]:
    """The folders of installed packages that a candidate can import from; torch is in one of them.

    Raises:
        PrerequisiteError: it is not.
    """
    found = tuple(dict.fromkeys(
        Path(entry).resolve() for entry in sys.path
        if Path(entry).name in _PACKAGES and Path(entry).is_dir()
    ))  # fmt: skip
    spec = importlib.util.find_spec("torch")
    home = Path(spec.origin).resolve().parent.parent if spec and spec.origin else None
    if home not in found:
        raise PrerequisiteError(
            "torch is not installed in this interpreter's site-packages, so that Python candidates "
            f"cannot be run (found: {home})",
            hint="install torch into the environment that kernelwright runs in",
        )
    return found
