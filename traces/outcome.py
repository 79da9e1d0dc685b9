# SPDX-License-Identifier: Apache-2.0
"""Why a campaign has no winner, or how sure its winner is, in one sentence for all places.

A pure function of a History. It knows no page, no command and no unit but those of the records.
"""

from __future__ import annotations

from typing import NamedTuple

from .fold import Entry
from .history import History
from .tally import Causes, first_reason
from .wording import micros, tokens, usd

DECIDING, IDLE = 0.05, 0.01
"""Shares of the variance from which a knob decides, and below which it does nothing."""

_ENDS = {
    "interrupted": "it was interrupted",
    "provider": "a model's endpoint refused or failed",
    "error": "an error of the harness ended it",
    "nothing left": "nothing was left to try",
    "space exhausted": "nothing was left to try",
    "no gain expected": "next to nothing was to be expected of what was left to try",
    "rounds": "its rounds were over",
    "plateau": "several rounds in a row had gained nothing",
    "roofline": "it had come to the roofline",
}
_CAPS = {
    "seconds": "its time of {:g} s was over",
    "evaluations": "its {:g} evaluations were spent",
    "usd": "its {} were spent",
    "tokens": "its {} tokens were spent",
    "device_seconds": "its {:g} s on the target were over",
}


def why_no_winner(history: History) -> str:
    """The sentence, without a full stop; empty where there is a winner.

    Of a campaign that still runs it says what would be true if it ended now.
    """
    if history.champion is not None:
        return ""
    if history.started.is_evaluation and history.evaluated and not history.leader:
        (only,) = history.entries.values()
        return f"the candidate is {_status_of(only)}"
    if not history.evaluated:
        return f"no candidate was evaluated: {_end(history)}{_useless_replies(history)}"
    leader = history.leader
    if leader is not None and leader.verdict is not None:
        return (
            f"{history.started.target} is emulated here, where nothing is timed and nothing can "
            f"win; the best by modelled time is #{leader.number} "
            f"({micros(leader.verdict.modelled_us)})"
        )
    if not history.tally.passed:
        return f"none of {_plural(history.evaluated, 'candidate')} was right: {_failures(history)}"
    passed, of_all = history.tally.passed, _plural(history.evaluated, "candidate")
    why = _explain_fall(history) or _explain_refutation(history) or _explain_unconfirmed(history)
    return f"{passed} of {of_all} passed the quick checks, {why}"


def how_sure(history: History) -> str:
    """That the winner is the fastest of its campaign, as a sentence without a full stop.

    Empty where there is no winner, nothing was raced, or another process goes on with it.
    """
    sureness = history.finished.sureness if history.finished else None
    if sureness is None or history.champion is None:
        return ""
    if sureness.candidates < 2:
        return "the only right candidate that was timed"
    return (
        f"the fastest of {sureness.candidates} right candidates with {sureness.chance:.0%} "
        f"certainty; {sureness.regret_at_most:.1%} slower than the fastest at most (95 %)"
    )


class Pace(NamedTuple):
    """How a campaign's time was used."""

    per_minute: float
    """Candidates that were evaluated, over all of its seconds."""
    per_minute_of_search: float
    """The same over the seconds that the race left, confirmations included."""
    judged_share: float
    """Of all its seconds, in which an evaluation ran, on the CPUs that times are taken on."""
    timed_share: float
    """Of all its seconds, in which something was timed."""
    counted_share: float
    """Of all its seconds, in which hardware counters were read for the Judge."""


def find_pace(history: History) -> Pace | None:
    """None where nothing was timed, and of an evaluation, which has no pace."""
    timed_s = history.tally.timed_s
    spent_s, searched_s = history.spent_s, history.spent_s - history.raced_s
    if not timed_s or searched_s <= 0 or history.started.is_evaluation:
        return None
    return Pace(
        per_minute=60.0 * history.evaluated / spent_s,
        per_minute_of_search=60.0 * history.evaluated / searched_s,
        judged_share=history.judged_s / spent_s,
        timed_share=min(1.0, timed_s / spent_s),
        counted_share=min(1.0, history.counted_s / spent_s),
    )


def how_fast(history: History) -> str:
    """The pace as a sentence without a full stop; empty where nothing was timed."""
    pace = find_pace(history)
    if pace is None:
        return ""
    of_search = f" ({pace.per_minute_of_search:.0f} without the race)" if history.raced_s else ""
    counted = f"; reading counters took {pace.counted_share:.0%}" if pace.counted_share else ""
    return (
        f"{pace.per_minute:.0f} candidates a minute{of_search}; an evaluation ran in "
        f"{pace.judged_share:.0%} of the time, and something was timed in {pace.timed_share:.0%}"
        f"{counted}"
    )


def what_decides(history: History) -> str:
    """Which knobs decided how fast a recipe is and which did next to nothing, as a sentence.

    Empty of campaigns without recipes, of too few candidates, and while one runs.
    """
    knobs = history.finished.knobs if history.finished else ()
    deciding = [
        f"{knob.knob} {knob.share:.0%} "
        f"({knob.best} best, {knob.worst} {knob.gain:.0%} slower or more)"
        for knob in knobs
        if knob.share >= DECIDING
    ]
    idle = [knob.knob for knob in knobs if knob.share < IDLE]
    parts = [f"decided by {', '.join(deciding)}"] if deciding else []
    parts += [f"next to nothing by {', '.join(idle)}"] if idle else []
    return "; ".join(parts)


def _end(history: History) -> str:
    """What ended it, as a clause."""
    if history.finished is None:
        return "its process ended without a word" + _while_preparing(history)
    by = history.finished.stopped_by
    if by in _CAPS and by in history.limits:
        limit = history.limits[by]
        return _CAPS[by].format({"usd": usd, "tokens": tokens}.get(by, float)(limit))
    return _ENDS.get(by, f"it ended by '{by}'") + _while_preparing(history)


def _while_preparing(history: History) -> str:
    return "" if history.is_prepared else " while the baselines were prepared"


def _useless_replies(history: History) -> str:
    if not history.missing:
        return ""
    count = len(history.missing)
    causes = Causes()
    for missing in history.missing.values():
        causes.add(missing.reason)
    often = causes.most_frequent
    return f"; {_plural(count, 'reply', 'replies')} held no candidate, most often: {often}"


def _failures(history: History) -> str:
    counts = ", ".join(f"{count} {status}" for status, count in history.by_status.items())
    cause = history.tally.causes.most_frequent
    return f"{counts}; most often: {cause}" if cause else counts


def _explain_fall(history: History) -> str:
    """Of the champion that there was."""
    if not history.falls:
        return ""
    entry = history.entries[history.falls[-1].candidate]
    return f"and the champion that there was, #{entry.number}, no longer held: {_status_of(entry)}"


def _explain_refutation(history: History) -> str:
    """Of one whose confirmation found something else."""
    refuted = history.tally.refuted
    if not refuted:
        return ""
    last = history.entries[refuted[max(refuted)]]
    others = f" (and {len(refuted) - 1} more)" if len(refuted) > 1 else ""
    return f"and #{last.number}{others} did not hold when it was confirmed: {_status_of(last)}"


def _explain_unconfirmed(history: History) -> str:
    best = history.entries[history.tally.fastest.candidate or ""]
    return f"and none was confirmed before {_end(history)}; #{best.number} was next"


def _status_of(entry: Entry) -> str:
    verdict = entry.verdict
    assert verdict is not None
    return f"{verdict.status}: {first_reason(verdict)}" if verdict.reasons else str(verdict.status)


def _plural(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or one + 's'}"
