"""How figures, times and statuses are put into words on pages.

Knows units and phrases. Knows nothing of pages or of the store.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from ..fold import Entry
from ..place import Place
from ..records import Protocol, Speedup, Status

MEANING = {
    Status.VERIFIED: "right in every check, and timed against every baseline",
    Status.SCREENED: "right in the quick checks; what they timed is an estimate, not credited",
    Status.INCORRECT: "gave a wrong answer",
    Status.NOT_DISCRIMINATING: "the inputs cannot tell a right kernel from one that does nothing",
    Status.SUSPECT: "something about the run cannot be trusted",
    Status.BUILD_FAILED: "did not compile",
    Status.CRASHED: "ended with a signal or an error",
    Status.TIMED_OUT: "did not answer in time",
    Status.RESOURCE: "used more memory, processes or output than allowed",
    Status.PROTOCOL_ERROR: "the runner did not keep to the protocol",
    Status.HARNESS_ERROR: "the harness itself failed; not the candidate's fault",
    Status.UNSUPPORTED: "this version or machine cannot judge it",
}

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

_HOW = {Protocol.CONFIRM: "in a fresh process", Protocol.RECORD: "in 300 trials"}
"""What a thorough protocol adds; the others verify once."""

NOTHING = "–"


def figure(value: float | None) -> str:
    """A number with four significant digits."""
    if value is None:
        return NOTHING
    if math.isfinite(value) and value == int(value) and abs(value) < 1e6:
        return f"{int(value)}"
    return f"{value:.4g}"


def micros(value: float | None) -> str:
    """A time given in microseconds, in a unit that reads well."""
    if value is None:
        return NOTHING
    if value >= 1e6:
        return f"{value / 1e6:.3g} s"
    if value >= 1e4:
        return f"{value / 1e3:.3g} ms"
    if value >= 1e3:
        return f"{value / 1e3:.3f} ms"
    return f"{value:.3g} µs"


def ratio(value: float | None) -> str:
    """A speed-up; nothing credited is a dash."""
    return NOTHING if not value else f"{value:.2f}×"


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


def interval(speedup: Speedup | None) -> str:
    """The 95 % interval of a speed-up."""
    return NOTHING if speedup is None else f"{speedup.low:.2f} – {speedup.high:.2f}"


def usd(value: float | None) -> str:
    """US dollars; an unknown price is said and never taken for nothing."""
    if value is None:
        return "unknown"
    return f"${value:.2f}" if value >= 1 or value == 0 else f"${value:.4f}"


def spent(value: float | None, is_estimated: bool) -> str:
    """US dollars, with a mark where the server did not tell what it took."""
    return ("≈ " if is_estimated and value else "") + usd(value)


def tokens(value: int, is_estimated: bool = False) -> str:
    """Tokens, with a mark where the server did not tell them."""
    return ("≈ " if is_estimated and value else "") + f"{value:,}"


def place(of: Place) -> str:
    """A place of the workflow in words."""
    if of.is_slot and not of.purpose:
        return f"Round {of.round}" + (f", slot {of.slot}" if of.slot else "")
    return str(of) or "Elsewhere"


def percent(value: float | None) -> str:
    """A share in per cent."""
    return NOTHING if value is None else f"{100 * value:.3g} %"


def duration(seconds: float) -> str:
    """A span of time."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"


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


def short(identity: str | None) -> str:
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
            f"It passed the quick checks; their screen estimate is {ratio(estimate.median)} (95 % "
            f"interval {interval(estimate)}) against {measurement.best_baseline}: it ranks "
            f"candidates, and nothing is credited{why}."
        )
    where = f"on {measurement.workload}"
    headline = measurement.headline
    how = _HOW.get(verdict.protocol, "once")
    if headline is None:
        return f"Verified {how} {where}, with no baseline to hold it against."
    return (
        f"Verified {how}: {ratio(headline.median)} (95 % interval {interval(headline)}) against "
        f"{measurement.best_baseline} {where}; {ratio(headline.low)} is credited."
    )
