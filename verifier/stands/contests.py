# SPDX-License-Identifier: Apache-2.0
"""Timing one candidate beside its rivals: how many processes, how many rounds, who takes part.

It starts the processes and hands them to timing.py; it judges nothing.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...kernelbench.problem import Family, Problem, Structure
from ...kernelbench.rows import is_large
from ...sandbox.isolation.model import Job
from ...sandbox.run.arena import Arena, Behind, nothing_more
from ...sandbox.run.begun import Begun
from ...sandbox.run.call_table import MAX_SLOTS
from ...sandbox.run.process import CLEAN_CALLS
from ...sandbox.run.program import Program
from ...traces.records import CHAMPION, LEAST_CALM, Depth
from ..clock import statistics, timing
from ..clock.judging import Judges
from ..clock.others import OTHERS, Others
from ..clock.timed_sides import BaselineSide, CandidateSide, Side
from ..failure import Failed
from ..truth.trials import Item, make_item
from .champion_side import ChampionSide, blame_champion, champions_own
from .early_processes import Early, EarlyProcesses
from .reference import Baselines
from .session import Session
from .sides import arena_for, begin_process, start_side

BLOCKS = {Depth.SCREEN: 1, Depth.RACE: 2, Depth.FULL: 6, Depth.CONFIRM: 5, Depth.RECORD: 12}
"""Runner processes that are timed one after the other. They are what the interval is made of: two
processes of one program differ by more than their calls do."""
OPEN_BLOCKS = 12
"""Beside a champion there are up to so many, while it is open who is faster."""
LOST_BLOCKS = 3
"""Who has lost is told so from here on: nobody needs a narrow interval of it."""
OPEN_S = {Depth.FULL: 8.0, Depth.CONFIRM: 6.0}
"""And none of those beyond BLOCKS begins later than this after the first."""
ALONE_BLOCKS = {Depth.FULL: 14}
"""Up to so many where there is no champion, until the gain over the library is known to TOLD."""
MANY_PAIRS = 400
"""Or until there are so many: what is open then is how processes differ."""
DISTURBED_S = 16.0
"""So long it is waited for a machine that is left alone, by whoever is judged on its own: for
LEAST_CALM blocks; for all of BLOCKS as long as for those beyond them."""
WAITS = 0.2
"""Of a call, that a thread may wait for a CPU in a quick look. Of calls of 0.7 to 1.3 ms on a quiet
machine 0 to 9 in a hundred had a thread that waited longer, beside one busy thread 11 to 45."""
ROUNDS = {
    Depth.SCREEN: timing.Rounds(24, budget_s=0.3, least=6, judged=3, warm_up=2, waits=WAITS),
    Depth.RACE: timing.Rounds(60, budget_s=1.0, least=8, judged=3, warm_up=2, tests=1, waits=WAITS),
    Depth.FULL: timing.Rounds(80, budget_s=0.4, least=10, judged=8, tests=2),
    Depth.CONFIRM: timing.Rounds(60, budget_s=0.3, least=8, judged=8, warm_up=2, tests=1),
    Depth.RECORD: timing.Rounds(400, budget_s=3.0, least=10, judged=25, tests=4),
}
FEW_EMPTY = 7
"""Empty calls ahead of a quick look, which credits nothing."""
FAR_BEHIND = 0.25
"""Of the logarithm of a time beside the champion's: such a candidate is looked at no longer. A
round's ratio varies by some 16 %, the median of six by 8."""
BESIDE_LIBRARY = timing.Rounds(3, budget_s=0.05, least=2, judged=1, warm_up=0)
"""Of a quick look beside a champion: it only tells about how fast the library is."""
DEAR_SHARE = 2
"""Where a process takes long to start there are so many times fewer blocks, and as many times more
rounds in each."""
BRIEF = 2
"""So many times fewer rounds where starting a call weighs as much as the call."""
MORE = 2
"""Times as many rounds in blocks beyond BLOCKS, which only tell who is faster."""
MORE_JUDGED = {"judged": 4, "tests": 1}
"""Of them: nobody knows which of the blocks they are in, and the truth takes longer than calls."""
LARGE = {"warm_up": 1, "least": 4, "tests": 1}
"""Of the rounds of a block where calls are large (kernelbench/rows.py); there are DEAR_SHARE times
fewer blocks, too: their inputs take many times as long as the calls."""
FULL_BLOCKS = 3
"""Blocks in which every baseline is timed; a slow one needs no more to be known as slow."""
NEAR_BLOCKS = 5
"""Blocks in which baselines within NEAR are timed where there is a champion to be timed beside."""
NEAR = 2.0
"""Baselines within this factor of the fastest are timed in the next blocks, too."""
TWIN_SHARE = 0.5
"""Of the timed calls are on a pattern that differs from the workload's in a few entries, where
there is one: who keeps the pattern under its sizes or addresses is wrong in them."""
NEW_TWIN_SHARE = 0.1
"""Of the timed calls have a twin from here on that was never there before: who has learned the
patterns of a process does not know the next one."""


@dataclass(frozen=True)
class RunnerLaunch:
    """What a runner is started with, the candidate's or the champion's."""

    program: Program
    extra: Behind = nothing_more
    """What its calls are given behind their tensors."""
    room: int = 0
    """Bytes that this takes, of all calls on the target."""
    is_light: bool = False
    """Whether a process of it starts in milliseconds and its calls are given tensors alone. Then
    every block is timed in fresh ones, on the pages that the baselines work on."""


class Contest:
    """The timing of one candidate: block after block beside its rivals, until enough is known."""

    def __init__(
        self,
        session: Session,
        baselines: Baselines,
        protocol: Depth,
        launched: RunnerLaunch,
        champion: RunnerLaunch | None,
        judges: Judges,
        rng: np.random.Generator,
    ) -> None:
        self.blocks = 0
        """That were timed."""
        self._session = session
        self._baselines = baselines
        self._protocol = protocol
        self._launched = launched
        self._champion = champion
        dear = 1 if launched.is_light else DEAR_SHARE
        self._is_large = is_large(session.problem, session.stage.target.axes)
        fewer = DEAR_SHARE if self._is_large else dear
        self._least = -(-BLOCKS[protocol] // fewer)
        most = 0 if protocol.is_quick else OPEN_BLOCKS
        most = most if champion else ALONE_BLOCKS.get(protocol, 0)
        self._most = max(self._least, most // fewer)
        base = ROUNDS[protocol]
        self._base = replace(
            base,
            count=base.count * dear,
            budget_s=base.budget_s * dear,
            least=base.least * dear,
            judged=base.judged and base.judged * dear,
            tests=base.tests * dear,
        )
        self._judges = judges
        self._begun = 0.0
        self._rng = rng
        self._tests = self._drawn_tests()
        self._early = EarlyProcesses()

    def close(self) -> None:
        """Ends the processes that were begun for nothing."""
        self._early.close()

    @cached_property
    def series(self) -> timing.Series:
        """Waits for the baselines, whose time decides the calls per sample."""
        reference = self._baselines.reference
        pace = self._session.pace
        series = timing.Series(
            batch=timing.batch_for(reference.fastest_us, self._session.slots, pace), pace=pace
        )
        return series if self._protocol.is_quick else replace(series, calm=reference.calm)

    def add(self, side: CandidateSide) -> None:
        """Adds the samples of one started candidate, with the champion in a process of its own.

        Their answers are judged while the next ones start.

        Raises:
            RunFault, Failed: the candidate failed in a timed call, or had in the block before.
            ChampionFailed: the champion did, or could not be started.
        """
        session, champion = self._session, self._champion
        patterns = _patterns(session.problem, session.stage.target, self._rng)

        def items(count: int) -> list[Item]:
            drawn = itertools.islice(patterns, count)
            return [session.pool.item(structure, self._rng) for structure in drawn]

        with ExitStack() as stack:
            rival = stack.enter_context(self._start_champion(champion, side)) if champion else None
            self._place(side, rival)
            self._judges.settle()
            self._begun = self._begun if self.blocks else time.monotonic()
            others = self._watch_others(side, rival)
            for sides, rounds in self._turns(rival):
                timing.sample_block(
                    self.series, side, sides, items, session.slots, rounds, self._rng, self._tests
                )
            if others:
                self.series.blocks[-1][OTHERS] = [others.share()]
            self._judges.give(side.answers(), Failed.of_answer)
            if rival:
                self._judges.give(rival.answers(), blame_champion)
        self.blocks += 1
        self.series.calm.see(timing.took_of(self.series.blocks[-1]))

    def _watch_others(self, side: CandidateSide, rival: ChampionSide | None) -> Others | None:
        """From now on; None in quick looks, which choose their rounds, and on a device."""
        reference = self._baselines.reference
        if self._protocol.is_quick or not reference.cpus:
            return None
        own = [reference.process.pid, side.pid, *([rival.pid] if rival else [])]
        return Others(reference.cpus, own)

    @property
    def _done(self) -> int:
        """Blocks that count by now. Where the machine was disturbed others are timed instead."""
        return max(len(self.series.calm_blocks), self.blocks - self._spare)

    @property
    def _spare(self) -> int:
        """Blocks that may have been disturbed: half as many again, and without a champion as many
        as there is time for."""
        if self._protocol not in ALONE_BLOCKS or self._champion or self._is_brief:
            return 0 if self._protocol.is_quick else self._least // 2
        is_calm = len(self.series.calm_blocks) >= LEAST_CALM
        limit = OPEN_S[self._protocol] if is_calm else DISTURBED_S
        return self.blocks if self._took_s < limit else 0

    @property
    def _is_brief(self) -> bool:
        """Whether starting a call on CPUs weighs as much as a call of the fastest side: such a gain
        says nothing of a larger workload, and nobody waits until it is known any better."""
        reference = self._baselines.reference
        ours = float(np.median(self.series.all_of("candidate"))) if self.blocks else math.inf
        return bool(reference.cpus) and min(ours, reference.fastest_us) < timing.LAUNCH_BOUND_US

    @property
    def _took_s(self) -> float:
        """Since the first block began."""
        return time.monotonic() - self._begun

    def _turns(self, rival: ChampionSide | None) -> list[tuple[list[Side], timing.Rounds]]:
        """Who is timed beside the candidate's next process, and how long."""
        libraries: list[Side] = list(self._held_against())
        if not self._protocol.is_quick:
            machine = self._baselines.reference.machine
            told: list[Side] = [machine] if machine else []
            return [(libraries + ([rival] if rival else []) + told, self._rounds())]
        if rival is None:
            return [(libraries, self._rounds())]
        # Candidates are ranked beside candidates. The shorter a round, the less comes between.
        alone = replace(self._rounds(), behind=FAR_BEHIND)
        turns: list[tuple[list[Side], timing.Rounds]] = [([rival], alone)]
        return turns + ([(libraries, BESIDE_LIBRARY)] if libraries else [])

    def begin_early(self) -> None:
        """Begins the processes of a quick look where they are light, as far as they can be now."""
        if not (self._protocol.is_quick and self._launched.is_light and self._baselines.are_ready):
            return
        arena = self._renewed_arena()

        def begin(launched: RunnerLaunch, layout: Arena) -> Early:
            made = begin_process(self._session, self._protocol, launched.program, layout)
            return Early(layout, made)

        self._early.begin("candidate", lambda: begin(self._launched, arena))
        if (champion := self._champion) and champion.is_light:
            rivals = arena.share(MAX_SLOTS // 2)
            self._early.begin(CHAMPION, lambda: begin(champion, rivals))

    def begun_jobs(self) -> list[Job]:
        """Of the processes that have begun and are not timed yet."""
        return self._early.jobs()

    @contextmanager
    def process(self, hear: Callable[[str], None] | None = None) -> Iterator[CandidateSide]:
        """A fresh process of a light candidate, for one block. Raises RunFault."""
        early = self._early.take("candidate")
        arena = early.arena if early else self._renewed_arena()
        begun = early.begun if early else None
        with self._start("candidate", self._launched, arena, begun, hear) as side:
            yield side

    def _renewed_arena(self) -> Arena:
        """The memory that the baselines work on, on other pages than before."""
        arena = self._baselines.reference.process.arena.share()
        arena.renew()
        return arena

    @contextmanager
    def _start_champion(
        self, champion: RunnerLaunch, side: CandidateSide
    ) -> Iterator[ChampionSide]:
        """The champion in a process of its own. Raises ChampionFailed."""
        early = self._early.take(CHAMPION)
        with ExitStack() as stack:
            if early:
                arena = early.arena
            elif champion.is_light and self._launched.is_light:
                arena = side.arena.share(MAX_SLOTS // 2)
            else:
                arena = stack.enter_context(arena_for(self._session, champion.room))
            with champions_own():
                begun = early.begun if early else None
                rival = stack.enter_context(self._start(CHAMPION, champion, arena, begun))
            yield ChampionSide(rival, is_quick=self._protocol.is_quick)

    def _start(
        self,
        name: str,
        launched: RunnerLaunch,
        arena: Arena,
        begun: Begun | None,
        hear: Callable[[str], None] | None = None,
    ) -> AbstractContextManager[CandidateSide]:
        return start_side(
            self._session,
            self._protocol,
            name,
            launched.program,
            arena,
            self._rng,
            launched.extra,
            timeout_s=self._baselines.timeout_s(),
            empty_calls=FEW_EMPTY if self._protocol.is_quick else CLEAN_CALLS,
            begun=begun,
            hear=hear,
        )

    def _place(self, side: CandidateSide, rival: ChampionSide | None) -> None:
        """All sides, once nobody writes over the others' memory any more. Raises ChampionFailed."""
        target, slots = self._session.stage.target, self._session.slots
        baselines = self._baselines.reference.process
        side.place_at(baselines.shift, target, slots)
        if rival:
            rival.place_at(baselines.shift, target, slots)
        if self._launched.is_light:
            baselines.touch()

    def _drawn_tests(self) -> Iterator[Item]:
        """Every family in turn, in random order."""
        problem, target = self._session.problem, self._session.stage.target
        families = [f for f in problem.families if f is not Family.NORMAL]
        while families:
            for number in self._rng.permutation(len(families)):
                yield make_item(problem, target, families[number], self._rng)

    def goes_on(self) -> bool:
        """Whether another process of the candidate is to be timed; draws the resamples anew.

        Beside a champion it goes on until it is decided who is faster (statistics.is_decided),
        without one until it is known how much faster it is than a library (statistics.is_told).
        Raises Failed or ChampionFailed where all are timed, and an answer was wrong.
        """
        if self._is_open():
            return True
        self._judges.settle()
        return False

    def _is_open(self) -> bool:
        done, least, most = self._done, self._least, self._most
        if done < least:
            return not (done >= LOST_BLOCKS and self._is_lost())
        if done >= most or self._took_s > OPEN_S.get(self._protocol, 0.0):
            return False
        if self._is_brief and not self._champion:
            return False
        return not self._is_known()

    def _is_lost(self) -> bool:
        """Whether the champion is not going to be displaced any more."""
        if not self._champion or self._most == self._least:
            return False
        series = self.series
        ours, theirs = series.blocks_of("candidate", CHAMPION), series.blocks_of(CHAMPION)
        return statistics.is_lost(ours, theirs, self._most)

    def _is_known(self) -> bool:
        """Whether more blocks would tell nothing that anybody needs; draws the resamples anew."""
        series = self.series
        if self._champion:
            ours, theirs = series.blocks_of("candidate", CHAMPION), series.blocks_of(CHAMPION)
            return statistics.is_decided(ours, theirs, self._most, self._rng)
        libraries = [name for name in series.names if name != "candidate"]
        if series.all_of("candidate").size >= MANY_PAIRS:
            return True
        took = {name: float(np.median(series.all_of(name))) for name in libraries}
        best = min(took, key=took.__getitem__)
        ours, theirs = series.blocks_of("candidate", best), series.blocks_of(best)
        return statistics.is_told(ours, theirs, self._rng)

    def _rounds(self) -> timing.Rounds:
        rounds = self._base
        if self._is_brief and self._protocol in ALONE_BLOCKS and not self._champion:
            rounds = replace(rounds, count=rounds.count // BRIEF, budget_s=rounds.budget_s / BRIEF)
        if self._done >= self._least:
            count, budget_s = MORE * rounds.count, MORE * rounds.budget_s
            rounds = replace(rounds, count=count, budget_s=budget_s, **MORE_JUDGED)
        if self._is_large:
            rounds = replace(rounds, **LARGE)
        return rounds

    def _held_against(self) -> list[BaselineSide]:
        """Those that take part in the next block."""
        reference, block = self._baselines.reference, self._done
        if self._protocol.is_quick:
            return [] if block > 0 else reference.sides(within=1.0)
        if block < (1 if self._is_large else FULL_BLOCKS):
            return reference.sides()
        is_over = self._champion is not None and block >= NEAR_BLOCKS
        return [] if is_over else reference.sides(within=NEAR)


def _patterns(problem: Problem, target: Structure, rng: np.random.Generator) -> Iterator[Structure]:
    """The workload's structure and near twins of it, for each timed call of a block."""
    near = _near_twins(problem, target, rng)
    twin = next(near, target)
    yield from (target, twin)
    while True:
        if rng.random() < NEW_TWIN_SHARE:
            twin = next(near, twin)
        yield twin if rng.random() < TWIN_SHARE else target


def _near_twins(
    problem: Problem, target: Structure, rng: np.random.Generator
) -> Iterator[Structure]:
    """Such as differ in a row or in a column, in turn; without end where there is one."""
    while True:
        found = list(itertools.islice(problem.twins(target, rng), 2))
        if not found:
            return
        yield from found
