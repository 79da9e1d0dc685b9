"""What all tests share: one court of referees and one build cache, and which parts are run when."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.isolation import choose
from kernelwright.tests.court import Court
from kernelwright.tests.jails import no_jail, skip_for_want_of_one

TIMED = (
    "hostile/test_champions.py",
    "honest/",
    *(
        f"verifier/test_{name}.py"
        for name in (
            "attacks",
            "environments",
            "fairness",
            "rivalry",
            "secrets",
            "seven",
            "stress",
        )
    ),
)
"""Tests that hold real times against each other, or watch campaigns that do; others say so
themselves."""

JAILED = (
    "hostile/test_host_rows.py",
    "hostile/test_hostile.py",
    "hostile/test_triton_bugs.py",
    "sandbox/run/",
    *(f"verifier/test_{name}.py" for name in ("fences", "sanitize")),
)
"""Tests that end otherwise where a jail refuses or allows something else. Those of `isolation` and
`build` run in every jail by themselves, as `verifier/test_environments.py` does."""


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
    if "PYTEST_XDIST_WORKER" in os.environ:
        slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
        # A long file that is begun last keeps one worker busy while the others have nothing to do.
        items.sort(key=lambda item: -slow[item.path])


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One build cache for all tests, so that what is ours is compiled and tried once."""
    folder = tmp_path_factory.mktemp("cache")
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def court(shared_cache: Path) -> Iterator[Court]:
    found = Court(shared_cache)
    yield found
    found.close()
