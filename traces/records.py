# SPDX-License-Identifier: Apache-2.0
"""The records that are stored and that cross processes: verdicts and what they are made of.

They stand on the ground floor, since the referee writes them, the store keeps them and the viewer
shows them. They know nothing of how they are made. All are frozen and carry a schema version where
they are stored by themselves.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from ..kernelbench.languages import Tier


class Record(BaseModel):
    """Base of everything stored: frozen; unknown fields are errors, as are NaN and infinity.

    JSON knows neither: they would be written as null, and the whole record could not be read again.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )


class Status(StrEnum):
    """The closed set of outcomes of an evaluation."""

    VERIFIED = "VERIFIED"
    SCREENED = "SCREENED"
    INCORRECT = "INCORRECT"
    NOT_DISCRIMINATING = "NOT_DISCRIMINATING"
    SUSPECT = "SUSPECT"
    BUILD_FAILED = "BUILD_FAILED"
    CRASHED = "CRASHED"
    TIMED_OUT = "TIMED_OUT"
    RESOURCE = "RESOURCE"
    PROTOCOL_ERROR = "PROTOCOL_ERROR"
    HARNESS_ERROR = "HARNESS_ERROR"
    UNSUPPORTED = "UNSUPPORTED"

    @property
    def is_pass(self) -> bool:
        """Whether the candidate was right in everything this protocol checked."""
        return self in (Status.VERIFIED, Status.SCREENED)


class Depth(StrEnum):
    """How thoroughly a candidate is evaluated."""

    SCREEN = "screen"
    RACE = "race"
    """A screened candidate beside the one that leads, for longer; as often as it takes."""
    FULL = "full"
    CONFIRM = "confirm"
    RECORD = "record"
    """300 trials: at 95 % certainty a trial fails less than one time in a hundred."""

    @property
    def is_quick(self) -> bool:
        """Whether it looks too little for a pass to be VERIFIED: it only ranks."""
        return self in (Depth.SCREEN, Depth.RACE)


class Check(Record):
    """One thing the referee looked at, with its figure."""

    name: str
    """What was checked, e.g. `G1 condition-scaled error`, `guard bands`, `two clocks`."""
    passed: bool
    figure: float | None = None
    """The worst value seen, in the unit of `limit`."""
    limit: float | None = None
    """The value that the figure was held against."""
    detail: str = ""
    """One sentence for people: where the worst value was, or why the check did not run."""
    workload: str = ""
    """The workload or trial it was seen on."""


class Speedup(Record):
    """A ratio baseline time / candidate time with its 95 % interval."""

    median: float
    low: float
    """The lower end of the interval: what a VERIFIED verdict credits."""
    high: float
    blocks: int = 1
    """Pairs of processes that were timed."""


class Timing(Record):
    """Times of one side on one workload, in microseconds."""

    median_us: float
    low_us: float
    """25th percentile."""
    high_us: float
    """75th percentile."""
    samples_us: tuple[float, ...] = ()
    """At most 60 samples, in the order they were taken."""


CHAMPION = "champion"
"""The name under which the campaign's champion is timed beside the baselines."""
LEAST_CALM = 3
"""Blocks in which the machine was left alone, for figures to rest on them alone."""


class Measurement(Record):
    """Paired timing of a candidate and every baseline on one workload."""

    workload: str
    candidate: Timing
    baselines: dict[str, Timing] = Field(default_factory=dict)
    speedup: dict[str, Speedup] = Field(default_factory=dict)
    """By baseline name."""
    best_baseline: str = ""
    """The baseline with the shortest median; the headline is against it."""
    missing: dict[str, str] = Field(default_factory=dict)
    """Baselines that did not run here, each with the reason."""
    pairs: int = 0
    """How many pairs the intervals rest on."""
    blocks: int = 0
    """How many processes were timed, each one block of pairs."""
    disturbed_blocks: int = 0
    """Of them: others took CPUs, or baselines or a copy much longer than when it is left alone.
    These do not count, unless others are few (timing.Series.counted)."""
    mde: float = 0.0
    """Minimum detectable difference: 95th percentile of |A/A ratio − 1| in this run, of the
    champion's samples where one is timed beside, else of the best baseline's."""
    floor_us: float = 0.0
    """Roofline floor max(bytes/bandwidth, flops/peak) from the measured peaks of this machine."""
    roof: str = ""
    """What its arithmetic is held against, as `float32 multiply-adds`, or why bytes alone are."""
    roofline: float | None = None
    """floor_us / candidate median: the share of the roofline that was reached."""
    clock_ratio: float | None = None
    """The runner's claimed time / the referee's own clock (two clocks); about 1 when honest."""
    cpu_us: float | None = None
    """CPU time of the runner's process per call, all threads, by the kernel's accounting."""
    threads: int = 1
    """CPUs that either side may use."""
    is_launch_bound: bool = False
    """The kernel takes less than 50 µs: treat the figure with care."""
    cache_share: float | None = None
    """Bytes of a call / of the last-level cache that its CPUs reach; None on devices and cold."""
    prepare_us: float | None = None
    """What preparing the workload's pattern takes in the median, outside of calls, if anything."""
    pays_after_calls: int | None = None
    """Calls on one pattern after which preparing has paid, against the fastest baseline that is not
    prepared; None where it never does, or none such was timed."""

    @property
    def is_disturbed(self) -> bool:
        """Whether so many blocks were disturbed that those had to count as well."""
        return bool(self.disturbed_blocks) and self.blocks - self.disturbed_blocks < LEAST_CALM

    @property
    def against_baselines(self) -> dict[str, Speedup]:
        """The speed-ups without the one against the champion, which is no baseline."""
        return {name: ratio for name, ratio in self.speedup.items() if name != CHAMPION}

    @property
    def headline(self) -> Speedup | None:
        """The speed-up against the best baseline."""
        return self.speedup.get(self.best_baseline)


class Sureness(Record):
    """How sure it is that a campaign's champion is the fastest of its own candidates.

    By the pairs that were timed in the campaign; nothing is said of kernels that it never tried.
    """

    candidates: int
    """Right ones that were timed, the champion among them."""
    chance: float
    """That none of the others is faster."""
    regret: float
    """By what share of its time the champion is expected to be slower than the fastest."""
    regret_at_most: float
    """The same, with 95 % certainty."""


class KnobShare(Record):
    """How much one knob decides, as a search's model of all that it tried has it."""

    knob: str
    share: float
    """Of the variance of the logarithms of times, over the whole space: 0 does nothing. Shares do
    not add up to 1: the rest is how knobs work together."""
    best: str
    worst: str
    """Its values with the shortest and the longest time in the mean over all others."""
    gain: float
    """By what share the worst takes longer than the best, likewise; at least, since all slow points
    are alike to the model."""


class Level(StrEnum):
    """How a metric came about."""

    MEASURED = "measured"
    STATIC = "static"
    EMULATED = "emulated"
    MODELLED = "modelled"


class Metric(Record):
    """One figure of a profile."""

    name: str
    value: float
    unit: str = ""
    level: Level = Level.STATIC


MODELLED_US = "modelled_us"
"""The metric that holds a time which was computed and not measured."""


class Instruction(Record):
    """One machine instruction."""

    text: str
    line: int = 0
    """Of the candidate's source; 0: of a header, or unknown."""
    warps: float | None = None
    """That execute it in one launch, as an emulation's counts say; None: nobody counted."""


MOST_INSTRUCTIONS = 64
"""Of one loop that are kept."""


class HotCode(Record):
    """The machine code of a loop that matters, in the order of its addresses."""

    what: str
    """Which loop it is, and what is known of what a pass takes."""
    instructions: tuple[Instruction, ...]
    left_out: int = 0
    """Those behind the last one that is kept."""


class Profile(Record):
    """What is known of how a candidate uses its target."""

    metrics: tuple[Metric, ...] = ()
    remarks: tuple[str, ...] = ()
    """The compiler's remarks on the candidate's own loops, capped."""
    code: tuple[HotCode, ...] = ()
    """Of the loops that matter, the hottest first; for people, no model is shown it."""

    def get(self, name: str) -> float | None:
        """The value of the metric `name`, or None."""
        return next((m.value for m in self.metrics if m.name == name), None)


class Counting(Record):
    """Which hardware counters a campaign reads, and which of them its Judge is fed."""

    which: str
    """A set of `verifier/profile/metrics.toml`."""
    judged: tuple[str, ...] = ()
    """Names that a Judge is shown; `stalls` is the whole breakdown. Those that the set lacks are
    read besides."""


class Enforcement(StrEnum):
    """What the canary found of one capability of the sandbox."""

    ENFORCED = "enforced"
    PARTIAL = "partial"
    ABSENT = "absent"


class Capability(Record):
    """One row of the isolation matrix."""

    state: Enforcement
    how: str = ""
    """The mechanism that enforced it, or what the canary managed to do."""


CAPABILITIES = (
    "fs_read",
    "fs_write",
    "net",
    "ptrace",
    "kill_tree",
    "pids",
    "mem",
    "env",
    "uid",
)
"""The rows of the matrix, in the order they are shown (verification.md §5)."""

UNATTENDED_MINIMUM = ("fs_write", "net", "kill_tree", "env")
"""What must be enforced before code that nobody read may run without an explicit flag."""


class Isolation(Record):
    """The capability matrix that the canary measured on this machine."""

    mechanism: str
    """The jail: `bubblewrap`, `landlock` or `bare`."""
    capabilities: dict[str, Capability]

    @property
    def lacking(self) -> tuple[str, ...]:
        """The rows of UNATTENDED_MINIMUM that are not enforced."""
        return tuple(name for name in self.not_enforced if name in UNATTENDED_MINIMUM)

    @property
    def not_enforced(self) -> tuple[str, ...]:
        """Every row that is not enforced, needed for unattended work or not."""
        return tuple(
            name
            for name in CAPABILITIES
            if name not in self.capabilities
            or self.capabilities[name].state is not Enforcement.ENFORCED
        )


class Verdict(Record):
    """What the referee found of one candidate."""

    schema_version: int = 1
    candidate: str
    """SHA-256 of the source, the candidate's id."""
    problem: str
    problem_version: int | str = 1
    workload: str
    """The workload it was timed on."""
    language: str
    target: str
    tier: Tier = Tier.NATIVE
    protocol: Depth
    status: Status
    reasons: tuple[str, ...] = ()
    """Why not, in sentences with figures; empty for a pass."""
    checks: tuple[Check, ...] = ()
    unchecked: tuple[str, ...] = ()
    """What this protocol looks at and could not, each with the reason. Never taken for clean."""
    measurements: tuple[Measurement, ...] = ()
    profile: Profile | None = None
    isolation: Isolation | None = None
    seed: str = ""
    """The secret seed of this evaluation, hex, told once it is over."""
    tried: str = ""
    """The order of hidden sizes in its campaign, and how far the evaluations before it had gone."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """Where the time went: build, start, verify, time, …"""
    versions: dict[str, str] = Field(default_factory=dict)
    """kernelwright, compiler, python, numpy, torch, cpu, kernel."""
    emulated: bool = False
    """Its function was checked by an emulation of the target; nothing ran there or was timed."""
    artefact: str = ""
    """SHA-256 of the built artefact."""
    log: str = ""
    """What the compiler wrote, and its processes: capped, without control characters. Never
    trusted."""
    champion: Verdict | None = None
    """What was found of the champion, which failed beside this candidate and then alone: it no
    longer holds, and this candidate was timed without it. None where nothing is wrong with it."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.champion is not None and self.champion.status.is_pass:
            raise ValueError("a champion that holds is no news of its challenger's verdict")
        if self.status.is_pass and any(not check.passed for check in self.checks):
            raise ValueError(f"a {self.status} verdict cannot hold a failed check")
        if not self.status.is_pass and not self.reasons:
            raise ValueError(f"a {self.status} verdict needs a reason")
        if not self.status.is_pass and self.measurements:
            raise ValueError(f"a {self.status} verdict cannot hold a measurement")
        if self.status is Status.VERIFIED and not self.measurements:
            raise ValueError("a VERIFIED verdict needs a measurement")
        if self.emulated and self.measurements:
            raise ValueError("an emulation times nothing")
        return self

    @property
    def measurement(self) -> Measurement | None:
        """The measurement on the workload asked for, if there is one."""
        return self.measurements[0] if self.measurements else None

    @property
    def label(self) -> str:
        """The status as people read it: `SCREENED (emulated)`."""
        return f"{self.status} (emulated)" if self.emulated else str(self.status)

    @property
    def modelled_us(self) -> float | None:
        """The modelled time of a pass that was only emulated; it ranks, and credits nothing."""
        if not (self.emulated and self.status.is_pass and self.profile):
            return None
        return self.profile.get(MODELLED_US)

    @property
    def credited(self) -> float | None:
        """The speed-up against the best baseline that is credited; None unless VERIFIED."""
        headline = self._headline
        return headline.low if headline and self.status is Status.VERIFIED else None

    @property
    def screen_estimate(self) -> Speedup | None:
        """What a screening measured of it: it ranks in a search, and credits nothing."""
        return self._headline if self.status is Status.SCREENED else None

    @property
    def _headline(self) -> Speedup | None:
        return self.measurement.headline if self.measurement else None


class Advice(Record):
    """What a Judge says of one candidate: one bottleneck and one change."""

    candidate: str
    bottleneck: str
    """e.g. `load imbalance`, `not vectorised`, `at the roofline`."""
    change: str
    """One change, as a sentence to a Coder."""
    rests_on: dict[str, float] = Field(default_factory=dict)
    """The metrics it read."""
    hints: dict[str, JsonValue] = Field(default_factory=dict)
    """For the recipe Coder: knob names and the values to try, or `family`."""
    mode: Literal["repair", "optimise", ""] = ""
    why: str = ""
    technique: str = ""
    """One of the technique catalogue's names, where the Judge chose one."""
    confidence: str = ""
    nothing_left: bool = False
    """The Judge sees no change that is worth its price; `why` says why."""
    by: str = ""
    """Who spoke: a model's name, `rules`, or `rules (fallback)`."""
    notes: tuple[str, ...] = ()
    """What was done to a model's words: cut at a limit, asked again, replaced."""


def candidate_id(source: str) -> str:
    """The id of a candidate: the SHA-256 of its source, hex."""
    return hashlib.sha256(source.encode()).hexdigest()
