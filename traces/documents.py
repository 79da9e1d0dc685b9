# SPDX-License-Identifier: Apache-2.0
"""What the commands say of a campaign, a candidate and a verdict, as JSON documents.

Pure functions of what the store derived. Their shapes (`shapes.py`) are a stable part of the
command line.
"""

from __future__ import annotations

from typing import Any

from .audits import last_audit_sentence
from .fold import Entry
from .history import History
from .outcome import find_pace, how_sure, what_decides, why_no_winner
from .records import Verdict
from .shapes import (
    BestDocument,
    CampaignDocument,
    EntryDocument,
    Gains,
    LeaderDocument,
    LineDocument,
    PaceDocument,
    PreparationDocument,
)


def campaign_document(
    history: History, *, wall_s: float | None = None, is_running: bool = False
) -> CampaignDocument:
    """The document of `run --json`: what was asked, what came out, what it cost.

    Args:
        wall_s: seconds of work, where they are known; else it has the span of the events.
    """
    started = history.started
    return {
        "campaign": history.campaign,
        "problem": started.problem,
        "workload": started.workload,
        "target": started.target,
        "language": started.language,
        "tier": started.tier,
        "workflow": started.workflow,
        "model": started.model,
        "judge_model": started.judge_model,
        "seed": started.seed,
        "limits": history.limits,
        "best": best_document(history),
        "leader": leader_document(history),
        "evaluated": history.evaluated,
        "by_status": {str(status): n for status, n in history.by_status.items()},
        "isolation": history.isolation.model_dump(mode="json") if history.isolation else None,
        "not_enforced": list(history.not_enforced),
        "usd": None if history.usd is None else round(history.usd, 6),
        "tokens": history.tokens,
        "booked": {
            "attempts": history.booked.attempts,
            "tokens": history.booked.tokens,
            "usd": None if history.booked.usd is None else round(history.booked.usd, 6),
        },
        "preparation": preparation_document(history),
        "why_no_winner": None if is_running else why_no_winner(history) or None,
        "sureness": sureness_document(history),
        "knobs": [
            knob.model_dump(mode="json")
            for knob in (history.finished.knobs if history.finished else ())
        ],
        "pace": pace_document(history),
        "wall_s": round(history.last_at - history.started_at if wall_s is None else wall_s, 3),
        "stopped_by": history.finished.stopped_by if history.finished else None,
        "audit": last_audit_sentence(history) or None,
    }


def line_document(history: History) -> dict[str, Any]:
    """What lists tell of a campaign, whoever asks: nothing of it changes without an event."""
    document: LineDocument = {
        **campaign_document(history),
        "file": history.file,
        "started_at": history.started_at,
        "last_at": history.last_at,
        "proposed": len(history.entries),
        "is_estimated": history.spending.is_estimated,
        "how_sure": how_sure(history) or None,
        "what_decides": what_decides(history) or None,
    }
    return dict(document)


def sureness_document(history: History) -> dict[str, Any] | None:
    """How sure it is that the winner is the fastest; None where nothing was raced."""
    sureness = history.finished.sureness if history.finished else None
    return sureness.model_dump(mode="json") if sureness else None


def pace_document(history: History) -> PaceDocument | None:
    """How its time was used; None where nothing was timed."""
    pace = find_pace(history)
    if pace is None:
        return None
    return {
        "candidates_per_minute": round(pace.per_minute, 2),
        "candidates_per_minute_of_search": round(pace.per_minute_of_search, 2),
        "judged_share": round(pace.judged_share, 4),
        "timed_share": round(pace.timed_share, 4),
        "counted_share": round(pace.counted_share, 4),
    }


def preparation_document(history: History) -> PreparationDocument | None:
    """What it took until candidates could be judged; None where no process came so far."""
    if not history.prepared:
        return None
    last = history.prepared[-1]
    return {
        "total_s": round(history.preparation_s, 3),
        "seconds": {name: round(seconds, 3) for name, seconds in last.seconds.items()},
        "baselines": list(last.baselines),
        "missing": dict(last.missing),
        "baseline_us": dict(history.prepared[0].baseline_us),
        "bounds": first.model_dump() if (first := history.prepared[0].bounds) else None,
    }


def best_document(history: History) -> BestDocument | None:
    """The champion with its evidence; None where nothing was verified."""
    entry = history.best
    verdict = entry.verdict if entry else None
    if entry is None or verdict is None:
        return None
    measurement = verdict.measurement
    speedups = measurement.against_baselines if measurement else {}
    return {
        "candidate": entry.candidate,
        "number": entry.number,
        "family": entry.family,
        "knobs": entry.knobs,
        "status": str(verdict.status),
        "protocol": str(verdict.protocol),
        "latency_us": measurement.candidate.median_us if measurement else None,
        "roofline": measurement.roofline if measurement else None,
        "best_baseline": measurement.best_baseline if measurement else None,
        "speedup": {name: ratio.model_dump(mode="json") for name, ratio in speedups.items()},
    }


def leader_document(history: History) -> LeaderDocument | None:
    """Who leads by modelled time where nothing could be timed; None on a target that times."""
    entry = history.leader
    verdict = entry.verdict if entry else None
    if entry is None or verdict is None:
        return None
    return {
        "candidate": entry.candidate,
        "number": entry.number,
        "family": entry.family,
        "knobs": entry.knobs,
        "status": str(verdict.status),
        "emulated": verdict.emulated,
        "modelled_us": verdict.modelled_us,
        "speedup": None,
    }


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """The document of `eval --json`."""
    open_rows = verdict.isolation.not_enforced if verdict.isolation else ()
    stored = verdict.model_dump(mode="json", exclude={"schema_version"})
    return {**stored, **_gains(verdict), "not_enforced": list(open_rows)}


def _gains(verdict: Verdict | None) -> Gains:
    """What is credited, and what a screening estimates; at most one of them is there."""
    estimate = verdict.screen_estimate if verdict else None
    return {
        "credited": verdict.credited if verdict else None,
        "screen_estimate": estimate.model_dump(mode="json") if estimate else None,
    }


def entry_document(entry: Entry) -> EntryDocument:
    """One candidate of a campaign, in a line."""
    verdict = entry.verdict
    measurement = verdict.measurement if verdict else None
    return {
        "number": entry.number,
        "candidate": entry.candidate,
        "family": entry.family,
        "language": entry.language,
        "knobs": entry.knobs,
        "operator": entry.operator,
        "file": entry.file,
        "strategy": entry.strategy,
        "techniques": list(entry.techniques),
        "notes": list(entry.notes),
        "parents": list(entry.parents),
        "status": str(verdict.status) if verdict else None,
        "protocol": str(verdict.protocol) if verdict else None,
        "reasons": list(verdict.reasons) if verdict else [],
        "emulated": verdict.emulated if verdict else None,
        "latency_us": measurement.candidate.median_us if measurement else None,
        "modelled_us": verdict.modelled_us if verdict else None,
        **_gains(verdict),
        "is_cut_off": entry.cut_off,
    }
