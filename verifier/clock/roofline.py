# SPDX-License-Identifier: Apache-2.0
"""The roofline: the least time that a machine with these peaks can take for so much work.

Peaks are measured, by peaks.cpp in a process of its own on the CPUs that candidates use, once per
machine and compiler, and once more before a kernel is called too fast: beside other load on the
same CPUs a measurement can come out fifty times too low. Data that fits in a cache may be there
when a call starts, since its inputs were just written: that part is held against the bandwidth of
the cache, and only the rest against the memory's. So the floor is a bound that no honest kernel can
break, not a prediction.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import Field, ValidationError

from ...errors import SandboxError
from ...kernelbench.arithmetic import BYTES_ALONE, FP32, Arithmetic
from ...kernelbench.machine import CACHES, caches, processor
from ...sandbox.builders.compiler import Compiler, cpu_signature, find_compiler
from ...sandbox.builders.workshop import Workshop
from ...traces.records import Check, Record

SOURCE = Path(__file__).with_name("peaks.cpp")
FLAGS = ("-std=c++20", "-O3", "-march=native", "-fopenmp")
TIMEOUT_S = 60.0
LARGEST_SET = 1 << 30
"""Bytes of the largest working set that is tried, whatever a machine says of its caches."""
NARROW_PRODUCTS = frozenset(
    ("avx512_bf16", "avx512_fp16", "amx_bf16", "amx_fp16", "bf16", "svebf16", "asimdfhm")
)
"""Of a processor that multiplies 16-bit floats faster than float32: x86's flags, then Arm's."""
UNKNOWN_L2, UNKNOWN_LLC = 1 << 20, 64 << 20
"""Used where the system does not tell its caches; too large only makes the floor lower."""
BROKEN = 0.5
"""A kernel faster than this share of the floor cannot have done the work (C16). Peaks measured
under load may be low by some, hence not 1."""


class Caches(NamedTuple):
    """Bytes of cache that some CPUs have in all."""

    l2: int
    llc: int
    source: str


class Peaks(Record):
    """What this machine reached at best on the CPUs given."""

    schema_version: int = 1
    bandwidth_gbs: float
    """Streaming over more than the last-level cache holds; triad or reading, the better."""
    llc_bandwidth_gbs: float
    """The same within the last-level cache."""
    cache_bandwidth_gbs: float
    """The same within the second-level caches."""
    flops_gflops: float
    """Fused multiply-adds in float32, two flops each."""
    tensor_gflops: dict[str, float] = Field(default_factory=dict)
    """Of a device: products by tensor cores, by arithmetic (`targets.ARITHMETIC`)."""
    l2_bytes: int
    """Second-level cache of all CPUs used."""
    llc_bytes: int
    """Last-level cache that those CPUs can reach."""
    cpus: tuple[int, ...]
    compiler: str
    cache_source: str = ""
    """Where the cache sizes come from."""

    @property
    def is_of_cpus(self) -> bool:
        """Whether they are this machine's own, and no device's."""
        return bool(self.cpus)

    def join(self, other: Self) -> Self:
        """Of each rate the better: whatever was reached once can be reached."""
        better = {name: max(getattr(self, name), getattr(other, name)) for name in RATES}
        products = {**self.tensor_gflops}
        for kind, rate in other.tensor_gflops.items():
            products[kind] = max(rate, products.get(kind, 0.0))
        return self.model_copy(update={**better, "tensor_gflops": products})


RATES = ("bandwidth_gbs", "llc_bandwidth_gbs", "cache_bandwidth_gbs", "flops_gflops")
"""The figures of Peaks that are measured."""


def measured_peaks(workshop: Workshop, *, anew: bool = False) -> Peaks:
    """The peaks for its CPUs, from its folder or measured now (about three seconds).

    Args:
        anew: Measured in any case, and joined with what was known.

    Raises:
        PrerequisiteError: there is no compiler.
        SandboxError: the measurement itself failed.
    """
    compiler = find_compiler()
    asked = {
        "cpu": cpu_signature(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "cpus": sorted(workshop.cpus),
        "compiler": compiler.version,
        "flags": FLAGS,
        "source": hashlib.sha256(SOURCE.read_bytes()).hexdigest(),
    }
    key = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    place = workshop.folder / "peaks" / f"{key[:32]}.json"
    found = keep(place, lambda: measure(compiler, tuple(sorted(workshop.cpus))), anew=anew)
    assert found is not None
    return found


def keep(place: Path, measured: Callable[[], Peaks | None], *, anew: bool) -> Peaks | None:
    """The peaks of this file, measured where it holds none, or `anew` and joined with them; None
    where nothing is known and nothing could be measured."""
    try:
        known = Peaks.model_validate_json(place.read_text())
    except (FileNotFoundError, ValidationError):
        known = None
    if known and not anew:
        return known
    found = measured()
    peaks = known.join(found) if known and found else found or known
    if peaks is None:
        return None
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=place.parent, delete=False) as file:
        file.write(peaks.model_dump_json(indent=2))
    os.replace(file.name, place)
    return peaks


def measure(compiler: Compiler, cpus: tuple[int, ...]) -> Peaks:
    """Compiles and runs peaks.cpp. Raises SandboxError if either fails."""
    known = cache_sizes(cpus)
    sizes = (known.l2 // 2, max(known.llc // 2, known.l2), min(4 * known.llc, LARGEST_SET))
    environment = {**compiler.environment, "OMP_NUM_THREADS": str(len(cpus))}
    with tempfile.TemporaryDirectory(prefix="kernelwright-peaks-") as folder:
        program = str(Path(folder) / "peaks")
        _run([str(compiler.path), *FLAGS, str(SOURCE), "-o", program], environment)
        said = _run([program, *map(str, sizes), *map(str, cpus)], environment)
    try:
        found = {name: float(value) for name, value in map(str.split, said.splitlines())}
        return Peaks(
            bandwidth_gbs=found["memory"],
            # A larger working set cannot be faster to reach; noise may say so.
            llc_bandwidth_gbs=max(found["llc"], found["memory"]),
            cache_bandwidth_gbs=max(found["l2"], found["llc"], found["memory"]),
            flops_gflops=found["flops"],
            l2_bytes=known.l2,
            llc_bytes=known.llc,
            cpus=cpus,
            compiler=compiler.version,
            cache_source=known.source,
        )
    except (ValueError, KeyError) as error:
        raise SandboxError(f"the measurement of this machine's peaks said {said!r}") from error


class Roof(NamedTuple):
    """What the arithmetic of a problem is held against."""

    gflops: float | None
    """None: against nothing, and bytes alone make the floor."""
    words: str


def roof_of(arithmetic: Arithmetic, peaks: Peaks, flags: frozenset[str] | None = None) -> Roof:
    """The peak that no honest kernel of a problem exceeds, as far as it is known.

    Args:
        flags: Of the processor; None: of this machine's.
    """
    if not peaks.is_of_cpus:
        found = arithmetic.peak({FP32: peaks.flops_gflops, **peaks.tensor_gflops})
        if found:
            return Roof(found.rate, found.words)
        return Roof(None, f"{BYTES_ALONE}: no peak of {arithmetic.words} is known of this device")
    flags = processor().flags if flags is None else flags
    if not arithmetic.has_float:
        return Roof(None, f"{BYTES_ALONE}: no peak of {arithmetic.words} is measured on CPUs")
    if arithmetic.is_narrow and (fast := sorted(flags & NARROW_PRODUCTS)):
        return Roof(
            None,
            f"{BYTES_ALONE}: this processor has narrow products ({', '.join(fast)}), whose peak is "
            "not measured",
        )
    return Roof(peaks.flops_gflops, "float32 multiply-adds")


def floor_us(flops: float, bytes_moved: float, peaks: Peaks, gflops: float | None) -> float:
    """The least time in microseconds: the larger of the time to compute and the time to move.

    Args:
        gflops: The peak of its arithmetic; None: that makes no floor.
    """
    in_l2 = min(bytes_moved, float(peaks.l2_bytes))
    in_llc = max(min(bytes_moved, float(peaks.llc_bytes)) - in_l2, 0.0)
    beyond = bytes_moved - in_l2 - in_llc
    moving = in_l2 / peaks.cache_bandwidth_gbs + in_llc / peaks.llc_bandwidth_gbs
    moving += beyond / peaks.bandwidth_gbs
    return max(moving, flops / gflops if gflops else 0.0) / 1e3


def check_plausible(latency_us: float, floor: float, arithmetic: str) -> Check:
    """Whether a time can be true: not below half of the floor. A failure makes it SUSPECT.

    Args:
        arithmetic: What its operations were held against, in words (`Roof`).
    """
    limit = BROKEN * floor
    passed = bool(latency_us >= limit)
    detail = f"{latency_us:.4g} µs against a floor of {floor:.4g} µs ({arithmetic})"
    if not passed:
        detail += ": faster than this machine can move the data or do the arithmetic"
    return Check(
        name="roofline floor",
        passed=passed,
        limit=limit,
        detail=detail,
        figure=latency_us if math.isfinite(latency_us) else None,
    )


def cache_sizes(cpus: Sequence[int], root: Path = CACHES) -> Caches:
    """Second-level cache summed over `cpus`, and last-level cache, each sharing counted once."""
    seen = {(o.level, o.shared): o.bytes for cpu in cpus for o in caches(cpu, root)}
    levels = {level for level, _ in seen}
    if 2 not in levels:
        return Caches(UNKNOWN_L2 * len(cpus), UNKNOWN_LLC, "assumed: the system does not tell")
    totals = {level: sum(s for (n, _), s in seen.items() if n == level) for level in levels}
    return Caches(totals[2], max(totals[max(levels)], totals[2]), str(root))


def _run(command: list[str], environment: dict[str, str]) -> str:
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
    except (subprocess.SubprocessError, OSError) as error:
        stderr = getattr(error, "stderr", None) or ""
        raise SandboxError(
            f"measuring this machine's peaks failed: {error} {stderr[:500]}".strip(),
            hint="check that g++ with OpenMP works here and that 1 GiB of memory is free",
        ) from error
    return done.stdout
