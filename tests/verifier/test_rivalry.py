"""A champion that fails beside a candidate: the candidate neither pays for it nor gains by it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from kernelwright.kernelbench.languages import Tier
from kernelwright.traces.records import Depth, Status, Verdict, candidate_id
from kernelwright.verifier.failure import ChampionFailed
from kernelwright.verifier.request import Order
from kernelwright.verifier.stands import rivalry

# Some fifteen seconds each: every second one a run, the others the day after.
pytestmark = [pytest.mark.heavy, pytest.mark.slow, pytest.mark.timed]

ORDER = Order(source="new", language="cpp", protocol=Depth.CONFIRM, champion="old")
HONEST = (Path(__file__).parent / "seven" / "honest.cpp").read_text()


def found(order: Order, status: Status) -> Verdict:
    return Verdict(
        candidate=candidate_id(order.source),
        problem="p",
        workload="w",
        language="cpp",
        target="cpu",
        tier=Tier.NATIVE,
        protocol=order.protocol,
        status=status,
        reasons=() if status.is_pass else (f"it {status}",),
    )


class Looks:
    """Answers for one order after the other; None: the champion fails."""

    def __init__(self, *answers: Status | None) -> None:
        self.orders: list[Order] = []
        self._answers = iter(answers)

    def __call__(self, order: Order) -> Verdict:
        self.orders.append(order)
        status = next(self._answers)
        if status is None:
            raise ChampionFailed(Status.CRASHED, "killed by SIGABRT")
        return found(order, status)


def judged(look: Callable[[Order], Verdict]) -> Verdict:
    def unknown(reason: str) -> Verdict:
        told = found(ORDER, Status.HARNESS_ERROR)
        return told.model_copy(update={"reasons": (reason,)})

    return rivalry.judge_order(ORDER, look, unknown)


def test_a_champion_that_stands_costs_no_second_look() -> None:
    look = Looks(Status.SCREENED)
    assert judged(look).status is Status.SCREENED
    assert look.orders == [ORDER]


def test_a_champion_that_fails_alone_as_well_no_longer_holds() -> None:
    look = Looks(None, Status.CRASHED, Status.SCREENED)
    verdict = judged(look)
    assert [(o.source, o.champion) for o in look.orders] == [
        ("new", "old"),
        ("old", ""),
        ("new", ""),
    ]
    assert verdict.candidate == candidate_id("new")
    assert verdict.status is Status.SCREENED
    assert verdict.champion is not None
    assert verdict.champion.candidate == candidate_id("old")
    assert verdict.champion.status is Status.CRASHED


@pytest.mark.parametrize("alone", [Status.SCREENED, Status.SUSPECT, Status.HARNESS_ERROR])
def test_a_champion_that_fails_beside_it_only_is_compared_once_more(alone: Status) -> None:
    verdict = judged(Looks(None, alone, Status.SCREENED))
    assert verdict.status is Status.SCREENED
    assert verdict.champion is None


def test_who_brings_the_champion_down_is_not_crowned_for_it() -> None:
    look = Looks(None, Status.SCREENED, None)
    verdict = judged(look)
    assert verdict.status is Status.HARNESS_ERROR
    assert verdict.champion is None
    assert "killed by SIGABRT" in verdict.reasons[0]
    assert [order.champion for order in look.orders] == ["old", "", "old"]


def test_a_verdict_tells_of_no_champion_that_holds() -> None:
    holds = found(ORDER, Status.SCREENED)
    with pytest.raises(ValidationError, match="no news"):
        Verdict.model_validate({**holds.model_dump(), "champion": holds.model_dump()})


@pytest.mark.slow
def test_a_champion_that_crashes_on_a_later_call_is_not_laid_to_its_challenger(court) -> None:
    """The champion leaves in its fifteenth call, in every process of its own."""
    worn = HONEST.replace("#include <cstring>", "#include <cstdlib>\n#include <cstring>").replace(
        "#pragma omp parallel for",
        "static int calls; if (++calls == 15) std::abort();\n#pragma omp parallel for",
    )
    assert worn.count("abort") == 1
    order = Order(source=HONEST, language="cpp", protocol=Depth.CONFIRM, champion=worn)
    verdict = court.referee("spmm_csr").evaluate(order)
    # A busy machine may spoil its clocks, and nothing else may be wrong with it.
    assert verdict.status in (Status.VERIFIED, Status.SUSPECT), verdict.reasons
    assert verdict.champion is not None
    assert verdict.champion.candidate == candidate_id(worn)
    assert verdict.champion.status is Status.CRASHED
    assert "SIGABRT" in verdict.champion.reasons[0]
    if verdict.measurement:
        assert "champion" not in verdict.measurement.speedup


@pytest.mark.slow
def test_a_champion_that_no_longer_builds_has_fallen(court) -> None:
    order = Order(source=HONEST, language="cpp", protocol=Depth.CONFIRM, champion="int main;")
    verdict = court.referee("spmm_csr").evaluate(order)
    assert verdict.status in (Status.VERIFIED, Status.SUSPECT), verdict.reasons
    assert verdict.champion is not None
    assert verdict.champion.status is Status.BUILD_FAILED
