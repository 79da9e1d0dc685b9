# SPDX-License-Identifier: Apache-2.0
"""The choices that workflows record: one record a kind, told apart by `what`.

What an earlier version recorded is read into the same records. What is of no known kind, or does
not have its form, is kept as it was stored: it can be shown, and no workflow rests on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal, get_args

from pydantic import (
    BeforeValidator,
    Field,
    JsonValue,
    PlainValidator,
    SerializeAsAny,
    TypeAdapter,
    ValidationError,
)

from .place import NOWHERE, StoredPlace
from .preparation import Preparation
from .records import Record
from .schemas import FormsOf

OptionalId = Annotated[str | None, BeforeValidator(lambda value: value or None)]
"""A candidate, if there is one; where there was none earlier versions stored an empty text."""


class AnyDecision(Record):
    """What every kind has."""

    what: str

    @property
    def facts(self) -> dict[str, JsonValue]:
        """What was decided, for people and for JSON."""
        facts: dict[str, JsonValue] = self.model_dump(mode="json", exclude={"what"})
        return facts


class OtherDecision(AnyDecision):
    """One that this version does not know."""

    details: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def facts(self) -> dict[str, JsonValue]:
        return self.details


class NothingLeft(AnyDecision):
    """Judge or Coder see no change of the base that is worth its price."""

    what: Literal["nothing left"] = "nothing left"
    candidate: OptionalId
    why: str


class BaseChosen(AnyDecision):
    """The next edit is of another candidate than the round's own."""

    what: Literal["base of the next edit"] = "base of the next edit"
    candidate: OptionalId
    why: str


class Cut(AnyDecision):
    """A cap refused the rest of a round."""

    what: Literal["round cut short"] = "round cut short"
    by: str
    """The cap."""


class RoundPlanned(AnyDecision):
    """How many proposals a round of `contrast` has."""

    what: Literal["round"] = "round"
    slots: int


class ExemplarsChosen(AnyDecision):
    """Which candidates a slot is shown, slow to fast."""

    what: Literal["exemplars"] = "exemplars"
    candidates: tuple[str, ...]
    buckets: tuple[int, ...]
    """How many stood in each bucket of like score."""
    chances: tuple[float, ...]


class GroupScored(AnyDecision):
    """Where a candidate stands within all that were right."""

    what: Literal["group score"] = "group score"
    candidate: str
    score: float


class LookedTwice(AnyDecision):
    """A result that is too good was verified in full."""

    what: Literal["hack check"] = "hack check"
    candidate: str
    why: str
    status: str


class SecondOpinion(AnyDecision):
    """What a model made of a surprising candidate."""

    what: Literal["second opinion"] = "second opinion"
    candidate: str
    label: Literal["honest", "suspect", "none"]
    """`none`: its answer could not be used."""
    case: str = ""
    """The case of the catalogue that it names; empty: none of them."""
    line: int = 0
    reason: str = ""
    shown: tuple[str, ...] = ()
    """The cases that it was shown."""
    by: str = ""


class NoSecondOpinion(AnyDecision):
    """The model could not be asked for one."""

    what: Literal["no second opinion"] = "no second opinion"
    candidate: str
    reason: str


class FeaturesPlanned(AnyDecision):
    """What a depth of `features` extends, and the techniques that its slots try."""

    what: Literal["features"] = "features"
    base: OptionalId
    """None: there is nothing yet."""
    bound: str
    slots: tuple[tuple[str, ...], ...]
    is_repair: bool


class Credited(AnyDecision):
    """The techniques that a candidate really used, and what they brought."""

    what: Literal["technique used", "feature credited"] = "technique used"
    candidate: str
    bound: str
    used: tuple[str, ...]
    disputed: tuple[str, ...] = ()
    """Source and declaration do not agree."""
    gain: float | None
    """ln(new / old) of the score; None where it failed."""
    depth: int


class GainRow(Record):
    """What one technique was worth on kernels with one bound."""

    technique: str
    bound: str
    tried: int
    gained: int
    mean_gain: float
    best_gain: float


class GainsTabled(AnyDecision):
    """The table of gains as it stands after a depth."""

    what: Literal["table of gains"] = "table of gains"
    rows: tuple[GainRow, ...]


class PlannedSlot(Record):
    """What one slot of a generation does."""

    operator: str
    mode: str
    island: int
    base: OptionalId = None
    """None: it changes none."""
    exemplars: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    advice: StoredPlace = NOWHERE
    """Where the Judge's words on the base were given."""


class GenerationPlanned(AnyDecision):
    """What each slot of a generation does."""

    what: Literal["generation"] = "generation"
    slots: tuple[PlannedSlot, ...]


class Compared(AnyDecision):
    """How new a candidate is."""

    what: Literal["novelty"] = "novelty"
    candidate: str
    normal: str
    """The hash of its source without what makes no difference."""
    island: int
    like: OptionalId
    """The candidate that it is too close to; None: it is new."""
    similarity: float


class Born(AnyDecision):
    """The niche and the island of an evaluated candidate."""

    what: Literal["niche"] = "niche"
    candidate: str
    version: int
    """Of the definition of niches."""
    niche: str
    island: int


class IslandsStood(AnyDecision):
    """The elite of each niche of each island, after a generation."""

    what: Literal["islands"] = "islands"
    islands: tuple[dict[str, str], ...]


class LessonsDrawn(AnyDecision):
    """What a look back on all attempts came to."""

    what: Literal["lessons"] = "lessons"
    lessons: tuple[str, ...]


class NoLessons(AnyDecision):
    """The model could not be asked for lessons."""

    what: Literal["no lessons"] = "no lessons"
    reason: str


class NoReflection(AnyDecision):
    """A cap forbade the words after a generation."""

    what: Literal["no reflection"] = "no reflection"
    by: str


class SoftKind(StrEnum):
    """What a soft verifier is asked."""

    BUILD = "build"
    MEMORY = "memory"
    NUMERICS = "numerics"


class Opinion(Record):
    """What the votes of one kind come to."""

    kind: SoftKind
    model: str
    verdict: Literal["ok", "suspect", "broken"]
    """Of the majority; `suspect` where there is none."""
    broken: int
    """Votes for `broken`."""
    votes: int
    """Votes that could be read."""
    line: int = 0
    reason: str = ""
    """Of the first vote with the majority."""


class SoftVerdicts(AnyDecision):
    """What soft verifiers guess of a candidate."""

    what: Literal["soft verdicts"] = "soft verdicts"
    candidate: str
    opinions: tuple[Opinion, ...]


class NoSoftVerdicts(AnyDecision):
    """The model could not be asked for them."""

    what: Literal["no soft verdicts"] = "no soft verdicts"
    reason: str


class SwitchedOff(AnyDecision):
    """One kind of soft verifier is not asked any more."""

    what: Literal["soft verifier switched off"] = "soft verifier switched off"
    why: str
    generation: int


class Shortlisted(AnyDecision):
    """Who of a generation is evaluated."""

    what: Literal["shortlist"] = "shortlist"
    kept: tuple[str, ...]
    passed_over: tuple[str, ...]


class ModuleChecked(AnyDecision):
    """What the referee found of the foreign source itself."""

    what: Literal["module check"] = "module check"
    candidate: str
    status: str
    told: str
    """In words, for whoever converts it."""


class Challenged(AnyDecision):
    """Who meets the champion in a round of `tune`."""

    what: Literal["challenge"] = "challenge"
    candidate: str


class HandedOver(AnyDecision):
    """Another workflow goes on from what was found."""

    what: Literal["handed over"] = "handed over"
    to: Literal["forge", "evolve"]
    round: int
    best: str
    champion: OptionalId


class Postponed(AnyDecision):
    """A challenger was left to the race: confirmations had had their share of the time."""

    what: Literal["confirmation postponed"] = "confirmation postponed"
    candidate: str


class KnobsTuned(AnyDecision):
    """Other numbers of a new leader were tried without a model."""

    what: Literal["knobs tuned"] = "knobs tuned"
    leader: str
    best: str
    """The fastest of it and its variants."""
    tried: int
    """Variants that were screened."""
    points: int
    """Of the space that the leader declares."""
    why: str
    """Why no more were tried."""


@dataclass(frozen=True)
class Recalled:
    """What clocks decided in a campaign that is replayed."""

    tuned: Mapping[str, KnobsTuned] = field(default_factory=dict)
    """How the tuning of each leader's knobs ended."""
    postponed: AbstractSet[str] = frozenset()
    """Who was left to the race."""
    prepared: Preparation | None = None
    """What was known of the work before the first candidate."""


_Known = (
    NothingLeft
    | BaseChosen
    | Cut
    | RoundPlanned
    | ExemplarsChosen
    | GroupScored
    | LookedTwice
    | SecondOpinion
    | NoSecondOpinion
    | FeaturesPlanned
    | Credited
    | GainsTabled
    | GenerationPlanned
    | Compared
    | Born
    | IslandsStood
    | LessonsDrawn
    | NoLessons
    | NoReflection
    | SoftVerdicts
    | NoSoftVerdicts
    | SwitchedOff
    | Shortlisted
    | ModuleChecked
    | Challenged
    | HandedOver
    | KnobsTuned
    | Postponed
)
KINDS: tuple[type[AnyDecision], ...] = get_args(_Known)
_KNOWN: TypeAdapter[AnyDecision] = TypeAdapter(Annotated[_Known, Field(discriminator="what")])


def read_decision(value: object) -> AnyDecision:
    """The decision in a stored object; one of no known form is kept whole.

    Raises:
        ValueError: it does not even say what was decided.
    """
    if isinstance(value, AnyDecision):
        return value
    if not isinstance(value, dict) or not isinstance(value.get("what"), str):
        raise ValueError("a decision says what was decided")
    try:
        return _KNOWN.validate_python(value)
    except ValidationError:
        facts = {name: each for name, each in value.items() if name != "what"}
        details = facts["details"] if [*facts] == ["details"] else facts
        return OtherDecision.model_validate({"what": value["what"], "details": details})


def earlier_form(event: object) -> object:
    """A stored event whose decision stands in the fields `what` and `details`, as it is now."""
    if not isinstance(event, dict) or "decision" in event or "what" not in event:
        return event
    what, details = event["what"], event.get("details", {})
    kept = {name: each for name, each in event.items() if name not in ("what", "details")}
    decision = read_decision({**details, "what": what}) if isinstance(details, dict) else None
    if decision is None or isinstance(decision, OtherDecision):
        decision = OtherDecision(what=what, details=details)
    return {**kept, "decision": decision}


StoredDecision = Annotated[
    SerializeAsAny[AnyDecision], PlainValidator(read_decision), FormsOf(_KNOWN, "what")
]
"""A decision as a field of a record."""
