"""Sessions for tests that time nothing: no baselines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelwright.kernelbench import registry
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation import choose
from kernelwright.traces.records import Isolation
from kernelwright.verifier.request import Task
from kernelwright.verifier.stands.session import Admission, Session
from kernelwright.verifier.truth.trials import Stage


@pytest.fixture(scope="module")
def session_for(shared_cache: Path) -> Iterator[Callable[[str], Session]]:
    """Sessions without baselines: nothing is timed here."""
    open_ones: dict[str, Session] = {}

    def find(name: str) -> Session:
        if name not in open_ones:
            open_ones[name] = unmeasured_session(name, shared_cache)
        return open_ones[name]

    yield find
    for session in open_ones.values():
        session.close()


@pytest.fixture
def session_of() -> Callable[[str, Path], Session]:
    """A session with a cache of its own."""
    return unmeasured_session


def unmeasured_session(name: str, cache: Path) -> Session:
    problem = registry.get(name)
    workload = problem.workload("tiny")
    others = tuple(
        (each.name, problem.structure(each))
        for each in problem.workloads
        if each.kind == "adversarial"
    )
    stage = Stage(problem, problem.structure(workload), "tiny", others)
    jail = choose("auto")
    workshop = Workshop(jail, cache, tuple(sorted(os.sched_getaffinity(0))))
    return Session(
        Task(problem=name, workload=workload, cache_dir=str(cache)),
        problem,
        stage,
        workshop,
        Isolation(mechanism=jail.name, capabilities={}),
        Admission(problem, stage.target, workshop),
    )
