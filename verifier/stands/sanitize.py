# SPDX-License-Identifier: Apache-2.0
"""Sanitizers at promotion: the candidate built with ASan and UBSan, on a handful of small inputs.

Every tensor stands in a block of its own that ends where it ends, so that reads beside it are seen
too; memory that was never set holds a pattern, so that what passes by luck gives a wrong answer.
The build is another one than the one that is timed, and a source can tell: the sanitizers find
mistakes, they do not hold off malice, which fences, guard bands and the sandbox do.

A process that ends early is never clean, whatever it wrote. Only what the machine lacks is told
under `unchecked`; whatever the candidate itself could have caused is a failure of the candidate.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...errors import PrerequisiteError
from ...sandbox.builders.cpp import prototype
from ...sandbox.builders.model import BuildFailed, BuildVariant, Built
from ...sandbox.isolation.model import Limits
from ...sandbox.run.arena import Arena, Behind, Slot, footprint, nothing_more, room
from ...sandbox.run.begun import Plane
from ...sandbox.run.native import native_program
from ...sandbox.run.process import RunFault, Runner
from ...sandbox.run.program import Program
from ...traces.records import Check, Status
from ..clock.timed_sides import CandidateSide
from ..failure import built_or_failed
from ..truth import gates
from ..truth.trials import Item, Trial, make_item, small_trials
from . import sanitizer_reports
from .programs import build_cpp
from .session import Session

NAME = "sanitizers"
TIMEOUT_S = 20.0
MEMORY_ROOM = 2 << 30
"""Shadow memory and the quarantine of freed blocks come on top of what a candidate takes."""
TRIES = 2
"""Of what met a limit: a machine that is busy with something else can cause it once."""
_OUR_LIMITS = (Status.TIMED_OUT, Status.RESOURCE)


@dataclass(frozen=True)
class SanitizedBuild:
    """A candidate built with the sanitizers, or why this machine has none."""

    program: Program | None = None
    unchecked: str = ""


class Sanitizers:
    """Those of a session's compiler; whether they see anything here is found out once."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @cached_property
    def obstacle(self) -> str:
        """Why they cannot be used; empty: a planted error was reported."""
        return _check_planted(self._session)

    def prepare(self, source: str) -> SanitizedBuild:
        """Builds the source with them. Raises Failed.

        To be called while no process of the candidate's is alive that could hold the build up.
        """
        if self.obstacle:
            return SanitizedBuild(unchecked=f"{NAME}: not run, {self.obstacle}")
        built = _build(self._session, source)
        if isinstance(built, BuildFailed):
            built = replace(built, reason=f"built with sanitizers: {built.reason}")
        workshop = self._session.workshop
        return SanitizedBuild(native_program(workshop, built_or_failed(built), sanitized=True))


def examine(
    session: Session,
    program: Program,
    rng: np.random.Generator,
    extra: Behind = nothing_more,
    *,
    most_bytes: float = float("inf"),
    hear: Callable[[str], None] | None = None,
) -> Check:
    """Runs a program built with sanitizers. The plain build has passed its trials.

    Args:
        most_bytes: Of the inputs and outputs of a trial; the smallest one is tried in any case.
        hear: Is told what each process of it wrote.

    Raises:
        RunFault: the process ended early without a report, or met a limit twice.
    """
    moved = session.problem.bytes_moved
    trials = sorted(small_trials(session.stage, rng), key=lambda t: moved(t.structure.axes))
    within = [trial for trial in trials if moved(trial.structure.axes) <= most_bytes]
    return _run(session, program, within or trials[:1], rng, extra, hear)


def sentence_on(
    session: Session,
    program: Program,
    item: Item,
    rng: np.random.Generator,
    extra: Behind,
    *,
    timeout_s: float,
) -> str:
    """What the sanitizers say of one call; empty where they say nothing, whatever it answers."""
    trial = Trial("", item.structure, item.family)
    slot: Slot | None = None
    try:
        with _side(session, program, [trial], rng, extra, timeout_s) as side:
            slot = side.place(item.structure, 1)[0]
            side.answer(item, slot)
    except RunFault as fault:
        return sanitizer_reports.sentence(fault.log, _arguments(slot))
    return ""


def _build(session: Session, source: str) -> Built | BuildFailed:
    for _ in range(TRIES):
        built = build_cpp(session, source, BuildVariant.SANITIZED)
        if isinstance(built, Built) or not built.is_resource:
            break
    return built


def _check_planted(session: Session) -> str:
    """Why a read of the element before the first output is not reported; empty: it is."""
    output = session.problem.outputs[0].name
    body = f"{{ (void)*(const volatile int*)({output} - 1); }}"
    built = _build(session, prototype(session.problem).removesuffix(";") + body)
    if isinstance(built, BuildFailed):
        return f"this compiler does not build with them: {built.reason}"
    trial = Trial("a planted error", session.stage.target, session.problem.families[0])
    smallest = min(
        (s for _, s in session.stage.others),
        key=lambda s: session.problem.bytes_moved(s.axes),
        default=trial.structure,
    )
    trial = Trial(trial.name, smallest, trial.family)
    try:
        program = native_program(session.workshop, built, sanitized=True)
        found = _run(session, program, [trial], np.random.default_rng(0), nothing_more)
    except (RunFault, PrerequisiteError) as error:
        return f"they do not work here: {' '.join(str(error).split())[:200]}"
    if found.passed:
        return "a planted error was not reported"
    return ""


def _run(
    session: Session,
    program: Program,
    trials: list[Trial],
    rng: np.random.Generator,
    extra: Behind,
    hear: Callable[[str], None] | None = None,
) -> Check:
    """All trials in one process, up to the first that fails; in another one after a limit.

    Sanitized code is slower and larger, but the limits are far beyond what small trials need.
    """
    for _ in range(TRIES - 1):
        try:
            return _run_once(session, program, trials, rng, extra, hear)
        except RunFault as fault:
            if fault.status not in _OUR_LIMITS:
                raise
    return _run_once(session, program, trials, rng, extra, hear)


def _run_once(
    session: Session,
    program: Program,
    trials: list[Trial],
    rng: np.random.Generator,
    extra: Behind,
    hear: Callable[[str], None] | None = None,
) -> Check:
    trial = trials[0]
    slot: Slot | None = None
    try:
        with _side(session, program, trials, rng, extra, TIMEOUT_S, hear) as side:
            for trial in trials:
                item = make_item(session.problem, trial.structure, trial.family, rng)
                slot = side.place(trial.structure, 1)[0]
                failed = gates.first_failure(side.answer(item, slot))
                if failed:
                    detail = (
                        "built with sanitizers and with memory that was never set filled with a "
                        f"pattern, the answer is wrong: {failed.name}: {failed.detail}"
                    )
                    return _failed_check(detail, trial)
    except RunFault as fault:
        return _examine_fault(fault, slot, trial)
    detail = f"AddressSanitizer and UndefinedBehaviorSanitizer saw nothing on {len(trials)} shapes"
    return Check(name=NAME, passed=True, figure=float(len(trials)), detail=detail)


def _examine_fault(fault: RunFault, slot: Slot | None, trial: Trial) -> Check:
    """What the end of a process means: a report, or the fault of a candidate without one.

    Without a slot it ended while it was loaded.
    """
    if sentence := sanitizer_reports.sentence(fault.log, _arguments(slot)):
        return _failed_check(sentence, trial)
    raise RunFault(fault.status, f"built with sanitizers: {fault.reason}", fault.log)


def _arguments(slot: Slot | None) -> Sequence[str]:
    """What a report counts; nothing was passed where a process ended before its first call."""
    return slot.arguments if slot else ()


def _failed_check(detail: str, trial: Trial) -> Check:
    return Check(
        name=NAME,
        passed=False,
        detail=f"{detail} (inputs: {trial.family}, {trial.name})",
        workload=trial.name,
    )


@contextmanager
def _side(
    session: Session,
    program: Program,
    trials: list[Trial],
    rng: np.random.Generator,
    extra: Behind,
    timeout_s: float,
    hear: Callable[[str], None] | None = None,
) -> Iterator[CandidateSide]:
    needs = [footprint(session.problem, trial.structure.axes) for trial in trials]
    more = 8192  # for the shift of addresses
    more += max(room(extra(trial.structure)) for trial in trials)
    with Arena(max(n[0] for n in needs) + more, max(n[1] for n in needs) + more) as arena:
        limits = Limits(
            wall_s=120.0,
            cpu_s=120.0 * len(session.workshop.cpus),
            memory_bytes=sum(arena.sizes) + MEMORY_ROOM,
        )
        fds = arena.open_fds()
        try:
            plane = Plane(*fds, *arena.sizes)
            runner = Runner(session.workshop, program, plane, limits=limits, hear=hear)
        finally:
            for fd in fds:
                os.close(fd)
        with runner:
            yield CandidateSide(
                "sanitized", runner, arena, session.problem, rng, timeout_s=timeout_s, extra=extra
            )
