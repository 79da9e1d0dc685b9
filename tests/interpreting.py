"""Runs a Triton source in the interpreter, in a real jail, and says what came of each call."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kernelwright.kernelbench.features import features
from kernelwright.kernelbench.problem import Family, Problem, Structure
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.builders.model import Built
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.model import Jail, Limits
from kernelwright.sandbox.plan.declared import Plan
from kernelwright.sandbox.plan.model import Launches
from kernelwright.sandbox.plan.parse import parse
from kernelwright.sandbox.plan.resolve import resolve
from kernelwright.sandbox.run.arena import NOTHING_MORE, Arena, Extra, footprint
from kernelwright.sandbox.run.begun import Plane
from kernelwright.sandbox.run.gate import Coverage
from kernelwright.sandbox.run.interpreted import SCHEDULES, STEPS, interpreted_program, table
from kernelwright.sandbox.run.process import RunFault, Runner
from kernelwright.traces.records import Status
from kernelwright.verifier.truth import gates, poison

TARGET = architecture("sm_90")
TIMEOUT_S = 120.0
_WORKSHOP = tempfile.TemporaryDirectory()
Path(_WORKSHOP.name).chmod(0o755)


@dataclass(frozen=True)
class Part:
    """Calls on fresh inputs of one family, in turn on each of these structures."""

    structures: Sequence[Structure]
    family: Family = Family.NORMAL
    calls: int = len(SCHEDULES)


@dataclass
class Ran:
    """What came of it: how many calls were right, and what ended them."""

    right: int = 0
    status: Status | None = None
    """None where every call was right."""
    reason: str = ""
    log: str = ""
    outputs: list[dict[str, np.ndarray]] = field(default_factory=list)
    coverage: list[Coverage] = field(default_factory=list)
    known: list[dict[str, np.ndarray]] = field(default_factory=list)
    """Which elements were written."""


def planned(source: str, problem: Problem, structure: Structure) -> Launches | None:
    """The launches that the source's plan comes to; None where its host code makes them."""
    plan = parse(source, "triton")
    assert isinstance(plan, Plan), plan
    if not plan.launches:
        return None
    found = resolve(plan, problem, structure.axes, features(structure), TARGET)
    assert isinstance(found, Launches), found
    return found


def entry_of(source: str) -> str:
    """The entry point of host code, nothing for a plan."""
    if "[[launch]]" in source:
        return ""
    return "ModelNew" if "class ModelNew" in source else "run"


def interpreted(
    source: str,
    problem: Problem,
    structures: Sequence[Structure],
    jail: Jail,
    *,
    family: Family = Family.NORMAL,
    calls: int = len(SCHEDULES),
    steps: int = STEPS,
    sample: int = 0,
) -> Ran:
    """Calls it `calls` times on each structure, each time on fresh inputs."""
    parts = [Part(structures, family, calls)]
    return played(source, problem, parts, jail, steps=steps, sample=sample)


def played(
    source: str,
    problem: Problem,
    parts: Sequence[Part],
    jail: Jail,
    *,
    steps: int = STEPS,
    sample: int = 0,
) -> Ran:
    """Does all parts in one process, whose start takes longer than most of them."""
    ran = Ran()
    rng = np.random.default_rng(7)
    structures = [structure for part in parts for structure in part.structures]
    due = [
        (structure, part.family)
        for part in parts
        for structure in part.structures
        for _ in range(part.calls)
    ]
    try:
        with _running(source, problem, structures, jail, steps, sample) as (runner, arena):
            for structure, family in due:
                failed = _call(source, problem, structure, runner, arena, family, rng, ran)
                if failed:
                    ran.status, ran.reason = Status.INCORRECT, f"{family}: {failed}"
                    return ran
                ran.right += 1
    except RunFault as fault:
        ran.status, ran.reason, ran.log = fault.status, fault.reason, fault.log
    return ran


@contextmanager
def _running(
    source: str,
    problem: Problem,
    structures: Sequence[Structure],
    jail: Jail,
    steps: int,
    sample: int,
) -> Iterator[tuple[Runner, Arena]]:
    raw = source.encode()
    workshop = Workshop(jail, Path(_WORKSHOP.name), (0,))
    program = interpreted_program(
        workshop,
        Built(raw, hashlib.sha256(raw).hexdigest(), 0.0),
        problem,
        TARGET,
        entry=entry_of(source),
        steps=steps,
        sample=sample,
    )
    needs = [footprint(problem, structure.axes) for structure in structures]
    with Arena(max(n[0] for n in needs) + (1 << 16), max(n[1] for n in needs)) as arena:
        fds = arena.open_fds()
        limits = Limits(wall_s=300.0, cpu_s=600.0, memory_bytes=sum(arena.sizes) + (4 << 30))
        try:
            runner = Runner(
                workshop,
                program,
                Plane(*fds, *arena.sizes),
                limits=limits,
            )
        finally:
            for fd in fds:
                os.close(fd)
        with runner:
            yield runner, arena


def _call(
    source: str,
    problem: Problem,
    structure: Structure,
    runner: Runner,
    arena: Arena,
    family: Family,
    rng: np.random.Generator,
    ran: Ran,
) -> str:
    """One call; the first gate that does not hold, if one does not."""
    inputs = problem.values(structure, family, rng)
    expected = problem.oracle(structure, inputs)
    launches = planned(source, problem, structure)
    arena.reset()
    slot = arena.place(
        problem, structure, extra=Extra(table(launches)) if launches else NOTHING_MORE
    )
    for name, array in inputs.items():
        slot.inputs[name][...] = array
    pattern = poison.choose(rng)
    for output in slot.outputs.values():
        poison.fill(output, pattern)
    runner.ping(0, 1, timeout_s=TIMEOUT_S)
    runner.call(0, timeout_s=TIMEOUT_S)
    outputs = {name: array.copy() for name, array in slot.outputs.items()}
    ran.outputs.append(outputs)
    ran.coverage.append(runner.coverage)
    ran.known.append({n: ~poison.find_left(o, pattern) for n, o in outputs.items()})
    if runner.coverage.is_partial:
        outputs = {
            name: np.where(ran.known[-1][name], outputs[name], np.float32(expected[name].value))
            for name in outputs
        }
    for name, value in expected.items():
        failed = gates.first_failure(
            gates.check_output(
                name, outputs[name], value, problem.precision, family, poison=pattern
            )
        )
        if failed:
            return f"{failed.name}: {failed.detail}"
    return ""
