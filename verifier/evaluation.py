"""One evaluation: build, try, time, and the verdict that follows.

The verdict is this module's own variable; no message of the candidate's process means "pass".
Every way in which a candidate can fail ends here as a status with its reason.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from ..kernelbench.languages import LANGUAGES, language_of
from ..sandbox.builders.model import BuildFailed
from ..sandbox.run.arena import Arena
from ..sandbox.run.process import RunFault
from ..sandbox.run.program import Program
from ..traces.records import CHAMPION, Protocol, Status, Verdict
from .checks import fenced_memory, stress
from .checks.checking import run_trials
from .clock import clocks, roofline, timing
from .clock.timed_sides import CandidateSide, Wrong
from .profile import cpu as profile
from .request import Order
from .stands import contests, device, emulated, rivalry, sanitize
from .stands.programs import BUILT, build_program
from .stands.rivalry import ChampionFailed
from .stands.session import Session
from .stands.verdict_draft import Draft
from .truth import gates

LOOKS = 3
"""Evaluations before a candidate stays SUSPECT."""
PAUSE_S = 1.0
"""Before the second look; twice that before the third."""


def evaluate(session: Session, order: Order) -> Verdict:
    """The verdict on one order. Raises SandboxError only where the harness itself failed."""

    def unknown(reason: str) -> Verdict:
        return _draft(session, order).close(Status.HARNESS_ERROR, reason)

    return rivalry.judged(order, lambda asked: _looked(session, asked), unknown)


def _looked(session: Session, order: Order) -> Verdict:
    """The verdict on one order. Raises ChampionFailed.

    What is SUSPECT is looked at again, in fresh processes and with another seed: a machine that is
    busy with something else can cause it once, a candidate that hides work causes it each time.
    """
    verdict = _look(session, order)
    for look in range(1, LOOKS):
        if verdict.status is not Status.SUSPECT:
            break
        time.sleep(look * PAUSE_S)
        verdict = _look(session, order)
    return verdict


def _draft(session: Session, order: Order) -> Draft:
    # Drawn now, after the source is fixed, and never sent to the candidate's process (A6).
    return Draft(order, session, secrets.token_bytes(16))


def _look(session: Session, order: Order) -> Verdict:
    draft = _draft(session, order)
    if session.device is not None:
        if session.leased is not None:
            return device.look(draft, session.device, session.leased)
        return emulated.look(draft, session.device)
    if LANGUAGES.get(order.language) not in BUILT:
        return draft.close(
            Status.UNSUPPORTED,
            f"language '{order.language}' does not run on target '{session.task.target}': "
            f"this release takes {', '.join(map(str, BUILT))}",
        )
    session.ensure_admitted()
    built = _build(draft)
    if isinstance(built, BuildFailed):
        draft.log = built.log
        status = Status.RESOURCE if built.is_resource else Status.BUILD_FAILED
        return draft.close(status, built.reason)
    try:
        return _judge(draft, built)
    except RunFault as fault:
        draft.log = fault.log or draft.log
        return draft.close(fault.status, fault.reason)
    except Wrong as wrong:
        draft.checks.append(wrong.check)
        reason = f"a timed call was wrong: {wrong.check.name}: {wrong.check.detail}"
        return draft.close(Status.INCORRECT, reason)


@dataclass(frozen=True)
class _Programs:
    """A candidate as it is timed, and built with sanitizers where it is."""

    program: Program
    sanitized: Program | None = None


def _build(draft: Draft) -> _Programs | BuildFailed:
    """Everything that is built of a candidate, before any process of it is alive."""
    session, order = draft.session, draft.order
    with draft.span("build"):
        program = build_program(session, order.source, order.language)
    if isinstance(program, BuildFailed):
        return program
    draft.take(program.built)
    if order.protocol is Protocol.SCREEN:
        return _Programs(program)
    if not language_of(order.language).is_native:
        draft.unchecked.append(f"sanitizers: not run, there are none for {order.language}")
        return _Programs(program)
    with draft.span("sanitize"):
        prepared = sanitize.prepare(session, order.source)
    if isinstance(prepared, BuildFailed):
        return prepared
    draft.unchecked += [prepared.unchecked] if prepared.unchecked else []
    return _Programs(program, prepared.program)


def _judge(draft: Draft, built: _Programs) -> Verdict:
    session, protocol, program = draft.session, draft.order.protocol, built.program
    rng = np.random.default_rng(int.from_bytes(draft.seed, "little"))
    champion = _champion(session, draft.order)
    with contests.arena_for(session) as arena:
        with _side(draft, program, arena, rng) as side:
            with draft.span("verify"):
                draft.checks += run_trials(side, session.stage, protocol, rng)
            if protocol is not Protocol.SCREEN:
                _look_closer(draft, side, built.sanitized, rng)
            failed = next((c for c in draft.checks if not c.passed), None)
            if failed:
                return draft.close(Status.INCORRECT, f"{failed.name}: {failed.detail}")
            with draft.span("wait for baselines"):
                session.await_reference()
            with draft.span("time"):
                contest = contests.Contest(session, protocol, champion, rng)
                contest.add(side)
        while contest.goes_on():
            with (
                _side(draft, program, arena, rng) as side,
                draft.span("time"),
            ):
                contest.add(side)
    return _conclude(draft, program, contest.series, rng)


@contextmanager
def _side(
    draft: Draft, program: Program, arena: Arena, rng: np.random.Generator
) -> Iterator[CandidateSide]:
    with ExitStack() as stack:
        with draft.span("start"):
            started = contests.started(
                draft.session, draft.order.protocol, "candidate", program, arena, rng
            )
            side = stack.enter_context(started)
        yield side


def _champion(session: Session, order: Order) -> contests.Rival | None:
    if not order.champion:
        return None
    champion = build_program(session, order.champion, order.language)
    if isinstance(champion, BuildFailed):
        raise ChampionFailed(Status.BUILD_FAILED, champion.reason)
    return contests.Rival(champion)


def _look_closer(
    draft: Draft, side: CandidateSide, sanitized: Program | None, rng: np.random.Generator
) -> None:
    """What only a promotion pays for: looks at stray accesses, then repeats under load."""
    session = draft.session
    if gates.first_failure(draft.checks):
        return
    if language_of(draft.order.language).is_native:
        _look_beside(draft, side, sanitized, rng)
    if gates.first_failure(draft.checks):
        return
    # Baselines that still start are measured, and must not be measured under this load.
    with draft.span("wait for baselines"):
        session.await_reference()
    with draft.span("load"):
        draft.checks += stress.under_load(side, session.stage, session.cpus, rng)


def _look_beside(
    draft: Draft, side: CandidateSide, sanitized: Program | None, rng: np.random.Generator
) -> None:
    """Accesses beside the tensors: by sanitizers, which name the line, then in the timed build."""
    if sanitized:
        with draft.span("sanitize"):
            found = sanitize.examine(draft.session, sanitized, rng)
        draft.log = found.log or draft.log
        draft.checks.append(found.check)
        if not found.check.passed:
            return
    with draft.span("fences"):
        draft.checks.append(fenced_memory.examine(side, draft.session.stage, rng))
    if draft.checks[-1].passed and (reason := sanitize.apart(draft.order.source)):
        raise RunFault(Status.UNSUPPORTED, reason)


def _conclude(
    draft: Draft, program: Program, series: timing.Series, rng: np.random.Generator
) -> Verdict:
    session = draft.session
    draft.checks += clocks.checks(series.seen, len(session.cpus))
    axes = session.stage.target.axes
    flops, moved = session.problem.flops(axes), session.problem.bytes_moved(axes)
    assert session.peaks is not None
    floor = roofline.floor_us(flops, moved, session.peaks)
    measured = timing.measurement(
        series,
        "candidate",
        [name for name in series.names if name not in ("candidate", CHAMPION)],
        CHAMPION if CHAMPION in series.names else None,
        missing=session.reference.missing,
        workload=session.task.workload.name,
        floor_us=floor,
        threads=len(session.cpus),
        rng=rng,
    )
    draft.checks.append(roofline.plausible(measured.candidate.median_us, floor))
    known = profile.profile(program.built, session.stage.target, measured, flops=flops, moved=moved)
    failed = next((c for c in draft.checks if not c.passed), None)
    if failed:
        return draft.close(Status.SUSPECT, f"{failed.name}: {failed.detail}", known=known)
    screened = draft.order.protocol is Protocol.SCREEN
    return draft.close(Status.SCREENED if screened else Status.VERIFIED, "", measured, known)
