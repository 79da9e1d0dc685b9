"""Judging a candidate for a GPU that is not here: built for it, checked in emulation, never timed.

What passes is SCREENED and emulated: right on this machine's emulation of the target, in several
orders of blocks and threads. Its profile says what the build for the target is like, with a time
that is modelled. No figure of this module is a speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from ..kernelbench.problem import Family
from ..kernelbench.targets import device_of
from ..sandbox.build.model import EmulatedVariant
from ..sandbox.isolation.model import Limits
from ..sandbox.run import access
from ..sandbox.run.once import Call
from ..sandbox.run.process import RunFault
from ..sandbox.run.program import Program
from ..traces.records import Check, Profile, Protocol, Status, Verdict
from . import devices, fences, gates, sampling, sanitize
from .arena import EXTRA_BYTES
from .checking import run_trials, tried
from .devices import CudaCandidate, DeviceCandidate, Refused, Workshop
from .draft import Draft
from .profile import emulated as emulated_profile
from .profile import static
from .sides import CandidateSide
from .trials import Trial, make_item, plan, small_trials

SCREENED = 4
"""Trials of a screening."""
LONGEST = 8192
"""Axes of what is interpreted: a program for each row of a longer one takes minutes."""
FEW = 3
"""Trials in each order but the natural one."""
RACES = "shared-memory races"
ACCESS_TIMEOUT_S = 60.0
ACCESS_LIMITS = Limits(wall_s=120.0, cpu_s=240.0, memory_bytes=4 << 30)


def look(draft: Draft, workshop: Workshop) -> Verdict:
    """The verdict on a candidate for the workshop's target."""
    session, order = draft.session, draft.order
    if order.language not in devices.LANGUAGES:
        return draft.close(
            Status.UNSUPPORTED,
            f"language '{order.language}' does not run on target '{session.task.target}': "
            f"it takes {' and '.join(devices.LANGUAGES)}",
        )
    session.ensure_admitted()
    rng = np.random.default_rng(int.from_bytes(draft.seed, "little"))
    known: Profile | None = None
    try:
        with draft.span("build"):
            made = devices.candidate(
                workshop, order.language, order.source, int(rng.integers(1 << 30))
            )
        draft.take(made.device.cubins[0])
        known = _static(draft, workshop, made)
        known = _judge(draft, made, known, rng)
    except Refused as refused:
        draft.log = refused.log or draft.log
        return draft.close(refused.status, refused.reason, known=known)
    except RunFault as fault:
        draft.log = fault.log or draft.log
        return draft.close(fault.status, fault.reason, known=known)
    failed = gates.first_failure(draft.checks)
    if failed:
        return draft.close(Status.INCORRECT, f"{failed.name}: {failed.detail}", known=known)
    return draft.close(Status.SCREENED, known=known)


def _static(
    draft: Draft,
    workshop: Workshop,
    made: DeviceCandidate,
    report: access.AccessReport | None = None,
) -> Profile:
    problem, axes = workshop.problem, workshop.subject.axes
    with draft.span("profile"):
        return static.static_profile(
            made.device, made.launches, flops=problem.flops(axes), moved=problem.bytes_moved(axes),
            device=device_of(workshop.architecture.name), cache_dir=workshop.cache_dir,
            jail=workshop.jail, accesses=emulated_profile.by_line(report) if report else None,
        )  # fmt: skip


def _judge(
    draft: Draft, made: DeviceCandidate, known: Profile, rng: np.random.Generator
) -> Profile:
    """Adds the checks to the draft, and what the emulation saw to the profile."""
    protocol = draft.order.protocol
    natural, *others = made.schedules
    with draft.span("build"):
        program = made.program(natural)
    draft.emulated = True
    with draft.span("verify"), _side(draft, made, program, rng) as side:
        draft.checks += _trials(draft, made, side, rng)
        if made.is_native and protocol is not Protocol.SCREEN and not _failed(draft):
            draft.checks.append(fences.examine(side, draft.session.stage, rng))
    for schedule in others:
        if _failed(draft):
            return known
        with draft.span("verify"), _side(draft, made, made.program(schedule), rng) as side:
            few = small_trials(draft.session.stage, rng)[-FEW:]
            draft.checks += _renamed(tried(side, draft.session.stage, few, rng), schedule)
    if not isinstance(made, CudaCandidate) or _failed(draft):
        return known
    if protocol is not Protocol.SCREEN:
        _sanitized(draft, made, rng)
    return _accessed(draft, made, rng) if not _failed(draft) else known


def _trials(
    draft: Draft, made: DeviceCandidate, side: CandidateSide, rng: np.random.Generator
) -> list[Check]:
    stage, protocol = draft.session.stage, draft.order.protocol

    def is_wanted(trial: Trial) -> bool:
        return made.is_native or max(trial.structure.axes.values()) <= LONGEST

    if not made.is_native:
        draft.unchecked.append(
            f"shapes of more than {LONGEST} rows or columns: Triton's interpreter is too slow"
        )
    if protocol is Protocol.SCREEN:
        trials = [trial for trial in small_trials(stage, rng) if is_wanted(trial)]
        asked = [trial for trial in trials if trial.name == stage.target_name]
        return tried(side, stage, [*asked, *trials[len(asked) - SCREENED :]], rng)
    wanted = [trial for trial in plan(stage, protocol, rng) if is_wanted(trial)]
    return run_trials(side, stage, protocol, rng, wanted)


def _failed(draft: Draft) -> bool:
    return gates.first_failure(draft.checks) is not None


def _renamed(checks: list[Check], schedule: str) -> list[Check]:
    kind = schedule.partition(":")[0]
    return [c.model_copy(update={"name": f"{c.name}, threads in {kind} order"}) for c in checks]


@contextmanager
def _side(
    draft: Draft, made: DeviceCandidate, program: Program, rng: np.random.Generator
) -> Iterator[CandidateSide]:
    session = draft.session
    with ExitStack() as stack:
        with draft.span("start"):
            arena = stack.enter_context(sampling.arena_for(session, EXTRA_BYTES))
            started = sampling.started(
                session, draft.order.protocol, "candidate", program, arena, rng, made.extra
            )
            side = stack.enter_context(started)
        yield side


def _sanitized(draft: Draft, made: CudaCandidate, rng: np.random.Generator) -> None:
    """AddressSanitizer over the emulation: accesses out of bounds, each with its line."""
    session = draft.session
    if reason := sanitize.apart(draft.order.source):
        raise Refused(Status.UNSUPPORTED, reason)
    with draft.span("sanitize"):
        found = sanitize.examine(session, made.variant(EmulatedVariant.ASAN), rng, made.extra)
    draft.checks.append(found.check)
    draft.log = found.log or draft.log


def _accessed(draft: Draft, made: CudaCandidate, rng: np.random.Generator) -> Profile:
    """One call of the access build on a small workload: races, sectors and bank conflicts.

    The modelled time of the whole is that with the sectors and conflicts that were counted.
    """
    session = draft.session
    structure, name = session.stage.target, session.stage.target_name
    item = make_item(session.problem, structure, Family.NORMAL, rng)
    inputs = {**structure.arrays, **item.inputs}
    with draft.span("profile"):
        report = access.examine(
            made.built(EmulatedVariant.ACCESS),
            Call(session.problem, structure.axes, inputs, made.launched(structure)),
            jail=session.jail, cache_dir=session.cache_dir, cpus=session.cpus,
            limits=ACCESS_LIMITS, timeout_s=ACCESS_TIMEOUT_S,
        )  # fmt: skip
    races = [race.sentence for race in report.races]
    draft.checks.append(Check(
        name=RACES, passed=not races, figure=float(len(races)), workload=name,
        detail="; ".join(races[:3]) or f"none on {name}",
    ))  # fmt: skip
    known = _static(draft, made.workshop, made, report)
    return emulated_profile.with_accesses(known, report)
