# SPDX-License-Identifier: Apache-2.0
"""The end of every campaign that times: the best few race, and the fastest of them is crowned.

A screening is good to several per cent, and the best candidates of a campaign lie closer. So in
each heat the one from which most is to be gained, as likely and as much as it may be faster, meets
whoever leads (after the knowledge gradient of Frazier, Powell and Dayanik 2008, "A knowledge-
gradient policy for sequential information collection"), until next to nothing is to be gained from
anybody. Who leads then is verified once, beside the champion, and becomes it. What remains of doubt
is told with the result.
"""

from __future__ import annotations

import numpy as np

from ...traces.records import Depth, Status, Sureness
from ..books.ledger import Ledger
from .loop import Loop

LEAST_GAIN = 0.002
"""Nobody is raced any more once no more than this share of the time is expected of it."""
LEAST_KEPT_GAIN = 0.0002
"""The same in the seconds that were kept for the race, which nobody else has a use for. Of one of
dozens next to nothing may be expected, and of all together much."""
MOST_HEATS = 200
MOST_OF_ONE = 12
"""Heats of one candidate: what they leave open is too little to matter."""
EVEN = 0.5
"""Who is likelier than this to be faster is crowned. One of two has to be chosen, and with nothing
lost by it: what is credited to a winner is its own confirmation's."""
HEAT_S, CONFIRMATION_S = 3.0, 6.0
"""What each may take while none was timed yet."""
SHARE, MOST_S = 0.3, 120.0
"""Of a limit of seconds that is kept for the race."""
LEAST_HEATS = 3
"""Beside the confirmation behind them, that it is kept for where the share is too small."""
DRAWS = 4_000
LEVEL = 0.95


def compute_reserve(ledger: Ledger, limit_s: float) -> float:
    """Seconds of a limit that are kept for the race; none where half of it would be too little."""
    if not ledger.times:
        return 0.0
    took_s = ledger.progress.last_took_s
    heat_s = took_s.get(Depth.RACE) or 2 * took_s.get(Depth.SCREEN, HEAT_S / 2)
    needed_s = LEAST_HEATS * heat_s + took_s.get(Depth.CONFIRM, CONFIRMATION_S)
    return max(needed_s, min(MOST_S, SHARE * limit_s)) if needed_s <= limit_s / 2 else 0.0


def run(loop: Loop) -> None:
    """Races and crowns, within what is left of the budget. Nothing is raced that was not timed."""
    if not loop.ledger.times:
        return
    kept_s = loop.budget.spend_all()
    until_s = loop.budget.spent_s + kept_s
    for _ in range(2):
        leader = _race(loop, until_s)
        if leader is None or leader == loop.progress.champion or loop.why_halted():
            return
        _confirm(loop, leader)


def _race(loop: Loop, until_s: float) -> str | None:
    """Who leads once nobody that is left seems likely to be faster."""
    for _ in range(MOST_HEATS):
        least = LEAST_KEPT_GAIN if loop.budget.spent_s < until_s else LEAST_GAIN
        leader = _find_leader(loop)
        contender = _next_contender(loop, leader, least) if leader and _has_time(loop) else None
        if leader is None or contender is None:
            break
        loop.ledger.foresee_confirmation(leader)
        loop.ledger.race(contender, leader)
    return _find_leader(loop)


def _find_leader(loop: Loop) -> str | None:
    """The fastest of the champion and those that raced, by all pairs; who seems the fastest of all
    where there are none."""
    progress = loop.progress
    speeds = {c: found.mean for c in _sound(loop) if (found := progress.scale.speed_of(c))}
    tried = {
        c: speed
        for c, speed in speeds.items()
        if c == progress.champion or (progress.heats[c] and c not in progress.gains)
    }
    chosen = tried or speeds
    return max(chosen, key=lambda candidate: chosen[candidate], default=None)


def _next_contender(loop: Loop, leader: str, least: float) -> str | None:
    """The one from which most is to be gained; of champions that lost their place nothing is."""
    progress = loop.progress
    gains = {
        candidate: known.gain
        for candidate in _sound(loop)
        if candidate != leader
        and (candidate == progress.champion or candidate not in progress.gains)
        and progress.heats[candidate] < MOST_OF_ONE
        and (known := progress.scale.compare(candidate, leader))
    }
    best = max(gains, key=lambda candidate: gains[candidate], default=None)
    return best if best is not None and gains[best] >= least else None


def _has_time(loop: Loop) -> bool:
    """Whether a heat, and the confirmation that may have to follow it, end in time."""
    took_s = loop.progress.last_took_s
    needed_s = took_s.get(Depth.RACE, HEAT_S) + took_s.get(Depth.CONFIRM, CONFIRMATION_S)
    return not loop.why_halted() and loop.budget.compute_remaining(0).seconds >= needed_s


def _confirm(loop: Loop, leader: str) -> None:
    """Verifies the leader beside the champion, and crowns it where all pairs say it is faster."""
    progress, ledger = loop.progress, loop.ledger
    confirmed = ledger.evaluate(leader, Depth.CONFIRM, progress.champion)
    # One that fell beside it is no champion any more.
    champion = progress.champion
    is_verified = confirmed.status is Status.VERIFIED
    if is_verified and (champion is None or _chance(loop, leader, champion) > EVEN):
        ledger.crown(leader, confirmed)


def compute_sureness(loop: Loop) -> Sureness | None:
    """How sure it is that the champion is the fastest; None without one, or where nothing raced.

    Speeds are drawn as the scale's errors and their correlations allow.
    """
    champion, sound = loop.progress.champion, _sound(loop)
    if champion is None or champion not in sound:
        return None
    rng = np.random.default_rng(loop.asked.seed % (1 << 63))
    drawn = loop.progress.scale.draw(sound, DRAWS, rng)
    behind = drawn.max(axis=1) - drawn[:, sound.index(champion)]
    return Sureness(
        candidates=len(sound),
        chance=float((behind <= 0).mean()),
        regret=float(np.expm1(behind.mean())),
        regret_at_most=float(np.expm1(np.quantile(behind, LEVEL))),
    )


def _sound(loop: Loop) -> list[str]:
    """All that are right, in the campaign's language, and on the scale."""
    progress = loop.progress
    language = progress.started.language
    return [
        each.candidate
        for each in progress.candidates.values()
        if each.language == language and each.is_sound() and each.candidate in progress.scale
    ]


def _chance(loop: Loop, one: str, other: str) -> float:
    """That the one is faster."""
    known = loop.progress.scale.compare(one, other)
    return known.chance if known else 0.0
