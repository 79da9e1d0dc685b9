# SPDX-License-Identifier: Apache-2.0
"""Who may challenge the champion, and who displaces it.

Pure rules over verdicts. A screening is quick and may flatter; so it decides only who is timed
again in a fresh process, and only that confirmation can crown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...traces.records import CHAMPION, Measurement, Status, Verdict
from ...verifier.clock import statistics
from .scale import Estimate

CHALLENGE = math.log(0.98)
"""Of the logarithm of a speed-up beside the champion: this little behind is within the noise of a
screening, and worth confirming."""


def may_challenge(ahead: Estimate | None, *, has_champion: bool) -> bool:
    """Whether a screened candidate is good enough to be confirmed against the champion, if any.

    Args:
        ahead: By how much it is faster, as known when it was screened; None where there is no
            champion to be held against, or nothing was timed.
    """
    return not has_champion if ahead is None else ahead.mean > CHALLENGE


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
