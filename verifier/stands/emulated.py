# SPDX-License-Identifier: Apache-2.0
"""The stand for a GPU that is not here: candidates are built for it and checked in emulation.

What passes is SCREENED and emulated: right on this machine's emulation of the target, in several
orders of blocks and threads. Its profile says what the build for the target is like, with a time
that is modelled.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from ...kernelbench.products import device_of
from ...sandbox.builders.model import EmulatedVariant
from ...sandbox.plan import suspicions
from ...sandbox.run.arena import room
from ...traces.preparation import Preparation
from ...traces.records import Check, Depth, Profile, Status
from ..checks import fenced_memory
from ..checks.checking import run_trials, try_all
from ..clock.answers import AnsweredShare
from ..clock.bounds import modelled_bounds
from ..clock.timed_sides import CandidateSide
from ..failure import Failed
from ..truth.trials import FEW_BUILT, NO_BULK, on_long_rows, patient_plan, plan, small_trials
from . import cuda_causes, emulated_looks, gpu_tools, sides, triton_causes
from .cuda_candidate import CudaCandidate
from .cuda_causes import Failing
from .gpu_candidates import DeviceCandidate
from .gpu_tools import GpuTools
from .session import EMULATED_CALL_S
from .stand import Stand
from .triton_candidate import TritonCandidate
from .verdict_draft import Draft

_WRONG = (Status.INCORRECT, Status.CRASHED)
"""What is looked at closer."""
SCREENED = 4
"""Trials of a screening, beside those on long rows."""
FEW = 3
"""Trials in each order but the natural one."""
_PROFILERS = ThreadPoolExecutor(2, thread_name_prefix="static-profile")
"""Disassemble what was built while it is emulated."""


@dataclass
class EmulatedStand(Stand):
    """See Stand; its session has workloads that are small enough to be emulated."""

    tools: GpuTools
    is_emulated = True
    languages = tuple(gpu_tools.MAKERS)
    takes = gpu_tools.TAKES

    @property
    def facts(self) -> dict[str, float]:
        """See Stand."""
        return self.tools.ground.facts

    def wait_prepared(self) -> Preparation:
        """See Stand: there are no baselines to hold it against."""
        self.session.ensure_admitted()
        ground = self.tools.ground
        sheet = device_of(ground.architecture.name)
        return Preparation(
            bounds=modelled_bounds(ground.problem, ground.subject.axes, ground.architecture, sheet)
        )

    def mount(self, draft: Draft, rng: np.random.Generator) -> MountedInEmulation:
        """See Stand."""
        order = draft.order
        with draft.span("build"):
            foreseen = [v for v in EmulatedVariant if _is_needed(v, order.protocol)]
            made = self.tools.build(
                order.language, order.source, int(rng.integers(1 << 30)), foreseen
            )
        draft.take(made.device.cubins[0])
        draft.suspicions = suspicions(made.plan)
        begun = _PROFILERS.submit(emulated_looks.static_profile, self.tools.ground, made)
        return MountedInEmulation(draft, rng, made, begun)

    def close(self) -> None:
        """See Stand."""
        self.tools.close()
        self.session.close()


def _is_needed(variant: EmulatedVariant, protocol: Depth) -> bool:
    """Whether a candidate that is right is built so."""
    return variant is not EmulatedVariant.ASAN or not protocol.is_quick


class MountedInEmulation:
    """See Mounted."""

    def __init__(
        self,
        draft: Draft,
        rng: np.random.Generator,
        made: DeviceCandidate,
        begun: Future[Profile],
    ) -> None:
        self._draft = draft
        self._rng = rng
        self._made = made
        self._begun = begun
        self._counted: Profile | None = None
        self._failing = Failing()

    @contextmanager
    def ready(self) -> Iterator[None]:
        """See Mounted."""
        with self._draft.span("build"):
            self._made.program(self._made.schedules[0])
        self._draft.emulated = True
        yield

    @contextmanager
    def process(self) -> Iterator[CandidateSide]:
        """See Mounted: one that keeps the natural order."""
        with self._in_order(self._made.schedules[0]) as side:
            yield side
        left_out(self._draft, side.seen)

    @contextmanager
    def _in_order(self, schedule: str) -> Iterator[CandidateSide]:
        """A process that emulates it; the call that fails in it is kept, as small as can be."""
        draft, made, session = self._draft, self._made, self._draft.session
        program = made.program(schedule)
        with ExitStack() as stack:
            with draft.span("start"):
                behind = made.spare + 2 * room(made.extra(session.stage.target))
                arena = stack.enter_context(sides.arena_for(session, behind))
                started = sides.start_side(
                    session,
                    draft.order.protocol,
                    "candidate",
                    program,
                    arena,
                    self._rng,
                    made.extra,
                    timeout_s=EMULATED_CALL_S,
                    hear=draft.hear,
                )
                side = stack.enter_context(started)
            try:
                yield side
            finally:
                self._failing.note(side, schedule)
            if made.is_native and not draft.is_right:
                with draft.span("verify"):
                    self._failing.shrink(side, session.stage, self._rng)

    def try_on(self, side: CandidateSide) -> None:
        """See Mounted."""
        with self._draft.span("verify"):
            self._draft.checks += self._trials(side)

    def _trials(self, side: CandidateSide) -> list[Check]:
        stage, protocol, rng = self._draft.session.stage, self._draft.order.protocol, self._rng
        if protocol.is_quick:
            trials = small_trials(stage, rng)
            asked = [trial for trial in trials if trial.name == stage.target_name]
            few = [*asked, *trials[len(asked) - SCREENED :], *on_long_rows(stage, trials, rng)]
            return try_all(side, stage, few, rng)
        if self._made.is_native:
            drawn = plan(stage, protocol, rng, shapes=FEW_BUILT, bulk=NO_BULK)
        else:
            drawn = patient_plan(stage, protocol, rng)
        return run_trials(side, stage, protocol, rng, drawn)

    def look_closer(self, side: CandidateSide) -> None:
        """See Mounted: between fences, where our compiled runner emulates it."""
        draft = self._draft
        if self._made.is_native and not draft.order.protocol.is_quick:
            with draft.span("verify"):
                draft.checks.append(fenced_memory.examine(side, draft.session.stage, self._rng))

    def look_apart(self) -> None:
        """See Mounted: other orders of blocks and threads, then builds that see more."""
        draft, stage = self._draft, self._draft.session.stage
        for schedule in self._made.schedules[1:]:
            with self._in_order(schedule) as side, draft.span("verify"):
                few = small_trials(stage, self._rng)[-FEW:]
                draft.checks += _name_by_order(try_all(side, stage, few, self._rng), schedule)
            if not draft.is_right:
                return
        if isinstance(self._made, CudaCandidate):
            self._look_into(self._made)

    def _look_into(self, made: CudaCandidate) -> None:
        """Races first: one call shows them, and the sanitizers take a dozen of slow ones."""
        draft = self._draft
        report = emulated_looks.look_for_races(draft, made, self._rng)
        if not draft.order.protocol.is_quick and draft.is_right:
            emulated_looks.run_sanitized(draft, made, self._rng)
        if draft.is_right:
            self._counted = emulated_looks.profile_emulated(draft, made, report, self._rng)

    is_timed_as_tried = True
    timed_process = process

    def time(self, side: CandidateSide) -> None:
        """See Mounted: no figure of an emulation is a speed."""

    def goes_on(self) -> bool:
        """See Mounted."""
        return False

    def conclude_times(self) -> None:
        """See Mounted."""

    def known_profile(self) -> Profile:
        """See Mounted: what its build for the target says."""
        return self._begun.result()

    def profile(self) -> Profile:
        """See Mounted."""
        with self._draft.span("profile"):
            return self._counted or self._begun.result()

    def cause(self, failed: Failed) -> str:
        """See Mounted; where Triton crashes, its interpreter has said it."""
        if failed.status not in _WRONG:
            return ""
        draft, made, failing = self._draft, self._made, self._failing
        with draft.span("explain"):
            if not isinstance(made, TritonCandidate):
                return cuda_causes.explain(draft.session, made, failing, failed.reason, self._rng)
            if failed.status is not Status.INCORRECT or failing.item is None:
                return ""
            return triton_causes.explain(draft.session, made, failing.item, self._rng)


def left_out(draft: Draft, seen: AnsweredShare) -> None:
    """Tells what the interpreter did not run; refuses where it has answered nothing."""
    if not seen.partial:
        return
    if seen.unanswered == seen.calls:
        raise Failed(
            Status.UNSUPPORTED,
            "the interpreter takes too long for its programs, which need each other: give each "
            "more work, or write each answer by one program of one launch",
        )
    programs, ran = seen.largest
    draft.unchecked.append(
        f"answers of programs that Triton's interpreter left out: in {seen.partial} of "
        f"{seen.calls} calls the first, the last and random programs ran (of the largest grids "
        f"{ran} of {programs}); {100 * seen.judged / max(1, seen.elements):.0f} % of all answers "
        "were judged" + (f", in {seen.unanswered} of them none" if seen.unanswered else "")
    )


def _name_by_order(checks: list[Check], schedule: str) -> list[Check]:
    kind = schedule.partition(":")[0]
    return [c.model_copy(update={"name": f"{c.name}, threads in {kind} order"}) for c in checks]
