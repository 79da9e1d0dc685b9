# SPDX-License-Identifier: Apache-2.0
"""The stand for the target `cpu`: candidates and baselines take turns on this machine's CPUs.

A promotion is looked at for accesses beside the tensors and for races under load. While baselines
still start they are measured, and must not be under that load.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from ...errors import PrerequisiteError
from ...kernelbench.features import features
from ...kernelbench.languages import CPP, language_of
from ...kernelbench.locality import locality
from ...kernelbench.machine import processor
from ...sandbox.builders import cpp
from ...sandbox.builders.model import Built
from ...sandbox.builders.workshop import Workshop
from ...sandbox.run.program import Program
from ...traces.preparation import Preparation
from ...traces.records import Measurement, Profile, Status
from ..baselines.process import BaselineProcess
from ..checks import fenced_memory, stress
from ..checks.checking import run_trials
from ..clock.roofline import Peaks, measured_peaks
from ..clock.timed_sides import CandidateSide
from ..clock.turns import WAITED, Turns
from ..failure import Failed
from ..profile import cpu as profiling
from ..profile import hot_loop, perf_events
from ..request import Order
from ..truth.trials import Trial, plan
from . import preparing, refused_source, sanitize
from .contests import RunnerLaunch
from .programs import BUILT, build_program
from .reference import Baselines
from .session import Session
from .stand import TimingStand
from .timed import MountedToBeTimed
from .verdict_draft import Draft

X86 = "x86_64"


@dataclass
class CpuStand(TimingStand):
    """See Stand."""

    peaks: Peaks
    """Of this machine."""
    baselines: Baselines
    sanitizers: sanitize.Sanitizers
    turns: Turns
    planner: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    """Draws the trials of one candidate after the other: they share what was tried. And first of
    all the pool that the inputs of timed calls are taken of."""
    languages = tuple(BUILT)
    takes = f"this release takes {', '.join(map(str, BUILT))}"

    @classmethod
    def open(cls, session: Session, peaks: Peaks) -> Self:
        """Begins to start the baselines."""
        turns = Turns(Path(session.task.timing_lock))

        def peaks_of(process: BaselineProcess, *, anew: bool = False) -> Peaks:
            del process
            return measured_peaks(session.workshop, anew=True) if anew else peaks

        baselines = Baselines(session, peaks_of)
        stand = cls(session, peaks, baselines, sanitize.Sanitizers(session), turns)
        stand.planner.submit(lambda: session.pool)
        return stand

    @property
    def facts(self) -> dict[str, float]:
        """See Stand; of calls that are made at a time each has its share."""
        many = self.session.pace.instances
        return {
            **features(self.session.stage.target),
            **locality(self.session.stage.target),
            "cpus": float(len(self.session.workshop.cpus) // many),
            "vector_bytes": float(processor().vector_bytes),
            "memory_gbs": self.peaks.bandwidth_gbs / many,
            "llc_gbs": self.peaks.llc_bandwidth_gbs / many,
            "l2_gbs": self.peaks.cache_bandwidth_gbs / many,
            "fma_gflops": self.peaks.flops_gflops / many,
        }

    def wait_prepared(self) -> Preparation:
        """See Stand."""
        self.session.ensure_admitted()
        return self.baselines.wait_prepared()

    def mount(self, draft: Draft, rng: np.random.Generator) -> MountedOnCpu:
        """See Stand."""
        order = draft.order
        is_native = language_of(order.language).is_native
        if is_native and (reason := refused_source.explain_loose(order.source)):
            raise Failed(Status.UNSUPPORTED, reason)
        with ThreadPoolExecutor(1) as beside:
            # Neither build waits for the other, and no process of the candidate is alive yet.
            promoted = is_native and not order.protocol.is_quick
            sanitized = beside.submit(self.sanitizers.prepare, order.source) if promoted else None
            with draft.span("build"):
                launched = preparing.launch(self.session, order.source, order.language)
            depth, of_trials = order.protocol, rng.spawn(1)[0]
            trials = self.planner.submit(plan, self.session.stage, depth, of_trials)
            program = self._take_sanitized(draft, sanitized)
        draft.take(launched.program.built)
        return MountedOnCpu(draft, rng, self.baselines, launched, program, trials, self.turns)

    def _take_sanitized(
        self, draft: Draft, build: Future[sanitize.SanitizedBuild] | None
    ) -> Program | None:
        """The candidate built with sanitizers, where there are any and it is to be promoted."""
        if build is None:
            language = draft.order.language
            if not draft.order.protocol.is_quick:
                draft.unchecked.append(f"sanitizers: not run, there are none for {language}")
            return None
        with draft.span("sanitize"):
            prepared = build.result()
        draft.unchecked += [prepared.unchecked] if prepared.unchecked else []
        return prepared.program

    def build_ahead(self, order: Order) -> None:
        """See TimingStand; with the sanitizers, too, where it is to be promoted."""
        if language_of(order.language) is CPP:
            # What is foreseen is one of many.
            cpp.expect_more(self.session.workshop, order.source)
        build_program(self.session, order.source, order.language)
        if not order.protocol.is_quick and language_of(order.language).is_native:
            self.sanitizers.prepare(order.source)

    def close(self) -> None:
        """See Stand."""
        try:
            self.baselines.close()
        finally:
            self.planner.shutdown(cancel_futures=True)
            self.turns.close()
            self.session.close()


def _list_loops(workshop: Workshop, built: Built) -> list[hot_loop.Timed]:
    """Of code for a processor whose listings are read. Raises as hot_loop.look."""
    if not built.command:
        return []  # no compiler made it
    if platform.machine() != X86:
        raise PrerequisiteError(f"listings of {platform.machine()} are not read, of {X86} alone")
    return hot_loop.look(workshop, built)


class MountedOnCpu(MountedToBeTimed):
    """See Mounted."""

    def __init__(
        self,
        draft: Draft,
        rng: np.random.Generator,
        baselines: Baselines,
        launched: RunnerLaunch,
        sanitized: Program | None,
        trials: Future[list[Trial]],
        turns: Turns,
    ) -> None:
        super().__init__(draft, rng, baselines, launched)
        self._built = launched.program.built
        self._build_sanitized = sanitized
        self._turns = turns
        self._known: Profile | None = None
        self._counts: perf_events.Counts | None = None
        self._trials = trials

    @property
    def threads(self) -> int:
        """See MountedToBeTimed."""
        return len(self.draft.session.workshop.cpus)

    def champion(self) -> RunnerLaunch:
        """See MountedToBeTimed."""
        order = self.draft.order
        return preparing.launch(self.draft.session, order.champion, order.language)

    def try_on(self, side: CandidateSide) -> None:
        """See Mounted."""
        draft = self.draft
        with self._hold_turn(side), draft.span("verify"):
            self._contest.begin_early()
            stage, trials = draft.session.stage, self._trials.result()
            draft.checks += run_trials(
                side, stage, draft.order.protocol, self.rng, trials, apart=True
            )

    def look_closer(self, side: CandidateSide) -> None:
        """See Mounted: looks at stray accesses, then repeats, under load and very often."""
        draft = self.draft
        if draft.order.protocol.is_quick:
            return
        if language_of(draft.order.language).is_native:
            self._look_beside(side)
        if not draft.is_right:
            return
        self.await_baselines(side)
        stage, depth = draft.session.stage, draft.order.protocol
        with self._hold_turn(side), draft.span("load"):
            draft.checks += stress.under_load(side, stage, draft.session.workshop.cpus, self.rng)
            if draft.is_right:
                draft.checks.append(stress.in_a_row(side, stage, depth, self.rng))

    def _look_beside(self, side: CandidateSide) -> None:
        """By sanitizers, which name the line, then in the build that is timed."""
        draft = self.draft
        if self._build_sanitized:
            with draft.span("sanitize"):
                found = sanitize.examine(
                    draft.session,
                    self._build_sanitized,
                    self.rng,
                    self._launched.extra,
                    hear=draft.hear,
                )
            draft.checks.append(found)
            if not found.passed:
                return
        with draft.span("fences"):
            draft.checks.append(fenced_memory.examine(side, draft.session.stage, self.rng))
        if draft.is_right and (reason := refused_source.explain_apart(draft.order.source)):
            raise Failed(Status.UNSUPPORTED, reason)

    def look_apart(self) -> None:
        """See Mounted: all was looked at."""

    def time(self, side: CandidateSide) -> None:
        """See Mounted."""
        if self.is_timed_as_tried and not self._contest.blocks:
            self.await_baselines(side)
        builds = self.draft.session.workshop.standstill
        with self._hold_turn(side), builds.hold(), self.draft.span("time"), self._count(side):
            self._contest.add(side)

    @contextmanager
    def _count(self, side: CandidateSide) -> Iterator[None]:
        """Counts its first timed process."""
        if self._counts is not None:
            yield
            return
        with perf_events.count_process(side.pid) as self._counts:
            yield

    @contextmanager
    def _hold_turn(self, side: CandidateSide | None = None) -> Iterator[None]:
        """See MountedToBeTimed; and nobody is disturbed who would."""
        with self.draft.span(WAITED):
            if not self._turns.take():
                with self.standing(side):
                    self._turns.wait()
        try:
            yield
        finally:
            self._turns.give_back()

    def conclude_times(self) -> Measurement:
        """See Mounted."""
        found = super().conclude_times()
        flops, moved = self.draft.session.work
        self._known = profiling.profile(
            self._built,
            self.draft.session.stage.target,
            found,
            flops=flops,
            moved=moved,
            host=self._find_host(),
            inside=self._look_inside(),
        )
        return found

    def _find_host(self) -> profiling.Host | None:
        peaks = self.baselines.reference.peaks
        return (
            profiling.Host(peaks.flops_gflops, peaks.l2_bytes, peaks.llc_bytes) if peaks else None
        )

    def _look_inside(self) -> profiling.Inside:
        """Its hot loops, and what the hardware counted in its first timed process."""
        try:
            loops = tuple(_list_loops(self.draft.session.workshop, self._built))
        except PrerequisiteError as lacking:
            return profiling.Inside(lack=str(lacking), counts=self._counts)
        return profiling.Inside(loops, counts=self._counts)

    def known_profile(self) -> Profile | None:
        """See Mounted: nothing before it was timed."""
        return self._known

    def profile(self) -> Profile | None:
        """See Mounted."""
        return self._known
