# SPDX-License-Identifier: Apache-2.0
"""Who may challenge the champion, and who displaces it.

Pure rules over verdicts. A screening is quick and may flatter; so it decides only who is timed
again in a fresh process, and only that confirmation can crown.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...traces.records import CHAMPION, Measurement, Status, Verdict
from ...verifier.clock import statistics

CHALLENGE_SHARE = 0.98
"""A screened median this close to the champion's is within screening noise: worth confirming."""


def screened_median(verdict: Verdict | None) -> float | None:
    """The median speed-up against the best baseline of a pass that was timed, else None."""
    if verdict is None or not verdict.status.is_pass or verdict.measurement is None:
        return None
    headline = verdict.measurement.headline
    return headline.median if headline else None


def may_challenge(screened: Verdict | None, champion_screened: Verdict | None) -> bool:
    """Whether a screening is good enough to be confirmed against the champion, if there is one."""
    median = screened_median(screened)
    if median is None:
        return False
    to_beat = screened_median(champion_screened)
    return to_beat is None or median > to_beat * CHALLENGE_SHARE


def best_challenger(
    screened: Mapping[str, Verdict | None], champion_screened: Verdict | None
) -> str | None:
    """Of those that may challenge, the one with the best screened median; the first of equals."""
    may = {c: each for c, each in screened.items() if may_challenge(each, champion_screened)}
    return max(may, key=lambda c: screened_median(may[c]) or 0.0, default=None)


def displaces(confirmed: Verdict, *, has_champion: bool) -> bool:
    """Whether a confirmation crowns its candidate; one whose rival fell had nobody to beat."""
    measurement = confirmed.measurement
    if confirmed.status is not Status.VERIFIED or measurement is None:
        return False
    has_fallen = confirmed.champion is not None
    return not has_champion or has_fallen or _beats_champion(measurement)


def champion_after(
    candidate: str, confirmed: Verdict, *, champion: str | None, heir: str | None
) -> str | None:
    """Who is champion once a challenger was confirmed.

    Args:
        champion: Who was until then.
        heir: Who is champion where that one fell beside the challenger.
    """
    if displaces(confirmed, has_champion=champion is not None):
        return candidate
    return champion if confirmed.champion is None else heir


def best_of(scores: Mapping[str, float | None], most: int = 2) -> list[str]:
    """Who of a round may be confirmed, the best first; the next one where that does not hold."""
    passing = {c: score for c, score in scores.items() if score is not None}
    return sorted(passing, key=lambda c: (-passing[c], c))[:most]


def _beats_champion(measurement: Measurement) -> bool:
    against = measurement.speedup.get(CHAMPION)
    # Without a paired timing against the champion nothing was shown.
    return against is not None and statistics.displaces(against, measurement.mde)
