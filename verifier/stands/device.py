# SPDX-License-Identifier: Apache-2.0
"""The stand for a GPU that is here: candidates and baselines take turns on a leased device.

Launches come with a call, the device is watched while it is timed, and a candidate that breaks it
sends it into quarantine. The candidate's process holds no host code of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ...kernelbench.problem import Structure
from ...sandbox.plan import suspicions
from ...sandbox.run.arena import EXTRA_BYTES, room
from ...sandbox.run.device.program import device_program
from ...traces.preparation import Preparation
from ...traces.records import Counting, Profile
from ..checks.checking import run_trials
from ..clock.timed_sides import CandidateSide
from ..profile import nsight
from ..request import Order
from ..truth import gates, trials
from ..truth.trials import Stage, Trial
from . import device_tools, gpu_tools
from .contests import RunnerLaunch
from .emulated_looks import static_of
from .gpu_candidates import DeviceCandidate, OnDevice
from .gpu_tools import GpuTools
from .leased import Leased
from .reference import Baselines
from .session import Session
from .stand import TimingStand
from .timed import MountedToBeTimed
from .verdict_draft import Draft


@dataclass
class DeviceStand(TimingStand):
    """See Stand."""

    tools: GpuTools
    leased: Leased
    baselines: Baselines
    languages = tuple(gpu_tools.MAKERS)
    takes = gpu_tools.TAKES

    @classmethod
    def open(cls, session: Session, tools: GpuTools, leased: Leased) -> Self:
        """Begins to start the baselines."""
        baselines = Baselines(session, leased.peaks, leased.place)
        leased.residents.append(lambda: baselines.pid)
        return cls(session, tools, leased, baselines)

    @property
    def facts(self) -> dict[str, float]:
        """See Stand."""
        return self.tools.ground.facts

    def wait_prepared(self) -> Preparation:
        """See Stand."""
        self.session.ensure_admitted()
        return self.baselines.wait_prepared()

    def illness(self) -> str:
        """See Stand."""
        return self.leased.illness()

    def illness_after(self, draft: Draft, failure: str) -> str:
        """See Stand."""
        with draft.span("probe the device"):
            return self.leased.probe_after(failure)

    def mount(self, draft: Draft, rng: np.random.Generator) -> MountedOnDevice:
        """See Stand."""
        drawn = trials.plan(
            self.session.stage,
            draft.order.protocol,
            rng,
            shapes=trials.FEW_BUILT,
            bulk=trials.NO_BULK,
        )
        with draft.span("build"):
            ready = self.build_all(draft.order.language, draft.order.source, drawn, rng)
        draft.take(ready.made.device.cubins[0])
        draft.suspicions = suspicions(ready.made.plan)
        sheet = self.leased.data_sheet
        known = static_of(draft, self.tools.ground, ready.made, device=sheet)
        return MountedOnDevice(self, draft, rng, ready, drawn, known)

    def build_all(
        self, language: str, source: str, drawn: list[Trial], rng: np.random.Generator
    ) -> BuiltForDevice:
        """Everything that is built of a source, for the trials that were drawn. Raises Failed."""
        session = self.session
        made = self.tools.build(language, source, int(rng.integers(1 << 30)))
        on_device = made.on_device(_structures(session.stage, drawn))
        program = device_program(
            session.workshop, on_device.built, session.problem, self.leased.access
        )
        each = room(on_device.extra(session.stage.target))
        behind = EXTRA_BYTES + session.slots * each
        return BuiltForDevice(made, on_device, RunnerLaunch(program, on_device.extra, behind))

    @property
    def counting(self) -> Counting | None:
        """See Stand."""
        return self.session.task.counting if nsight.find_ncu() else None

    def count(self, draft: Draft, rng: np.random.Generator) -> Profile | str:
        """See Stand: ncu starts a process of its own, over one call."""
        with draft.span("build"):
            ready = self.build_all(draft.order.language, draft.order.source, [], rng)
        found = device_tools.count(self.session, self.leased, ready.on_device, rng)
        if isinstance(found, nsight.NotProfiled):
            return f"{found.reason}; {found.hint}" if found.hint else found.reason
        known = static_of(draft, self.tools.ground, ready.made, device=self.leased.data_sheet)
        return join_profiles(found, known)

    def build_ahead(self, order: Order) -> None:
        """See TimingStand: for every workload that is known; hidden shapes are not drawn yet."""
        stage = self.session.stage
        made = self.tools.build(order.language, order.source, 0)
        made.on_device([stage.target, *(structure for _, structure in stage.others)])

    def close(self) -> None:
        """See Stand."""
        try:
            self.baselines.close()
        finally:
            self.tools.close()
            self.session.close()
            self.leased.close()


@dataclass(frozen=True)
class BuiltForDevice:
    """A candidate as it is run on the device."""

    made: DeviceCandidate
    on_device: OnDevice
    launched: RunnerLaunch


def _structures(stage: Stage, drawn: list[Trial]) -> list[Structure]:
    """Each once, the target first."""
    others = [s for _, s in stage.others] if drawn else []
    known = [stage.target, *others, *(trial.structure for trial in drawn)]
    return list({id(structure): structure for structure in known}.values())


class MountedOnDevice(MountedToBeTimed):
    """See Mounted."""

    threads = 1
    # The device's peaks and the baselines' first times are not measured beside a candidate.
    waits_first = True

    def __init__(
        self,
        stand: DeviceStand,
        draft: Draft,
        rng: np.random.Generator,
        ready: BuiltForDevice,
        drawn: list[Trial],
        known: Profile,
    ) -> None:
        super().__init__(draft, rng, stand.baselines, ready.launched)
        self._stand = stand
        self._on_device = ready.on_device
        self._drawn = drawn
        self._static = known

    def champion(self) -> RunnerLaunch:
        """See MountedToBeTimed."""
        order = self.draft.order
        with self.draft.span("build"):
            return self._stand.build_all(order.language, order.champion, [], self.rng).launched

    def try_on(self, side: CandidateSide) -> None:
        """See Mounted."""
        draft, stage = self.draft, self.draft.session.stage
        with draft.span("verify"):
            draft.checks += run_trials(
                side, stage, draft.order.protocol, self.rng, self._drawn, apart=True
            )

    def look_closer(self, side: CandidateSide) -> None:
        """See Mounted."""
        del side
        if not self.draft.order.protocol.is_quick:
            with self.draft.span("sanitize"):
                device_tools.sanitize(self.draft, self._stand.leased, self._on_device, self.rng)

    def look_apart(self) -> None:
        """See Mounted: all was looked at."""

    def time(self, side: CandidateSide) -> None:
        """See Mounted: the device is watched from the block's start to its end."""
        with self.draft.span("time"), self._stand.leased.watch_block(side.pid) as seen:
            self._contest.add(side)
        disturbed = gates.first_failure(seen)
        timed = self.draft.timed
        at = next((at for at, check in enumerate(timed) if check.name == seen[0].name), None)
        if at is None:
            timed += seen
        elif disturbed and timed[at].passed:
            timed[at] = disturbed

    def known_profile(self) -> Profile:
        """See Mounted: what its build says."""
        return self._static

    def profile(self) -> Profile:
        """See Mounted: what was counted and timed, before what the build says."""
        with self.draft.span("profile"):
            counted = device_tools.profile(
                self.draft, self._stand.leased, self._on_device, self.found, self.rng
            )
        return join_profiles(counted, self._static)


def join_profiles(counted: Profile, known: Profile) -> Profile:
    """What was counted or timed, before what the build says."""
    return Profile(
        metrics=(*counted.metrics, *known.metrics),
        remarks=(*counted.remarks, *known.remarks),
        code=(*counted.code, *known.code),
    )
