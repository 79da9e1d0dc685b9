"""Judging a candidate for a GPU that is not here: built for it, checked in emulation, never timed.

What passes is SCREENED and emulated: right on this machine's emulation of the target, in several
orders of blocks and threads. Its profile says what the build for the target is like, with a time
that is modelled. No figure of this module is a speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import numpy as np

from ...kernelbench.problem import Family, Structure
from ...kernelbench.targets import Device, device_of
from ...sandbox.builders.model import EmulatedVariant
from ...sandbox.isolation.model import Limits
from ...sandbox.plan import suspicions
from ...sandbox.run import memory_access
from ...sandbox.run.arena import room
from ...sandbox.run.once import Call
from ...sandbox.run.process import RunFault
from ...traces.records import Check, Profile, Protocol, Status, Verdict
from ..checks import fenced_memory
from ..checks.checking import run_trials, tried
from ..clock.timed_sides import CandidateSide, Seen
from ..profile import static
from ..profile.executed import Counts
from ..truth import gates
from ..truth.trials import make_item, patient_plan, plan, small_trials
from . import contests, cuda_causes, gpu_candidates, sanitize, triton_causes
from .cuda_causes import Failing
from .gpu_candidates import CudaCandidate, DeviceCandidate, Refused, TritonCandidate, Workshop
from .session import Session
from .verdict_draft import Draft

_WRONG = (Status.INCORRECT, Status.CRASHED)
"""What is looked at closer."""
SCREENED = 4
"""Trials of a screening."""
FEW = 3
"""Trials in each order but the natural one."""
RACES = "races"
SANITIZED_BYTES = 256 << 10
"""Of a sanitized trial: a warp for each of 20,000 rows takes seconds. Larger shapes have fences."""
ACCESS_TIMEOUT_S = 60.0
COUNTED = 2_000_000
"""Accesses of threads in a launch from which no more of its blocks are watched: under a second."""
COUNTED_BYTES = 128 << 20
"""Tensors and scratch of the workload that is emulated for its counts alone, at most."""
COUNT_TIMEOUT_S = 20.0
_PROFILERS = ThreadPoolExecutor(2, thread_name_prefix="static-profile")
"""Disassemble what was built while it is emulated."""
ACCESS_LIMITS = Limits(wall_s=120.0, cpu_s=240.0, memory_bytes=4 << 30)


def look(draft: Draft, workshop: Workshop) -> Verdict:
    """The verdict on a candidate for the workshop's target."""
    session, order = draft.session, draft.order
    if reason := gpu_candidates.why_not_taken(order.language, session.task.target):
        return draft.close(Status.UNSUPPORTED, reason)
    session.ensure_admitted()
    rng = np.random.default_rng(int.from_bytes(draft.seed, "little"))
    begun: Future[Profile] | None = None
    made: DeviceCandidate | None = None
    failing = Failing()

    def closed(status: Status, reason: str) -> Verdict:
        why = ""
        if status in _WRONG:
            with draft.span("explain"):
                why = _why(session, made, failing, status, reason, rng)
        known = begun.result() if begun else None
        return draft.close(status, f"{why}; {reason}" if why else reason, known=known)

    try:
        with draft.span("build"):
            foreseen = [v for v in EmulatedVariant if _is_needed(v, order.protocol)]
            made = gpu_candidates.candidate(
                workshop, order.language, order.source, int(rng.integers(1 << 30)), foreseen
            )
        draft.take(made.device.cubins[0])
        draft.suspicions = suspicions(made.plan)
        begun = _PROFILERS.submit(_static, workshop, made)
        counted = _judge(draft, made, failing, rng)
    except Refused as refused:
        draft.log = refused.log or draft.log
        return closed(refused.status, refused.reason)
    except RunFault as fault:
        draft.log = fault.log or draft.log
        return closed(fault.status, fault.reason)
    failed = gates.first_failure(draft.checks)
    if failed:
        return closed(Status.INCORRECT, f"{failed.name}: {failed.detail}")
    with draft.span("profile"):
        known = counted or begun.result()
    return draft.close(Status.SCREENED, known=known)


def _why(
    session: Session,
    made: DeviceCandidate | None,
    failing: Failing,
    status: Status,
    reason: str,
    rng: np.random.Generator,
) -> str:
    """The sentence to lead the reason with; where Triton crashes, its interpreter has said it."""
    if not isinstance(made, TritonCandidate):
        return cuda_causes.explain(session, made, failing, reason, rng)
    if status is not Status.INCORRECT or failing.item is None:
        return ""
    return triton_causes.explain(session, made, failing.item, rng)


def _is_needed(variant: EmulatedVariant, protocol: Protocol) -> bool:
    """Whether a candidate that is right is built so."""
    return variant is not EmulatedVariant.ASAN or protocol is not Protocol.SCREEN


def static_of(
    draft: Draft,
    workshop: Workshop,
    made: DeviceCandidate,
    counts: Counts | None = None,
    device: Device | None = None,
) -> Profile:
    """What its build for the target says, with a time that is modelled."""
    with draft.span("profile"):
        return _static(workshop, made, counts, device)


def _static(
    workshop: Workshop,
    made: DeviceCandidate,
    counts: Counts | None = None,
    device: Device | None = None,
) -> Profile:
    problem, axes = workshop.problem, workshop.subject.axes
    return static.static_profile(
        made.device,
        made.launches,
        flops=problem.flops(axes),
        moved=problem.bytes_moved(axes),
        device=device or device_of(workshop.architecture.name),
        cache_dir=workshop.cache_dir,
        jail=workshop.jail,
        counts=counts,
    )


def _judge(
    draft: Draft, made: DeviceCandidate, failing: Failing, rng: np.random.Generator
) -> Profile | None:
    """Adds the checks to the draft; the profile with what the emulation counted, if it did."""
    protocol = draft.order.protocol
    natural, *others = made.schedules
    with draft.span("build"):
        made.program(natural)
    draft.emulated = True
    with draft.span("verify"), _side(draft, made, natural, failing, rng) as side:
        draft.checks += _trials(draft, made, side, rng)
        if made.is_native and protocol is not Protocol.SCREEN and not _failed(draft):
            draft.checks.append(fenced_memory.examine(side, draft.session.stage, rng))
    _left_out(draft, side.seen)
    for schedule in others:
        if _failed(draft):
            return None
        with draft.span("verify"), _side(draft, made, schedule, failing, rng) as side:
            few = small_trials(draft.session.stage, rng)[-FEW:]
            draft.checks += _renamed(tried(side, draft.session.stage, few, rng), schedule)
    if not isinstance(made, CudaCandidate) or _failed(draft):
        return None
    # Races first: one call shows them, and the sanitizers take a dozen of slow ones.
    report = _raced(draft, made, rng)
    if protocol is not Protocol.SCREEN and not _failed(draft):
        _sanitized(draft, made, rng)
    return _profiled(draft, made, report, rng) if not _failed(draft) else None


def _trials(
    draft: Draft, made: DeviceCandidate, side: CandidateSide, rng: np.random.Generator
) -> list[Check]:
    stage, protocol = draft.session.stage, draft.order.protocol
    if protocol is Protocol.SCREEN:
        trials = small_trials(stage, rng)
        asked = [trial for trial in trials if trial.name == stage.target_name]
        return tried(side, stage, [*asked, *trials[len(asked) - SCREENED :]], rng)
    trials = (plan if made.is_native else patient_plan)(stage, protocol, rng)
    return run_trials(side, stage, protocol, rng, trials)


def _left_out(draft: Draft, seen: Seen) -> None:
    """Tells what the interpreter did not run; refuses where it has answered nothing."""
    if not seen.partial:
        return
    if seen.unanswered == seen.calls:
        raise Refused(
            Status.UNSUPPORTED,
            "the interpreter takes too long for its programs, which need each other: give each "
            "more work, or write each answer by one program of one launch",
        )
    programs, ran = seen.largest
    draft.unchecked.append(
        f"answers of programs that Triton's interpreter left out: in {seen.partial} of "
        f"{seen.calls} calls the first, the last and random programs ran (of the largest grids "
        f"{ran} of {programs}); {100 * seen.judged / max(1, seen.elements):.0f} % of all answers "
        "were judged" + (f", in {seen.unanswered} calls none" if seen.unanswered else "")
    )


def _failed(draft: Draft) -> bool:
    return gates.first_failure(draft.checks) is not None


def _renamed(checks: list[Check], schedule: str) -> list[Check]:
    kind = schedule.partition(":")[0]
    return [c.model_copy(update={"name": f"{c.name}, threads in {kind} order"}) for c in checks]


@contextmanager
def _side(
    draft: Draft, made: DeviceCandidate, schedule: str, failing: Failing, rng: np.random.Generator
) -> Iterator[CandidateSide]:
    """A process that emulates it; the call that fails in it is kept, as small as can be."""
    session, program = draft.session, made.program(schedule)
    with ExitStack() as stack:
        with draft.span("start"):
            behind = made.spare + 2 * room(made.extra(session.stage.target))
            arena = stack.enter_context(contests.arena_for(session, behind))
            started = contests.started(
                session, draft.order.protocol, "candidate", program, arena, rng, made.extra
            )
            side = stack.enter_context(started)
        try:
            yield side
        finally:
            failing.note(side, schedule)
        if made.is_native and _failed(draft):
            failing.shrink(side, session.stage, rng)


def _sanitized(draft: Draft, made: CudaCandidate, rng: np.random.Generator) -> None:
    """AddressSanitizer over the emulation: accesses out of bounds, each with its line."""
    session = draft.session
    if reason := sanitize.apart(draft.order.source):
        raise Refused(Status.UNSUPPORTED, reason)
    with draft.span("sanitize"):
        program = made.variant(EmulatedVariant.ASAN)
        found = sanitize.examine(session, program, rng, made.extra, most_bytes=SANITIZED_BYTES)
    draft.checks.append(found.check)
    draft.log = found.log or draft.log


def _raced(
    draft: Draft, made: CudaCandidate, rng: np.random.Generator
) -> memory_access.AccessReport:
    """A call of the access build on a small workload, which shows races."""
    stage = draft.session.stage
    with draft.span("profile"):
        report = _watched(draft, made, stage.target, rng)
    races = [cuda_causes.race_sentence(draft.order.source, race) for race in report.races]
    draft.checks.append(
        Check(
            name=RACES,
            passed=not races,
            figure=float(len(races)),
            workload=stage.target_name,
            detail="; ".join(races[:3]) or f"none on {stage.target_name}",
        )
    )
    return report


def _profiled(
    draft: Draft, made: CudaCandidate, report: memory_access.AccessReport, rng: np.random.Generator
) -> Profile:
    """What is known of it, with a time that is modelled from what its accesses were."""
    stage = draft.session.stage
    if stage.target is made.workshop.subject:
        counts = Counts(stage.target_name, report.launches, is_subject=True)
    else:
        counts = _counted(draft, made, rng, report)
    return static_of(draft, made.workshop, made, counts)


def _counted(
    draft: Draft, made: CudaCandidate, rng: np.random.Generator, small: memory_access.AccessReport
) -> Counts:
    """What the launches do on the workload that was asked for, else on the small one."""
    session, subject = draft.session, made.workshop.subject
    name = session.task.workload.name
    lent = sum(made.extra(subject).scratch)
    if session.problem.bytes_moved(subject.axes) + lent > COUNTED_BYTES:
        lack = f"{name} has more than {COUNTED_BYTES >> 20} MiB"
    else:
        try:
            with draft.span("profile"):
                report = _watched(draft, made, subject, rng, budget=COUNTED)
            return Counts(name, report.launches, is_subject=True)
        except (RunFault, Refused) as failed:
            # No failure: of blocks that wait for others, or that others wait for, some do not run.
            lack = f"no emulation of {name}: {failed.reason}"
    return Counts(session.stage.target_name, small.launches, is_subject=False, lack=lack)


def _watched(
    draft: Draft,
    made: CudaCandidate,
    structure: Structure,
    rng: np.random.Generator,
    *,
    budget: int = 0,
) -> memory_access.AccessReport:
    session = draft.session
    item = make_item(session.problem, structure, Family.NORMAL, rng)
    inputs = {**structure.arrays, **item.inputs}
    return memory_access.examine(
        made.built(EmulatedVariant.ACCESS),
        Call(session.problem, structure.axes, inputs, made.launched(structure)),
        jail=session.jail,
        cache_dir=session.cache_dir,
        cpus=session.cpus,
        limits=ACCESS_LIMITS,
        timeout_s=COUNT_TIMEOUT_S if budget else ACCESS_TIMEOUT_S,
        budget=budget,
    )
