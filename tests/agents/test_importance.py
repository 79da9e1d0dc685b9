"""Which knobs decide: a split of what the surrogate expects of a whole space."""

from __future__ import annotations

import itertools
import math

from kernelwright.agents.search.importance import LEAST_RIGHT, weigh_knobs
from kernelwright.agents.search.told import Told
from kernelwright.kernelbench.recipe import Knob
from kernelwright.kernelbench.space import FAMILY, Space, space_of_points
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.agents.played import PlayedReferee, players
from kernelwright.traces.history import derive
from kernelwright.traces.outcome import what_decides
from kernelwright.traces.store import Store

VECTORS, UNROLL, IDLE = (1, 2, 4, 8), (1, 2, 4), (0, 1, 2)


def space() -> Space:
    values = {FAMILY: ("rows", "pieces"), "vectors": VECTORS, "unroll": UNROLL}
    values |= {"idle": IDLE, "pieces": (2, 4)}
    knobs = [Knob(name, each, "") for name, each in values.items()]
    rows = itertools.product(VECTORS, UNROLL, IDLE)
    points = [{FAMILY: "rows", "vectors": v, "unroll": u, "idle": i} for v, u, i in rows]
    points += [
        {FAMILY: "pieces", "vectors": v, "unroll": 1, "idle": 0, "pieces": p}
        for v, p in itertools.product(VECTORS, (2, 4))
    ]
    return space_of_points(knobs, points)


def cost(point: dict[str, object]) -> float:
    slow = {1: 1.5, 2: 1.2, 4: 1.0, 8: 1.3}[int(str(point["vectors"]))]
    return math.log(slow * (1.0 + 0.05 * int(str(point["unroll"]))))


def told(held: Space, every: int) -> list[Told]:
    return [Told(at, cost(dict(held.at(at)))) for at in range(0, len(held), every)]


def test_the_knob_that_decides_comes_first_and_what_does_nothing_is_told() -> None:
    held = space()
    found = weigh_knobs(held, told(held, 2), 0)
    shares = {each.knob: each for each in found}
    assert found[0].knob == "vectors"
    assert shares["vectors"].share > 0.5
    assert (shares["vectors"].best, shares["vectors"].worst) == ("4", "1")
    assert 0.2 < shares["vectors"].gain < 0.6
    assert shares["idle"].share < 0.02
    assert shares["unroll"].share > shares["idle"].share
    assert shares.keys() == {FAMILY, "vectors", "unroll", "idle", "pieces"}
    assert all(0.0 <= each.share <= 1.0 for each in found)


def test_of_few_points_nothing_is_told_and_failures_are_none_of_them() -> None:
    held = space()
    some = told(held, 3)
    assert weigh_knobs(held, some[: LEAST_RIGHT - 1], 0) == ()
    failures = [each._replace(value=None) for each in some[LEAST_RIGHT - 1 :]]
    assert weigh_knobs(held, [*some[: LEAST_RIGHT - 1], *failures], 0) == ()
    assert weigh_knobs(held, some[:LEAST_RIGHT], 0)


def test_a_campaign_says_it_of_its_recipes(store: Store) -> None:
    asked = CampaignRequest(problem="doubling", limits={"evaluations": 30}, seed=3)
    result = run_campaign(asked, store, PlayedReferee(), players=players())
    history = derive(store.events(result.campaign))
    assert history.finished is not None
    assert {each.knob for each in history.finished.knobs} >= {"width", "unroll"}
    assert "width" in what_decides(history)
