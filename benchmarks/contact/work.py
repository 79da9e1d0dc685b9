"""What a part is given: its sizes, its time, and where it keeps what it finds."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from .causes import Cause, explain
from .records import Record, Records, Scene

CAUSE = "cause"
"""In a record: why its unit failed, as a dictionary of a Cause."""
DEVICE = "the device itself"
"""The unit of a device that cannot be measured on at all."""
LEFT_OUT = "left out"
"""The unit that names those which no time was left for."""


@dataclass(frozen=True)
class Sizes:
    """How much a part does at most; how far it gets is a matter of its time."""

    problems: tuple[str, ...]
    """The order is that of what they teach: if time is over, the last ones are left out."""
    languages: tuple[str, ...] = ("cuda", "triton")
    workload: str = ""
    """Empty: each problem's default one."""
    seconds: int = 20
    """Of a campaign."""
    each: int = 6
    """Kernels of a problem and language that are timed for the model."""
    counted: int = 3
    """And such that counters are read of."""
    runs: int = 10
    """Of a kernel beside its copy."""
    files: tuple[str, ...] = ("device", "runs", "hostile_gpu", "tools", "judged")
    """Of tests/gpu."""

    def document(self) -> Record:
        """For the bundle."""
        return asdict(self)

    @classmethod
    def read(cls, document: Record) -> Sizes:
        """From the bundle."""
        lists = {k: tuple(v) if isinstance(v, list) else v for k, v in document.items()}
        return cls(**lists)


ON_DEVICE = Sizes(
    (
        "softmax",
        "spmm_csr",
        "gemm",
        "layernorm",
        "sddmm_csr",
        "bias_gelu",
        "edge_softmax",
        "rmsnorm",
        "gspmm_reduce",
        "w8a8_linear",
    )
)
ON_STAND_IN = Sizes(("bias_gelu",), ("cuda",), "tiny", seconds=40, each=4, counted=2, runs=3)
"""Its driver has host functions for this problem's CUDA recipes alone."""


def lessen(sizes: Sizes) -> Sizes:
    """One of each: to see that everything works."""
    return replace(
        sizes,
        problems=sizes.problems[:1],
        seconds=4,
        each=2,
        counted=1,
        runs=1,
        files=sizes.files[:1],
    )


@dataclass
class Work:
    """One part on its way."""

    part: str
    records: Records
    scene: Scene
    sizes: Sizes
    folder: Path
    """For what passes."""
    ends: float
    """By time.monotonic()."""
    left_out: list[str] = field(default_factory=list)
    """Units that no time was left for."""
    known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.known = set(self.records.of(self.part))

    def has_time(self, unit: str, needed_s: float = 1.0) -> bool:
        """Whether a unit can be begun; one that cannot is told at the end."""
        if self.left_s >= needed_s:
            return True
        self.left_out.append(unit)
        return False

    @property
    def left_s(self) -> float:
        """How long it may still take."""
        return self.ends - time.monotonic()

    def is_kept(self, unit: str) -> bool:
        """Whether an earlier run, or this one, came to its end with a unit."""
        return unit in self.known

    def keep(self, unit: str, **figures: Any) -> None:
        """What a unit came to."""
        self.records.add(self.part, unit, **figures)
        self.known.add(unit)

    def fail(
        self, unit: str, said: str, status: int = 0, *, is_late: bool = False, **figures: Any
    ) -> Cause:
        """The same of one that failed, with its probable cause."""
        cause = explain(said, status, is_late=is_late)
        self.keep(unit, **figures, **{CAUSE: cause._asdict()})
        return cause
