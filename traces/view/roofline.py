# SPDX-License-Identifier: Apache-2.0
"""The roofline (Williams, Waterman and Patterson, CACM 2009) of one workload: what memory and
arithmetic allow, and where kernels stand below it.

Bytes are those of inputs and outputs, each counted once, unless a device's counters told how many
were moved; both are marked, as is a time that was modelled. Knows nothing of pages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from .. import wording
from ..fold import Entry
from ..preparation import Bounds
from ..records import Level
from .charts import LEGEND, Figure, make_axis, make_layout

COUNTED = "intensity"
"""The metric of a device's counters: operations for each byte that its memory moved."""
_ROOM = 4.0
"""By which factor the chart reaches beyond what stands on it."""


class Placed(NamedTuple):
    """A kernel below the roof."""

    name: str
    us: float
    """Time of a call."""
    is_modelled: bool = False
    """Whether nobody measured that."""
    intensity: float | None = None
    """Operations for each byte that was moved, by a device's counters."""
    is_mine: bool = True
    """A candidate, and no baseline."""


def place_entry(entry: Entry) -> Placed | None:
    """Where a candidate stands; None where it has no time. Read whole for its counters."""
    verdict = entry.verdict
    if verdict is None or not verdict.status.is_pass:
        return None
    metrics = verdict.profile.metrics if verdict.profile else ()
    counted = next(
        (m.value for m in metrics if (m.name, m.level) == (COUNTED, Level.MEASURED)), None
    )
    name, measured = f"#{entry.number}", verdict.measurement
    if measured:
        return Placed(name, measured.candidate.median_us, intensity=counted)
    return Placed(name, verdict.modelled_us, is_modelled=True) if verdict.modelled_us else None


def list_sides(entry: Entry) -> list[Placed]:
    """A candidate and the baselines that were timed beside it on the workload asked for."""
    mine = place_entry(entry)
    measured = entry.verdict.measurement if entry.verdict else None
    baselines = measured.baselines if measured else {}
    others = [Placed(n, t.median_us, is_mine=False) for n, t in baselines.items()]
    return [mine, *others] if mine else []


def roofline_chart(bounds: Bounds | None, kernels: Sequence[Placed]) -> Figure | None:
    """The roof and the kernels below it, on logarithmic axes; None where no roof is known, nothing
    is computed, or nothing stands below it."""
    if bounds is None or not (bounds.bytes and bounds.flops and bounds.gbs and kernels):
        return None
    once = bounds.flops / bounds.bytes
    intensities = [once, *(k.intensity for k in kernels if k.intensity)]
    ridge = bounds.gflops / bounds.gbs if bounds.gflops else max(intensities)
    left, right = min(*intensities, ridge) / _ROOM, max(*intensities, ridge) * _ROOM
    edge = [left, ridge, right] if bounds.gflops else [left, right]
    roof = {
        "type": "scatter",
        "mode": "lines",
        "name": f"roof: {bounds.gbs:.0f} GB/s" + _word_peak(bounds),
        "x": edge,
        "y": [min(x * bounds.gbs, bounds.gflops or x * bounds.gbs) for x in edge],
        "line": {"color": "--muted", "width": 2},
        "hoverinfo": "skip",
    }
    points = [_point(bounds, kernel, once) for kernel in kernels]
    points += [_point(bounds, k, k.intensity) for k in kernels if k.intensity]
    heights = [y for trace in (roof, *points) for y in trace["y"]]
    layout = make_layout(
        340,
        xaxis=make_axis("operations for each byte (log)", type="log", **_ticks(left, right)),
        yaxis=make_axis("GFLOP/s (log)", type="log", **_ticks(min(heights), max(heights))),
        legend=LEGEND,
    )
    return {"data": [roof, *points], "layout": layout}


def _ticks(low: float, high: float) -> Figure:
    """At 1, 2 and 5 of each power of ten; left alone, Plotly writes bare digits between those."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    return {"tickvals": values, "ticktext": [f"{value:g}" for value in values]}


def _word_peak(bounds: Bounds) -> str:
    return f", {bounds.gflops:.0f} GFLOP/s of {escape(bounds.roof)}" if bounds.gflops else ""


def _point(bounds: Bounds, kernel: Placed, intensity: float) -> Figure:
    is_counted = intensity == kernel.intensity
    reached = bounds.flops / kernel.us / 1e3
    roof = min(intensity * bounds.gbs, bounds.gflops or intensity * bounds.gbs)
    time = f"{wording.micros(kernel.us)} {'modelled' if kernel.is_modelled else 'measured'}"
    told = "bytes by the device's counters" if is_counted else "each byte counted once"
    name = escape(kernel.name) + (", counted" if is_counted else "")
    colour = "--pass" if kernel.is_mine else "--muted"
    shape = "square" if is_counted else "circle"
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [intensity],
        "y": [reached],
        "text": [
            f"{name}: {time}, {reached:.3g} GFLOP/s, {reached / roof:.0%} of the roof; {told}"
        ],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "symbol": f"{shape}-open" if kernel.is_modelled else shape,
            "color": colour,
            "size": 10,
            "line": {"width": 1, "color": colour},
        },
    }
