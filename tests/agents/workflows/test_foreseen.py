"""What the referee is told of the candidates that come next, so that it can build them ahead."""

from __future__ import annotations

import pytest

from kernelwright.agents.workflows.best_of_n import ABREAST
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.agents.asked import kernel
from kernelwright.tests.agents.played import PlayedReferee, players
from kernelwright.tests.agents.workflows.staged import Improviser, referee, request, seats
from kernelwright.traces.records import Depth
from kernelwright.traces.store import Store


def screened(played: PlayedReferee) -> list[str]:
    return [candidate for candidate, protocol in played.asked if protocol is Depth.SCREEN]


@pytest.mark.parametrize("workflow", ["contrast", "features", "evolve"])
def test_the_rest_of_a_wave_is_foreseen_as_its_first_is_evaluated(
    store: Store, workflow: str
) -> None:
    played = referee()
    before: dict[str, set[str]] = {}
    played.before = lambda _order: before.setdefault(played.asked[-1][0], set(played.foreseen))
    options = {} if workflow == "evolve" else {"abreast": 4}
    asked = request(workflow, 1, limits={"evaluations": 4}, options=options)
    run_campaign(asked, store, played, players=seats(Improviser({}, slots=4)))
    first, *others = screened(played)
    assert others
    assert set(others) <= before[first]
    assert first not in before[first]


def test_independent_samples_are_foreseen_as_their_answers_come(store: Store) -> None:
    played = referee()
    seen: list[int] = []
    played.before = lambda _order: seen.append(len(played.foreseen))
    script = {f"0/{n}/write/1": kernel(step=n) for n in range(2 * ABREAST)}
    run_campaign(
        request("best_of_n", 2 * ABREAST), store, played, players=seats(Improviser(script, slots=3))
    )
    assert seen[0] == ABREAST
    assert sorted(played.foreseen) == sorted(screened(played))


def tuned(store: Store, target: str) -> PlayedReferee:
    played = PlayedReferee()
    asked = CampaignRequest(problem="doubling", target=target, limits={"evaluations": 24}, seed=3)
    run_campaign(asked, store, played, players=players())
    return played


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_recipes_are_foreseen_as_many_as_are_built_at_once(store: Store, target: str) -> None:
    played = tuned(store, target)
    assert played.facts["cpus"] == 2.0
    # The first of those that wait is evaluated at once.
    assert played.foreseen == screened(played)[1:]


def test_whoever_is_to_be_confirmed_is_foreseen_once(store: Store) -> None:
    played = tuned(store, "cpu")
    confirmed = [candidate for candidate, depth in played.asked if depth is Depth.CONFIRM]
    assert confirmed
    assert set(confirmed) <= set(played.to_be_confirmed)
    assert len(set(played.to_be_confirmed)) == len(played.to_be_confirmed)
