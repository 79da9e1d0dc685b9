"""The offline Coder: the same history gives the same next candidate, and nothing comes twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.agents.brains.recipe import RecipeCoder
from kernelwright.agents.roles import Member, Proposal, Situation, TriedPoint
from kernelwright.agents.stop import NothingToGain
from kernelwright.errors import UsageError
from kernelwright.kernelbench.recipe import Recipe
from kernelwright.tests.agents.played import (
    FACTS,
    PlayedReferee,
    problem,
    recipe,
    recipes,
)
from kernelwright.traces.records import Advice, candidate_id
from kernelwright.verifier.request import Order


def situation(
    round: int = 0,
    *,
    seed: int = 0,
    parents: Sequence[Member] = (),
    seen: frozenset[str] = frozenset(),
) -> Situation:
    return Situation(
        problem=problem(),
        target="cpu",
        language="cpp",
        facts=FACTS,
        round=round,
        seed=seed,
        parents=tuple(parents),
        seen=seen,
    )


def member(of: Recipe, advice: dict[str, object] | None = None, **knobs: int | str) -> Member:
    chosen = {**of.first_knobs(), **knobs}
    source = of.render(chosen)
    candidate = candidate_id(source)
    return Member(
        candidate=candidate,
        number=1,
        source=source,
        language="cpp",
        family=of.family,
        knobs=chosen,
        verdict=PlayedReferee().evaluate(Order(source=source, language="cpp")),
        advice=Advice(candidate=candidate, bottleneck="b", change="do it", hints=advice)
        if advice is not None
        else None,
    )


def play(coder: RecipeCoder, seed: int, rounds: int) -> list[Proposal]:
    """Proposals of consecutive rounds, each with the last two as parents."""
    proposals: list[Proposal] = []
    by_family = {r.family: r for r in recipes()}
    seen: frozenset[str] = frozenset()
    for round in range(rounds):
        parents = [member(by_family[p.family], **p.knobs) for p in proposals[-2:]]
        proposal = coder.propose(situation(round, seed=seed, parents=parents, seen=seen))
        if proposal is None:
            break
        proposals.append(proposal)
        seen |= {candidate_id(proposal.source)}
    return proposals


def test_the_defaults_of_all_families_come_first() -> None:
    first = play(RecipeCoder(recipes()), seed=3, rounds=2)
    assert [p.family for p in first] == [r.family for r in recipes()]
    assert [p.knobs for p in first] == [r.first_knobs() for r in recipes()]
    assert {p.operator for p in first} == {"initial"}


def test_the_initial_sample_is_spread_over_the_families() -> None:
    families = [p.family for p in play(RecipeCoder(recipes()), seed=3, rounds=6)]
    assert families == ["row-balanced", "nnz-balanced"] * 3


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_the_whole_space_comes_once_and_then_nothing(seed: int) -> None:
    size = sum(r.size(FACTS) for r in recipes())
    proposals = play(RecipeCoder(recipes()), seed, size + 1)
    assert len({candidate_id(p.source) for p in proposals}) == len(proposals) == size
    for proposal in proposals:
        of = next(r for r in recipes() if r.family == proposal.family)
        assert of.is_legal(proposal.knobs, FACTS)
        assert proposal.source == of.render(proposal.knobs)


def test_a_fresh_coder_goes_on_exactly_where_another_stopped() -> None:
    assert play(RecipeCoder(recipes()), 5, 25) == play(RecipeCoder(recipes()), 5, 25)
    used = RecipeCoder(recipes())
    play(used, 99, 10)
    assert play(used, 5, 25) == play(RecipeCoder(recipes()), 5, 25)


def test_another_seed_takes_another_way() -> None:
    assert play(RecipeCoder(recipes()), 1, 20) != play(RecipeCoder(recipes()), 2, 20)


def evolved(parents: Sequence[Member], seeds: int = 150) -> list[Proposal]:
    coder = RecipeCoder(recipes())
    seen = frozenset(p.candidate for p in parents)
    proposals = [
        coder.propose(situation(9, seed=s, parents=parents, seen=seen)) for s in range(seeds)
    ]
    return [p for p in proposals if p is not None]


def cost(of: Recipe, knobs: dict[str, int | str]) -> float:
    """The logarithm of a time with one optimum: the last value of every knob."""
    return sum(
        0.3 * (len(k.values) - 1 - k.values.index(knobs[k.name])) for k in of.knobs
    ) + 0.2 * (of.family == "row-balanced")


def searched(rounds: int, seed: int, is_told: bool) -> list[float]:
    """The costs of a search's candidates, in their order."""
    coder, by_family = RecipeCoder(recipes()), {r.family: r for r in recipes()}
    tried: list[TriedPoint] = []
    for round in range(rounds):
        now = situation(round, seed=seed, seen=frozenset(t.candidate for t in tried))
        proposal = coder.propose(replace(now, tried=tuple(tried) if is_told else ()))
        assert proposal is not None
        value = cost(by_family[proposal.family], proposal.knobs)
        candidate = candidate_id(proposal.source)
        tried.append(TriedPoint(candidate, proposal.family, proposal.knobs, value, 0.05))
    return [t.value for t in tried if t.value is not None]


def test_what_was_tried_guides_the_search() -> None:
    seeds = range(6)
    guided, blind = (
        [min(searched(14, seed, is_told)) for seed in seeds] for is_told in (True, False)
    )
    optimum = min(cost(r, k) for r in recipes() for k in r.space(FACTS))
    assert sorted(guided)[len(guided) // 2] == pytest.approx(optimum)
    assert sum(guided) < sum(blind)


def search_on(coder: RecipeCoder, of: Recipe, tried: list[TriedPoint]) -> None:
    """Until the coder ends it, or the space does; what is told is good to a tenth of a per cent."""
    while len(tried) < of.size(FACTS):
        now = situation(len(tried), seen=frozenset(t.candidate for t in tried))
        proposal = coder.propose(replace(now, tried=tuple(tried)))
        assert proposal is not None
        value = cost(of, proposal.knobs)
        candidate = candidate_id(proposal.source)
        tried.append(TriedPoint(candidate, proposal.family, proposal.knobs, value, 0.001))


def test_it_ends_where_next_to_nothing_is_to_be_gained_and_has_the_best_by_then() -> None:
    wide = recipe("row-balanced", **{f"k{n}": (1, 2, 4, 8) for n in range(6)})
    tried: list[TriedPoint] = []
    with pytest.raises(NothingToGain):
        search_on(RecipeCoder([wide]), wide, tried)
    assert len(tried) < wide.size(FACTS) / 10
    optimum = min(cost(wide, knobs) for knobs in wide.space(FACTS))
    assert min(t.value for t in tried if t.value is not None) == pytest.approx(optimum)


def test_a_guided_candidate_names_the_nearest_parent_and_what_it_moves() -> None:
    of = recipes()[1]
    near, far = member(of, width=2, unroll=2), member(of, width=4, unroll=4)
    stranger = member(recipes()[0])
    guided = [p for p in evolved([far, stranger, near]) if p.operator == "guided"]
    assert len(guided) > 50
    for proposal in guided:
        assert {"row-balanced": {stranger.candidate}}.get(
            proposal.family, {near.candidate, far.candidate}
        ) >= set(proposal.parents)
        assert len(proposal.parents) == 1
        assert "→" in proposal.strategy


def test_points_that_failed_are_not_proposed_again() -> None:
    of = recipes()[0]
    failed = [TriedPoint(candidate_id(of.render(k)), of.family, k, None) for k in of.space(FACTS)]
    now = situation(9, seen=frozenset(t.candidate for t in failed))
    proposal = RecipeCoder(recipes()).propose(replace(now, tried=tuple(failed)))
    assert proposal is not None
    assert proposal.family != of.family


def test_advice_on_a_knob_is_followed() -> None:
    parent = member(recipes()[1], {"prefetch": [8, 16]}, width=2)
    advised = [p for p in evolved([parent]) if p.operator == "advised"]
    assert len(advised) > 20
    for proposal in advised:
        assert proposal.strategy == "do it"
        assert proposal.knobs["prefetch"] in (8, 16)
        assert {**proposal.knobs, "prefetch": 0} == parent.knobs


def test_advice_to_change_the_family_is_followed_and_keeps_shared_knobs() -> None:
    parent = member(recipes()[0], {"family": "nnz-balanced"}, width=4)
    advised = [p for p in evolved([parent]) if p.operator == "advised"]
    assert len(advised) > 20
    assert {p.family for p in advised} == {"nnz-balanced"}
    assert sum(p.knobs["width"] == 4 for p in advised) > len(advised) / 3


@pytest.mark.parametrize(
    "hints",
    [{"no such knob": [1]}, {"prefetch": [3]}, {"prefetch": "8"}, {"family": "unknown"}, {}],
)
def test_advice_that_means_nothing_here_is_passed_over(hints: dict[str, object]) -> None:
    proposals = evolved([member(recipes()[1], hints)])
    assert len(proposals) == 150
    assert "advised" not in {p.operator for p in proposals}


def test_knobs_that_do_not_show_in_the_source_do_not_make_new_candidates() -> None:
    of = recipe("row-balanced", width=(1, 2))
    blind = Recipe(
        problem=of.problem,
        family=of.family,
        language=of.language,
        summary=of.summary,
        knobs=of.knobs,
        render=lambda _knobs: "same",
    )
    coder = RecipeCoder([blind])
    assert coder.propose(situation()) is not None
    assert coder.propose(situation(1, seen=frozenset({candidate_id("same")}))) is None


def test_an_illegal_default_is_replaced_by_a_legal_point() -> None:
    of = recipe("row-balanced", width=(8, 1), unroll=(4, 1))
    proposal = RecipeCoder([of]).propose(situation())
    assert proposal is not None
    assert of.is_legal(proposal.knobs, FACTS)


def test_a_coder_without_recipes_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="no recipe for this problem") as caught:
        RecipeCoder(())
    assert "--from FILE" in caught.value.hint
