"""What two campaigns must have in common to have decided the same."""

from __future__ import annotations

from kernelwright.traces.events import Event


def decisions(events: list[Event]) -> list[tuple[object, ...]]:
    """Everything but timings, costs, keys and the beginning."""
    told: list[tuple[object, ...]] = []
    for payload in (event.payload for event in events):
        match payload.kind:
            case "candidate.proposed":
                # As people read it: older records have all that is said of it in one text.
                left_out = {"strategy", "techniques", "notes", "note"}
                told.append((payload.kind, payload.said, payload.model_dump(exclude=left_out)))  # type: ignore[union-attr]
            case "advice.given" | "decided" | "campaign.finished":
                told.append((payload.kind, payload.model_dump()))
            case "candidate.missing":
                told.append((payload.kind, payload.place, payload.outcome))  # type: ignore[union-attr]
            case "evaluation.finished":
                verdict = payload.verdict  # type: ignore[union-attr]
                told.append((payload.kind, verdict.candidate, verdict.protocol, verdict.status))
            case "champion.changed":
                told.append((payload.kind, payload.candidate, payload.previous))  # type: ignore[union-attr]
    return told
