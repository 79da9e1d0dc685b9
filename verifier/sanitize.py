"""Sanitizers at promotion: the candidate built with ASan and UBSan, on a handful of small inputs.

Every tensor stands in a block of its own that ends where it ends, so that reads beside it are seen
too; memory that was never set holds a pattern, so that what passes by luck gives a wrong answer.
The build is another one than the one that is timed, and a source can tell: the sanitizers find
mistakes, they do not hold off malice, which guard bands and the sandbox do.

A process that ends early is never clean, whatever it wrote. Where the sanitizers could not run the
verdict says so under `unchecked`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ..errors import PrerequisiteError
from ..sandbox.build.cpp import build, prototype
from ..sandbox.build.model import BuildFailed, Built, Variant
from ..sandbox.isolation.model import Limits
from ..sandbox.run.native import native_program, sanitizer_environment
from ..sandbox.run.process import Plane, RunFault, Runner
from ..traces.records import Check, Status
from . import gates, reports
from .arena import Arena, Slot, footprint
from .session import Session
from .sides import CandidateSide
from .trials import Trial, hidden, make_item

NAME = "sanitizers"
HIDDEN_SHAPES = 6
SMALL_BYTES = 1 << 20
"""Workloads above this size are left to the plain build: sanitized code is many times slower."""
TIMEOUT_S = 20.0
MEMORY_ROOM = 2 << 30
"""Shadow memory and the quarantine of freed blocks come on top of what a candidate takes."""
STACK = "64M"
"""Of each OpenMP thread: sanitized frames are larger."""
_APART = re.compile(r"no_sanitize|__SANITIZE_|_sanitizer\b|\bsanitizer/|__asan_|__ubsan_|__lsan_")
"""Names by which a source treats a sanitized build apart."""


@dataclass(frozen=True)
class Examined:
    """What came of it: a check, or the reason why there is none."""

    check: Check | None = None
    unchecked: str = ""
    log: str = ""


def examine(session: Session, source: str, rng: np.random.Generator) -> Examined:
    """Builds the source with the sanitizers and runs it. The plain build has passed its trials.

    Raises:
        RunFault: the process ended early without a report.
    """
    if reason := _obstacle(session):
        return Examined(unchecked=f"{NAME}: not run, {reason}")
    built = _build(session, source)
    if isinstance(built, str):
        return Examined(unchecked=f"{NAME}: not run, the source does not build with them: {built}")
    found = _run(session, built, _trials(session, rng), rng)
    apart = _APART.search(source)
    if apart and found.check and found.check.passed:
        line = source.count("\n", 0, apart.start()) + 1
        reason = f"line {line} of the source treats a build with sanitizers apart ({apart[0]})"
        return Examined(unchecked=f"{NAME}: not conclusive, {reason}")
    return found


def _build(session: Session, source: str) -> Built | str:
    """What was built, or why nothing was."""
    built = build(
        source, prototype(session.problem), session.problem.name, variant=Variant.SANITIZED,
        cache_dir=session.cache_dir, jail=session.jail,
    )  # fmt: skip
    return built.reason if isinstance(built, BuildFailed) else built


def _obstacle(session: Session) -> str:
    """Why the sanitizers cannot be trusted to see anything here; found out once per session.

    A planted error must be reported: a read of the element before the first output.
    """
    if session.sanitizers is None:
        session.sanitizers = _planted(session)
    return session.sanitizers


def _planted(session: Session) -> str:
    output = session.problem.outputs[0].name
    body = f"{{ (void)*(const volatile int*)({output} - 1); }}"
    built = _build(session, prototype(session.problem).removesuffix(";") + body)
    if isinstance(built, str):
        return f"this compiler does not build with them: {built}"
    trial = Trial("a planted error", session.stage.target, session.problem.families[0])
    smallest = min(
        (s for _, s in session.stage.others),
        key=lambda s: session.problem.bytes_moved(s.axes),
        default=trial.structure,
    )
    trial = Trial(trial.name, smallest, trial.family)
    try:
        found = _run(session, built, [trial], np.random.default_rng(0))
    except (RunFault, PrerequisiteError) as error:
        return f"they do not work here: {' '.join(str(error).split())[:200]}"
    if found.check is None or found.check.passed:
        return "a planted error was not reported"
    return ""


def _trials(session: Session, rng: np.random.Generator) -> list[Trial]:
    """The small workloads, then a few hidden shapes, each with a family of its own."""
    problem, stage = session.problem, session.stage
    families = problem.families
    known = [*stage.others, (stage.target_name, stage.target)]
    shapes = [s for s in known if problem.bytes_moved(s[1].axes) <= SMALL_BYTES]
    drawn = hidden(stage, rng)
    shapes += [next(drawn) for _ in range(HIDDEN_SHAPES)]
    return [
        Trial(name, structure, families[int(rng.integers(len(families)))])
        for name, structure in shapes
    ]


def _run(session: Session, built: Built, trials: list[Trial], rng: np.random.Generator) -> Examined:
    """All trials in one process, up to the first that fails."""
    trial = trials[0]
    slot: Slot | None = None
    try:
        with _side(session, built, trials, rng) as side:
            for trial in trials:
                item = make_item(session.problem, trial.structure, trial.family, rng)
                slot = side.place(trial.structure, 1)[0]
                failed = gates.first_failure(side.answer(item, slot))
                if failed:
                    detail = (
                        "built with sanitizers and with memory that was never set filled with a "
                        f"pattern, the answer is wrong: {failed.name}: {failed.detail}"
                    )
                    return Examined(_failed(detail, trial))
    except RunFault as fault:
        return _blamed(fault, slot, trial)
    detail = f"AddressSanitizer and UndefinedBehaviorSanitizer saw nothing on {len(trials)} shapes"
    return Examined(Check(name=NAME, passed=True, figure=float(len(trials)), detail=detail))


def _blamed(fault: RunFault, slot: Slot | None, trial: Trial) -> Examined:
    """What the end of a process means: a report, a limit that the sanitizers met, or a crash.

    Without a slot it ended while it was loaded.
    """
    regions = {**slot.input_regions, **slot.output_regions} if slot else {}
    sizes: dict[int, str] = {}
    for name, region in regions.items():
        known = sizes.get(region.bytes)
        sizes[region.bytes] = f"{known} or {name}" if known else name
    if sentence := reports.sentence(fault.log, sizes):
        return Examined(_failed(sentence, trial), log=fault.log)
    if fault.status in (Status.TIMED_OUT, Status.RESOURCE):
        # Sanitized code is slower and larger than what the limits were made for.
        return Examined(unchecked=f"{NAME}: not finished, {fault.reason}", log=fault.log)
    raise RunFault(fault.status, f"built with sanitizers: {fault.reason}", fault.log)


def _failed(detail: str, trial: Trial) -> Check:
    return Check(
        name=NAME, passed=False, detail=f"{detail} (inputs: {trial.family}, {trial.name})",
        workload=trial.name,
    )  # fmt: skip


@contextmanager
def _side(
    session: Session, built: Built, trials: list[Trial], rng: np.random.Generator
) -> Iterator[CandidateSide]:
    needs = [footprint(session.problem, trial.structure.axes) for trial in trials]
    room = 8192  # for the shift of addresses
    with Arena(max(n[0] for n in needs) + room, max(n[1] for n in needs) + room) as arena:
        program = native_program(
            built, session.cache_dir, sanitized=True,
            environment={**sanitizer_environment(), "OMP_STACKSIZE": STACK},
        )  # fmt: skip
        limits = Limits(
            wall_s=120.0,
            cpu_s=120.0 * len(session.cpus),
            memory_bytes=sum(arena.sizes) + MEMORY_ROOM,
        )
        fds = arena.open_fds()
        try:
            runner = Runner(
                session.jail, program, Plane(*fds, *arena.sizes), cpus=session.cpus, limits=limits
            )
        finally:
            for fd in fds:
                os.close(fd)
        with runner:
            yield CandidateSide(
                "sanitized", runner, arena, session.problem, rng, timeout_s=TIMEOUT_S
            )
