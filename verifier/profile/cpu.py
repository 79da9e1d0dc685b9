# SPDX-License-Identifier: Apache-2.0
"""How a candidate uses the machine: what the compiler said, the shape of the work, the clocks.

Gathers figures under fixed names and judges nothing. It runs nothing: the remarks come from the
build, the structure from the workload and the times from the measurement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...kernelbench.arithmetic import BYTES_ALONE
from ...kernelbench.problem import Structure
from ...sandbox.builders.model import Built
from ...traces.records import Level, Measurement, Metric, Profile
from . import hot_loop, perf_events
from .hot_code import code_of_loops

REMARKS = 60
_VECTORISED = re.compile(r"^(\d+): loop vectorized using (\d+) byte vectors")
_MISSED = re.compile(r"^(\d+): not vectorized")


class Host(NamedTuple):
    """The CPUs that candidates run on, together."""

    gflops: float
    """Fused multiply-adds of float32 that they were measured to do."""
    l2_bytes: int
    llc_bytes: int


@dataclass(frozen=True)
class Inside:
    """What was seen of a candidate beside its times."""

    loops: tuple[hot_loop.Timed, ...] = ()
    """The hottest first."""
    lack: str = ""
    """Why no instruction is known; empty: they are, or there are none to know."""
    counts: perf_events.Counts | None = None
    """None: nothing was counted."""


def profile(
    built: Built,
    structure: Structure,
    measured: Measurement,
    *,
    flops: float,
    moved: float,
    host: Host | None = None,
    inside: Inside | None = None,
) -> Profile:
    """The metrics of one measured candidate.

    Args:
        flops: Floating-point operations of one call.
        moved: Compulsory bytes of one call; `achieved_gbs` counts no other traffic.
        host: The CPUs that it ran on.
    """
    seen = inside or Inside()
    # Without a compiler nothing is known of loops, which is not the same as none.
    metrics = _static_metrics(built.remarks) if built.command else []
    metrics += _shape(structure, measured.threads)
    if seen.loops:
        rate = host.gflops if host else None
        metrics += hot_loop.metrics_of(seen.loops[0], flops=flops, peak_gflops=rate)
    metrics += _measured_metrics(measured, flops, moved)
    metrics += perf_events.metrics_of(seen.counts) if seen.counts else []
    remarks = [*hot_loop.remarks_of(seen.loops), *_list_lacks(seen)]
    if host is not None:
        metrics.append(Metric(name="working_set_mb", value=moved / 1e6, unit="MB"))
        remarks.append(_word_caches(moved, host))
    if measured.roof.startswith(BYTES_ALONE):
        remarks.insert(0, f"roofline_floor_us is of {measured.roof}")
    return Profile(
        metrics=tuple(metrics),
        remarks=(*remarks, *built.remarks)[:REMARKS],
        code=code_of_loops(seen.loops),
    )


def _list_lacks(seen: Inside) -> list[str]:
    found = [f"no instructions are known: {seen.lack}"] if seen.lack else []
    if seen.counts is not None and seen.counts.lack:
        found.append(f"no hardware counters: {seen.counts.lack}")
    return found


def _word_caches(moved: float, host: Host) -> str:
    """Where the data of a call finds room."""
    levels = (("second-level caches", host.l2_bytes), ("last-level cache", host.llc_bytes))
    held = next((name for name, size in levels if moved <= size), "memory alone")
    sizes = ", ".join(f"{name} {size / 1e6:.3g} MB" for name, size in levels)
    return f"the data of a call, {moved / 1e6:.3g} MB, fits into {held} ({sizes})"


def _static_metrics(remarks: tuple[str, ...]) -> list[Metric]:
    widths: dict[str, int] = {}
    missed = set()
    for remark in remarks:
        if found := _VECTORISED.match(remark):
            # The widest copy of a loop is its body; narrower ones are its tails.
            widths[found[1]] = max(widths.get(found[1], 0), int(found[2]))
        elif found := _MISSED.match(remark):
            missed.add(found[1])
    return [
        Metric(name="vectorised_loops", value=float(len(widths)), unit="lines"),
        Metric(name="missed_loops", value=float(len(missed - set(widths))), unit="lines"),
        Metric(name="vector_bytes", value=float(max(widths.values(), default=0)), unit="bytes"),
    ]


def _shape(structure: Structure, threads: int) -> list[Metric]:
    indptr = structure.arrays.get("indptr")
    if indptr is None or len(indptr) < 2 or indptr[-1] == indptr[0]:
        return []
    return [Metric(name="imbalance", value=imbalance(indptr, threads), unit="fullest / mean")]


def imbalance(indptr: np.ndarray, threads: int) -> float:
    """Entries of the fullest of `threads` equal chunks of rows, over the mean; 1 is even."""
    edges = np.linspace(0, len(indptr) - 1, threads + 1).round().astype(np.int64)
    entries = np.diff(indptr[edges].astype(np.int64))
    return float(entries.max() / entries.mean())


def achieved_rates(measured: Measurement, flops: float, moved: float) -> list[Metric]:
    """What a timing alone says: the latency, and the rates that the declared work comes to."""
    latency = measured.candidate.median_us
    return [
        Metric(name="latency_us", value=latency, unit="µs", level=Level.MEASURED),
        Metric(name="achieved_gbs", value=moved / latency / 1e3, unit="GB/s", level=Level.MEASURED),
        Metric(
            name="achieved_gflops",
            value=flops / latency / 1e3,
            unit="GFLOP/s",
            level=Level.MEASURED,
        ),
    ]


def _measured_metrics(measured: Measurement, flops: float, moved: float) -> list[Metric]:
    latency = measured.candidate.median_us
    metrics = achieved_rates(measured, flops, moved)
    if measured.cpu_us is not None:
        share = measured.cpu_us / (latency * measured.threads)
        metrics.append(Metric(name="cpu_utilisation", value=share, level=Level.MEASURED))
    return metrics
