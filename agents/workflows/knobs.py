# SPDX-License-Identifier: Apache-2.0
"""Tunes a new leader's knobs without a model, before the next call of one is paid.

A Coder that declares which other numbers its kernel may have (text/tunable.py) has them tried: by
the search engine that `tune` has, within a share of the budget, each beside the champion. What is
faster takes the leader's place: as the champion, and wherever the leader is shown as a base.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...traces.decisions import KnobsTuned
from ...traces.place import Place
from ...traces.records import Depth, candidate_id
from ..books.candidate import VARIANT, KnownCandidate, choose_better
from ..roles import Proposal
from ..search.expected_gain import ModelGuided
from ..search.told import Told
from ..stop import Halt
from ..text.tunable import Tunable, find_tunable
from . import steps
from .loop import Loop

SHARE = 0.25
"""Of a limit of evaluations or of seconds, over the whole campaign."""
MOST = 16
"""Variants of one leader."""
AT_RANDOM = 5
LEAST_GAIN = 0.005
"""As a share of the time: nobody could measure less."""
SCREENING_S = 2.0
"""What one takes, while none was timed yet."""
MOST_ABREAST = 4


class Tuned(NamedTuple):
    """How the tuning of a leader ended."""

    leader: str
    """The leader, or the variant of it that is faster."""
    champion: str | None


def tune(loop: Loop, leader: str, champion: str | None) -> Tuned:
    """Tries other numbers of a new leader, once; the fastest is confirmed beside the champion."""
    known = loop.progress.get_candidate(leader)
    if not loop.asks_models or known.is_variant or known.worth() is None:
        return Tuned(leader, champion)
    tunable = find_tunable(loop.ledger.source(leader), known.language)
    if tunable is None:
        return Tuned(leader, champion)
    tuning = _Tuning(loop, known, tunable)
    tuning.run()
    best = tuning.best()
    if best is known:
        return Tuned(leader, champion)
    if not loop.ledger.times:
        return Tuned(best.candidate, champion)
    champion = steps.promote(loop, best.candidate, champion)
    return Tuned(champion if champion == best.candidate else leader, champion)


def find_leader(loop: Loop, round_of: Sequence[str], champion: str | None) -> str | None:
    """Who of a round is the champion or, where nothing is timed, the best so far; None: nobody."""
    if loop.ledger.times:
        return next((each for each in round_of if each == champion), None)
    known = [loop.progress.get_candidate(each) for each in round_of]
    newest = max((each.number for each in known), default=0)
    best: KnownCandidate | None = None
    for each in loop.progress.candidates.values():
        if each.number <= newest and not each.is_variant:
            best = choose_better(best, each)
    return best.candidate if best in known and best else None


class _Tuning:
    """The variants of one leader: what was tried, and what is tried next."""

    def __init__(self, loop: Loop, leader: KnownCandidate, tunable: Tunable) -> None:
        self._loop = loop
        self._leader = leader
        self._tunable = tunable
        self._tried: list[KnownCandidate] = []
        seed = loop.asked.seed + leader.number
        first = () if tunable.now is None else (tunable.now,)
        self._search = ModelGuided(
            tunable.space, seed, first, at_random=AT_RANDOM, least_gain=LEAST_GAIN
        )

    def run(self) -> None:
        """Tries variants until one of the ends is reached, which is recorded."""
        loop, place = self._loop, self._at("")
        if loop.progress.find_decision(place, KnobsTuned):
            self._take_placed()
            return
        why = ""
        while not why:
            why = self._try_batch()
        best = self.best()
        tuned = KnobsTuned(
            leader=self._leader.candidate,
            best=best.candidate,
            tried=len(self._tried),
            points=len(self._tunable.space),
            why=why,
        )
        loop.ledger.decide(place, tuned)

    def best(self) -> KnownCandidate:
        """The fastest of them and the leader."""
        best = self._loop.progress.get_candidate(self._leader.candidate)
        for tried in self._tried:
            now = self._loop.progress.get_candidate(tried.candidate)
            if _is_faster(self._loop, now, best):
                best = now
        return best

    def _at(self, turn: object) -> Place:
        end = "" if turn == "" else f"-{turn}"
        return Place(self._leader.place.round, f"{VARIANT}-{self._leader.number}{end}")

    def _take_placed(self) -> None:
        for turn in range(MOST):
            if found := self._loop.progress.candidate_at(self._at(turn)):
                self._tried.append(found)

    def _try_batch(self) -> str:
        """Has a few built side by side and screened; why it ends there, or nothing."""
        loop, batch = self._loop, []
        self._tell()
        turn, why = len(self._tried), ""
        for number in range(self._count_abreast()):
            place = self._at(turn + number)
            if loop.progress.placed.get(place) is None:
                why = self._why_ended(turn + number)
                if why or not (asked := self._ask()):
                    why = why or "nothing left that is worth a try"
                    break
                if steps.record(loop, asked, place) is None:
                    raise AssertionError("a variant that was asked for is a new source")
            found = loop.progress.candidate_at(place)
            assert found is not None
            batch.append(found)
        loop.ledger.foresee([each.candidate for each in batch])
        for each in batch:
            if by := loop.why_halted():
                raise Halt(by)  # whoever goes on, goes on here
            steps.screen(loop, each.candidate)
            self._tried.append(each)
        return why

    def _ask(self) -> Proposal | None:
        """A variant whose source is no candidate yet."""
        space, seen = self._tunable.space, self._loop.progress.seen
        while asked := self._search.ask():
            knobs = space.at(asked[0])
            proposal = Proposal(
                source=self._tunable.write(knobs),
                language=self._leader.language,
                family=self._leader.family,
                knobs=knobs,
                operator=VARIANT,
                parents=(self._leader.candidate,),
                strategy=self._tunable.explain(knobs),
            )
            if candidate_id(proposal.source) not in seen:
                return proposal
        return None

    def _tell(self) -> None:
        """All that is known of the space's points."""
        progress, space = self._loop.progress, self._tunable.space
        known = [(space.find(each.given_knobs), each.candidate) for each in self._tried]
        told = []
        for point, candidate in ((self._tunable.now, self._leader.candidate), *known):
            observed = progress.observe(progress.get_candidate(candidate))
            if point is not None and observed is not None:
                told.append(Told(point, *observed))
        self._search.tell(told)

    def _count_abreast(self) -> int:
        return max(1, min(MOST_ABREAST, int(self._loop.facts.get("cpus", 1))))

    def _why_ended(self, turn: int) -> str:
        """Why no further variant is tried, or nothing."""
        loop, progress = self._loop, self._loop.progress
        recalled = loop.ledger.recalled
        if recalled and (then := recalled.tuned.get(self._leader.candidate)):
            return then.why if turn >= then.tried else ""
        if turn >= MOST:
            return f"{MOST} of one leader were tried"
        if by := loop.why_halted():
            raise Halt(by)
        if by := loop.budget.why_stopped(progress.count):
            return by
        tuned = sum(each.is_variant for each in progress.candidates.values())
        left = loop.budget.compute_remaining(progress.count)
        if tuned + 1 > SHARE * (progress.count + left.evaluations):
            return "their share of the evaluations is spent"
        took_s = progress.last_took_s.get(Depth.SCREEN, SCREENING_S)
        if (tuned + 1) * took_s > SHARE * (loop.budget.spent_s + max(0.0, left.seconds)):
            return "their share of the time is spent"
        return ""


def _is_faster(loop: Loop, one: KnownCandidate, other: KnownCandidate) -> bool:
    """By all pairs, where they were timed."""
    if not one.is_sound():
        return False
    speeds = [loop.progress.standing_of(each) for each in (one, other)]
    mine, theirs = ((-math.inf if speed is None else speed) for speed in speeds)
    return mine > theirs
