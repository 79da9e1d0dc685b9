"""What two campaigns must have in common to have decided the same."""

from __future__ import annotations

from kernelwright.traces.events import (
    AdviceGiven,
    CampaignFinished,
    CandidateMissing,
    CandidateProposed,
    ChampionChanged,
    Decided,
    EvaluationFinished,
    Event,
)


def decisions(events: list[Event]) -> list[tuple[object, ...]]:
    """Everything but timings, costs, keys and the beginning."""
    told: list[tuple[object, ...]] = []
    for payload in (event.payload for event in events):
        match payload:
            case CandidateProposed():
                # As people read it: older records have all that is said of it in one text.
                left_out = {"strategy", "techniques", "notes", "note"}
                told.append((payload.kind, payload.said, payload.model_dump(exclude=left_out)))
            case AdviceGiven() | Decided() | CampaignFinished():
                told.append((payload.kind, payload.model_dump()))
            case CandidateMissing():
                told.append((payload.kind, payload.place, payload.outcome))
            case EvaluationFinished(verdict=verdict):
                told.append((payload.kind, verdict.candidate, verdict.protocol, verdict.status))
            case ChampionChanged():
                told.append((payload.kind, payload.candidate, payload.previous))
    return told
