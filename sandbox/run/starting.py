# SPDX-License-Identifier: Apache-2.0
"""How a runner's process begins, and processes that have begun before there is a candidate.

A process in waiting is in its jail, under its limits, has imported what takes long, and waits at
its control socket for the memory of its calls; its candidate is put into its folder just before. It
serves one candidate and ends with it, like any other.
"""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

from ..builders.workshop import Workshop
from ..frames import channel
from ..isolation.allow_list import build_allow_filter
from ..isolation.model import Confinement, Limits
from ..isolation.seccomp import build_filter
from .begun import Begun, Plane, fill_folder
from .gate import Gate
from .program import Descriptors, Program


def begin(
    workshop: Workshop,
    program: Program,
    plane: Plane | None,
    *,
    limits: Limits,
) -> Begun:
    """Starts the program's process in the jail; without a plane it waits to be handed one.

    Raises:
        SandboxError: the jail failed.
    """
    folder = tempfile.TemporaryDirectory(prefix="kw-run-", ignore_cleanup_errors=True)
    place = Path(folder.name)
    place.chmod(0o755)
    if plane:
        fill_folder(place, program.files)
    gate = Gate()
    ours, theirs = channel()
    filter_fd = _filter_fd(program)
    inputs, outputs, input_bytes, output_bytes = plane or Plane(-1, -1, 0, 0)
    given = Descriptors(
        theirs.fileno(), inputs, input_bytes, outputs, output_bytes, filter_fd, *gate.fds
    )
    memory = (inputs, outputs) if plane else ()
    confinement = Confinement(
        readable=(*program.readable, place),
        devices=program.devices,
        pass_fds=(given.control, *memory, filter_fd, *gate.fds),
        env={**thread_environment(len(workshop.cpus), program.instances), **program.environment},
        cpus=workshop.cpus,
        may_mark=False,
    )
    try:
        job = workshop.jail.start(program.command(given, place), confinement, limits)
    except BaseException:
        ours.close()
        gate.close()
        folder.cleanup()
        raise
    finally:
        os.close(filter_fd)
        theirs.close()
    gate.close_fds()
    return Begun(folder, ours, gate, job)


class Waiting:
    """One process in waiting, for programs that differ in their files alone. Thread-safe."""

    def __init__(self, workshop: Workshop, limits: Limits) -> None:
        self._workshop, self._limits = workshop, limits
        self._lock = threading.Lock()
        self._process: Begun | None = None
        self._is_closed = False

    def prepare(self, program: Program) -> None:
        """Starts a process for programs like this one, unless one waits already."""
        with self._lock:
            if self._process is None and not self._is_closed:
                self._process = self._begin_one(program)

    def take(self, program: Program, plane: Plane) -> Begun:
        """The process that waits, or a new one, with this program's files and its memory."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None and process.job.poll() is not None:
            process.close()
            process = None
        process = process or self._begin_one(program)
        try:
            process.fill(program.files)
            process.give(plane)
        except BaseException:
            process.close()
            raise
        return process

    def close(self) -> None:
        """Ends the process that waits; no other is started."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.close()
                self._process = None

    def _begin_one(self, program: Program) -> Begun:
        return begin(self._workshop, program, None, limits=self._limits)


ASLEEP = {"OPENBLAS_THREAD_TIMEOUT": "4"}
"""OpenBLAS's threads sleep behind a product. By themselves they spin for a tenth of a second,
beside whoever is timed meanwhile."""


KEEPING = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(4 << 30)}
"""What was freed stays with the process. By itself glibc gives it back and gets it anew, page by
page: in some processes, and not in others of the same program, that makes thousands of page faults
of a library's call (`make library-memory`)."""


def thread_environment(cpus: int, instances: int = 1) -> dict[str, str]:
    """Threads and memory of either side: as many as CPUs, bound, and asleep when they wait.

    Of several instances each has its share, and is bound by whoever calls it: a library would bind
    all of them to the same CPUs.
    """
    threads = str(max(1, cpus // instances))
    bound = {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}
    return {
        "OMP_NUM_THREADS": threads,
        **(bound if instances == 1 else {"OMP_PROC_BIND": "false"}),
        "OMP_WAIT_POLICY": "passive",
        "OMP_DYNAMIC": "false",
        "GOMP_SPINCOUNT": "0",
        "KMP_BLOCKTIME": "0",
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        **ASLEEP,
        **KEEPING,
    }


def _filter_fd(program: Program) -> int:
    if program.calls:
        rules = build_allow_filter(program.calls)
    else:
        # Beside a device all host code is ours, and the driver's.
        rules = build_filter(may_fork=False, may_exec=False, may_catch=False, may_alarm=False)
    fd = os.memfd_create("kw-filter", 0)
    os.write(fd, rules)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
