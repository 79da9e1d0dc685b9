# SPDX-License-Identifier: Apache-2.0
"""The population that evolution keeps: the best few candidates of every niche.

It knows ids, niches and scores. It knows no sources, no store and no clock, and it is a
pure fold: the same additions in the same order give the same archive and the same parents.
"""

from __future__ import annotations

import random
from enum import IntEnum
from typing import NamedTuple

from ...traces.records import Verdict

KEPT_PER_NICHE = 4
"""Few enough that selection presses, enough that a crossover has two different parents."""

RANK_DECAY = 0.5
"""Each rank is half as likely as the one above it."""

EXPLORE = 0.2
"""Share of draws in which every niche is equally likely, so that a slow start is not the end."""


class AddStatus(IntEnum):
    """What an addition did; ordered, so that `status >= AddStatus.IMPROVED` reads as a claim."""

    NOT_ADDED = 0
    IMPROVED = 1
    """It displaced a weaker member of its niche, or its own earlier score."""
    NEW = 2
    """It took a free place of its niche."""


class Elite(NamedTuple):
    """One member: what ranking needs, no more."""

    candidate: str
    niche: str
    score: float
    """What ranks: see score_of."""


def score_of(verdict: Verdict) -> float | None:
    """What ranks a pass; None for anything that may not enter an archive.

    It is the lower end of the screen estimate, or of what a thorough look credited. Where nothing
    can be timed, modelled times rank: the score is then their inverse, in 1/µs. One campaign has
    one target, so that the two kinds never meet.
    """
    if not verdict.status.is_pass:
        return None
    if verdict.modelled_us:
        return 1.0 / verdict.modelled_us
    estimate = verdict.screen_estimate
    return estimate.low if estimate else verdict.credited or 0.0


def _rank(elite: Elite) -> tuple[float, str]:
    return (-elite.score, elite.candidate)


class Archive:
    """The elites of every niche, best first; ties go to the lower id."""

    def __init__(self, kept_per_niche: int = KEPT_PER_NICHE) -> None:
        if kept_per_niche < 1:
            raise ValueError(f"an archive keeps at least 1 per niche, not {kept_per_niche}")
        self._kept = kept_per_niche
        self._niches: dict[str, list[Elite]] = {}

    def add(self, candidate: str, niche: str, score: float | None) -> AddStatus:
        """Adds by the score, None for what is not right; a later one of a member replaces it."""
        before = self._take(candidate)
        if score is None:
            return AddStatus.NOT_ADDED
        elites = self._niches.setdefault(niche, [])
        was_full = len(elites) >= self._kept
        elites.append(Elite(candidate, niche, score))
        elites.sort(key=_rank)
        evicted = elites.pop() if was_full else None
        if evicted is not None and evicted.candidate == candidate:
            return AddStatus.NOT_ADDED
        if before is not None:
            return AddStatus.IMPROVED if score > before.score else AddStatus.NOT_ADDED
        return AddStatus.IMPROVED if was_full else AddStatus.NEW

    def elites(self, niche: str | None = None) -> tuple[Elite, ...]:
        """The members of one niche, or of all, best first."""
        chosen = self._niches.get(niche, []) if niche is not None else self._list_elites()
        return tuple(sorted(chosen, key=_rank))

    @property
    def niches(self) -> tuple[str, ...]:
        """The niches that hold somebody, the one with the best member first."""
        held = [elites for elites in self._niches.values() if elites]
        return tuple(elites[0].niche for elites in sorted(held, key=lambda e: _rank(e[0])))

    def parents(self, rng: random.Random, count: int = 3) -> tuple[str, ...]:
        """Draws a parent by rank, a mate of its niche and then others: ids, without repeats.

        The first is the one to change. The second is of the same niche where there is one, since
        only kernels of one family can be crossed over.
        """
        niches = list(self.niches)
        if not niches:
            return ()
        niche = rng.choice(niches) if rng.random() < EXPLORE else _draw(niches, rng)
        mates = [elite.candidate for elite in self.elites(niche)]
        first = _draw(mates, rng)
        chosen = [first]
        mates.remove(first)
        if mates and count > 1:
            chosen.append(_draw(mates, rng))
        others = [e.candidate for e in self.elites() if e.candidate not in chosen]
        while others and len(chosen) < count:
            chosen.append(_draw(others, rng))
            others.remove(chosen[-1])
        return tuple(chosen)

    def _list_elites(self) -> list[Elite]:
        return [elite for elites in self._niches.values() for elite in elites]

    def _take(self, candidate: str) -> Elite | None:
        for elites in self._niches.values():
            for elite in elites:
                if elite.candidate == candidate:
                    elites.remove(elite)
                    return elite
        return None


def _draw(ranked: list[str], rng: random.Random) -> str:
    weights = [RANK_DECAY**rank for rank in range(len(ranked))]
    return rng.choices(ranked, weights)[0]
