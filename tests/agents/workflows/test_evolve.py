"""`evolve`: generations on islands, against a played model and the played referee."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kernelwright.agents.books.progress import Progress
from kernelwright.agents.model import Ask
from kernelwright.agents.models.ensemble import Ensemble
from kernelwright.agents.stop import Stop
from kernelwright.agents.workflows.generation_plan import Past
from kernelwright.agents.workflows.generation_settings import Settings
from kernelwright.errors import UsageError
from kernelwright.running import resume_campaign, run_campaign
from kernelwright.tests.agents.asked import as_it_says, kernel, source
from kernelwright.tests.agents.played import PlayedReferee
from kernelwright.tests.agents.workflows.staged import (
    SHAPES,
    Improviser,
    decided,
    decided_at,
    referee,
    request,
    seats,
)
from kernelwright.traces.decisions import (
    Born,
    Compared,
    GenerationPlanned,
    IslandsStood,
    Shortlisted,
    SwitchedOff,
)
from kernelwright.traces.events import CandidateProposed, ChampionChanged, EvaluationFinished, Event
from kernelwright.traces.place import Place
from kernelwright.traces.records import Depth, Status, Verdict, candidate_id
from kernelwright.traces.store import Store
from kernelwright.verifier.request import Order


def distinct(place: str) -> str:
    """A kernel in one of several niches, far from every other, never near the roofline."""
    draw = hashlib.sha256(place.encode()).hexdigest()
    words = {f"w{n}": draw[4 * n : 4 * n + 4] for n in range(12)}
    shape = SHAPES[int(draw[0], 16) % len(SHAPES)]
    return kernel(step=int(draw[:4], 16) % 50, shape=shape, **words)


def play(
    store: Store, rounds: int = 3, model: Improviser | None = None, **options: Any
) -> list[Event]:
    model = model or Improviser(answer=distinct)
    asked = request("evolve", rounds, options=options)
    result = run_campaign(asked, store, referee(), players=seats(model))
    return store.events(result.campaign)


def places(events: list[Event]) -> dict[str, str]:
    """Candidate by place."""
    found = [e.payload for e in events if isinstance(e.payload, CandidateProposed)]
    return {str(p.place): p.candidate for p in found}


def test_a_generation_is_planned_asked_compared_and_archived(store: Store) -> None:
    events = play(store, rounds=3)
    assert len(places(events)) == 24
    assert list(decided_at(events, GenerationPlanned)) == ["0/plan", "1/plan", "2/plan"]
    operators = [s.operator for d in decided(events, GenerationPlanned) for s in d.slots]
    assert operators[:8] == ["write"] * 8
    assert {"edit"} < set(operators[8:])
    assert len(decided(events, Born)) == 24
    assert len({d.niche for d in decided(events, Born)}) > 3
    assert [e for e in events if isinstance(e.payload, ChampionChanged)]


def test_later_waves_are_told_the_strategies_of_earlier_ones(store: Store) -> None:
    model = Improviser(answer=distinct, slots=3)
    play(store, 1, model)
    prompts = {p.splitlines()[0]: p for a in model.asks for p in [a.messages[0].content]}
    assert "told" not in prompts["0/3/write/1"]
    for slot in range(4, 8):
        told = [line for line in prompts[f"0/{slot}/write/1"].splitlines() if "told" in line]
        assert told == [f"told another candidate's strategy: strategy of 0/{n}" for n in range(4)]


@pytest.mark.parametrize("slots", [1, 4])
def test_the_order_of_arrival_changes_nothing(tmp_path: Path, slots: int) -> None:
    stories = []
    for number in (1, slots):
        with Store.open(tmp_path / f"{number}-{len(stories)}") as store:
            events = play(store, 2, Improviser(answer=distinct, slots=number))
            kinds = ("candidate.proposed", "decided", "evaluation.finished", "champion.changed")
            stories.append([e.payload for e in events if e.payload.kind in kinds])
    assert stories[0] == stories[1]


@pytest.mark.slow
def test_s1_every_island_gets_its_share_and_lineages_never_cross(store: Store) -> None:
    """S1: 40 generations, 4 islands, no migration."""
    events = play(store, 40, migrate_every=0, judged=False)
    born = {d.candidate: d.island for d in decided(events, Born)}
    shares = Counter(born.values())
    assert len(shares) == 4
    for count in shares.values():
        assert 0.20 <= count / len(born) <= 0.30
    parents = 0
    for event in events:
        if isinstance(payload := event.payload, CandidateProposed) and payload.candidate in born:
            for parent in payload.parents:
                assert born[parent] == born[payload.candidate]
                parents += 1
    assert parents > 100


def test_s2_the_same_niche_holds_different_elites_on_two_islands(store: Store) -> None:
    """S2: every island has a grid of its own."""
    events = play(store, 4)
    islands = decided(events, IslandsStood)[-1].islands
    by_niche: dict[str, set[str]] = {}
    for cells in islands:
        for niche, elite in cells.items():
            by_niche.setdefault(niche, set()).add(elite)
    assert max(len(elites) for elites in by_niche.values()) >= 2


@pytest.mark.slow
def test_s3_migrating_every_generation_does_not_collapse_the_islands(store: Store) -> None:
    """S3: 20 generations later every island still has two elites of its own or more."""
    events = play(store, 20, migrate_every=1, judged=False)
    islands = decided(events, IslandsStood)[-1].islands
    for cells in islands:
        assert len(set(cells.values())) >= 2
    assert len({elite for cells in islands for elite in cells.values()}) > 4


def test_s4_what_did_not_improve_on_the_seed_gained_nothing(store: Store) -> None:
    """S4: every later kernel is slower than the first; the champion is the first one."""

    def worse(place: str) -> str:
        return kernel(step=40 if place.startswith("0/0/") else 0, tag=place * 4)

    events = play(store, 3, Improviser(answer=worse))
    changes = [e.payload for e in events if isinstance(e.payload, ChampionChanged)]
    assert [c.candidate for c in changes] == [places(events)["0/0"]]


def test_s7_parents_are_in_the_archive_as_of_the_beginning_of_the_generation(store: Store) -> None:
    """S7: no parent is of the generation itself or later."""
    events = play(store, 6, Improviser(answer=distinct, slots=4))
    of = {c: Place.parse(place).round for place, c in places(events).items()}
    for event in events:
        if isinstance(payload := event.payload, CandidateProposed):
            assert all(of[parent] < of[payload.candidate] for parent in payload.parents)
    passed = {d.candidate for d in decided(events, Born)}
    for plan in decided(events, GenerationPlanned):
        for slot in plan.slots:
            named = [slot.base, *slot.exemplars]
            assert {c for c in named if c} <= passed


def test_the_islands_are_the_same_however_they_are_asked_for(store: Store) -> None:
    """Folded on from generation to generation, from the beginning, and as they were recorded."""
    events = play(store, 5, Improviser(answer=distinct, slots=4))
    progress, going_on = Progress(events), Past(Settings())
    stood = decided_at(events, IslandsStood)
    for number in (1, 2, 3, 5, 4):
        recorded = stood[f"{number - 1}/archive"].islands
        assert tuple(going_on.fold_before(progress, number).describe_elites()) == recorded
        assert tuple(Past(Settings()).fold_before(progress, number).describe_elites()) == recorded


@pytest.mark.slow
def test_s8_a_copy_of_the_champion_with_a_comment_is_never_promoted(store: Store) -> None:
    """S8: 200 tries."""

    def copy(place: str) -> str:
        return f"```\n// {place}\n{source(step=20).rstrip()}\n```\n".replace("//", "#")

    model = Improviser(answer=copy)
    events = play(store, 25, model, judged=False)
    proposed = [e for e in events if isinstance(e.payload, CandidateProposed)]
    assert len(proposed) >= 200
    assert len([e for e in events if isinstance(e.payload, ChampionChanged)]) == 1


def test_s9_what_its_confirmation_calls_suspect_is_no_champion_and_no_parent(
    store: Store,
) -> None:
    """S9: faster than the roofline allows when screened, suspect when confirmed."""
    planted = source(step=300)

    def answer(place: str) -> str:
        return kernel(step=300) if place.startswith("0/1/") else distinct(place)

    played = referee()
    played.fate = lambda order: (
        Status.SUSPECT if order.source == planted and order.protocol is Depth.CONFIRM else None
    )
    result = run_campaign(
        request("evolve", 4), store, played, players=seats(Improviser(answer=answer))
    )
    events = store.events(result.campaign)
    suspect = candidate_id(planted)
    assert (suspect, Depth.CONFIRM) in played.asked
    assert result.best is not None
    assert result.best.candidate != suspect
    proposed = [e.payload for e in events if isinstance(e.payload, CandidateProposed)]
    assert not [p for p in proposed if suspect in p.parents and p.operator != "repair"]
    islands = decided(events, IslandsStood)[-1].islands
    assert suspect not in [elite for cells in islands for elite in cells.values()]


@pytest.mark.slow
def test_s10_a_verifier_that_calls_everything_broken_switches_itself_off(store: Store) -> None:
    """S10: at least one evaluation a generation, then it is off and everything is evaluated."""
    model = Improviser(answer=distinct)
    asked = request("evolve", 12, options={"soft": True, "judged": False})
    result = run_campaign(
        asked, store, referee(), players=seats(model, says=lambda _source: "broken")
    )
    events = store.events(result.campaign)
    shortlists = decided_at(events, Shortlisted)
    assert shortlists
    assert all(len(d.kept) == 4 for d in shortlists.values())
    off = decided_at(events, SwitchedOff)
    assert sorted(off) == ["soft build", "soft memory", "soft numerics"]
    assert all("accuracy 0.00" in d.why for d in off.values())
    last = max(Place.parse(at).round or 0 for at in shortlists)
    assert last < 11
    screened = Counter(
        Place.parse(place).round
        for place, candidate in places(events).items()
        for e in events
        if isinstance(e.payload, EvaluationFinished)
        and e.payload.verdict.candidate == candidate
        and e.payload.verdict.protocol is Depth.SCREEN
    )
    assert all(screened[number] == 4 for number in range(last + 1))
    assert screened[11] > 4
    asked_late = [place for place in model.asked if place.startswith("11/") and "soft" in place]
    assert asked_late == []


@pytest.mark.slow
@pytest.mark.parametrize("reply_s", [0.1, 30.0])
def test_soft_verifiers_that_take_longer_than_they_save_are_switched_off(
    store: Store, reply_s: float
) -> None:
    """They are always right; what they save is ten seconds a candidate that is passed over."""

    class Slow(Improviser):
        def complete(self, ask: Ask) -> Any:
            seconds = reply_s if ask.purpose == "soft" else 0.0
            return super().complete(ask).model_copy(update={"seconds": seconds})

    class Timed(PlayedReferee):
        def evaluate(self, order: Order) -> Verdict:
            return super().evaluate(order).model_copy(update={"seconds": {"verify": 10.0}})

    def half_broken(place: str) -> str:
        odd = int(hashlib.sha256(place.encode()).hexdigest(), 16) % 2
        return kernel(fails="INCORRECT", tag=place * 3) if odd else distinct(place)

    asked = request("evolve", 12, options={"soft": True, "judged": False})
    result = run_campaign(
        asked,
        store,
        Timed(fate=as_it_says, noise=0.001),
        players=seats(Slow(answer=half_broken), says=lambda s: "broken" if "fails" in s else "ok"),
    )
    off = decided_at(store.events(result.campaign), SwitchedOff)
    assert set(off) >= ({"soft numerics"} if reply_s > 10 else set())
    too_dear = off.get("soft numerics")
    assert bool(too_dear) == (reply_s > 10)
    assert too_dear is None or "asking took" in too_dear.why


def test_lessons_reach_the_prompts_of_later_generations(store: Store) -> None:
    model = Improviser(answer=distinct)
    asked = request("evolve", 3, options={"reflect_every": 2, "judged": False})
    run_campaign(asked, store, referee(), players=seats(model, lessons=["wider is better"]))
    told = [
        a.messages[0].content for a in model.asks if "told wider is better" in a.messages[0].content
    ]
    assert {Place.parse(prompt.partition("\n")[0].split()[0]).round for prompt in told} == {2}
    assert [p for p in model.asked if "reflect" in p] == ["1/lessons/reflect/0"]


def test_what_is_too_close_is_asked_for_once_more(store: Store) -> None:
    def close(place: str) -> str:
        slot = Place.parse(place).slot
        if slot in (0, 4):
            # Both of island 0: they differ in one word of many.
            return kernel(step=7, **{f"w{n}": n for n in range(40)}, last=str(slot))
        return distinct(place)

    model = Improviser(answer=close)
    events = play(store, 1, model)
    again = [at for at, d in decided_at(events, Compared).items() if d.like]
    assert again == ["0/4"]
    assert model.asked[-2:] == ["0/12/write/1", "0/leader/judge/1"]
    # The second try takes the place of what was too close.
    niches = [d.candidate for d in decided(events, Born)]
    assert len(niches) == 8
    assert places(events)["0/12"] in niches
    assert places(events)["0/4"] not in niches


@pytest.mark.parametrize("cap", [{"evaluations": 10.0}, {"tokens": 2300.0}])
def test_a_cap_ends_it_after_what_was_paid_is_evaluated_and_can_be_raised(
    store: Store, cap: dict[str, float]
) -> None:
    model = Improviser(answer=distinct, slots=3)
    asked = request("evolve", 3, limits=cap)
    first = run_campaign(asked, store, referee(), players=seats(model))
    assert first.stopped_by == next(iter(cap))
    events = store.events(first.campaign)
    assert first.evaluated == len(places(events))
    raised = dict.fromkeys(cap, 1e6)
    second = resume_campaign(first.campaign, store, referee(), raised, players=seats(model))
    assert second.stopped_by == "rounds"
    assert max(Counter(model.asked).values()) == 1
    assert second.evaluated > first.evaluated


@pytest.mark.parametrize("options", [{"islands": 0}, {"isles": 3}, {"proposals": "many"}])
def test_settings_that_cannot_be_are_refused(store: Store, options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=next(iter(options))):
        run_campaign(
            request("evolve", options=options), store, referee(), players=seats(Improviser())
        )


def test_an_interrupt_stops_between_two_evaluations(store: Store) -> None:
    stop, one = Stop(), referee()
    one.before = lambda _order: stop.request() if len(one.asked) == 3 else None
    asked = request("evolve", 2)
    model = Improviser(answer=distinct)
    result = run_campaign(asked, store, one, players=seats(model), stop=stop)
    assert (result.stopped_by, result.evaluated) == ("interrupted", 3)


def test_s6_an_ensemble_learns_the_same_from_the_events(tmp_path: Path) -> None:
    """S6: killed in the middle and taken up by a new ensemble, it asks the same models."""

    def members() -> tuple[Improviser, Improviser]:
        return (
            Improviser(answer=distinct, name="played/a"),
            Improviser(answer=distinct, name="played/b"),
        )

    heard = []
    for rounds in ((4,), (2, 4)):
        pair = members()
        with Store.open(tmp_path / str(len(rounds))) as store:
            result = None
            for limit in (None, *rounds[1:]) if len(rounds) > 1 else (None,):
                ensemble = Ensemble(pair, seed=3)
                table = seats(ensemble)  # type: ignore[arg-type]
                if result is None:
                    caps = {"evaluations": 16.0} if len(rounds) > 1 else {}
                    asked = request("evolve", 4, limits=caps, seed=3)
                    result = run_campaign(asked, store, referee(), players=table)
                else:
                    more = {"evaluations": float(limit or 0) * 1000}
                    resume_campaign(result.campaign, store, referee(), more, players=table)
        heard.append([sorted(one.asked) for one in pair])
        assert all(one.asked for one in pair)
    assert heard[0] == heard[1]


def test_the_champion_is_the_best_that_was_confirmed(store: Store) -> None:
    events = play(store, 3)
    assert events[-1].payload.best is not None  # type: ignore[union-attr]
    crowned = [e.payload for e in events if isinstance(e.payload, ChampionChanged)][-1]
    assert candidate_id(store.get_blob(crowned.candidate).decode()) == crowned.candidate
