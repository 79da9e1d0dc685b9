# SPDX-License-Identifier: Apache-2.0
"""Runs NVRTC on one source: a fresh jail, one short-lived process, two memory files.

The process is `nvrtc.py`. It starts for one source and is gone before the next, so that nothing of
one candidate can reach another. Its answer is read as what it is: the words of a process that a
candidate may have taken over.
"""

from __future__ import annotations

import marshal
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ...errors import PrerequisiteError, SandboxError
from ..interpreter import FLAGS, drop_nested_paths, homes, interpreter
from ..isolation.model import Confinement, End, Limits, Outcome
from . import cuda_diagnostics, diagnostics, nvrtc, shims, toolchain
from .model import BuildFailed
from .toolchain import Nvrtc
from .workshop import Workshop

_PROGRAM = Path(__file__).with_name("nvrtc.py")
_FIXED = (
    "--std=c++20",
    "-lineinfo",
    "--fmad=true",
    "--device-as-default-execution-space",
    f"--pre-include={shims.PRELUDE}",
)
"""No candidate has a say: fast mathematics is a matter of its own intrinsics. nvcc takes helpers
without __device__ that are only called while it compiles; here they are read as device code."""
_VERBOSE = "--ptxas-options=-v"
_ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
_OUT_OF_MEMORY, _INVALID_OPTION = 1, 5
"""Result codes of NVRTC."""


class Compiled(NamedTuple):
    """One cubin, as the compiler gave it."""

    cubin: bytes
    symbols: tuple[str, ...]
    """Of the kernels that were asked for, in their order; empty where the compiler knew none."""
    log: str
    seconds: float
    command: tuple[str, ...]


class Compilation(NamedTuple):
    """What is to be compiled."""

    source: str
    kernels: tuple[str, ...]
    build_name: str
    """`sm_90a`."""
    known: tuple[str, ...] = ()
    """The kernels that the source seems to define, for messages."""


def options(build_name: str) -> tuple[str, ...]:
    """What NVRTC is told, but for the folders of headers."""
    return (f"--gpu-architecture={build_name}", *_FIXED)


def with_headers(workshop: Workshop, tool: Nvrtc) -> Nvrtc:
    """`tool` with the headers that its library carries, where no folder has any.

    Raises:
        SandboxError: they could not be unpacked.
    """
    if tool.includes or not tool.bundles_headers:
        return tool
    folder = toolchain.headers_home(tool, workshop.folder)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True) as place:
            _unpack(tool, Path(place) / "headers")
            # Another process may have been faster.
            with suppress(OSError):
                os.rename(Path(place) / "headers", folder)
    return replace(tool, includes=toolchain.folders_of(folder))


def _unpack(tool: Nvrtc, folder: Path) -> None:
    told = (f"--use-bundled-headers={folder}", "--gpu-architecture=sm_80")
    request = nvrtc.CompileRequest(b"", [], _encode(told), [], {})
    # It reads no source, and the folder it fills is ours.
    answer = _answer(tool, request, Limits(), partial(_run_unconfined, Limits()))
    if isinstance(answer, BuildFailed) or answer.code != nvrtc.COMPILED or not folder.is_dir():
        why = answer.reason if isinstance(answer, BuildFailed) else answer.log.decode()
        raise SandboxError(
            f"NVRTC {tool.version} did not unpack its headers: {why[:300]}",
            hint="pip install 'kernelwright[cuda]' brings them, too",
        )


def compile_source(
    workshop: Workshop, ask: Compilation, tool: Nvrtc, limits: Limits
) -> Compiled | BuildFailed:
    """The cubin of one source, or why there is none.

    Raises:
        PrerequisiteError: this NVRTC does not know the architecture.
        SandboxError: the jail failed.
    """
    started = time.monotonic()
    told = options(ask.build_name)
    request = nvrtc.CompileRequest(
        ask.source.encode(),
        [name.encode() for name in ask.kernels],
        _encode((*told, *(f"-I{folder}" for folder in tool.includes))),
        [_VERBOSE.encode()],
        shims.headers(ask.source, tool.includes),
    )
    answer = _answer(tool, request, limits, partial(_run_jailed, workshop, tool, limits))
    seconds = time.monotonic() - started
    command = ("nvrtc", *told)
    if isinstance(answer, BuildFailed):
        return answer
    log = diagnostics.clean_words(answer.log, [str(folder) for folder in tool.includes])
    if answer.code == _INVALID_OPTION:
        raise PrerequisiteError(
            f"NVRTC {tool.version} cannot build for {ask.build_name}: {log[:200].strip()}",
            hint="install a newer kernelwright[cuda], or choose another target",
        )
    if answer.code != nvrtc.COMPILED:
        return _failure(ask, answer.code, log, seconds, command)
    symbols = tuple(name.decode(errors="replace") for name in answer.lowered)
    return Compiled(answer.cubin, symbols, log, seconds, command)


def _failure(
    ask: Compilation, code: int, log: str, seconds: float, command: tuple[str, ...]
) -> BuildFailed:
    limit = "out of memory" if code == _OUT_OF_MEMORY else cuda_diagnostics.limit(log)
    if limit is not None:
        reason = f"the compiler met a limit: {limit}"
    else:
        reason = cuda_diagnostics.reason(
            log, kernels=ask.kernels, known=ask.known, source=ask.source
        )
    return BuildFailed(reason, log, is_resource=limit is not None, seconds=seconds, command=command)


_Run = Callable[[list[str], tuple[int, ...]], Outcome]
"""Runs a command that keeps these descriptors."""


def _answer(
    tool: Nvrtc, request: nvrtc.CompileRequest, limits: Limits, run: _Run
) -> nvrtc.Compiled | BuildFailed:
    asked, told = os.memfd_create("kw-request"), os.memfd_create("kw-answer")
    try:
        with os.fdopen(os.dup(asked), "wb") as file:
            file.write(marshal.dumps(tuple(request)))
        os.lseek(asked, 0, os.SEEK_SET)
        command = [
            str(interpreter()),
            *FLAGS,
            str(_PROGRAM),
            str(tool.library),
            str(tool.builtins or ""),
            str(asked),
            str(told),
        ]
        outcome = run(command, (asked, told))
        said = os.pread(told, limits.file_bytes, 0)
    finally:
        os.close(asked)
        os.close(told)
    if outcome.end is not End.EXITED or outcome.code != 0:
        return stopped_failure(outcome)
    answer = _parse_answer(said)
    return answer or BuildFailed("the compiler gave no answer", seconds=outcome.wall_s)


def _run_unconfined(limits: Limits, command: list[str], fds: tuple[int, ...]) -> Outcome:
    started = time.monotonic()
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=fds,
            check=False,
            env=_ENVIRONMENT,
            cwd="/",
            timeout=limits.wall_s,
        )
    except subprocess.TimeoutExpired:
        return Outcome(End.WALL, wall_s=limits.wall_s, detail=f"{limits.wall_s:g} s")
    return Outcome(
        End.EXITED, done.returncode, stderr=done.stderr, wall_s=time.monotonic() - started
    )


def _run_jailed(
    workshop: Workshop, tool: Nvrtc, limits: Limits, command: list[str], fds: tuple[int, ...]
) -> Outcome:
    confinement = Confinement(
        readable=(*drop_nested_paths(interpreter(), *homes(), *tool.readable), _PROGRAM),
        pass_fds=fds,
        env=_ENVIRONMENT,
        may_fork=False,
        may_mark=False,
    )
    job = workshop.jail.start(command, confinement, limits)
    try:
        return job.wait()
    finally:
        job.kill()


def stopped_failure(outcome: Outcome) -> BuildFailed:
    """What a compiler that did not end well is told as."""
    words = diagnostics.clean_words(outcome.stderr, ())
    if outcome.end is End.EXITED:
        last = (words.strip().splitlines() or [""])[-1]
        return BuildFailed(
            diagnostics.shorten(f"the compiler failed: exit status {outcome.code} {last}"),
            words,
            seconds=outcome.wall_s,
        )
    if outcome.end is End.SIGNALLED:
        why = (
            f"the compiler crashed (signal {outcome.code}) after {outcome.wall_s:.1f} s; "
            "expressions or templates may be nested too deeply"
        )
    else:
        why = f"the compiler was stopped: {outcome.end.value} ({outcome.detail})"
        why += "; unroll less, or instantiate fewer templates"
    return BuildFailed(why, words, is_resource=True, seconds=outcome.wall_s)


def _parse_answer(said: bytes) -> nvrtc.Compiled | None:
    """The counterpart of `nvrtc.write_answer`; None for anything else."""
    head, found, rest = said.partition(b"\n")
    numbers = head.split(b" ")
    if not found or len(numbers) != 4 or not all(n.isdigit() and len(n) < 10 for n in numbers):
        return None
    code, names, log, cubin = map(int, numbers)
    if len(rest) != names + log + cubin:
        return None
    lowered = rest[:names].split(b"\n") if names else []
    return nvrtc.Compiled(code, lowered, rest[names : names + log], rest[names + log :])


def _encode(words: tuple[str, ...]) -> list[bytes]:
    return [word.encode() for word in words]
