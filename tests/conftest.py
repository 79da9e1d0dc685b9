"""What all tests share: one court of referees, one build cache, and what is begun first."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.isolation import choose
from kernelwright.tests.court import Court
from kernelwright.tests.jails import no_jail, skip_for_want_of_one
from kernelwright.tests.memory import has_room
from kernelwright.tests.sampling import IS_WHOLE, TURN, in_turn

# No test says anything about times, and on a busy machine any example may take long.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")

IN_MEMORY = Path("/dev/shm")
ROOM_BYTES = 6 << 30
"""What a whole run may need for its files, several times over."""

if not os.environ.get("PYTEST_DEBUG_TEMPROOT") and has_room(IN_MEMORY, ROOM_BYTES):
    # Stores sync each event to the disk, and half of a test's time went into waiting for it. What
    # the tests kill are processes, and a process does not take the machine's memory along.
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(IN_MEMORY)


def pytest_report_header() -> str:
    """Which jail the referees of this run use, and which rows it tries."""
    rows = "all" if IS_WHOLE else f"some of slow tests (TEST_TURN={TURN}; TEST_ALL=1: all)"
    return f"jail: {no_jail() or choose().name}, rows: {rows}"


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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the rows whose turn it is not, and begins with the long files: one that is begun
    last keeps one worker busy while the others have nothing to do."""
    if not IS_WHOLE:
        kept = in_turn(items)
        chosen = set(map(id, kept))
        config.hook.pytest_deselected(items=[each for each in items if id(each) not in chosen])
        items[:] = kept
    if "PYTEST_XDIST_WORKER" in os.environ:
        slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
        items.sort(key=lambda item: -slow[item.path])


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One build cache for all tests, so that what is ours is compiled and tried once: that of
    `make test` for both its runs, else that of all workers of this one."""
    if given := os.environ.get("TEST_CACHE"):
        folder = Path(given)
    elif "PYTEST_XDIST_WORKER" in os.environ:
        folder = tmp_path_factory.getbasetemp().parent / "cache"
    else:
        folder = tmp_path_factory.mktemp("cache")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="session", autouse=True)
def turns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the referees of this worker take turns: no test says anything about times that others
    beside it would spoil."""
    place = tmp_path_factory.mktemp("turns")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELWRIGHT_TIMING_LOCK", str(place))
        yield place


@pytest.fixture(scope="session")
def court(shared_cache: Path, turns: Path) -> Iterator[Court]:
    found = Court(shared_cache, turns)
    yield found
    found.close()
