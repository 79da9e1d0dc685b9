# SPDX-License-Identifier: Apache-2.0
"""The shapes of the documents that commands print with `--json`, with those of `traces/shapes.py`.

JSON Schemas are made of them (`schema.py`), and mypy holds the commands to them. It imports what is
heavy: commands import it for their types alone.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import JsonValue
from typing_extensions import TypedDict

from ..agents.model import Message
from ..kernelbench.precision import Precision
from ..kernelbench.problem import Tensor, Workload
from ..traces.bundling import Packed
from ..traces.events import CampaignAudited
from ..traces.records import Check, Isolation, Verdict
from ..traces.schemas import Document, Dumped
from ..traces.shapes import (
    CallShape,
    EntryDocument,
    LineDocument,
    SpeedupShape,
    VerdictMore,
    WholeCallDocument,
)
from ..verifier.profile.fit import Errors

_Errors = Annotated[dict[str, Any], Dumped(Errors)]


class FirstCall(Document):
    messages: list[Annotated[dict[str, Any], Dumped(Message)]]
    bound: _Cost
    """The most that the first call may take."""
    calls: int
    """At most, failed attempts aside."""
    cost_at_most: _CapOfCost


class _Cost(Document):
    tokens: int
    usd: float | None


class _CapOfCost(Document):
    tokens: float | None
    usd: float | None


class Plan(Document):
    """What a campaign is going to do."""

    problem: str
    workload: Annotated[dict[str, Any], Dumped(Workload)]
    target: str
    language: str
    isolation: Annotated[dict[str, Any], Dumped(Isolation)]
    workflow: str
    model: str
    judge_model: str
    limits: dict[str, float]
    recipe_space: dict[str, int]
    """Variants by family."""
    campaign: str | None
    """The one that is taken up again."""
    first_call: NotRequired[FirstCall | None]
    """Of a dry run: what a model would be asked first; null where none is asked."""


class PlanDocument(Document):
    """What a dry run prints."""

    plan: Plan


class _Kept(Document):
    campaign: str | None
    """Where it is kept."""


EvalDocument = Annotated[
    dict[str, Any], Dumped(Verdict, VerdictMore, _Kept, without=("schema_version",))
]


class ListedCampaign(LineDocument):
    """A campaign of a list."""

    state: str


class ListDocument(Document):
    """The campaigns of a home, newest first."""

    home: str
    campaigns: list[Annotated[dict[str, Any], Dumped(ListedCampaign)]]


class ShowDocument(ListedCampaign):
    """A campaign with its candidates."""

    candidates: list[EntryDocument]


class CallsDocument(Document):
    """What models were asked in a campaign, and what it cost."""

    campaign: str
    tokens: int
    usd: float | None
    """None where a price is not known."""
    is_estimated: bool
    calls: list[CallShape]


class OneCallDocument(WholeCallDocument):
    """One call of a model, whole."""

    campaign: str


class _RecipeShape(Document):
    family: str
    language: str
    summary: str
    knobs: dict[str, list[JsonValue]]
    combinations: int
    """Before constraints, which need a workload."""


class ProblemShape(Document):
    """A problem."""

    name: str
    version: int | str
    title: str
    definition: str
    axes: dict[str, str]
    inputs: list[Annotated[dict[str, Any], Dumped(Tensor)]]
    outputs: list[Annotated[dict[str, Any], Dumped(Tensor)]]
    c_parameters: list[str]
    precision: Annotated[dict[str, Any], Dumped(Precision)]
    baselines: list[str]
    workloads: list[Annotated[dict[str, Any], Dumped(Workload, has_defaults=False)]]
    """Each without what has its default."""
    default_workload: str
    recipes: list[_RecipeShape]
    backward_of: str
    tags: list[str]
    source: str
    headline: str


class ProblemsDocument(Document):
    """Every problem."""

    problems: list[ProblemShape]


class ProblemDocument(Document):
    """One problem."""

    problem: ProblemShape
    sizes: dict[str, list[str]]
    """By workload what its sizes waste by themselves."""


class Admission(Document):
    problem: str
    is_admitted: bool
    checks: list[Annotated[dict[str, Any], Dumped(Check)]]


class AdmissionsDocument(Document):
    """Whether problems can verify anybody."""

    admissions: list[Admission]


class SignatureDocument(Document):
    """Where a candidate begins."""

    problem: str
    language: str
    signature: str
    skeleton: str


class SuiteTask(Document):
    problem: str
    workload: str
    campaign: str
    status: str
    us: float | None
    speedup: SpeedupShape | None
    best_baseline: str | None
    baselines_us: dict[str, float]
    roofline: float | None
    regret_at_most: float | None
    """By what share of its time the winner is slower than the fastest found, with 95 %."""


class SuiteDocument(Document):
    """What the campaigns of a suite found."""

    suite: str
    tasks: list[SuiteTask]
    means: dict[str, float]
    """By suite the geometric mean of what its verified kernels are credited with."""


class _FindingShape(Document):
    topic: str
    level: str
    """PASS, WARN or FAIL."""
    text: str
    fix: str


class DoctorDocument(Document):
    """What this machine can do."""

    ok: bool
    findings: list[Annotated[dict[str, Any], Dumped(_FindingShape)]]


class _AuditedCampaign(Document):
    campaign: str
    problem: str
    workload: str
    target: str
    number: int


AuditShape = Annotated[dict[str, Any], Dumped(_AuditedCampaign, CampaignAudited, without=("kind",))]


class Skipped(Document):
    """A campaign that was not looked at."""

    campaign: str
    why: str


class AuditDocument(Document):
    """Champions that were verified again."""

    ok: bool
    audits: list[AuditShape]
    skipped: list[Skipped]


_Pair = TypedDict("_Pair", {"with": float, "without": float})


class AbDocument(Document):
    """A program with a kernel and without it."""

    package: str
    status: str
    """Of the verdict that the kernel left with."""
    outcome: str
    gain: SpeedupShape
    figure: str
    pairs: list[_Pair]
    """Figures of the program with the kernel and without it."""
    served: int
    """Calls that the kernel answered."""
    missed: dict[str, int]
    """Calls that were left to the library, by reason."""
    is_reported: bool


class MetricsShowDocument(Document):
    """Which metrics are read on a target."""

    target: str
    family: str
    collected: list[str]
    judged: list[str]


class _RankedShape(Document):
    name: str
    fate: str
    strength: float
    """Mean of |r| over the tasks that tell it."""
    r: dict[str, float]
    note: str


class MetricsDeriveDocument(Document):
    """Which metrics tell slow kernels from fast ones."""

    target: str
    family: str
    kept: list[str]
    metrics: list[_RankedShape]
    tasks: dict[str, int]
    left_out: dict[str, str]
    file: str | None


class MetricsFitDocument(Document):
    """Factors for the terms of the model of time."""

    target: str
    scales: dict[str, float]
    candidates: dict[str, int]
    before: _Errors
    after: _Errors
    held_out: _Errors
    is_better: bool
    file: str | None


class SpaceReplayDocument(Document):
    """One search played on a recorded space."""

    kernel: str
    device: str
    points: int
    best_us: float
    strategy: str
    seed: int
    asked: list[dict[str, int | float | str]]
    best_so_far_us: list[float | None]
    evaluations_within: dict[str, int | None]


class PlayedStrategy(Document):
    """A strategy on all spaces."""

    strategy: str
    median: dict[str, float]
    """By file."""
    geometric_mean: float


class SpaceCompareDocument(Document):
    """Searches beside each other on recorded spaces."""

    within: float
    seeds: int
    most: int
    rows: list[PlayedStrategy]


class DeleteDocument(Document):
    """Events by campaign, of those that are deleted or would be."""

    deleted: dict[str, int]
    would_delete: dict[str, int]


class ArchiveDocument(Document):
    """A campaign that was packed and taken away."""

    file: str
    campaign: str
    events: int


class _BundleFile(Document):
    file: str
    campaign: str


BundleDocument = Annotated[dict[str, Any], Dumped(_BundleFile, Packed)]


class GcDocument(Document):
    """What nothing needed."""

    files: int
    file_bytes: int
    store_bytes: int
    removed: bool


class DemoDocument(Document):
    """The recorded campaign that was put into the home."""

    campaign: str
    events: int
    was_there: bool


class ReindexDocument(Document):
    """Campaigns whose lines were written."""

    home: str
    written: list[str]


class Setting(Document):
    """A setting and where it came from."""

    value: JsonValue
    source: str
    place: str
    meaning: str


class SchemasDocument(Document):
    """What has a schema."""

    schemas: list[dict[str, str]]
    """Each `name` and `source`: what prints it."""


class ConfigShowDocument(Document):
    """Every setting."""

    settings: dict[str, Setting]
