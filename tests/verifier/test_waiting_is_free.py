"""What a candidate is made to wait for another timing is no time of its own: a real lock, held by
another process for longer than its process may live."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.tests.verifier.sources import CPP, PYTHON
from kernelwright.tests.verifier.stands import look, opened, task
from kernelwright.tests.verifier.test_turns import somebody
from kernelwright.traces.records import CHAMPION, Depth, Status
from kernelwright.verifier.clock.turns import WAITED, Turns
from kernelwright.verifier.request import Order
from kernelwright.verifier.stands import sides
from kernelwright.verifier.stands.cpu import CpuStand
from kernelwright.verifier.stands.reference import Baselines

LIVES_S, IN_PYTHON_S = 6.0, 15.0
"""What a process of a candidate may live here, in place of the two minutes of a screening; a
Python one takes seconds to start."""
LONGER_S = 2.5

pytestmark = pytest.mark.slow


@pytest.fixture
def stand(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CpuStand]:
    """Its baselines run, so that processes that are timed begin early."""
    found = opened(task(shared_cache))
    assert isinstance(found, CpuStand)
    monkeypatch.setitem(sides.EVALUATION_S, Depth.SCREEN, LIVES_S)
    try:
        found.wait_prepared()
        yield found
    finally:
        found.close()


class Interrupted(Turns):
    """Has somebody else time, once, behind so many of our turns."""

    def __init__(self, place: Path, after: int) -> None:
        super().__init__(place)
        self._place, self._left = place, after

    def begin(self) -> None:
        """Lets the other one time now, where it is its turn."""
        if self._left == 0:
            has_begun = threading.Event()
            threading.Thread(target=self._time_elsewhere, args=(has_begun,)).start()
            assert has_begun.wait(30)
        self._left -= 1

    def give_back(self) -> None:
        super().give_back()
        self.begin()

    def _time_elsewhere(self, has_begun: threading.Event) -> None:
        with somebody(self._place) as other:
            has_begun.set()
            time.sleep(LIVES_S + LONGER_S)
            other.kill()


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("after", "champion"),
    [(0, ""), (1, CPP % "// as fast")],
    ids=["before it is tried", "before both are timed"],
)
def test_another_timing_costs_no_candidate_its_time(
    stand: CpuStand, turns: Path, after: int, champion: str
) -> None:
    stand.turns = Interrupted(turns, after)
    stand.turns.begin()
    asked = Order(source=CPP % "", language="cpp", protocol=Depth.SCREEN, champion=champion)
    verdict = look(stand, asked)
    assert verdict.status in (Status.SCREENED, Status.SUSPECT), verdict.reasons
    assert verdict.seconds[WAITED] > LIVES_S
    for measured in verdict.measurements if champion else ():
        assert CHAMPION in measured.speedup


@pytest.mark.heavy
def test_baselines_that_are_late_cost_no_candidate_its_time(
    stand: CpuStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait_long(self: Baselines) -> None:
        del self
        time.sleep(IN_PYTHON_S + LONGER_S)

    monkeypatch.setitem(sides.EVALUATION_S, Depth.SCREEN, IN_PYTHON_S)
    monkeypatch.setattr(Baselines, "wait", wait_long)
    monkeypatch.setattr(Baselines, "are_ready", False)
    verdict = look(stand, Order(source=PYTHON, language="python", protocol=Depth.SCREEN))
    assert verdict.status in (Status.SCREENED, Status.SUSPECT), verdict.reasons
    assert verdict.seconds["wait for baselines"] > IN_PYTHON_S
