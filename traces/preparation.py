# SPDX-License-Identifier: Apache-2.0
"""What a referee had ready before its first candidate, and what it knew by then of the work."""

from __future__ import annotations

from pydantic import Field

from .records import Record


class Bounds(Record):
    """What no kernel beats on the timed workload: by bytes and flops, and by its gathers."""

    floor_us: float
    """The roofline: each input read once, each output written once, or the arithmetic."""
    roof: str
    """What the arithmetic was held against, as in a Measurement."""
    gather_us: float = 0.0
    """Of a sparse problem: what it takes to fetch a row for each entry from the nearest memory that
    holds them all. Only reuse nearer to the cores beats it. 0: nothing is gathered."""
    gathers: str = ""
    """What is fetched, how much of it and from where: `B, 44 MB from L2`."""
    source: str
    """`measured here`, or the data sheet that it is modelled by."""
    is_modelled: bool = False
    """Whether no such device is here."""
    bytes: float = 0.0
    """Of the inputs and outputs, each counted once; 0: an earlier version did not tell."""
    flops: float = 0.0
    """Operations of one call."""
    gbs: float = 0.0
    """Gigabytes a second at which so many bytes can be moved at best."""
    gflops: float = 0.0
    """Billions of operations a second that the arithmetic can reach; 0: no peak is known."""


class Preparation(Record):
    """What had to be ready before the first candidate could be judged."""

    seconds: dict[str, float] = Field(default_factory=dict)
    """By part: `referee` (its start and the trial of the sandbox), then `baselines` or `inputs`."""
    baselines: tuple[str, ...] = ()
    """Those that candidates are held against."""
    missing: dict[str, str] = Field(default_factory=dict)
    """Those that are left out, and why."""
    baseline_us: dict[str, float] = Field(default_factory=dict)
    """A first idea of what each of them takes, of a few calls; speed-ups rest on later pairs."""
    bounds: Bounds | None = None
    """None: several workloads are timed, or no peak is known of the target."""

    @property
    def total_s(self) -> float:
        """All parts together."""
        return sum(self.seconds.values())
