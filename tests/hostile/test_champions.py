"""A champion that turns bad once it is champion: it falls, and nobody falls with it.

A source can be right for as long as it is a candidate (it knows the time of day, and that it is
timed without trials). As the champion it is timed beside every challenger, so that it could fail
them all, or look faster than it is.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.agents.search.championship import displaces
from kernelwright.traces.records import CHAMPION, Depth, Status
from kernelwright.verifier.request import Order

pytestmark = pytest.mark.timed

HERE = Path(__file__).parent / "champion"
HONEST = Path(__file__).parent.parent / "verifier" / "seven" / "honest.cpp"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "status"),
    [
        ("dies_as_champion", Status.CRASHED),
        ("stops_computing", Status.INCORRECT),
        ("writes_beside", Status.INCORRECT),
    ],
)
def test_a_champion_that_turns_bad_falls_and_takes_nobody_along(court, file, status):
    order = Order(
        source=HONEST.read_text("utf-8"),
        language="cpp",
        protocol=Depth.CONFIRM,
        champion=(HERE / f"{file}.cpp").read_text("utf-8"),
    )
    verdict = court.referee("spmm_csr").evaluate(order)
    # It is looked at alone, and found out, only where it failed beside the challenger.
    assert verdict.champion is not None
    assert verdict.champion.status is status
    # What a busy machine can do to an honest one is doubt its time, nothing else.
    assert verdict.status in (Status.VERIFIED, Status.SUSPECT), verdict.reasons
    if verdict.measurement is not None:
        assert CHAMPION not in verdict.measurement.speedup
        assert displaces(verdict, has_champion=True)
