# SPDX-License-Identifier: Apache-2.0
"""What no kernel beats on a workload, told before the first is written: the floor, the gathers.

The roofline's floor counts each byte once. A sparse problem fetches a row for each entry: as often
as columns repeat, and mostly from a cache that all cores share. How long that takes is the second
bound; it can be beaten, but only by who finds the rows again nearer to the cores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...kernelbench.arithmetic import arithmetic_of
from ...kernelbench.dtypes import dtype_of
from ...kernelbench.locality import gathered_bytes, list_gathered
from ...kernelbench.problem import Problem
from ...kernelbench.products import Product
from ...kernelbench.targets import Architecture
from ...traces.preparation import Bounds
from ..profile.model import BANDWIDTH_SHARE, L2_BYTES, SECTOR
from ..profile.rates import DeviceRates
from .roofline import Peaks, floor_us, roof_of

LINE = 64
"""Bytes of a cache line of CPUs; some of Arm's have twice that, and the bound is then too low."""


def bounds_of(
    problem: Problem, axes: Mapping[str, int], peaks: Peaks, instances: int = 1
) -> Bounds:
    """By the peaks of the target; of so many calls at a time."""
    roof = roof_of(arithmetic_of(problem), peaks)
    axes = dict(axes)
    flops, moved = instances * problem.flops(axes), instances * problem.bytes_moved(axes)
    rate, place = _near(problem, axes, peaks)
    fetched = instances * gathered_bytes(
        problem, axes, granule=LINE if peaks.is_of_cpus else SECTOR
    )
    is_modelled = "data sheet" in peaks.cache_source
    return Bounds(
        floor_us=floor_us(flops, moved, peaks, roof.gflops),
        roof=roof.words,
        gather_us=fetched / rate / 1e3,
        gathers=_word(problem, fetched, place),
        source=peaks.cache_source if is_modelled else "measured here",
        is_modelled=is_modelled,
        bytes=moved,
        flops=flops,
        gbs=moved / floor_us(0.0, moved, peaks, None) / 1e3 if moved else 0.0,
        gflops=roof.gflops or 0.0,
    )


def modelled_bounds(
    problem: Problem, axes: Mapping[str, int], chip: Architecture, sheet: Product | None
) -> Bounds | None:
    """Of a device that is not here, by its data sheet; None where none is known."""
    if sheet is None:
        return None
    axes, rates = dict(axes), DeviceRates(chip, sheet)
    flops, moved, gbs = (
        problem.flops(axes),
        problem.bytes_moved(axes),
        sheet.memory_gbs * BANDWIDTH_SHARE,
    )
    peak = arithmetic_of(problem).peak(sheet.tflops)
    computing = flops / peak.rate / 1e6 if peak else 0.0
    fetched = gathered_bytes(problem, axes, granule=SECTOR)
    return Bounds(
        floor_us=max(moved / gbs / 1e3, computing),
        roof=peak.words if peak else "bytes alone",
        gather_us=fetched / (sheet.sms * L2_BYTES * rates.hertz) * 1e6,
        gathers=_word(problem, fetched, "L2"),
        source=f"{sheet.name}, {sheet.source}",
        is_modelled=True,
        bytes=moved,
        flops=flops,
        gbs=gbs,
        gflops=1e3 * peak.rate if peak else 0.0,
    )


def _near(problem: Problem, axes: Mapping[str, int], peaks: Peaks) -> tuple[float, str]:
    """Rate in GB/s and name of the nearest memory that holds all that is gathered."""
    if not peaks.is_of_cpus:
        return peaks.cache_bandwidth_gbs, "L2"
    held = sum(math.prod(t.extent(axes)) * dtype_of(t.dtype).bytes for t in list_gathered(problem))
    if held <= peaks.l2_bytes:
        return peaks.cache_bandwidth_gbs, "the second-level caches"
    if held <= peaks.llc_bytes:
        return peaks.llc_bandwidth_gbs, "the last-level cache"
    return peaks.bandwidth_gbs, "memory"


def _word(problem: Problem, fetched: float, place: str) -> str:
    names = [tensor.name for tensor in list_gathered(problem)]
    return f"{' and '.join(names)}, {fetched / 1e6:.3g} MB from {place}" if names else ""
