# SPDX-License-Identifier: Apache-2.0
"""Whose bytes a call moves between its SMs and the rest of the device: by tensor, and by line.

Counted by an emulation in 32-byte sectors over all launches of a call. L1 is as the emulation has
it (`Accesses.from_l2`: what a block had not read before, or had long ago); of what goes beyond, L2
can answer all that is not the first sight of a byte, if the tensor stays in it. Neither is
measured: on a device Nsight Compute counts hits (`l1tex__t_sector_hit_rate` and that of `lts`),
though of all tensors together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from ...traces.records import Level, Metric
from .executed import Counts
from .model import SECTOR

TENSORS, LINES = 5, 3
"""Told at most; the heaviest first."""
SMALL = 0.03
"""Of all traffic: what is less decides nothing."""


class _Place(NamedTuple):
    """Where bytes are asked for."""

    line: int
    operation: str
    buffer: str


class _Sums(NamedTuple):
    """Of the whole call."""

    requests: float = 0.0
    sectors: float = 0.0
    beyond: float = 0.0
    """Sectors that L1 does not answer."""
    read: float = 0.0
    """Of these, what is read."""

    def plus(self, other: _Sums) -> _Sums:
        """Both together."""
        return _Sums(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def l1_answers(self) -> float:
        """The share of its sectors."""
        return 1 - self.beyond / self.sectors if self.sectors else 0.0


def metrics_of(counts: Counts) -> list[Metric]:
    """Of each tensor and work buffer that matters: megabytes beyond L1, its share of all, and what
    caches answer. Nothing where nothing was counted."""
    places = _sum_up(counts)
    total = sum(one.beyond for one in places.values())
    by_buffer: dict[str, _Sums] = defaultdict(_Sums)
    for place, one in places.items():
        by_buffer[place.buffer] = by_buffer[place.buffer].plus(one)
    found: list[Metric] = []
    for name, one in sorted(by_buffer.items(), key=lambda each: -each[1].beyond)[:TENSORS]:
        if one.beyond < SMALL * total or not total:
            continue
        figures = {
            "traffic": one.beyond * SECTOR / 1e6,
            "traffic_share": one.beyond / total,
            "l1_answers": one.l1_answers,
        }
        if one.read and name in counts.buffer_bytes:
            first = min(one.read, counts.buffer_bytes[name] / SECTOR)
            figures["l2_can_answer"] = 1 - first / one.read
        found += [
            Metric(
                name=f"{figure}:{name}",
                value=value,
                unit=f"{'MB ' if figure == 'traffic' else ''}in all launches on {counts.shape}",
                level=Level.EMULATED,
            )
            for figure, value in figures.items()
        ]
    return found


def remarks_of(counts: Counts) -> list[str]:
    """The lines that move most."""
    places = _sum_up(counts)
    total = sum(one.beyond for one in places.values())
    heaviest = sorted(places.items(), key=lambda each: -each[1].beyond)[:LINES]
    return [
        f"line {place.line}: {one.beyond / total:.0%} of all sectors beyond L1 on {counts.shape} "
        f"({place.operation} of {place.buffer}): {one.requests:,.0f} requests of warps touch "
        f"{one.sectors:,.0f} sectors, of which L1 answers {one.l1_answers:.0%}"
        for place, one in heaviest
        if place.line and total and one.beyond >= SMALL * total
    ]


def _sum_up(counts: Counts) -> Mapping[_Place, _Sums]:
    found: dict[_Place, _Sums] = defaultdict(_Sums)
    for launch in counts.launches:
        for each in launch.accesses:
            if each.space != "global":
                continue
            place = _Place(each.line, each.operation, " or ".join(each.buffers) or "unknown")
            amounts = (each.requests, each.sectors, each.from_l2)
            requests, sectors, beyond = (amount * launch.scale for amount in amounts)
            read = beyond if each.operation == "read" else 0.0
            found[place] = found[place].plus(_Sums(requests, sectors, beyond, read))
    return found
