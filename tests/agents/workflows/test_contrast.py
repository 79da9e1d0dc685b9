"""`contrast` against a played model and the played referee."""

from __future__ import annotations

from typing import Any

import pytest

from kernelwright.agents.model import Ask, CostBound
from kernelwright.running import run_campaign
from kernelwright.tests.agents.asked import kernel, source
from kernelwright.tests.agents.played import players
from kernelwright.tests.agents.workflows.staged import (
    Improviser,
    decided,
    decided_at,
    referee,
    request,
    seats,
)
from kernelwright.traces.decisions import (
    ExemplarsChosen,
    GroupScored,
    LookedTwice,
    NoSecondOpinion,
    SecondOpinion,
)
from kernelwright.traces.events import CandidateProposed, ChampionChanged
from kernelwright.traces.records import Depth, Status, candidate_id
from kernelwright.traces.store import Store

DRAFTS = {f"0/{n}/write/1": kernel(step=4 * n) for n in range(4)}
SCRIPT = DRAFTS | {
    "1/0/contrast/1": kernel(step=14),
    "2/0/contrast/1": kernel(fails="INCORRECT"),
    "3/0/contrast/1": kernel(step=20),
}


def test_drafts_then_contrasts_and_it_ends_verified(store: Store) -> None:
    model = Improviser(SCRIPT, slots=4)
    result = run_campaign(request("contrast", 4), store, referee(), players=seats(model))
    assert sorted(model.asked) == sorted(SCRIPT)
    assert result.best is not None
    assert result.best.candidate == candidate_id(source(step=20))
    events = store.events(result.campaign)
    chosen = decided(events, ExemplarsChosen)
    assert list(decided_at(events, ExemplarsChosen)) == ["1/0", "2/0", "3/0"]
    drafts = {candidate_id(source(step=4 * n)) for n in range(4)}
    assert set(chosen[0].candidates) <= drafts
    proposed = {str(p.place): p for e in events if isinstance(p := e.payload, CandidateProposed)}
    assert list(proposed["1/0"].parents) == list(chosen[0].candidates)
    group = {at: d.score for at, d in decided_at(events, GroupScored).items()}
    assert group["2/0"] == -1.5
    assert group["3/0"] > group["1/0"]


def test_with_too_few_buckets_another_variant_is_drafted(store: Store) -> None:
    script = {f"0/{n}/write/1": kernel(fails="BUILD_FAILED", n=n) for n in range(4)}
    script |= {"1/0/write/1": kernel(step=1), "2/0/write/1": kernel(step=9)}
    script |= {"3/0/write/1": kernel(step=5), "4/0/contrast/1": kernel(step=12)}
    model = Improviser(script)
    run_campaign(request("contrast", 5), store, referee(), players=seats(model))
    assert model.asked == list(script)
    told = next(a for a in model.asks if "2/0/write" in a.messages[0].content)
    assert "told another candidate's strategy: strategy of 1/0" in told.messages[0].content


def test_s9_what_is_faster_than_physics_is_verified_in_full_and_no_champion(
    store: Store,
) -> None:
    """S9: a planted result below the roofline's bound; the full protocol finds it suspect."""
    jump = source(step=200)
    script = SCRIPT | {"1/0/contrast/1": kernel(step=200)}
    played = referee()
    fate = played.fate
    played.fate = lambda order: (
        Status.SUSPECT
        if order.source == jump and order.protocol is not Depth.SCREEN
        else fate(order)
    )
    result = run_campaign(request("contrast", 4), store, played, players=seats(Improviser(script)))
    events = store.events(result.campaign)
    ((at, checked),) = decided_at(events, LookedTwice).items()
    assert (at, checked.status) == ("1/0", "SUSPECT")
    assert "times" in checked.why
    later = [c for d in decided(events, ExemplarsChosen)[1:] for c in d.candidates]
    assert candidate_id(jump) not in later
    crowned = [p.candidate for e in events if isinstance(p := e.payload, ChampionChanged)]
    assert candidate_id(jump) not in crowned
    assert (candidate_id(jump), Depth.CONFIRM) not in played.asked


TOO_GOOD = 58
JUMP = {f"0/{n}/write/1": kernel(step=(0, 2, 4, 5)[n]) for n in range(4)}
JUMP |= {"1/0/contrast/1": kernel(step=TOO_GOOD)}
"""Three times as fast as the best before, and below the roofline."""


def shown_after_the_jump(store: Store, campaign: str) -> list[Any]:
    chosen = decided(store.events(campaign), ExemplarsChosen)[1:]
    return [candidate for d in chosen for candidate in d.candidates]


@pytest.mark.parametrize("label", ["suspect", "honest"])
def test_a_second_opinion_keeps_a_result_from_being_shown_and_from_nothing_else(
    store: Store, label: str
) -> None:
    """What a model finds unearned is no example; champion it is all the same."""
    model, jump = Improviser(JUMP), candidate_id(source(step=TOO_GOOD))
    asked = request("contrast", 6, seed=1)
    result = run_campaign(
        asked, store, referee(), players=seats(model, second=lambda _source: label)
    )
    said = decided_at(store.events(result.campaign), SecondOpinion)
    assert [(at, d.candidate, d.label) for at, d in said.items()] == [("1/0", jump, label)]
    assert [p for p in model.asked if "second" in p] == ["1/0/second opinion/0"]
    assert (jump in shown_after_the_jump(store, result.campaign)) == (label == "honest")
    assert result.best is not None
    assert result.best.candidate == jump


def test_without_the_means_for_a_second_opinion_it_goes_on(store: Store) -> None:
    class Dear(Improviser):
        def bound(self, ask: Ask) -> CostBound:
            return (
                super()
                .bound(ask)
                ._replace(tokens=10**6 if ask.purpose == "second opinion" else 400)
            )

    asked = request("contrast", 3, limits={"tokens": 10_000.0})
    result = run_campaign(
        asked, store, referee(), players=seats(Dear(JUMP), second=lambda _source: "honest")
    )
    assert list(decided_at(store.events(result.campaign), NoSecondOpinion)) == ["1/0"]
    assert result.stopped_by == "rounds"
    assert result.evaluated == 6


def test_it_runs_with_the_offline_brains(store: Store) -> None:
    result = run_campaign(request("contrast", 6), store, referee(), players=players())
    assert result.evaluated == 9
    assert result.best is not None
    assert len(decided(store.events(result.campaign), ExemplarsChosen)) >= 3
