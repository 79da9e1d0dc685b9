"""Timing one candidate beside its rivals: how many processes, how many rounds, who takes part.

It starts the processes and hands them to timing.py; it judges nothing.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from ..kernelbench.problem import Family, Problem, Structure
from ..sandbox.isolation.model import Limits
from ..sandbox.run.device.runner import runner_of
from ..sandbox.run.process import Plane
from ..sandbox.run.program import Program
from ..traces.records import CHAMPION, Protocol
from . import timing
from .arena import Arena, Behind, footprint, nothing_more
from .session import Session
from .sides import BaselineSide, CandidateSide, Side
from .trials import Item, make_item

BLOCKS = {Protocol.SCREEN: 1, Protocol.FULL: 3, Protocol.CONFIRM: 3, Protocol.RECORD: 4}
"""Runner processes that are timed one after the other: the interval covers their spread."""
ROUNDS = {
    Protocol.SCREEN: timing.Rounds(8, budget_s=3.0),
    Protocol.FULL: timing.Rounds(30, budget_s=4.0, least=10),
    Protocol.CONFIRM: timing.Rounds(30, budget_s=4.0, least=10),
    Protocol.RECORD: timing.Rounds(16, budget_s=8.0, least=10),
}
FULL_BLOCKS = 2
"""Blocks in which every baseline is timed; a slow one needs no more to be known as slow."""
NEAR = 2.0
"""Baselines within this factor of the fastest are timed in every block."""
EVALUATION_S = {
    Protocol.SCREEN: 120.0,
    Protocol.FULL: 600.0,
    Protocol.CONFIRM: 600.0,
    Protocol.RECORD: 3600.0,
}
MEMORY_ROOM = 1 << 30
"""Resident memory a candidate may take beyond the shared data."""
HIDDEN_ROOM = (3 << 20, (1 << 20) + (1 << 16))
"""Inputs and outputs of one call of any hidden shape."""
TWIN_SHARE = 0.5
"""Of the timed calls are on a pattern that differs from the workload's in a few entries, where
there is one: who keeps the pattern under its sizes or addresses is wrong in them."""
SHIFT_ROOM = 8192
"""For the shift of addresses from one placement to the next."""


def new_series(session: Session) -> timing.Series:
    """An empty series; waits for the baselines, whose time decides the calls per sample."""
    return timing.Series(batch=timing.batch_for(session.reference.fastest_us, session.slots))


def add_block(
    session: Session,
    protocol: Protocol,
    series: timing.Series,
    side: CandidateSide,
    champion: Program | None,
    rng: np.random.Generator,
) -> None:
    """Adds the samples of one started candidate, with the champion in a process of its own.

    Raises:
        RunFault, Wrong: the candidate failed in a timed call.
    """
    problem, target = session.problem, session.stage.target
    patterns = _patterns(problem, target, len(series.blocks), rng)

    def items(count: int) -> list[Item]:
        drawn = itertools.islice(patterns, count)
        return [make_item(problem, structure, Family.NORMAL, rng) for structure in drawn]

    side.place(target, session.slots)
    sides: list[Side] = list(_rivals(session, protocol, len(series.blocks)))
    with ExitStack() as stack:
        if champion:
            arena = stack.enter_context(arena_for(session))
            rival = stack.enter_context(started(session, protocol, CHAMPION, champion, arena, rng))
            rival.place(target, session.slots)
            sides.append(rival)
        timing.sample_block(series, side, sides, items, session.slots, ROUNDS[protocol], rng)


def _patterns(
    problem: Problem, target: Structure, block: int, rng: np.random.Generator
) -> Iterator[Structure]:
    """The workload's structure and a near twin of it, for each timed call of a block."""
    # One block has a twin by rows, the next one by columns.
    twin = next(itertools.islice(problem.twins(target, rng), block % 2, None), target)
    yield from (target, twin)
    while True:
        yield twin if rng.random() < TWIN_SHARE else target


def _rivals(session: Session, protocol: Protocol, block: int) -> list[BaselineSide]:
    """The fastest baseline always; all in the first blocks; near ones in every block."""
    reference = session.reference
    if protocol is Protocol.SCREEN:
        return reference.sides(within=1.0)
    return reference.sides() if block < FULL_BLOCKS else reference.sides(within=NEAR)


@contextmanager
def arena_for(session: Session, extra_bytes: int = 0) -> Iterator[Arena]:
    """Memory that holds every timed slot, and two calls of any workload of the problem.

    `extra_bytes` are there beside, for what calls are given behind their tensors.
    """
    problem, stage = session.problem, session.stage
    inputs, outputs = footprint(problem, stage.target.axes)
    sizes = [(session.slots * inputs, session.slots * outputs), (2 * inputs, 2 * outputs)]
    for _, structure in stage.others:
        inputs, outputs = footprint(problem, structure.axes)
        sizes.append((2 * inputs, 2 * outputs))
    with Arena(
        max(HIDDEN_ROOM[0], *(s[0] for s in sizes)) + SHIFT_ROOM + extra_bytes,
        max(HIDDEN_ROOM[1], *(s[1] for s in sizes)) + SHIFT_ROOM + extra_bytes,
    ) as arena:
        yield arena


@contextmanager
def started(
    session: Session,
    protocol: Protocol,
    name: str,
    program: Program,
    arena: Arena,
    rng: np.random.Generator,
    extra: Behind = nothing_more,
) -> Iterator[CandidateSide]:
    """A fresh process of the program. Raises RunFault where it cannot be loaded."""
    limits = Limits(
        wall_s=EVALUATION_S[protocol],
        cpu_s=EVALUATION_S[protocol] * len(session.cpus),
        memory_bytes=sum(arena.sizes) + MEMORY_ROOM + program.memory_bytes,
        processes=program.processes,
        open_files=program.open_files,
    )
    fds = arena.open_fds()
    try:
        runner = runner_of(program)(
            session.jail, program, Plane(*fds, *arena.sizes), cpus=session.cpus, limits=limits
        )
    finally:
        for fd in fds:
            os.close(fd)
    with runner:
        yield CandidateSide(
            name, runner, arena, session.problem, rng, timeout_s=session.timeout_s(), extra=extra
        )
