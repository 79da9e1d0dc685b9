# SPDX-License-Identifier: Apache-2.0
"""What was tried before: on the lineage of a candidate, and by the whole campaign.

A fold over what was recorded of the work before the place that asks. It repeats what the referee
found and draws no conclusions.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..books.candidate import KnownCandidate
from ..books.progress import Progress
from ..roles import Assignment, Lineage, TriedChange
from . import digest
from .attempts import (
    Source,
    attempt,
    before,
    interval,
    list_known,
    speedup,
)
from .words import others_strategy

MOST_TRIED, MOST_STEPS, MOST_REFUSED, MOST_STRATEGIES = 8, 4, 3, 8
"""The newest ones; what is older is out of a model's sight, and rarely missed."""


def history(progress: Progress, assignment: Assignment, source: Source) -> Lineage:
    """What the work before the assignment's place showed of its base, and of everything."""
    seen = list_known(progress, assignment)
    campaign = digest.make_digest(progress, seen, source)
    if not assignment.place:
        return Lineage(campaign=campaign)
    base = assignment.base.candidate if assignment.base else ""
    is_before = before(assignment)
    refused = tuple(
        missing.reason
        for place, missing in progress.missing.items()
        if missing.base == base and is_before(place)
    )[-MOST_REFUSED:]
    if base not in progress.candidates:
        return Lineage(refused=refused, campaign=campaign)
    tried = [attempt(progress, each) for each in seen if each.parents[:1] == (base,)]
    return Lineage(
        standing=_word_standing(seen, progress.candidates[base]),
        led_here=_led_to(progress, base),
        tried=tuple(tried[-MOST_TRIED:]),
        refused=refused,
        campaign=campaign,
    )


def strategies(
    progress: Progress, assignment: Assignment, *, since: int = 0, most: int = MOST_STRATEGIES
) -> tuple[str, ...]:
    """What the last candidates before the assignment's place claim to do, each once.

    Whether or not they were evaluated: what others try is known as soon as it is written.

    Args:
        since: The first round that counts.
    """
    is_before = before(assignment)
    said = [
        each.strategy
        for each in progress.candidates.values()
        if is_before(each.place) and each.place.is_since(since) and not each.is_variant
    ]
    told = list(dict.fromkeys(text for text in said if text))[-most:]
    return tuple(others_strategy(text) for text in told)


def _led_to(progress: Progress, base: str) -> tuple[TriedChange, ...]:
    steps: list[TriedChange] = []
    while base in progress.candidates and len(steps) < MOST_STEPS:
        made = progress.candidates[base]
        steps.append(attempt(progress, made))
        base = made.parents[0] if made.parents else ""
    return tuple(reversed(steps))


def _word_standing(before: Sequence[KnownCandidate], base: KnownCandidate) -> str:
    ranked = [
        (score, -each.number, each)
        for each in [*before, base]
        if (score := each.standing) is not None
    ]
    if not ranked:
        return "No candidate of this campaign was right so far."
    score, _, best = max(ranked, key=lambda each: each[:2])
    own = base.standing
    if own is not None and own >= score:
        return "No candidate of this campaign was better so far."
    found = best.shown
    ratio, modelled_us = speedup(found), found.modelled_us if found else None
    modelled = f", {modelled_us:.5g} us modelled" if modelled_us else ""
    told = f", speed-up {interval(ratio)}" if ratio else modelled
    return f"The best candidate so far is another one: #{best.number}{told}."
