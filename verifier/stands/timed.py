# SPDX-License-Identifier: Apache-2.0
"""A candidate on a stand that times: what the CPUs and a device have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace

import numpy as np

from ...kernelbench.arithmetic import arithmetic_of
from ...sandbox.isolation.standing import stand_still
from ...sandbox.run.arena import Arena
from ...sandbox.run.process import CLEAN_CALLS
from ...traces.records import CHAMPION, Check, Measurement
from ..clock import amortised, clocks, roofline, statistics, timing
from ..clock.judging import Judges
from ..clock.roofline import Peaks
from ..clock.timed_sides import CandidateSide
from ..failure import Failed
from . import sides
from .champion_side import champions_own
from .contests import Contest, RunnerLaunch
from .reference import Baselines
from .verdict_draft import Draft


class MountedToBeTimed(ABC):
    """See stand.Mounted; a stand adds how it looks at a candidate, and what it waits for."""

    waits_first = False
    """Whether the baselines must be ready before a process of the candidate is there."""
    _arena: Arena
    _contest: Contest
    found: Measurement
    """What was measured last."""

    def __init__(
        self, draft: Draft, rng: np.random.Generator, baselines: Baselines, launched: RunnerLaunch
    ) -> None:
        self.draft = draft
        self.rng = rng
        self.baselines = baselines
        self._launched = launched

    @property
    @abstractmethod
    def threads(self) -> int:
        """That a call of a candidate may take."""

    @abstractmethod
    def champion(self) -> RunnerLaunch:
        """The champion of the order, built. Raises Failed."""

    @contextmanager
    def ready(self) -> Iterator[None]:
        """See Mounted."""
        session, order = self.draft.session, self.draft.order
        rival: RunnerLaunch | None = None
        if order.champion:
            with champions_own():
                rival = self.champion()
        if self.waits_first:
            self.await_baselines()
        launched = self._launched
        is_timed = not launched.is_light
        with ExitStack() as stack:
            judges = stack.enter_context(Judges())
            self._contest = Contest(
                session, self.baselines, order.protocol, launched, rival, judges, self.rng
            )
            stack.callback(self._contest.close)
            arena = sides.arena_for(session, launched.room, is_timed=is_timed)
            self._arena = stack.enter_context(arena)
            yield

    def await_baselines(self, side: CandidateSide | None = None) -> None:
        """So that nothing is measured in the background any more; `side` is there by now."""
        with self.draft.span("wait for baselines"):
            if not self.baselines.are_ready:
                with self.standing(side):
                    self.baselines.wait()

    def standing(self, side: CandidateSide | None) -> AbstractContextManager[None]:
        """While others are waited for, the candidate's processes and the champion's stand still.

        That time is none of theirs: they would be ended, after it, for having taken too long.
        """
        return stand_still([side.job, *self._contest.begun_jobs()]) if side else nullcontext()

    @contextmanager
    def process(self) -> Iterator[CandidateSide]:
        """See Mounted; who is only tried has the threads of all CPUs in one call: races show."""
        program = self._launched.program
        if not self.is_timed_as_tried:
            program = replace(program, instances=1)
        with ExitStack() as stack:
            with self.draft.span("start"):
                started = sides.start_side(
                    self.draft.session,
                    self.draft.order.protocol,
                    "candidate",
                    program,
                    self._arena,
                    self.rng,
                    self._launched.extra,
                    timeout_s=self.baselines.timeout_s(),
                    empty_calls=CLEAN_CALLS if self.is_timed_as_tried else 1,
                    fills_heap=not self.is_timed_as_tried,
                    hear=self.draft.hear,
                )
                side = stack.enter_context(started)
            yield side

    @property
    def is_timed_as_tried(self) -> bool:
        """See Mounted."""
        return not self._launched.is_light

    @contextmanager
    def timed_process(self) -> Iterator[CandidateSide]:
        """See Mounted."""
        with ExitStack() as stack:
            if self.is_timed_as_tried:
                side = stack.enter_context(self.process())
            else:
                if not self._contest.blocks:
                    self.await_baselines()
                with self.draft.span("start"):
                    side = stack.enter_context(self._contest.process(self.draft.hear))
            yield side

    def goes_on(self) -> bool:
        """See Mounted."""
        return self._contest.goes_on()

    def conclude_times(self) -> Measurement:
        """See Mounted."""
        session, series = self.draft.session, self._contest.series
        reference, many = self.baselines.reference, session.pace.instances
        self.draft.timed += clocks.checks(series.seen, len(session.workshop.cpus))
        flops, moved = session.work
        if series.prepare_us:
            moved -= many * amortised.pattern_bytes(session.problem, session.stage.target.axes)
        floor, roof, plausible = self._hold_against_roofline(flops, moved)
        found = timing.measurement(
            series,
            "candidate",
            [name for name in series.names if name not in ("candidate", CHAMPION)],
            CHAMPION if CHAMPION in series.names else None,
            missing=reference.missing,
            workload=session.task.workload.name,
            floor_us=floor,
            roof=roof,
            threads=self.threads,
            rng=self.rng,
        )
        self.draft.timed += [plausible] if reference.peaks else []
        prepare_us = [many * us for us in series.prepare_us]
        found = amortised.add_preparing(found, prepare_us, session.problem)
        self.found = found.model_copy(update={"cache_share": self._share_of_cache(moved)})
        return self.found

    def _share_of_cache(self, moved: float) -> float | None:
        """See Measurement.cache_share."""
        peaks = self.baselines.reference.peaks
        if not peaks or not peaks.is_of_cpus or self.draft.session.pace.is_cold:
            return None
        return moved / peaks.llc_bytes

    def _hold_against_roofline(self, flops: float, moved: float) -> tuple[float, str, Check]:
        """The floor of a call, in µs, what its arithmetic is held against, and whether its time can
        be true. Nobody is called too fast by peaks of another, perhaps busier, hour: they are
        measured again first."""
        reference = self.baselines.reference
        allowed = arithmetic_of(self.draft.session.problem)
        took = statistics.timing(self._contest.series.blocks_of("candidate")).median_us

        def look(peaks: Peaks | None) -> tuple[float, str, Check]:
            roof = roofline.roof_of(allowed, peaks) if peaks else roofline.Roof(None, "")
            floor = roofline.floor_us(flops, moved, peaks, roof.gflops) if peaks else 0.0
            return floor, roof.words, roofline.check_plausible(took, floor, roof.words)

        found = look(reference.peaks)
        if found[-1].passed:
            return found
        with self._hold_turn(), self.draft.span("peaks"):
            return look(reference.renew_peaks())

    def _hold_turn(self, side: CandidateSide | None = None) -> AbstractContextManager[None]:
        """While nobody else times on what this is timed on; `side` is there by now."""
        del side
        return nullcontext()

    def cause(self, failed: Failed) -> str:
        """See Mounted."""
        del failed
        return ""
