"""Judging a candidate for a GPU on the GPU: built, tried, looked at with tools, timed there.

The steps are those of a candidate for the CPU (evaluation.py), over the device runner. What differs
is here: launches come with a call, the device is watched while it is timed, and a candidate that
breaks it sends it into quarantine. The candidate's process holds no host code of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from ...errors import SandboxError
from ...kernelbench.problem import Structure
from ...sandbox.plan import suspicions
from ...sandbox.run.arena import EXTRA_BYTES, Arena, room
from ...sandbox.run.device.program import device_program
from ...sandbox.run.process import RunFault
from ...sandbox.run.program import Program
from ...traces.records import CHAMPION, Measurement, Profile, Protocol, Status, Verdict
from ..checks.checking import run_trials
from ..clock import clocks, roofline, timing
from ..clock.timed_sides import CandidateSide, Wrong
from ..truth import gates, trials
from ..truth.trials import Trial
from . import contests, device_tools, emulated, gpu_candidates
from .gpu_candidates import DeviceCandidate, OnDevice, Refused, Workshop
from .leased import Leased
from .rivalry import ChampionFailed
from .session import Session
from .verdict_draft import Draft

_BROKE = (Status.CRASHED, Status.TIMED_OUT, Status.HARNESS_ERROR, Status.PROTOCOL_ERROR)
"""Failures after which the device is probed."""


@dataclass(frozen=True)
class _Ready:
    """A candidate as it is run on the device."""

    made: DeviceCandidate
    on_device: OnDevice
    program: Program
    room: int
    """Bytes that its calls on the target need behind their tensors."""
    trials: list[Trial]


def look(draft: Draft, workshop: Workshop, leased: Leased) -> Verdict:
    """The verdict on a candidate for the leased device. Raises ChampionFailed."""
    session, order = draft.session, draft.order
    if reason := gpu_candidates.why_not_taken(order.language, session.task.target):
        return draft.close(Status.UNSUPPORTED, reason)
    if ill := leased.illness():
        return draft.close(Status.HARNESS_ERROR, ill)
    session.ensure_admitted()
    rng = np.random.default_rng(int.from_bytes(draft.seed, "little"))
    known: Profile | None = None
    try:
        drawn = trials.plan(session.stage, order.protocol, rng)
        ready = _ready(draft, leased, workshop, order.source, drawn, rng)
        draft.take(ready.made.device.cubins[0])
        draft.suspicions = suspicions(ready.made.plan)
        known = emulated.static_of(draft, workshop, ready.made, device=leased.data_sheet)
        return _judge(draft, leased, ready, known, rng)
    except Refused as refused:
        draft.log = refused.log or draft.log
        return draft.close(refused.status, refused.reason, known=known)
    except RunFault as fault:
        draft.log = fault.log or draft.log
        return _failed(draft, leased, fault, known)
    except ChampionFailed as failed:
        # Whoever broke the device, it is no judge of the champion.
        if failed.status in _BROKE and (ill := _ill(draft, leased, f"the champion {failed}")):
            return draft.close(Status.HARNESS_ERROR, ill, known=known)
        raise
    except SandboxError as error:
        # A process of ours that does not start may mean that the device is gone.
        if ill := _ill(draft, leased, str(error)):
            return draft.close(Status.HARNESS_ERROR, ill, known=known)
        raise
    except Wrong as wrong:
        draft.checks.append(wrong.check)
        reason = f"a timed call was wrong: {wrong.check.name}: {wrong.check.detail}"
        return draft.close(Status.INCORRECT, reason, known=known)


def _ill(draft: Draft, leased: Leased, why: str) -> str:
    """Why the device is out of use now; empty: it is well."""
    with draft.span("probe the device"):
        return leased.after(why)


def _failed(draft: Draft, leased: Leased, fault: RunFault, known: Profile | None) -> Verdict:
    """The candidate's failure, unless the device itself does not work any more."""
    if fault.status in _BROKE:
        ill = _ill(draft, leased, f"a candidate {fault.status}: {fault.reason}")
        if ill:
            return draft.close(Status.HARNESS_ERROR, ill, known=known)
    return draft.close(fault.status, fault.reason, known=known)


def _ready(
    draft: Draft,
    leased: Leased,
    workshop: Workshop,
    source: str,
    drawn: list[Trial],
    rng: np.random.Generator,
) -> _Ready:
    """Everything that is built of a source, for the trials that were drawn. Raises Refused."""
    session, order = draft.session, draft.order
    with draft.span("build"):
        made = gpu_candidates.candidate(
            workshop, order.language, source, int(rng.integers(1 << 30))
        )
        on_device = made.on_device(_structures(session, drawn))
        program = device_program(on_device.built, session.problem, leased.access, session.cache_dir)
    each = room(on_device.extra(session.stage.target))
    return _Ready(made, on_device, program, EXTRA_BYTES + session.slots * each, drawn)


def _structures(session: Session, drawn: list[Trial]) -> list[Structure]:
    """Each once, the target first."""
    stage = session.stage
    others = [s for _, s in stage.others] if drawn else []
    known = [stage.target, *others, *(trial.structure for trial in drawn)]
    return list({id(structure): structure for structure in known}.values())


def _judge(
    draft: Draft, leased: Leased, ready: _Ready, known: Profile, rng: np.random.Generator
) -> Verdict:
    session, protocol = draft.session, draft.order.protocol
    rival = _champion(draft, leased, rng)
    # The device's peaks and the baselines' first times are not measured beside a candidate.
    with draft.span("wait for baselines"):
        session.await_reference()
    with contests.arena_for(session, ready.room) as arena:
        with _side(draft, ready, arena, rng) as side:
            with draft.span("verify"):
                draft.checks += run_trials(side, session.stage, protocol, rng, ready.trials)
            if protocol is not Protocol.SCREEN and not gates.first_failure(draft.checks):
                with draft.span("sanitize"):
                    device_tools.sanitize(draft, leased, ready.on_device, rng)
            failed = gates.first_failure(draft.checks)
            if failed:
                reason = f"{failed.name}: {failed.detail}"
                return draft.close(Status.INCORRECT, reason, known=known)
            contest = contests.Contest(session, protocol, rival, rng)
            _block(draft, leased, contest, side)
        while contest.goes_on():
            with _side(draft, ready, arena, rng) as side:
                _block(draft, leased, contest, side)
    return _conclude(draft, leased, ready, contest.series, known, rng)


@contextmanager
def _side(
    draft: Draft, ready: _Ready, arena: Arena, rng: np.random.Generator
) -> Iterator[CandidateSide]:
    with ExitStack() as stack:
        with draft.span("start"):
            side = stack.enter_context(
                contests.started(
                    draft.session,
                    draft.order.protocol,
                    "candidate",
                    ready.program,
                    arena,
                    rng,
                    ready.on_device.extra,
                )
            )
        yield side


def _block(draft: Draft, leased: Leased, contest: contests.Contest, side: CandidateSide) -> None:
    """One block of paired samples, with the device watched from its start to its end."""
    session = draft.session
    own = (side.pid, session.reference.process.pid)
    with draft.span("time"), leased.watched(own) as seen:
        contest.add(side)
    disturbed = gates.first_failure(seen)
    said = {check.name: at for at, check in enumerate(draft.checks)}
    at = said.get(seen[0].name)
    if at is None:
        draft.checks += seen
    elif disturbed and draft.checks[at].passed:
        draft.checks[at] = disturbed


def _champion(draft: Draft, leased: Leased, rng: np.random.Generator) -> contests.Rival | None:
    order, workshop = draft.order, draft.session.device
    if not order.champion or workshop is None:
        return None
    try:
        ready = _ready(draft, leased, workshop, order.champion, [], rng)
    except Refused as refused:
        raise ChampionFailed(refused.status, refused.reason) from refused
    return contests.Rival(ready.program, ready.on_device.extra, ready.room)


def _conclude(
    draft: Draft,
    leased: Leased,
    ready: _Ready,
    series: timing.Series,
    known: Profile,
    rng: np.random.Generator,
) -> Verdict:
    session, protocol = draft.session, draft.order.protocol
    draft.checks += clocks.checks(series.seen, len(session.cpus))
    measured = _measurement(session, series, rng)
    if session.reference.peaks:
        draft.checks.append(roofline.plausible(measured.candidate.median_us, measured.floor_us))
    failed = gates.first_failure(draft.checks)
    if failed:
        return draft.close(Status.SUSPECT, f"{failed.name}: {failed.detail}", known=known)
    with draft.span("profile"):
        counted = device_tools.profile(draft, leased, ready.on_device, measured, rng)
    whole = _joined(known, counted)
    screened = protocol is Protocol.SCREEN
    return draft.close(Status.SCREENED if screened else Status.VERIFIED, "", measured, whole)


def _joined(static: Profile, counted: Profile) -> Profile:
    """What was counted and timed before what the build says."""
    return Profile(
        metrics=(*counted.metrics, *static.metrics), remarks=(*counted.remarks, *static.remarks)
    )


def _measurement(session: Session, series: timing.Series, rng: np.random.Generator) -> Measurement:
    axes, peaks = session.stage.target.axes, session.reference.peaks
    flops, moved = session.problem.flops(axes), session.problem.bytes_moved(axes)
    return timing.measurement(
        series,
        "candidate",
        [name for name in series.names if name not in ("candidate", CHAMPION)],
        CHAMPION if CHAMPION in series.names else None,
        missing=session.reference.missing,
        workload=session.task.workload.name,
        floor_us=roofline.floor_us(flops, moved, peaks) if peaks else 0.0,
        threads=1,
        rng=rng,
    )
