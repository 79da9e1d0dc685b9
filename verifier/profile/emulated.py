# SPDX-License-Identifier: Apache-2.0
"""What an emulation saw of a kernel's memory accesses, as metrics and as remarks on lines.

Figures follow the hardware's rules for a warp: 32-byte sectors of global memory per request, and
turns (wavefronts) that an access to shared memory takes because of bank conflicts. They come from
the launch that takes the most time, on the workload that each figure names, as g++ compiled the
accesses, and of a large grid from blocks spread over it; Nsight Compute counts the same on a
device (`l1tex__average_t_sectors_per_request…`, `l1tex__data_bank_conflicts…`).
"""

from __future__ import annotations

from collections.abc import Iterable

from ...sandbox.run.memory_access import Accesses, LaunchCount
from ...traces.records import Level, Metric
from .model import LineAccess

REMARKS = 12
WASTEFUL = 1.25
"""Sectors, or turns, over the ideal from which a line is worth a remark."""


def metrics_of(count: LaunchCount, where: str) -> list[Metric]:
    """The figures of one launch.

    Args:
        where: Kernel and workload, which each figure names.
    """
    return _metrics(count, where)


def remarks_of(count: LaunchCount, where: str, *, turn_us: float = 0.0) -> list[str]:
    """The lines that waste most of the memory's work, worst first.

    Args:
        turn_us: What a turn of shared memory costs by the model; 0: that is not known.
    """
    cost_us = turn_us * count.scale
    remarks = sorted(_find_wasteful(count.accesses, cost_us), key=lambda each: -each[0])[:REMARKS]
    return [f"{text}, in {where}" for _, text in remarks]


def by_line(count: LaunchCount) -> dict[int, LineAccess]:
    """What the model of time takes where the counts are of another workload."""
    return {
        line: LineAccess(
            loads=_count_over(count, line, "global", ("read",)),
            stores=_count_over(count, line, "global", ("write", "atomic")),
            shared_loads=_count_over(count, line, "shared", ("read",)),
            shared_stores=_count_over(count, line, "shared", ("write",)),
        )
        for line in {each.line for each in count.accesses}
    }


def _count_over(count: LaunchCount, line: int, space: str, operations: tuple[str, ...]) -> float:
    of = [
        each
        for each in count.accesses
        if each.line == line and each.space == space and each.operation in operations
    ]
    if space == "global":
        return _waste(sum(a.sectors for a in of), sum(a.ideal_sectors for a in of))
    return _waste(sum(a.wavefronts for a in of), sum(a.ideal_wavefronts for a in of))


def _metrics(count: LaunchCount, where: str) -> list[Metric]:
    found: list[Metric] = []
    groups = {
        "global_load": ("global", ("read",)),
        "global_store": ("global", ("write",)),
        "shared_load": ("shared", ("read",)),
        "shared_store": ("shared", ("write",)),
    }
    for name, (space, operations) in groups.items():
        of = [a for a in count.accesses if a.space == space and a.operation in operations]
        requests = sum(a.requests for a in of)
        if not requests:
            continue
        if space == "global":
            sectors, ideal = sum(a.sectors for a in of), sum(a.ideal_sectors for a in of)
            found.append(_metric(f"{name}_sectors_per_request", sectors / requests, where))
            found.append(_metric(f"{name}_efficiency", ideal / sectors if sectors else 1.0, where))
        else:
            turns, least = sum(a.wavefronts for a in of), sum(a.ideal_wavefronts for a in of)
            found.append(_metric(f"{name}_wavefronts_per_request", turns / requests, where))
            found.append(_metric(f"{name}_efficiency", least / turns if turns else 1.0, where))
            found.append(_metric(f"{name}_bank_conflicts", (turns - least) * count.scale, where))
    return [*found, *_of_atomics(count, where), _metric("warp_imbalance", count.longest, where)]


def _of_atomics(count: LaunchCount, where: str) -> list[Metric]:
    """How much atomics weigh, and whether the lanes of a warp meet at one address."""
    every = [a for a in count.accesses if a.space == "global"]
    atomics = [a for a in every if a.operation == "atomic"]
    requests, sectors = sum(a.requests for a in every), sum(a.sectors for a in atomics)
    if not sectors:
        return []
    share = sum(a.requests for a in atomics) / requests
    lanes = sum(a.lanes for a in atomics)
    return [
        _metric("atomic_share", share, where),
        _metric("atomic_lanes_per_sector", lanes / sectors, where),
    ]


def _metric(name: str, value: float, where: str) -> Metric:
    return Metric(name=name, value=value, unit=f"in {where}", level=Level.EMULATED)


def _find_wasteful(accesses: Iterable[Accesses], turn_us: float) -> Iterable[tuple[float, str]]:
    for each in accesses:
        if not each.requests:
            continue
        if each.space == "global":
            waste = _waste(each.sectors, each.ideal_sectors)
            text = (
                f"line {each.line}: {_ratio(each.sectors, each.requests)} sectors per request of a "
                f"global {each.operation}, {_ratio(each.ideal_sectors, each.requests)} would do"
                + (f" ({', '.join(each.buffers)})" if each.buffers else "")
            )
        else:
            waste = _waste(each.wavefronts, each.ideal_wavefronts)
            text = (
                f"line {each.line}: {_ratio(each.wavefronts, each.requests)} wavefronts per shared "
                f"{each.operation}, {_ratio(each.ideal_wavefronts, each.requests)} would do: "
                "bank conflicts"
            )
            if turn_us:
                beyond = each.wavefronts - each.ideal_wavefronts
                text += f", {beyond * turn_us:.2g} µs of model_load_store_us"
        if waste >= WASTEFUL:
            yield (waste * each.requests, text)


def _waste(found: int, ideal: int) -> float:
    return found / ideal if ideal else 1.0


def _ratio(count: int, requests: int) -> str:
    return f"{count / requests:.3g}"
