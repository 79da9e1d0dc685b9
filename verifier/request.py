# SPDX-License-Identifier: Apache-2.0
"""What the campaign asks the referee, and the one interface it asks through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from pydantic import Field

from ..config import DEFAULT_PREPARATION_S, DEFAULT_TIMING_LOCK
from ..kernelbench.problem import Workload
from ..kernelbench.targets import CPU
from ..traces.preparation import Preparation
from ..traces.records import Counting, Depth, Isolation, Profile, Record, Verdict


class Task(Record):
    """What a referee is started for: everything that stays for a campaign."""

    problem: str
    problem_text: str = ""
    """The user's file that it stands in; empty: one of ours."""
    workload: Workload
    asked: Workload | None = None
    """The several that it is one of; hidden sizes lie between theirs, too."""
    target: str = CPU
    """`cpu`, or an architecture: `sm_90`."""
    languages: tuple[str, ...] = ()
    """What is going to be evaluated, so that what it needs is started at once."""
    cpus: tuple[int, ...] = ()
    """CPUs that candidates and baselines run on; empty: all allowed ones."""
    cache_dir: str
    """Where the build cache and the machine's measured peaks live."""
    accept_weak_isolation: bool = False
    jail: str = "auto"
    """`auto`, `bubblewrap`, `landlock` or `bare`."""
    devices: tuple[str, ...] | None = None
    """UUIDs, their beginnings, or numbers of the GPUs that may be used; None: all."""
    cuda_home: str = ""
    """Folder of the CUDA toolkit to use before any other; empty: what is found."""
    cuda_compiler: Literal["nvrtc", "nvcc"] = "nvrtc"
    baselines: tuple[str, ...] = ()
    """Names of the baselines to hold against; empty: all that this machine has."""
    timing_lock: str = DEFAULT_TIMING_LOCK
    """The file or folder at which all timings on this machine take turns (clock/turns.py)."""
    counting: Counting | None = None
    """The hardware counters to read where there are any; None: none."""
    model_scales: dict[str, float] = Field(default_factory=dict)
    """Factors of the modelled time's terms that were fitted on a device of this target."""
    preparation_s: float = DEFAULT_PREPARATION_S
    """How long the baselines may take; the one that is not ready then is left out, by name."""


class Order(Record):
    """One evaluation."""

    source: str
    language: str
    protocol: Depth = Depth.SCREEN
    champion: str = ""
    """Source of the campaign's champion; timed beside the baselines under the name `champion`."""


class Counted(Record):
    """What the hardware's counters said of one candidate."""

    profile: Profile | None = None
    """None: nothing could be counted."""
    reason: str = ""
    """Why not, and what would help."""
    took_s: float = 0.0


class Outlook(Record):
    """What is likely to be ordered next, the first one first."""

    foreseen: tuple[Order, ...]


class Referee(Protocol):
    """Evaluates candidates one at a time. `process.client.open_referee` gives the real one."""

    def prepare(self, is_wanted: Callable[[], bool] = lambda: True) -> Preparation | None:
        """Waits until nothing but candidates takes time; what it took since the referee's start.

        Without it the first evaluation waits. Asked again it answers at once.

        Args:
            is_wanted: looked at while it waits; None is given as soon as it says no.

        Raises:
            PrerequisiteError: no baseline runs here.
            NotDiscriminatingError: a kernel that computes nothing would pass.
        """

    def foresee(self, orders: Sequence[Order]) -> None:
        """Tells what is likely to be ordered next, so that it can be built until then.

        Returns at once, and changes no verdict; an order that never comes costs only work.
        """

    def evaluate(self, order: Order) -> Verdict:
        """The verdict. Raises SandboxError only where the harness failed twice."""

    def count(self, order: Order) -> Counted:
        """The hardware's counters of a candidate that was found right, on the workload that counts
        most. Nothing is tried and nothing timed again.

        Raises:
            SandboxError: nothing is counted here (`counting` is None), or the harness failed.
        """

    @property
    def counting(self) -> Counting | None:
        """Which counters are read here; None: none, since the target has none, no profiler is
        installed, or nobody asked for them."""

    @property
    def isolation(self) -> Isolation:
        """The matrix the canary measured when the referee started."""

    @property
    def facts(self) -> dict[str, float]:
        """Axes and features of the workload, for recipes (kernelbench.recipe.Facts)."""

    @property
    def is_emulated(self) -> bool:
        """Whether the target is a device that is not here: then nothing is timed."""

    def close(self) -> None:
        """Ends the referee process and everything below it."""
