"""One evaluation: build, try, time, and the verdict that follows.

The verdict is this module's own variable; no message of the candidate's process means "pass".
Every way in which a candidate can fail ends here as a status with its reason.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from ..kernelbench.problem import Family
from ..sandbox.build.cpp import build, prototype
from ..sandbox.build.model import BuildFailed, Built
from ..sandbox.isolation.model import Limits
from ..sandbox.run.process import Plane, RunFault, Runner
from ..traces.records import (
    CHAMPION,
    Check,
    Measurement,
    Profile,
    Protocol,
    Status,
    Tier,
    Verdict,
    candidate_id,
)
from . import profile, roofline, timing
from .arena import Arena, footprint
from .checking import run_trials
from .request import Order
from .session import Session
from .sides import BaselineSide, CandidateSide, Side, Wrong
from .trials import Item, make_item

BLOCKS = {Protocol.SCREEN: 1, Protocol.FULL: 3, Protocol.CONFIRM: 3}
"""Runner processes that are timed one after the other: the interval covers their spread."""
ROUNDS = {
    Protocol.SCREEN: timing.Rounds(8, budget_s=3.0),
    Protocol.FULL: timing.Rounds(12, budget_s=6.0, least=10),
    Protocol.CONFIRM: timing.Rounds(12, budget_s=5.0, least=8),
}
FULL_BLOCKS = 2
"""Blocks in which every baseline is timed; a slow one needs no more to be known as slow."""
NEAR = 2.0
"""Baselines within this factor of the fastest are timed in every block."""
EVALUATION_S = {Protocol.SCREEN: 120.0, Protocol.FULL: 600.0, Protocol.CONFIRM: 600.0}
MEMORY_ROOM = 1 << 30
"""Resident memory a candidate may take beyond the shared data."""


@dataclass
class _Draft:
    """What becomes the verdict."""

    order: Order
    session: Session
    seed: bytes
    started: float = field(default_factory=time.monotonic)
    seconds: dict[str, float] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    built: Built | None = None
    log: str = ""

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Adds the time spent inside to `seconds[name]`."""
        start = time.monotonic()
        try:
            yield
        finally:
            spent = time.monotonic() - start
            self.seconds[name] = round(self.seconds.get(name, 0.0) + spent, 4)

    def close(
        self,
        status: Status,
        reason: str = "",
        measured: Measurement | None = None,
        known: Profile | None = None,
    ) -> Verdict:
        """The finished record."""
        session = self.session
        return Verdict(
            candidate=candidate_id(self.order.source),
            problem=session.problem.name,
            problem_version=session.problem.version,
            workload=session.task.workload.name,
            language=self.order.language,
            target=session.task.target,
            tier=Tier.NATIVE,
            protocol=self.order.protocol,
            status=status,
            reasons=(reason,) if reason else (),
            checks=tuple(self.checks),
            measurements=(measured,) if measured else (),
            profile=known,
            isolation=session.isolation,
            seed=self.seed.hex(),
            seconds=self.seconds,
            versions=self._versions(),
            artefact=self.built.sha256 if self.built else "",
            log=self.log,
        )

    def _versions(self) -> dict[str, str]:
        compiler = {"compiler": self.built.compiler} if self.built else {}
        return {**self.session.versions(), **compiler}


def evaluate(session: Session, order: Order) -> Verdict:
    """The verdict on one order. Raises SandboxError only where the harness itself failed."""
    # Drawn now, after the source is fixed, and never sent to the candidate's process (A6).
    draft = _Draft(order, session, secrets.token_bytes(16))
    if order.language != "cpp":
        return draft.close(
            Status.UNSUPPORTED,
            f"language '{order.language}' does not run on target '{session.task.target}': "
            "this release builds cpp",
        )
    session.ensure_admitted()
    with draft.span("build"):
        built = _build(session, order.source)
    if isinstance(built, BuildFailed):
        draft.log = built.log
        status = Status.RESOURCE if built.is_resource else Status.BUILD_FAILED
        return draft.close(status, built.reason)
    draft.built = built
    draft.log = built.log
    try:
        return _judge(draft, built)
    except RunFault as fault:
        draft.log = fault.log or draft.log
        return draft.close(fault.status, fault.reason)
    except Wrong as wrong:
        draft.checks.append(wrong.check)
        reason = f"a timed call was wrong: {wrong.check.name}: {wrong.check.detail}"
        return draft.close(Status.INCORRECT, reason)


def _build(session: Session, source: str) -> Built | BuildFailed:
    return build(
        source,
        prototype(session.problem),
        session.problem.name,
        cache_dir=session.cache_dir,
        jail=session.jail,
    )


def _judge(draft: _Draft, built: Built) -> Verdict:
    session, protocol = draft.session, draft.order.protocol
    rng = np.random.default_rng(int.from_bytes(draft.seed, "little"))
    with _arena(session) as arena:
        with _side(draft, "candidate", built.artefact, arena, rng) as side:
            with draft.span("verify"):
                draft.checks += run_trials(side, session.stage, protocol, rng)
            failed = next((c for c in draft.checks if not c.passed), None)
            if failed:
                return draft.close(Status.INCORRECT, f"{failed.name}: {failed.detail}")
            with draft.span("wait for baselines"):
                series = _series(session)
            with draft.span("time"):
                _sample(draft, series, side, rng)
        for _ in range(BLOCKS[protocol] - 1):
            with (
                _side(draft, "candidate", built.artefact, arena, rng) as side,
                draft.span("time"),
            ):
                _sample(draft, series, side, rng)
    return _conclude(draft, built, series, rng)


def _conclude(
    draft: _Draft, built: Built, series: timing.Series, rng: np.random.Generator
) -> Verdict:
    session = draft.session
    ratio = timing.charge(series, "candidate")
    draft.checks += timing.clock_checks(series, len(session.cpus))
    axes = session.stage.target.axes
    flops, moved = session.problem.flops(axes), session.problem.bytes_moved(axes)
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
        ratio=ratio,
        rng=rng,
    )
    draft.checks.append(roofline.plausible(measured.candidate.median_us, floor))
    known = profile.profile(built, session.stage.target, measured, flops=flops, moved=moved)
    failed = next((c for c in draft.checks if not c.passed), None)
    if failed:
        return draft.close(Status.SUSPECT, f"{failed.name}: {failed.detail}", known=known)
    screened = draft.order.protocol is Protocol.SCREEN
    return draft.close(Status.SCREENED if screened else Status.VERIFIED, "", measured, known)


def _series(session: Session) -> timing.Series:
    return timing.Series(batch=timing.batch_for(session.reference.fastest_us, session.slots))


def _sample(
    draft: _Draft, series: timing.Series, side: CandidateSide, rng: np.random.Generator
) -> None:
    session, protocol = draft.session, draft.order.protocol
    problem, target = session.problem, session.stage.target

    def items(count: int) -> list[Item]:
        return [make_item(problem, target, Family.NORMAL, rng) for _ in range(count)]

    side.place(target, session.slots)
    sides: list[Side] = list(_rivals(session, protocol, len(series.blocks)))
    rounds = ROUNDS[protocol]
    if not draft.order.champion:
        timing.sample_block(series, side, sides, items, session.slots, rounds, rng)
        return
    champion = _build(session, draft.order.champion)
    if isinstance(champion, BuildFailed):
        raise RuntimeError(f"the champion no longer builds: {champion.reason}")
    with (
        _arena(session) as arena,
        _side(draft, CHAMPION, champion.artefact, arena, rng) as rival,
    ):
        rival.place(target, session.slots)
        timing.sample_block(series, side, [*sides, rival], items, session.slots, rounds, rng)


def _rivals(session: Session, protocol: Protocol, block: int) -> list[BaselineSide]:
    """The fastest baseline always; all in the first blocks; near ones in every block."""
    reference = session.reference
    if protocol is Protocol.SCREEN:
        return reference.sides(within=1.0)
    return reference.sides() if block < FULL_BLOCKS else reference.sides(within=NEAR)


@contextmanager
def _arena(session: Session) -> Iterator[Arena]:
    problem, stage = session.problem, session.stage
    inputs, outputs = footprint(problem, stage.target.axes)
    sizes = [(session.slots * inputs, session.slots * outputs), (2 * inputs, 2 * outputs)]
    for _, structure in stage.others:
        inputs, outputs = footprint(problem, structure.axes)
        sizes.append((2 * inputs, 2 * outputs))
    floor = 1 << 20  # hidden shapes are small; this holds two of any of them
    with Arena(
        max(floor, *(s[0] for s in sizes)) + 8192, max(floor, *(s[1] for s in sizes)) + 8192
    ) as arena:
        yield arena


@contextmanager
def _side(
    draft: _Draft, name: str, artefact: bytes, arena: Arena, rng: np.random.Generator
) -> Iterator[CandidateSide]:
    session = draft.session
    data = sum(arena.sizes)
    limits = Limits(
        wall_s=EVALUATION_S[draft.order.protocol],
        cpu_s=EVALUATION_S[draft.order.protocol] * len(session.cpus),
        memory_bytes=data + MEMORY_ROOM,
    )
    fds = arena.open_fds()
    try:
        with draft.span("start"):
            runner = Runner(
                session.jail, artefact, Plane(*fds, *arena.sizes),
                cpus=session.cpus, limits=limits, cache_dir=session.cache_dir,
            )  # fmt: skip
    finally:
        for fd in fds:
            os.close(fd)
    with runner:
        yield CandidateSide(
            name, runner, arena, session.problem, rng, timeout_s=session.timeout_s()
        )
