# SPDX-License-Identifier: Apache-2.0
"""The warm builder: imports Triton and torch once, then forks for each source.

It never executes a candidate's code, so no source can leave anything behind in it for the next
one. What a source left running is killed and what it left in private folders removed before the
answer goes out; where its signals would reach others than its own children, it serves one build and
is ended by who started it. It cannot be traced or read by its children, which have its uid.

Control is one JSON object a line over a socket: `{"folder": NAME}` asks for a build in that folder
of the workplace, `{"folder": NAME, "status": N}` says that the child is gone, as wait(2) tells.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
SWEEP_S = 5.0
"""Whoever is not dead by then forks faster than we kill; the jail itself must go."""
UNSWEPT = 71
"""The exit status then; the harness holds the same."""
CPU_S = 60


def main(arguments: list[str]) -> None:
    """CONTROL WORKPLACE SETTINGS: serves until the harness is gone."""
    control, workplace = int(arguments[0]), Path(arguments[1])
    settings = json.loads(arguments[2])
    temporary = Path(os.environ["TMPDIR"])
    keep = [workplace, temporary, *map(Path, settings["keep"])]
    os.set_inheritable(control, False)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_DUMPABLE, ctypes.c_ulong(0))
    libc.prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
    with os.fdopen(control, "r+b", buffering=0) as channel:
        _say(channel, _import_all(settings))
        while line := channel.readline():
            folder = json.loads(line)["folder"]
            status = _run_in_child(workplace / folder, libc, control)
            if settings["may_sweep"]:
                _sweep()
            for private in (temporary, *map(Path, settings["private"])):
                _empty(private, keep)
            _say(channel, {"folder": folder, "status": status})


def _say(channel: Any, words: dict[str, Any]) -> None:
    channel.write(json.dumps(words).encode() + b"\n")


def _import_all(settings: dict[str, Any]) -> dict[str, Any]:
    """Imports what a build needs, so that no child pays for it; says which versions these are."""
    import torch
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend

    from . import load, memory, recording_modes

    load.runner()
    for name in ("triton.compiler.code_generator", "triton.runtime.autotuner"):
        importlib.import_module(name)
    dispatch, device = recording_modes.recording_modes(memory.Memory(), lambda tensor, memory: None)
    with dispatch, device:
        torch.zeros_like(torch.empty((2, 2), device="cuda")).t().is_contiguous()

    _forgo_key(triton.__version__)
    torch.set_grad_enabled(False)
    backend, name, warp = settings["target"]
    make_backend(GPUTarget(backend, name, warp)).hash()
    return {"compiler": f"Triton {triton.__version__}, {_name_assembler(backend, name)}"}


def _name_assembler(backend: str, name: Any) -> str:
    if backend == "hip":
        return "its AMD back end"
    from triton.backends.nvidia import compiler

    return f"ptxas {compiler.get_ptxas(name).version}"


def _forgo_key(version: str) -> None:
    """Spares Triton reading its half a gigabyte to name what it keeps: each build has a folder of
    its own, in which nothing is kept."""
    for name, module in list(sys.modules.items()):
        if name.startswith("triton.") and hasattr(module, "triton_key"):
            setattr(module, "triton_key", lambda: version)  # noqa: B010, modules lack it by type


def _run_in_child(folder: Path, libc: Any, control: int) -> int:
    """Runs one build in a child and gives its status, as wait(2) does."""
    child = os.fork()
    if child == 0:
        try:
            os.close(control)
            libc.prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(0))
            libc.prctl(PR_SET_DUMPABLE, ctypes.c_ulong(1))
            _enter(folder)
            from . import builder

            builder.build(folder)
        finally:
            os._exit(70)
    _, status = os.waitpid(child, 0)
    return status


def _enter(folder: Path) -> None:
    """A session, a place for temporary files and limits of its own; words go to a file."""
    os.setsid()
    os.chdir(folder)
    log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for ours, theirs in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(ours, theirs)
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    private = folder / "tmp"
    private.mkdir()
    os.environ.update(TMPDIR=str(private), HOME=str(private), TRITON_CACHE_DIR=str(private))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))


def _sweep() -> None:
    """Kills everything below this process; leaves where that cannot be done.

    One call reaches all, and no process can fork away from it. Orphans come back to this process,
    so that there are none once it has no child.
    """
    deadline = time.monotonic() + SWEEP_S
    while True:
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if time.monotonic() > deadline:
            os._exit(UNSWEPT)
        time.sleep(0.0005)


def _empty(folder: Path, keep: Sequence[Path]) -> None:
    """Removes what is in a folder that only this jail sees, but for what is mounted in it."""
    for entry in os.scandir(folder):
        path = Path(entry.path)
        if path in keep:
            continue
        if any(one.is_relative_to(path) for one in keep):
            _empty(path, keep)
        elif entry.is_dir(follow_symlinks=False):
            _open_up(path)
            shutil.rmtree(path)
        else:
            path.unlink()


def _open_up(folder: Path) -> None:
    """Lets what is below be removed, whatever mode it was given."""
    os.chmod(folder, 0o700)
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            _open_up(Path(entry.path))
