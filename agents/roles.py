# SPDX-License-Identifier: Apache-2.0
"""What a Coder and a Judge are. The brains that fill these roles stand in `brains/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol, runtime_checkable

from ..kernelbench.problem import Problem
from ..kernelbench.recipe import Facts, Knobs, KnobValue
from ..traces.place import NOWHERE, Place
from ..traces.preparation import Preparation
from ..traces.records import Advice, KnobShare, Speedup, Verdict


@dataclass(frozen=True)
class Proposal:
    """A source that a Coder proposes, with its lineage."""

    source: str
    language: str
    family: str
    knobs: Knobs
    operator: str
    parents: tuple[str, ...] = ()
    strategy: str = ""
    """What it is to do, in one line."""
    techniques: tuple[str, ...] = ()
    """Names of the catalogue that its Coder says it uses."""
    notes: tuple[str, ...] = ()
    """What whoever read the Coder's reply remarks of it."""
    file: str = ""
    """What the user's file is called that it was read from."""


@dataclass(frozen=True)
class Member:
    """A candidate that was evaluated, as the Coder and the Archive see it."""

    candidate: str
    number: int
    source: str
    language: str
    family: str
    knobs: Knobs
    verdict: Verdict
    parents: tuple[str, ...] = ()
    advice: Advice | None = None
    notes: tuple[str, ...] = ()
    """What was remarked of the reply that it came from."""


class Mode(StrEnum):
    """What a Coder is to do. A Coder that knows recipes only may pass it over."""

    WRITE = "write"
    REPAIR = "repair"
    OPTIMISE = "optimise"
    CROSS_OVER = "cross over"
    CONTRAST = "contrast"
    FEATURES = "features"
    TRANSLATE = "translate"
    """A CUDA source into C++ for `cpu`."""
    CONVERT = "convert"
    """A PyTorch source into the campaign's language."""


class SampleNumber(NamedTuple):
    """One of several first candidates of the same task."""

    number: int
    """1, 2, 3 …"""
    of: int


@dataclass(frozen=True)
class Assignment:
    """What one proposal is to be."""

    place: Place = NOWHERE
    """`round/slot` in the workflow; whoever asks a model appends the purpose and the turn."""
    first: int = 0
    """The first slot of its wave: what came of slots before it in the same round is known."""
    mode: Mode = Mode.WRITE
    base: Member | None = None
    """The very candidate to repair or to change."""
    advice: Advice | None = None
    """The Judge's words on exactly `base`."""
    exemplars: tuple[Member, ...] = ()
    """Correct ones, slow to fast."""
    features: tuple[str, ...] = ()
    """Names of the technique catalogue."""
    told: tuple[str, ...] = ()
    """Lessons, and strategies of the earlier slots of this generation."""
    source: str = ""
    """The foreign source of TRANSLATE and CONVERT."""
    sample: SampleNumber | None = None
    """Which one it is of several first candidates."""
    may_patch: bool = True
    """Whether search/replace edits may stand in for a whole source."""


@dataclass(frozen=True)
class NoProposal:
    """A Coder's reply that held no usable candidate."""

    outcome: str
    reason: str
    call: str = ""
    """The key of the paid call."""


@dataclass(frozen=True)
class TriedChange:
    """A change that was tried before, and what came of it."""

    number: int
    """Of the candidate that it made."""
    strategy: str
    """In the words of its Coder."""
    advised: str = ""
    """The technique that a Judge had advised."""
    before_us: float | None = None
    """What its base took; None: there was none, or it was not right."""
    after_us: float | None = None
    before_speedup: Speedup | None = None
    """Against the fastest baseline, each timed beside its own; None where nothing was timed."""
    after_speedup: Speedup | None = None
    beside_champion: Speedup | None = None
    """Against the champion of then, where it was confirmed beside one."""
    is_modelled: bool = False
    """The times are computed, not measured."""
    failure: str = ""
    """Status and reason; empty where it passed."""
    parent: int = 0
    """The number of the candidate that it changes most closely; 0: none."""
    change: str = ""
    """How many of that one's lines it changes, and the first of them; empty where nothing tells."""


@dataclass(frozen=True)
class Digest:
    """What the whole campaign has found so far, in few entries."""

    best: tuple[TriedChange, ...] = ()
    """The fastest right candidates, the best first."""
    failed: tuple[TriedChange, ...] = ()
    """The last ones in which something was wrong, oldest first."""
    refused_code: tuple[str, ...] = ()
    """What the tool-chain said of code that did not build, whoever wrote it; each once."""


@dataclass(frozen=True)
class Lineage:
    """What earlier rounds showed of the base, or, without a base, of first candidates."""

    standing: str = ""
    """Whether the base is the best so far, in our words."""
    led_here: tuple[TriedChange, ...] = ()
    """How the base came about, oldest first."""
    tried: tuple[TriedChange, ...] = ()
    """Other changes of the same base, oldest first."""
    refused: tuple[str, ...] = ()
    """Why replies about the base held no candidate, oldest first."""
    campaign: Digest = field(default_factory=Digest)
    """The same for everybody who is asked at one place, whatever the base."""


@dataclass(frozen=True)
class TriedPoint:
    """A candidate that knobs made, and what it showed."""

    candidate: str
    family: str
    knobs: Mapping[str, KnobValue]
    value: float | None
    """The logarithm of its time over the fastest baseline's, or of its modelled time; None: it was
    not right."""
    error: float = 0.0
    """Standard error of the value."""


class Observed(Protocol):
    """A point of the knobs and what it showed; see TriedPoint."""

    @property
    def family(self) -> str: ...

    @property
    def knobs(self) -> Mapping[str, KnobValue]: ...

    @property
    def value(self) -> float | None: ...

    @property
    def error(self) -> float: ...


@dataclass(frozen=True)
class Situation:
    """What a Coder may know when it proposes."""

    problem: Problem
    target: str
    language: str
    facts: Facts
    round: int
    """0, 1, 2 …: the number of candidates so far. With the seed it determines every random choice
    of a Coder that asks no model; what a model is asked rests on `assignment` alone."""
    seed: int
    parents: tuple[Member, ...] = ()
    """Selected by the archive, best first; empty while the initial sample is drawn."""
    seen: frozenset[str] = field(default_factory=frozenset)
    """Ids of everything proposed so far: never propose one of these again."""
    assignment: Assignment = field(default_factory=Assignment)
    history: Lineage = field(default_factory=Lineage)
    """Of the assignment's base."""
    prepared: Preparation | None = None
    """What was known of the work before the first candidate; None: nothing."""
    judged: tuple[str, ...] = ()
    """The hardware counters that a Judge is fed here; () where none are read."""
    tried: tuple[TriedPoint, ...] = ()
    """What was judged so far, in the order in which it was proposed; nothing where a model writes
    candidates."""
    waiting: tuple[TriedPoint, ...] = ()
    """What was proposed and not judged yet, likewise."""
    past: tuple[tuple[str, Mapping[str, KnobValue]], ...] = ()
    """Families and knobs that were fast in earlier campaigns, to begin with."""
    seen_before: tuple[tuple[Observed, ...], ...] = ()
    """What earlier campaigns measured, by campaign."""


@runtime_checkable
class KnowsKnobs(Protocol):
    """A Coder whose candidates are points of one space of knobs."""

    def weigh_knobs(self, situation: Situation) -> tuple[KnobShare, ...]:
        """Which of them decide, by all that was tried; () where that is too little."""


class Coder(Protocol):
    """Writes candidates."""

    name: str

    def propose(self, situation: Situation) -> Proposal | NoProposal | None:
        """The next candidate, why there is none this time, or None when nothing new is left."""


class Judge(Protocol):
    """Diagnoses; it never gives a verdict."""

    name: str

    def diagnose(self, member: Member, situation: Situation) -> Advice:
        """One bottleneck and one change for the member's next version."""
