"""Real referees for the tests: one per problem and workload, kept for the session."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.sandbox.isolation import choose
from kernelwright.tests.jails import no_jail, skip_for_want_of_one
from kernelwright.traces.records import Protocol, Status, Verdict
from kernelwright.verifier.client import RefereeProcess, open_referee
from kernelwright.verifier.request import Order, Task

RETRIED = (Status.SUSPECT, Status.TIMED_OUT)
"""A machine that is busy with something else can cause these; a second look tells."""

TIMED = (
    "hostile/test_champions.py", "honest/", "test_audit.py",
    *(f"verifier/test_{name}.py" for name in (
        "attacks", "defences", "environments", "fairness", "measured_device", "referee_death",
        "rivalry", "secrets", "seven", "stress",
    )),
    *(f"cli/test_{name}.py" for name in (
        "audit", "bench", "devices", "end_to_end", "key_canary", "run_models",
    )),
)  # fmt: skip
"""Tests that hold real times against each other, or watch campaigns that do; others say so
themselves."""

JAILED = (
    "hostile/test_host_rows.py", "hostile/test_hostile.py", "hostile/test_triton_bugs.py",
    "sandbox/run/",
    *(f"verifier/test_{name}.py" for name in ("environments", "fences", "sanitize")),
)  # fmt: skip
"""Tests that end otherwise where a jail refuses or allows something else. Those of `isolation` and
`build` run in every jail by themselves."""


def pytest_report_header() -> str:
    """Which jail the referees of this run use."""
    return f"jail: {no_jail() or choose().name}"


def _wrapped() -> Generator[None, Any, Any]:
    """Skips what needed a jail on a machine that has none."""
    try:
        return (yield)
    except PrerequisiteError as error:
        skip_for_want_of_one(str(error))
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, Any, Any]:
    return (yield from _wrapped())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    return (yield from _wrapped())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs the machine to itself, and what a second jail is worth a second run of."""
    here = Path(__file__).parent
    for item in items:
        place = item.path.relative_to(here).as_posix() if item.path.is_relative_to(here) else ""
        if place.startswith(TIMED):
            item.add_marker("timed")
        if place.startswith(JAILED):
            item.add_marker("jail")


class Court:
    """Opens referees when they are first asked for and keeps them for the session."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._open: dict[tuple[str, str, str], RefereeProcess] = {}

    def referee(self, problem: str, workload: str = "tiny", jail: str = "auto") -> RefereeProcess:
        """A running referee for the problem's workload, with torch eager as its baseline."""
        key = (problem, workload, jail)
        if key not in self._open:
            task = Task(
                problem=problem,
                workload=registry.workload_for(registry.get(problem), workload),
                cache_dir=str(self._cache),
                jail=jail,
                baselines=("torch eager",),
            )
            self._open[key] = open_referee(task)
        return self._open[key]

    def judge(
        self,
        source: str,
        problem: str = "spmm_csr",
        protocol: Protocol = Protocol.SCREEN,
        *,
        expected: tuple[Status, ...] = (),
        language: str = "cpp",
        **more: Any,
    ) -> Verdict:
        """The verdict; asked a second time where a busy machine may have spoken."""
        order = Order(source=source, language=language, protocol=protocol)
        verdict = self.referee(problem, **more).evaluate(order)
        if verdict.status in RETRIED and verdict.status not in expected:
            verdict = self.referee(problem, **more).evaluate(order)
        return verdict

    def close(self) -> None:
        for referee in self._open.values():
            referee.close()


@pytest.fixture(scope="session")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    cache = tmp_path_factory.mktemp("cache")
    os.chmod(cache, 0o755)
    found = Court(cache)
    yield found
    found.close()
