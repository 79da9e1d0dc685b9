# SPDX-License-Identifier: Apache-2.0
"""Makes a Bundle from the store: the events of one campaign and the source's blob.

It asks the store for two things only, so that any reader of events serves. What the problem is
called and how it is computed stands in the campaign's first event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...errors import StorageError, UnknownNameError, UsageError
from ..events import CampaignStarted, CandidateProposed, EvaluationFinished, Event
from ..fold import most_thorough
from ..records import Verdict
from .bundle import BUILD_FLAGS, Ancestor, Bundle, Case, TensorSpec


class EventSource(Protocol):
    """What an export needs of a store."""

    def events(self, campaign: str) -> Iterable[Event]:
        """The campaign's events, in order."""

    def get_blob(self, sha: str) -> bytes:
        """The blob of that hash."""


class _Tensor(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    dtype: str
    shape: tuple[str, ...]
    is_index: bool = False
    meaning: str = ""

    def spec(self) -> TensorSpec:
        return TensorSpec(self.name, self.dtype, self.shape, self.is_index, self.meaning)


class _Description(BaseModel):
    """What is read of `CampaignStarted.config["problem"]`; it may say more."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: str
    definition: str
    axes: dict[str, str]
    inputs: tuple[_Tensor, ...]
    outputs: tuple[_Tensor, ...]
    entry: str
    flags: tuple[str, ...] = Field(default=BUILD_FLAGS)


class _Found(NamedTuple):
    verdict: Verdict
    at: float


def bundle_from_store(
    store: EventSource,
    campaign: str,
    candidate: str,
    *,
    cases: Sequence[Case] = (),
    plan: Mapping[str, Any] | None = None,
    is_prepared: bool = False,
    kernels: Sequence[str] = (),
) -> Bundle:
    """The bundle of a campaign's candidate, named by its id.

    Raises:
        UnknownNameError: the campaign has no such candidate.
        UsageError: the candidate was never evaluated.
        StorageError: the campaign's first event does not describe its problem.
    """
    events = list(store.events(campaign))
    started = next((e.payload for e in events if isinstance(e.payload, CampaignStarted)), None)
    if started is None:
        raise StorageError(f"campaign {campaign} has no first event; it cannot be exported")
    proposals = {
        e.payload.candidate: e.payload for e in events if isinstance(e.payload, CandidateProposed)
    }
    if candidate not in proposals:
        raise UnknownNameError.for_name(f"candidate of campaign {campaign}", candidate, proposals)
    found = _verdict(events, candidate)
    if found is None:
        raise UsageError(f"candidate {candidate[:12]} was never evaluated; there is no evidence")
    problem = _description(started, campaign)
    return Bundle(
        problem=started.problem,
        title=problem.title,
        definition=problem.definition,
        axes=problem.axes,
        inputs=tuple(tensor.spec() for tensor in problem.inputs),
        outputs=tuple(tensor.spec() for tensor in problem.outputs),
        entry=problem.entry,
        candidate=candidate,
        source=_text(store.get_blob(candidate)),
        language=proposals[candidate].language,
        verdict=found.verdict,
        campaign=campaign,
        lineage=_lineage(proposals, candidate),
        flags=problem.flags,
        machine=started.machine,
        verified_at=found.at,
        cases=tuple(cases),
        plan=plan,
        is_prepared=is_prepared,
        kernels=tuple(kernels),
    )


def _text(blob: Any) -> str:
    return blob if isinstance(blob, str) else bytes(blob).decode()


def _description(started: CampaignStarted, campaign: str) -> _Description:
    try:
        return _Description.model_validate(started.config.get("problem"))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in ("problem", *first["loc"]))
        raise StorageError(
            f"campaign {campaign} does not describe its problem: config.{place}: {first['msg']}",
            hint="run the campaign again with this version",
        ) from error


def _verdict(events: Iterable[Event], candidate: str) -> _Found | None:
    """The verdict that counts, and when it was."""
    finished = [
        (e.payload.verdict, e.at) for e in events if isinstance(e.payload, EvaluationFinished)
    ]
    seen = [_Found(verdict, at) for verdict, at in finished if verdict.candidate == candidate]
    counts = most_thorough(found.verdict for found in seen)
    return next((found for found in reversed(seen) if found.verdict is counts), None)


def _lineage(proposals: dict[str, CandidateProposed], candidate: str) -> tuple[Ancestor, ...]:
    waiting, seen = [candidate], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in proposals:
            continue
        seen.add(name)
        waiting.extend(proposals[name].parents)
    steps = [Ancestor(name, proposals[name].number, proposals[name].operator) for name in seen]
    return tuple(sorted(steps, key=lambda step: step.number))
