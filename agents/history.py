"""What was tried before on the lineage of a candidate, for whoever judges or changes it next.

A fold over what was recorded of rounds before the place that asks: it is the same whenever that
place is worked on, so that a resumed campaign asks the same words. It repeats what the referee
found and draws no conclusions.
"""

from __future__ import annotations

import re

from ..traces.records import CHAMPION, Protocol, Speedup, Verdict
from .archive import score_of
from .progress import Progress, Track
from .protocols import Assignment, Attempt, History

MOST_TRIED, MOST_STEPS, MOST_REFUSED = 8, 4, 3
"""The newest ones; what is older is out of a model's sight, and rarely missed."""

_BEHIND_STRATEGY = re.compile(
    r"(?:^|; )(?:techniques: |\d+ edits of |failed contrast|thinking left|it has no front matter"
    r"|it lacks |without a fence|\d+ other blocks)"
)


def history(progress: Progress, assignment: Assignment) -> History:
    """What the rounds before the assignment's place showed of its base."""
    now = _round(assignment.place)
    if now is None:
        return History()
    base = assignment.base.candidate if assignment.base else ""
    refused = tuple(
        missing.reason
        for place, missing in progress.missing.items()
        if missing.base == base and _is_before(place, now)
    )[-MOST_REFUSED:]
    if base not in progress.tracks:
        return History(refused=refused)
    tried = [
        _attempt(progress, track)
        for track in _before(progress, now)
        if track.proposed.parents[:1] == (base,)
    ]
    return History(
        standing=_standing(progress, base, now),
        led_here=_led_to(progress, base),
        tried=tuple(tried[-MOST_TRIED:]),
        refused=refused,
    )


def interval(ratio: Speedup) -> str:
    """The median with its 95 % interval, in few digits."""
    return f"{ratio.median:.3g} [{ratio.low:.3g}, {ratio.high:.3g}]"


def strategy(note: str) -> str:
    """What a Coder said of its candidate, without what was noted behind it."""
    return _BEHIND_STRATEGY.split(note, maxsplit=1)[0].strip()


def _before(progress: Progress, now: int) -> list[Track]:
    """Every evaluated candidate of the rounds before."""
    return [
        track
        for track in progress.tracks.values()
        if track.verdicts and _is_before(track.proposed.place, now)
    ]


def _led_to(progress: Progress, base: str) -> tuple[Attempt, ...]:
    steps: list[Attempt] = []
    while base in progress.tracks and len(steps) < MOST_STEPS:
        track = progress.tracks[base]
        steps.append(_attempt(progress, track))
        base = track.proposed.parents[0] if track.proposed.parents else ""
    return tuple(reversed(steps))


def _attempt(progress: Progress, track: Track) -> Attempt:
    proposed = track.proposed
    parent = progress.tracks.get(proposed.parents[0]) if proposed.parents else None
    found, was = _looked_at(track), _looked_at(parent)
    advised = progress.advised.get(proposed.place)
    return Attempt(
        number=proposed.number,
        strategy=strategy(proposed.note),
        advised=advised.technique if advised else "",
        before_us=_time_us(was),
        after_us=_time_us(found),
        before_speedup=_speedup(was),
        after_speedup=_speedup(found),
        beside_champion=_beside_champion(track),
        is_modelled=bool(found and found.measurement is None),
        failure=_failure(found),
    )


def _looked_at(track: Track | None) -> Verdict | None:
    """The screening, since times of one kind of look can be compared."""
    return (track.verdicts.get(Protocol.SCREEN) or track.verdict) if track else None


def _time_us(verdict: Verdict | None) -> float | None:
    if verdict is None or not verdict.status.is_pass:
        return None
    timed = verdict.measurement
    return timed.candidate.median_us if timed else (verdict.modelled_us or None)


def _speedup(verdict: Verdict | None) -> Speedup | None:
    timed = verdict.measurement if verdict and verdict.status.is_pass else None
    return timed.headline if timed else None


def _beside_champion(track: Track) -> Speedup | None:
    confirmed = track.verdicts.get(Protocol.CONFIRM)
    timed = confirmed.measurement if confirmed and confirmed.status.is_pass else None
    return timed.speedup.get(CHAMPION) if timed else None


def _failure(verdict: Verdict | None) -> str:
    if verdict is None or verdict.status.is_pass:
        return ""
    return ": ".join([str(verdict.status), *verdict.reasons[:1]])


def _standing(progress: Progress, base: str, now: int) -> str:
    ranked = [
        (score, -track.proposed.number, track)
        for track in [*_before(progress, now), progress.tracks[base]]
        if (score := _score(track)) is not None
    ]
    if not ranked:
        return "No candidate of this campaign was right so far."
    score, _, best = max(ranked, key=lambda each: each[:2])
    own = _score(progress.tracks[base])
    if own is not None and own >= score:
        return "No candidate of this campaign was better so far."
    found = _looked_at(best)
    ratio, taken = _speedup(found), _time_us(found)
    modelled = f", {taken:.5g} us modelled" if taken else ""
    told = f", speed-up {interval(ratio)}" if ratio else modelled
    return f"The best candidate so far is another one: #{best.proposed.number}{told}."


def _score(track: Track) -> float | None:
    screened = _looked_at(track)
    return score_of(screened) if screened else None


def _is_before(place: str, now: int) -> bool:
    number = _round(place)
    return number is not None and number < now


def _round(place: str) -> int | None:
    first = place.partition("/")[0]
    return int(first) if first.isdecimal() else None
