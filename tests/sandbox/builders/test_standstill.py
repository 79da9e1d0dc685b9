"""Builds stand still while something is timed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from kernelwright.sandbox.builders.standstill import Standstill

LONG_S = 30.0


class Build:
    """A job that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def stand(self) -> None:
        self.told.append("stand")

    def go_on(self) -> None:
        self.told.append("go on")

    def kill(self) -> None:
        self.told.append("kill")


@pytest.fixture
def standstill() -> Standstill:
    return Standstill()


def start(build: Build) -> Callable[[], Build]:
    return lambda: build


def test_what_runs_stands_still_as_long_as_anybody_wants_it(standstill: Standstill) -> None:
    build = Build()
    with standstill.work(start(build)):  # type: ignore[arg-type]
        with standstill.hold(), standstill.hold():
            assert build.told == ["stand"]
        assert build.told == ["stand", "go on"]
    assert build.told == ["stand", "go on", "kill"]
    with standstill.hold():
        pass
    assert build.told[-1] == "kill"


def test_nothing_begins_meanwhile(standstill: Standstill) -> None:
    begun = threading.Event()

    def build() -> None:
        with standstill.work(start(Build())):  # type: ignore[arg-type]
            begun.set()

    with standstill.hold():
        waiting = threading.Thread(target=build)
        waiting.start()
        time.sleep(0.2)
        assert not begun.is_set()
    assert begun.wait(LONG_S)
    waiting.join(LONG_S)


def test_a_build_that_cannot_start_is_none(standstill: Standstill) -> None:
    def refuse() -> Build:
        raise OSError("no memory")

    with pytest.raises(OSError, match="no memory"), standstill.work(refuse):  # type: ignore[arg-type]
        pass
    with standstill.hold():
        pass
