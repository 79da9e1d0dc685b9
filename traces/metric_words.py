# SPDX-License-Identifier: Apache-2.0
"""What the metrics of a profile are, in words: a line each, and what its level says.

The one place of these words, for prompts as for pages. It knows no profile and no page.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import cast

from .records import Level, Metric

HERE = Path(__file__).parent
STALL = "stall:"
"""Before the name of a reason why warps wait."""
LEVELS = {
    Level.MEASURED: "where the kernel ran: a clock, the system's accounts or a hardware counter",
    Level.STATIC: "from the built code and the workload; nothing ran for it",
    Level.EMULATED: "counted while the kernel ran in an emulation of the target, on the CPU",
    Level.MODELLED: "computed from the others by a model of the target; nothing was timed",
}
_STALLED = re.compile(r"smsp__warp_issue_stalled_(\w+)_per_warp_active\.pct")


@cache
def figure_words() -> Mapping[str, str]:
    """What every figure means, by name; those of single tensors, `traffic:B`, by `traffic:`."""
    return _read("metric_words.toml")["figures"]


@cache
def stall_words() -> Mapping[str, str]:
    """What a warp does that waits for a reason, by the reason."""
    return _read("metric_words.toml")["stalls"]


@cache
def counter_words() -> Mapping[str, str]:
    """What a hardware counter counts, by Nsight Compute's name."""
    return cast(Mapping[str, str], _read("counter_words.toml"))


def _read(name: str) -> dict[str, dict[str, str]]:
    return tomllib.loads((HERE / name).read_text("utf-8"))


def family_of(name: str) -> str:
    """What a figure is defined under."""
    family = name.partition(":")[0] + ":"
    return family if family in figure_words() else name


def unit_of(metric: Metric) -> str:
    """Its unit, also where its name alone tells it."""
    return metric.unit or ("µs" if metric.name.endswith("_us") else "")


def define(name: str) -> str:
    """What a metric of this name is; empty where nobody wrote it down."""
    if name.startswith(STALL):
        reason = stall_words().get(name.removeprefix(STALL), "waits for something else")
        return f"share of stalled warps; each {reason}"
    if stalled := _STALLED.fullmatch(name):
        return f"share of its cycles in which a warp {stall_words().get(stalled[1], 'waits')}"
    return figure_words().get(family_of(name)) or counter_words().get(name, "")
