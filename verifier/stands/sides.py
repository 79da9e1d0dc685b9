# SPDX-License-Identifier: Apache-2.0
"""The processes in which a candidate and the champion run, and the memory of their calls.

A process may be begun before it is wanted: while the candidate is tried, those that it is timed in
come up beside it. They hold no candidate's code until they are told to load it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from ...kernelbench.rows import is_large
from ...kernelbench.sizes import HIDDEN_INPUTS, HIDDEN_OUTPUTS
from ...sandbox.isolation.model import Limits
from ...sandbox.run.arena import EXTRA_BYTES, Arena, Behind, footprint, nothing_more
from ...sandbox.run.begun import Begun, Plane
from ...sandbox.run.device.runner import runner_of
from ...sandbox.run.process import CLEAN_CALLS
from ...sandbox.run.program import Program
from ...sandbox.run.starting import begin
from ...traces.records import Depth
from ..clock.timed_sides import CandidateSide
from .session import CALL_S, Session

EVALUATION_S = {
    Depth.SCREEN: 120.0,
    Depth.RACE: 120.0,
    Depth.FULL: 600.0,
    Depth.CONFIRM: 600.0,
    Depth.RECORD: 3600.0,
}
MEMORY_ROOM = 1 << 30
"""Resident memory a candidate may take beyond the shared data."""
HIDDEN_ROOM = (HIDDEN_INPUTS, HIDDEN_OUTPUTS)
"""Inputs and outputs of one call of any hidden shape, beside what every shape has."""
STIRRED_BYTES = 64 << 20
"""Beyond it nothing of what was written before stays in a cache."""
SHIFT_ROOM = 8192
"""For the shift of addresses from one placement to the next."""


@contextmanager
def arena_for(session: Session, extra_bytes: int = 0, *, is_timed: bool = True) -> Iterator[Arena]:
    """Memory that holds two calls of any workload of the problem, and every timed slot.

    Args:
        extra_bytes: There are so many beside, for what calls are given behind their tensors.
        is_timed: Whether calls are timed in it; otherwise those slots are left out.
    """
    problem, stage = session.problem, session.stage
    inputs, outputs = footprint(problem, stage.target.axes)
    least = 1 if is_large(problem, stage.target.axes) else 2
    calls = max(session.slots, least) if is_timed else least
    sizes = [(calls * inputs, calls * outputs)]
    for _, structure in stage.others:
        inputs, outputs = footprint(problem, structure.axes)
        sizes.append((2 * inputs, 2 * outputs))
    # Weights of one size, for example.
    fixed = footprint(problem, dict.fromkeys(problem.axes, 1))
    sizes.append((HIDDEN_ROOM[0] + fixed[0], HIDDEN_ROOM[1] + fixed[1]))
    with Arena(
        max(s[0] for s in sizes) + SHIFT_ROOM + min(extra_bytes, EXTRA_BYTES),
        max(s[1] for s in sizes) + SHIFT_ROOM + extra_bytes,
    ) as arena:
        yield arena


def begin_process(session: Session, protocol: Depth, program: Program, arena: Arena) -> Begun:
    """A process of the program that holds nothing of it yet. Raises SandboxError."""
    arena.wipe()
    limits = _limits(session, protocol, program, arena)
    with _plane(arena) as plane:
        return begin(session.workshop, program, plane, limits=limits)


@contextmanager
def start_side(
    session: Session,
    protocol: Depth,
    name: str,
    program: Program,
    arena: Arena,
    rng: np.random.Generator,
    extra: Behind = nothing_more,
    *,
    timeout_s: float = CALL_S,
    empty_calls: int = CLEAN_CALLS,
    fills_heap: bool = False,
    begun: Begun | None = None,
    hear: Callable[[str], None] | None = None,
) -> Iterator[CandidateSide]:
    """A fresh process of the program; `hear` is told what it wrote.

    Args:
        empty_calls, fills_heap: See Runner.
        begun: By `begin_process`, of this program on this memory; None: it begins now.

    Raises:
        RunFault: it cannot be loaded.
    """
    inputs, _ = footprint(session.problem, session.stage.target.axes)
    if begun is None:
        arena.wipe()

    def write() -> None:
        arena.stir(min(inputs, STIRRED_BYTES))
        session.pace.rest()

    with _plane(arena) as plane:
        runner = runner_of(program)(
            session.workshop,
            program,
            plane,
            limits=_limits(session, protocol, program, arena),
            begun=begun,
            empty_calls=empty_calls,
            fills_heap=fills_heap,
            write=write,
            hear=hear,
        )
    if session.pace.is_warm:
        runner.warm()
    with runner:
        yield CandidateSide(
            name,
            runner,
            arena,
            session.problem,
            rng,
            timeout_s=timeout_s,
            extra=extra,
            pace=session.pace,
        )


@contextmanager
def _plane(arena: Arena) -> Iterator[Plane]:
    """Its memory as a process is handed it."""
    fds = arena.open_fds()
    try:
        yield Plane(*fds, *arena.sizes)
    finally:
        for fd in fds:
            os.close(fd)


def _limits(session: Session, protocol: Depth, program: Program, arena: Arena) -> Limits:
    return program.limits(
        wall_s=EVALUATION_S[protocol],
        cpu_s=EVALUATION_S[protocol] * len(session.workshop.cpus),
        memory_bytes=sum(arena.sizes) + MEMORY_ROOM,
    )
