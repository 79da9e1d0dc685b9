# SPDX-License-Identifier: Apache-2.0
"""The doctor's questions: one function a topic, each really trying what it reports on.

It knows how to ask; what the answers mean for a run is decided by the one who asks.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from .. import extras
from ..config import Config
from ..errors import KernelwrightError
from ..kernelbench.machine import CPUINFO, processor, usable_cpus
from . import devices
from .finding import Finding, Severity

NEEDED = ("numpy", "scipy", "pydantic", "torch", "langgraph")
"""Packages that every campaign uses."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CPU_FLAGS = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "asimd", "sve")


def examine(config: Config, required: list[str]) -> Iterator[Finding]:
    """Every finding in order; one that is required and only warns becomes a failure."""
    for name, probe in PROBES.items():
        for finding in probe(config):
            if name in required and finding.level is Severity.WARN:
                yield replace(finding, level=Severity.FAIL)
            else:
                yield finding


def _python(_: Config) -> Iterator[Finding]:
    version = platform.python_version()
    good = (3, 11) <= sys.version_info[:2] < (3, 14)
    yield Finding(
        "python",
        Severity.PASS if good else Severity.FAIL,
        f"{version} on {platform.system()} {platform.release()}",
        "" if good else "use Python 3.11, 3.12 or 3.13",
    )


def _packages(_: Config) -> Iterator[Finding]:
    found, missing = [], []
    for name in NEEDED:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        fix = f"pip install {' '.join(missing)}"
        yield Finding("packages", Severity.FAIL, f"missing: {', '.join(missing)}", fix)
    else:
        yield Finding("packages", Severity.PASS, ", ".join(found))
    for extra, purpose in (("view", "the viewer and the report"), ("llm", "language models")):
        if absent := extras.list_missing(extra):
            words = f"{purpose}: {', '.join(absent)} not installed"
            yield Finding("packages", Severity.WARN, words, f"pip install 'kernelwright[{extra}]'")


def _compiler(_: Config) -> Iterator[Finding]:
    found = []
    for name in ("g++", "clang++"):
        path = shutil.which(name)
        if path is None:
            continue
        reason = _try_compiler(path)
        if reason is None:
            found.append(f"{name} {_first_line([path, '-dumpfullversion', '-dumpversion'])}")
        else:
            yield Finding(
                "compiler",
                Severity.WARN,
                f"{name} does not build C++20 with OpenMP: {reason}",
                "install libgomp (g++) or libomp-dev (clang++)",
            )
    if found:
        yield Finding("compiler", Severity.PASS, f"{', '.join(found)}; C++20 with OpenMP builds")
    else:
        yield Finding(
            "compiler",
            Severity.FAIL,
            "no C++ compiler that builds C++20 with OpenMP",
            "apt-get install g++",
        )


def _try_compiler(path: str) -> str | None:
    source = "#include <omp.h>\nint main() { return omp_get_max_threads() < 1; }\n"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.cpp"
        file.write_text(source)
        command = [path, "-std=c++20", "-fopenmp", "-o", f"{folder}/a", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[0]


def _first_line(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    return (done.stdout.strip().splitlines() or ["?"])[0]


def _sandbox(config: Config) -> Iterator[Finding]:
    from ..sandbox.isolation import choose
    from ..sandbox.isolation.canary import probe
    from .isolation import Grade, MachineTraits, lines

    try:
        isolation = probe(choose(config.jail), config.cache_dir)
    except KernelwrightError as error:
        yield Finding("sandbox", Severity.FAIL, str(error), error.hint)
        return
    level = {Grade.FINE: Severity.PASS, Grade.WEAK: Severity.WARN, Grade.MISSING: Severity.FAIL}
    machine = MachineTraits(os.geteuid() == 0, shutil.which("bwrap") is not None)
    for line in lines(isolation, machine):
        yield Finding("sandbox", level[line.grade], line.text, line.fix)


def _cpu(_config: Config) -> Iterator[Finding]:
    known = processor()
    if not known.signature:
        yield Finding("cpu", Severity.WARN, f"{CPUINFO} cannot be read", "run on Linux")
        return
    name = known.name or platform.machine()
    features = " ".join(flag for flag in CPU_FLAGS if flag in known.flags)
    usable = len(usable_cpus())
    yield Finding(
        "cpu",
        Severity.PASS,
        f"{name}, {usable} CPUs usable, {features or 'no vector extension known'}",
    )


def _peaks(config: Config) -> Iterator[Finding]:
    """What was measured before; measuring takes seconds and is the referee's work."""
    files = sorted(
        (config.cache_dir / "peaks").glob("*.json"), key=lambda file: file.stat().st_mtime
    )
    if not files:
        yield Finding("peaks", Severity.PASS, "not measured yet; the first evaluation does it")
        return
    from pydantic import ValidationError

    from ..verifier.clock.roofline import Peaks

    try:
        peaks = Peaks.model_validate_json(files[-1].read_text("utf-8"))
    except (OSError, ValidationError) as error:
        yield Finding(
            "peaks",
            Severity.WARN,
            f"{files[-1]} cannot be read: {type(error).__name__}",
            "delete it; the next evaluation measures anew",
        )
        return
    yield Finding(
        "peaks",
        Severity.PASS,
        f"{peaks.bandwidth_gbs:.0f} GB/s from memory, {peaks.cache_bandwidth_gbs:.0f} GB/s from "
        f"cache, {peaks.flops_gflops:.0f} GFLOP/s in float32",
    )


def _store(config: Config) -> Iterator[Finding]:
    for name, folder in (("store", config.home), ("build cache", config.cache_dir)):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder):
                pass
        except OSError as error:
            yield Finding(
                "store",
                Severity.FAIL,
                f"{name} {folder} is not writable: {error.strerror}",
                "give another folder with --home or --cache-dir",
            )
        else:
            yield Finding("store", Severity.PASS, f"{name} {folder} is writable")


def _browser(_: Config) -> Iterator[Finding]:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        yield Finding(
            "browser",
            Severity.WARN,
            "no Chromium: the viewer works in any browser, its tests do not",
            "apt-get install chromium",
        )
    else:
        yield Finding("browser", Severity.PASS, path)


PROBES: dict[str, Callable[[Config], Iterator[Finding]]] = {
    "python": _python,
    "packages": _packages,
    "compiler": _compiler,
    "sandbox": _sandbox,
    "cpu": _cpu,
    "peaks": _peaks,
    "gpu": devices.gpu,
    "ncu": devices.ncu,
    "sanitizer": devices.sanitizer,
    "store": _store,
    "browser": _browser,
}
"""The topics, in the order they are shown; `--require` takes these names."""
