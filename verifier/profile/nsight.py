# SPDX-License-Identifier: Apache-2.0
"""Runs Nsight Compute over a candidate's launches, and says why where that cannot be done.

ncu starts a host program of ours (`device_runner play`), which calls the candidate a few times; the
last call is profiled. Times are never taken from here: ncu replays a kernel many times with flushed
caches (gpu.md §4.3). A machine that forbids counters is common; every refusal is told with what
would allow it, and what is then left: the timing, and the static profile.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...sandbox.builders import toolchain
from . import ncu_csv

_PLACES = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute", "/usr/local/NVIDIA-Nsight-Compute")
PARAMETERS = Path("/proc/driver/nvidia/params")
WARM_UP_CALLS = 2
_GONE_S = 10.0

ALLOW = (
    "run as root or with CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN), or allow it to everybody: "
    "`options nvidia NVreg_RestrictProfilingToAdminUsers=0` in /etc/modprobe.d, then load the "
    "driver anew"
)

REFUSALS = (
    (r"ERR_NVGPUCTRPERM", "performance counters are for administrators only here", ALLOW),
    (
        r"LibraryNotLoaded",
        "ncu cannot load the driver's profiling library here",
        "sandboxes and some containers do not pass it on: profile outside of them",
    ),
    (
        r"(?i)already (?:being )?profiled|another (?:profiler|tool)|ERR_NVGPUCTR\w*BUSY",
        "another profiler uses the counters",
        "end it (dcgm-exporter can be paused with `dcgmi profile --pause`)",
    ),
    (
        r"(?i)\b(?:MIG|vGPU|virtual)\b[^\n]*not supported|not supported[^\n]*\b(?:MIG|vGPU)\b",
        "this virtual or divided GPU does not let its counters be read",
        "enable profiling for the instance, or use a whole device",
    ),
    (
        r"Failed to find metric\D?\s*(?P<name>[\w.]+)",
        "this version of ncu does not know the metric {name}",
        "use the quick set, or another version of ncu",
    ),
    (
        r"No kernels were profiled",
        "ncu saw none of the candidate's kernels",
        "look at the log: the host program may have failed before its last call",
    ),
)
"""Pattern in ncu's words, what it means, what would help."""


@dataclass(frozen=True)
class Ncu:
    """The profiler of this machine."""

    path: Path
    version: str


@dataclass(frozen=True)
class NotProfiled:
    """Counters could not be read; this is a result, and the candidate's only where it failed."""

    reason: str
    hint: str = ""
    log: str = ""


def find_ncu(search: str | None = None) -> Ncu | None:
    """ncu on the PATH (or on `search`), else in the toolkit's folders; None where there is none."""
    own = toolchain.preferred_tool("ncu") if search is None else None
    found = str(own) if own else shutil.which("ncu", path=search)
    if found is None and search is None:
        known = [Path(p) / "ncu" for p in _PLACES] + sorted(
            (c / "ncu" for p in _PLACES for c in Path(p).glob("*") if c.is_dir()), reverse=True
        )
        found = next((str(path) for path in known if os.access(path, os.X_OK)), None)
    if found is None:
        return None
    told = subprocess.run(
        [found, "--version"], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    version = re.search(r"Version (\S+)", told)
    return Ncu(Path(found), version[1] if version else "unknown")


def counters_are_restricted(parameters: Path = PARAMETERS) -> bool | None:
    """Whether the driver keeps counters to administrators; None where it does not say."""
    try:
        found = re.search(r"^RmProfilingAdminOnly:\s*(\d)", parameters.read_text(), re.MULTILINE)
    except OSError:
        return None
    return found[1] == "1" if found else None


def command(
    ncu: Path,
    host: Sequence[str],
    metrics: Sequence[str],
    kernels: Sequence[str],
    log: Path,
    *,
    launches: int,
    warm_up_calls: int = WARM_UP_CALLS,
) -> list[str]:
    """ncu over the last call of a host program.

    Args:
        host: Makes `warm_up_calls` + 1 calls of `launches` launches of these kernels each.
        kernels: Names of functions, without namespaces and template arguments.
        log: Gets the CSV and ncu's words; the host's own words go to stdout.
    """
    names = "|".join(sorted({re.escape(name) for name in kernels}))
    return [
        str(ncu),
        "--csv",
        "--page",
        "raw",
        "--print-units",
        "base",
        "--log-file",
        str(log),
        "--metrics",
        ",".join(metrics),
        "--kernel-name-base",
        "function",
        "--kernel-name",
        f"regex:^({names})$",
        "--launch-skip",
        str(warm_up_calls * launches),
        "--launch-count",
        str(launches),
        "--replay-mode",
        "kernel",
        "--cache-control",
        "all",
        # ncu would lock clocks, which needs rights and is slower than what is timed.
        "--clock-control",
        "none",
        "--target-processes",
        "application-only",
        "--profile-from-start",
        "on",
        *host,
    ]


def measure(
    ncu: Ncu,
    host: Sequence[str],
    metrics: Sequence[str],
    kernels: Sequence[str],
    *,
    launches: int,
    environment: Mapping[str, str],
    timeout_s: float = 300.0,
) -> list[ncu_csv.ProfiledLaunch] | NotProfiled:
    """The profiled launches of the last call, or why there are none."""
    with tempfile.TemporaryDirectory(prefix="kernelwright-ncu-") as folder:
        log = Path(folder) / "ncu.csv"
        words = command(ncu.path, host, metrics, kernels, log, launches=launches)
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=folder,
            start_new_session=True,
            env={"PATH": "/usr/bin:/bin", "HOME": folder, "TMPDIR": folder, **environment},
        )
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            _kill(process)
            return NotProfiled(
                f"ncu had no result within {timeout_s:g} s",
                "kernel replay saves and restores all memory: use a smaller workload",
            )
        written = log.read_text("utf-8", "replace") if log.exists() else ""
    found = read_result(written, said, process.returncode)
    if isinstance(found, NotProfiled):
        return found
    # It tells the device's attributes and each metric's extremes as well.
    return [launch.keep_only(metrics) for launch in found]


def read_result(written: str, said: str, code: int) -> list[ncu_csv.ProfiledLaunch] | NotProfiled:
    """What a finished ncu came to, from its log, its other words and its exit status."""
    found = ncu_csv.read(written)
    if code == 0 and found:
        return found
    words = f"{written}\n{said}"
    for pattern, meaning, hint in REFUSALS:
        if match := re.search(pattern, words):
            return NotProfiled(meaning.format(**match.groupdict()), hint, words[-4000:])
    errors = re.findall(r"^==ERROR==\s*(.+)$", words, re.MULTILINE)
    last = errors[-1] if errors else f"exit status {code} and {len(found)} profiled launches"
    return NotProfiled(f"ncu failed: {last[:300]}", log=words[-4000:])


def _kill(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    try:
        process.communicate(timeout=_GONE_S)
    except subprocess.TimeoutExpired:
        # It hangs in the driver; the device's health probe will tell.
        return
