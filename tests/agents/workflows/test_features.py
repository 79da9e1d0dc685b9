"""`features` against a played model and the played referee."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kernelwright.agents.prompting.techniques import list_applicable
from kernelwright.agents.workflows.features import _draws
from kernelwright.running import run_campaign
from kernelwright.tests.agents.asked import kernel, source
from kernelwright.tests.agents.played import players, problem
from kernelwright.tests.agents.workflows.staged import (
    Improviser,
    decided,
    decided_at,
    referee,
    request,
    seats,
)
from kernelwright.traces.decisions import Credited, FeaturesPlanned, GainsTabled
from kernelwright.traces.events import CandidateProposed, Event
from kernelwright.traces.place import Place
from kernelwright.traces.records import candidate_id
from kernelwright.traces.store import Store


def step_by_depth(place: str) -> str:
    """Faster at every depth; declares every technique there is and unrolls for all to see."""
    depth, slot = Place.parse(place).numbers
    names = ", ".join(t.name for t in list_applicable(problem(), "cpp", "cpu"))
    text = kernel(step=8 * depth + slot, seen="unroll " * (depth + 1), tag=place * 3)
    return f"Techniques: {names}\n{text}"


def play(store: Store, model: Improviser, rounds: int = 3, **options: Any) -> list[Event]:
    asked = request("features", rounds, options=options)
    result = run_campaign(asked, store, referee(), players=seats(model))
    return store.events(result.campaign)


def test_every_depth_extends_the_fastest_and_credits_techniques(store: Store) -> None:
    model = Improviser(answer=step_by_depth, slots=4)
    events = play(store, model)
    assert {Place.parse(place).purpose for place in model.asked} == {"features"}
    plans = decided(events, FeaturesPlanned)
    by_place = {
        str(p.place): p.candidate for e in events if isinstance(p := e.payload, CandidateProposed)
    }
    assert [d.base for d in plans] == [None, by_place["0/3"], by_place["1/3"]]
    for plan in plans:
        slots = plan.slots
        assert len(slots) == 4
        assert all(1 <= len(names) <= 2 for names in slots)
        assert len({names[0] for names in slots}) == 4
    credits = decided(events, Credited)
    assert list(decided_at(events, Credited)) == [
        f"{n}/{slot}" for n in (1, 2) for slot in range(4)
    ]
    assert all((d.gain or 0.0) > 0 for d in credits)
    rows = decided(events, GainsTabled)[-1].rows
    assert sum(row.tried for row in rows) == sum(len(d.used) for d in credits)
    assert all(row.gained == row.tried and row.mean_gain > 0.01 for row in rows)


def test_a_technique_that_is_not_used_is_not_credited_and_the_dispute_is_told(
    store: Store,
) -> None:
    def silent(place: str) -> str:
        depth, slot = Place.parse(place).numbers
        return kernel(step=8 * depth + slot, seen="unroll " * (depth + 1))

    events = play(store, Improviser(answer=silent), rounds=6)
    credits = decided(events, Credited)
    for credit in credits:
        assert set(credit.used) <= {"loop-unrolling"}
        assert credit.used == credit.disputed
    assert any(credit.used for credit in credits)


def test_what_fails_is_repaired_twice_and_no_more(store: Store) -> None:
    """A10: a repair has a bound inside its depth."""
    script = {
        "0/0/features/1": kernel(fails="BUILD_FAILED", n=0),
        "0/1/features/1": kernel(fails="INCORRECT", n=1),
        "0/2/features/1": kernel(step=1),
        "0/3/features/1": "no code",
        "0/4/repair/1": kernel(fails="BUILD_FAILED", n=4),
        "0/5/repair/1": kernel(step=3),
        "0/8/repair/1": kernel(fails="BUILD_FAILED", n=8),
    }
    model = Improviser(script)
    events = play(store, model, rounds=1)
    assert model.asked == list(script)
    failed = candidate_id(source(fails="BUILD_FAILED", n=4))
    last = [p for e in events if isinstance(p := e.payload, CandidateProposed)][-1]
    assert last.parents == (failed,)


def test_where_nothing_is_right_the_next_depth_mends_what_got_furthest(store: Store) -> None:
    fails = ["BUILD_FAILED", "INCORRECT", "CRASHED", "BUILD_FAILED"]
    script = {f"0/{n}/features/1": kernel(fails=fate, n=n) for n, fate in enumerate(fails)}
    script |= {f"1/{n}/repair/1": kernel(step=n + 1) for n in range(4)}
    model = Improviser(script)
    events = play(store, model, rounds=2, repairs=0)
    assert model.asked == list(script)
    plan = decided(events, FeaturesPlanned)[1]
    assert plan.base == candidate_id(source(fails="INCORRECT", n=1))
    assert decided(events, Credited) == []


def test_s5_draws_differ_from_place_to_place_and_are_the_same_for_the_same_seed() -> None:
    """S5: 1,000 slots; nothing seeds a generator with a constant."""
    names = [f"t{n}" for n in range(20)]

    def drawn(seed: int) -> list[tuple[str, ...]]:
        depths = (_draws(names, {}, "memory", depth, 4, seed) for depth in range(250))
        return [draw for depth in depths for draw in depth]

    first = drawn(1)
    assert len(first) == 1000
    assert drawn(1) == first
    # 20 single techniques and 380 pairs: nearly all of them come up, none of them often.
    assert len(set(first)) > 250
    assert max(Counter(first).values()) < 60
    assert sum(a == b for a, b in zip(first, drawn(2), strict=True)) < 100


def test_it_runs_with_the_offline_brains(store: Store) -> None:
    result = run_campaign(request("features", 3), store, referee(), players=players())
    assert result.evaluated == 12
    assert result.best is not None


@pytest.mark.parametrize("cap", [{"evaluations": 6.0}, {"tokens": 1200.0}])
def test_a_cap_ends_it_with_everything_evaluated(store: Store, cap: dict[str, float]) -> None:
    model = Improviser(answer=step_by_depth, slots=3)
    result = run_campaign(
        request("features", 6, limits=cap), store, referee(), players=seats(model)
    )
    assert result.stopped_by == next(iter(cap))
    assert result.evaluated == len(model.asked) == 6
