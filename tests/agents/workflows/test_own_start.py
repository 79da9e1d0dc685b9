"""A campaign that begins from the user's own kernel, in every workflow that writes candidates."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.agents.workflows.own_start import START
from kernelwright.agents.workflows.workflow import WORKFLOWS
from kernelwright.errors import UsageError
from kernelwright.running import run_campaign
from kernelwright.tests.agents.asked import PlayedModel, as_it_says, source
from kernelwright.tests.agents.played import PlayedReferee, players
from kernelwright.tests.agents.workflows.staged import Improviser, Scene, request, seats
from kernelwright.tests.agents.workflows.test_every_workflow import SMALL
from kernelwright.traces.events import CandidateProposed
from kernelwright.traces.history import derive
from kernelwright.traces.records import Depth, candidate_id
from kernelwright.traces.store import Store

WRITTEN = [n for n, each in WORKFLOWS.items() if each.has_model is not False and n != "transpile"]
OWN = source(step=7, tag="mine")
WRONG = source(step=7, tag="mine", fails="INCORRECT")
HOST = "__global__ void f() {}\nvoid launch() { f<<<1, 1>>>(); }\n"


def scene(name: str, own: str = OWN) -> Scene:
    asked = request(name, source=own, **SMALL[name])
    return Scene(
        asked,
        lambda: Improviser({}),
        seats,
        referee=lambda: PlayedReferee(fate=as_it_says, noise=0.001),
    )


def first_words(model: PlayedModel) -> str:
    """What the Coder was asked first; in `forge` the Judge speaks before it."""
    words = [ask.messages[0].content for ask in model.asks]
    return next(each for each in words if each.split("/")[2] != "judge")


@pytest.mark.parametrize("name", WRITTEN)
def test_it_is_candidate_1_screened_confirmed_and_the_base_of_the_first_edit(
    store: Store, name: str
) -> None:
    played = scene(name)
    model = played.model()
    result = run_campaign(played.request, store, played.referee(), players=seats(model))
    history = derive(store.events(result.campaign))
    first = next(iter(history.entries.values()))
    assert (first.number, first.candidate) == (1, candidate_id(OWN))
    assert [v.protocol for v in first.verdicts][:2] == [Depth.SCREEN, Depth.CONFIRM]
    words = first_words(model)
    assert f"base {candidate_id(OWN)}" in words
    assert words.split("/")[2] in ("optimise", "features")


@pytest.mark.parametrize("name", WRITTEN)
def test_one_that_is_wrong_is_repaired(store: Store, name: str) -> None:
    played = scene(name, WRONG)
    model = played.model()
    run_campaign(played.request, store, played.referee(), players=seats(model))
    words = first_words(model)
    assert f"base {candidate_id(WRONG)}" in words
    assert words.split("/")[2] == "repair"


@pytest.mark.parametrize("name", WRITTEN)
def test_a_death_after_any_event_leads_to_the_same_story(tmp_path: Path, name: str) -> None:
    assert scene(name).survives(tmp_path, every=3, cursors=["kept", "lost"], in_turn=True)


def test_a_search_without_a_model_begins_from_it(store: Store) -> None:
    asked = request("tune", source=OWN, rounds=5).model_copy(update={"model": "recipe"})
    result = run_campaign(asked, store, PlayedReferee(fate=as_it_says), players=players())
    events = store.events(result.campaign)
    born = [e.payload for e in events if isinstance(e.payload, CandidateProposed)]
    assert (born[0].candidate, born[0].place) == (candidate_id(OWN), START)
    assert born[0].family == "own"
    assert len(born) == 5


def test_what_has_no_plan_and_nobody_to_write_one_is_refused(store: Store) -> None:
    asked = request("tune", source=HOST, rounds=5).model_copy(update={"model": "recipe"})
    with pytest.raises(UsageError, match="no launch plan could be written"):
        run_campaign(asked, store, PlayedReferee(fate=as_it_says), players=players())


def test_a_model_is_asked_for_the_plan_of_what_has_none(store: Store) -> None:
    played = scene("forge", HOST)
    model = played.model()
    run_campaign(played.request, store, played.referee(), players=seats(model))
    assert model.asked[0] == "source/convert/1"
    assert f"source {HOST}" in model.asks[0].messages[0].content
    assert "say their launches as a launch plan" in model.asks[0].messages[0].content
