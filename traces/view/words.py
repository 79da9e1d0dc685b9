# SPDX-License-Identifier: Apache-2.0
"""How statuses, moments and verdicts are put into words on pages.

Knows phrases. Knows nothing of pages or of the store.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, TypeAdapter

from ..events import CampaignStarted
from ..fold import Entry
from ..place import Place
from ..records import Depth, Status
from ..wording import NOTHING, micros, ratio, speedup, word_shares

SIGN = {
    Status.VERIFIED: "●",
    Status.SCREENED: "◆",
    Status.INCORRECT: "✕",
    Status.NOT_DISCRIMINATING: "◇",
    Status.SUSPECT: "★",
    Status.BUILD_FAILED: "■",
    Status.CRASHED: "▲",
    Status.TIMED_OUT: "▼",
    Status.RESOURCE: "✚",
    Status.PROTOCOL_ERROR: "□",
    Status.HARNESS_ERROR: "○",
    Status.UNSUPPORTED: "△",
}
"""A status is told by shape and word, never by colour alone; charts use the same shapes."""

GROUP = {
    Status.VERIFIED: "pass",
    Status.SCREENED: "screened",
    Status.INCORRECT: "wrong",
    Status.SUSPECT: "wrong",
    Status.BUILD_FAILED: "broken",
    Status.CRASHED: "broken",
    Status.TIMED_OUT: "broken",
    Status.RESOURCE: "broken",
    Status.PROTOCOL_ERROR: "broken",
    Status.NOT_DISCRIMINATING: "other",
    Status.HARNESS_ERROR: "other",
    Status.UNSUPPORTED: "other",
}
"""Five colours are as many as can be told apart."""

_HOW = {Depth.CONFIRM: "in a fresh process", Depth.RECORD: "in 300 trials"}
"""What a thorough protocol adds; the others verify once."""


def gain(entry: Entry) -> str:
    """What stands for a candidate's speed in few words: credited, estimated or modelled."""
    verdict = entry.verdict
    if verdict is None:
        return NOTHING
    if verdict.credited is not None:
        return f"{ratio(verdict.credited)} credited"
    if verdict.screen_estimate:
        return f"{ratio(verdict.screen_estimate.median)} screen estimate"
    return f"{micros(verdict.modelled_us)} modelled" if verdict.modelled_us else NOTHING


def place(of: Place) -> str:
    """A place of the workflow in words."""
    if of.is_slot and not of.purpose:
        return f"Round {of.round}" + (f", slot {of.slot}" if of.slot else "")
    return str(of) or "Elsewhere"


def local_time(at: float) -> str:
    """A moment in this machine's time zone; a dash for what no calendar holds."""
    try:
        return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return NOTHING


def utc_time(at: float) -> str:
    """A moment in UTC, as HTML's <time> wants it; empty for what no calendar holds."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return ""


def shorten_id(identity: str | None) -> str:
    """The beginning of an id, enough for people."""
    return (identity or "")[:10]


def sentence(entry: Entry) -> str:
    """Why a candidate was kept or rejected."""
    verdict = entry.verdict
    if verdict is None:
        if entry.cut_off:
            return "Its evaluation was started and has not finished."
        return "It was proposed and is not evaluated yet."
    if not verdict.status.is_pass:
        return f"Not accepted: {verdict.reasons[0].rstrip('.')}."
    measurement = verdict.measurement
    if verdict.emulated:
        return (
            f"Right in an emulation of {verdict.target}; it did not run there, was not timed and "
            "carries no speed-up."
        )
    if verdict.status is Status.SCREENED or measurement is None:
        why = f": {verdict.reasons[0].rstrip('.')}" if verdict.reasons else ""
        estimate = verdict.screen_estimate
        if estimate is None or measurement is None:
            return f"It passed the quick checks and carries no speed-up{why}."
        return (
            f"It passed the quick checks; their screen estimate is {speedup(estimate)} against "
            f"{measurement.best_baseline}: it ranks candidates, and nothing is credited{why}."
        )
    where = f"on {measurement.workload}"
    headline = measurement.headline
    how = _HOW.get(verdict.protocol, "once")
    if headline is None:
        return f"Verified {how} {where}, with no baseline to hold it against."
    return (
        f"Verified {how}: {speedup(headline)} against {measurement.best_baseline} {where}; "
        f"{ratio(headline.low)} is credited."
    )


def word_parts(started: CampaignStarted) -> str:
    """Behind the name of several workloads: each with its share; empty for a single one."""
    parts = started.workload_spec.get("parts")
    if not isinstance(parts, list) or not parts:
        return ""
    named = TypeAdapter(list[_NamedPart]).validate_python(parts)
    return f": {word_shares([(part.workload.name, part.weight) for part in named])}"


class _Named(BaseModel):
    name: str


class _NamedPart(BaseModel):
    workload: _Named
    weight: float
