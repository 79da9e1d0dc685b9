"""A Judge on a device is given the hardware's counters of what it looks at: once, in measure."""

from __future__ import annotations

from typing import Any

import pytest

from kernelwright.agents.workflows import steps
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.agents.asked import PlainJudge, as_it_says, kernel, source
from kernelwright.tests.agents.played import PlayedReferee
from kernelwright.tests.agents.workflows.staged import Improviser, Scene, request, seats
from kernelwright.traces.events import CandidateCounted
from kernelwright.traces.history import derive
from kernelwright.traces.records import Counting, Level, Metric, Profile, candidate_id
from kernelwright.traces.store import Store
from kernelwright.verifier.request import Counted, Order

HITS = "l1tex__t_sector_hit_rate.pct"
SLOWER = {"0/0/write/1": kernel(step=9), "1/0/optimise/1": kernel(step=3)}
"""The second is right and no challenger: it is screened, and the Judge looks at it."""


def counted_for(order: Order) -> Counted:
    rate = float(len(order.source) % 100)
    metric = Metric(name=HITS, value=rate, unit="%", level=Level.MEASURED)
    return Counted(profile=Profile(metrics=(metric,)), took_s=2.0)


def referee() -> PlayedReferee:
    return PlayedReferee(
        fate=as_it_says,
        noise=0.001,
        counting=Counting(which="rules", judged=(HITS,)),
        counters=counted_for,
    )


def asked(rounds: int = 3) -> CampaignRequest:
    return request("forge", rounds)


def counts_in(store: Store, campaign: str) -> list[CandidateCounted]:
    return [p for e in store.events(campaign) if isinstance(p := e.payload, CandidateCounted)]


def test_each_is_counted_once_and_the_judge_sees_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, float | None] = {}
    diagnose = PlainJudge.diagnose

    def look(judge: Any, member: Any, situation: Any) -> Any:
        profile = member.verdict.profile
        seen[member.candidate] = profile.get(HITS) if profile else None
        assert situation.judged == (HITS,)
        return diagnose(judge, member, situation)

    monkeypatch.setattr(PlainJudge, "diagnose", look)
    result = run_campaign(asked(), store, referee(), players=seats(Improviser(SLOWER)))
    counted = counts_in(store, result.campaign)
    slower = candidate_id(source(step=3))
    assert [each.candidate for each in counted] == [slower]
    assert seen[slower] == len(source(step=3)) % 100
    history = derive(store.events(result.campaign))
    assert history.counted_s == 2.0
    assert history.started.counting == Counting(which="rules", judged=(HITS,))


def test_a_death_anywhere_counts_nobody_twice(tmp_path: Any) -> None:
    scene = Scene(asked(2), lambda: Improviser(SLOWER), referee=referee)
    assert scene.survives(tmp_path, every=1, cursors=("kept", "lost"), in_turn=True)


def test_counting_takes_no_more_than_its_share(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "LEAST_COUNTING_S", 3.0)
    script = {"0/0/write/1": kernel(step=9)}
    script |= {f"{n}/0/optimise/1": kernel(step=n) for n in range(1, 6)}
    result = run_campaign(asked(6), store, referee(), players=seats(Improviser(script)))
    # Two of two seconds each pass the three that are free; the campaign itself takes next to none.
    assert len(counts_in(store, result.campaign)) == 2


def test_where_nothing_is_counted_nobody_asks(store: Store) -> None:
    played = referee()
    played.counting = None
    result = run_campaign(asked(), store, played, players=seats(Improviser(SLOWER)))
    assert counts_in(store, result.campaign) == []
    assert derive(store.events(result.campaign)).started.counting is None
