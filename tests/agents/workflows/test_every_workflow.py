"""What holds for every workflow of the table, whatever it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelwright.agents.books.asking import Asking
from kernelwright.agents.books.budget import CAPS_OF_WORK
from kernelwright.agents.casting.cast import Players
from kernelwright.agents.casting.preview import preview
from kernelwright.agents.model import Ask
from kernelwright.agents.workflows import admission, workflow
from kernelwright.agents.workflows.workflow import WORKFLOWS, find_workflow
from kernelwright.errors import UnknownNameError, UsageError
from kernelwright.running import plan_campaign, resume_campaign, run_campaign
from kernelwright.tests.agents import spoken
from kernelwright.tests.agents.asked import (
    PlainJudge,
    PlayedModel,
    Script,
    as_it_says,
    kernel,
    needs,
)
from kernelwright.tests.agents.played import Clock, PlayedReferee, players
from kernelwright.tests.agents.workflows.staged import (
    Improviser,
    Scene,
    decided,
    request,
    seats,
)
from kernelwright.tests.agents.workflows.test_contrast import JUMP
from kernelwright.tests.sampling import IS_WHOLE
from kernelwright.traces.decisions import (
    AnyDecision,
    BaseChosen,
    Born,
    Compared,
    Credited,
    ExemplarsChosen,
    GainsTabled,
    IslandsStood,
    LessonsDrawn,
    LookedTwice,
    SecondOpinion,
    Shortlisted,
    SoftVerdicts,
)
from kernelwright.traces.events import CampaignStarted, ModelRequested
from kernelwright.traces.records import Record
from kernelwright.traces.store import Store

SMALL: dict[str, dict[str, Any]] = {
    "best_of_n": {"rounds": 4},
    "contrast": {"rounds": 3, "options": {"drafts": 2}},
    "evolve": {
        "rounds": 2,
        "options": {"proposals": 3, "evaluated": 2, "islands": 2, "soft": True, "reflect_every": 1},
    },
    "features": {"rounds": 2, "options": {"proposals": 2, "repairs": 1}},
    "forge": {"rounds": 4},
    "refine": {"rounds": 4},
    "transpile": {"options": {"fixes": 2, "tunings": 1, "optimisations": 2}},
    "tune": {"rounds": 5, "options": {"confirm_after": 1}},
}
"""Of each a campaign of a handful of rounds, with every step that it has."""

FIRST_FAILS = {
    f"0/0/{mode}/1": kernel(fails="BUILD_FAILED") for mode in ("write", "features", "translate")
}
CAPS = {"evaluations": 3, "seconds": 25, "device_seconds": 25, "usd": 0.06, "tokens": 600}
EVERY = sorted(SMALL)
WRITTEN = [name for name in EVERY if WORKFLOWS[name].has_model is not False]
"""Those whose candidates a model may write."""

ENDED_BY = [(n, cap) for n in EVERY for cap in CAPS if n in WRITTEN or cap in CAPS_OF_WORK]
"""What a Judge may not spend any more costs a search over recipes no candidate."""


def searching(model: PlayedModel) -> Players:
    """Recipes, and a Judge that asks a model."""
    return replace(players(), judge=Asking(model, PlainJudge))


def scene(name: str, clock: Clock | None = None, **more: Any) -> Scene:
    """The small campaign of a workflow."""
    asked = request(name, **{**SMALL[name], **needs(name), **more})
    return Scene(
        asked,
        lambda: Improviser(FIRST_FAILS),
        seats if name in WRITTEN else searching,
        referee=lambda: PlayedReferee(fate=as_it_says, noise=0.001, clock=clock, screen_s=10.0),
    )


def test_the_table_has_every_workflow_and_each_is_tried_here() -> None:
    assert set(SMALL) == set(WORKFLOWS)
    folder = Path(str(workflow.__file__)).parent
    brought = {file.stem for file in folder.glob("*.py") if "\nRULES = " in file.read_text()}
    assert set(WORKFLOWS) == brought
    with pytest.raises(UnknownNameError, match="forgery") as caught:
        find_workflow("forgery")
    assert "did you mean forge?" in caught.value.hint


@pytest.mark.parametrize("name", EVERY)
def test_its_settings_come_back_as_they_were(store: Store, name: str) -> None:
    settings = find_workflow(name).rules.settings
    assert issubclass(settings, Record)
    usual = settings().model_dump(mode="json")
    chosen = settings.model_validate(SMALL[name].get("options", {}))
    # As a command line gives them, and as a campaign's first event keeps them.
    words = {setting: str(value) for setting, value in chosen.model_dump().items()}
    asked = scene(name, options=words).request
    admission.check_request(asked)
    result = run_campaign(
        asked.model_copy(update={"rounds": 1}),
        store,
        PlayedReferee(),
        players=scene(name).seats(Improviser()),
    )
    started = store.events(result.campaign)[0].payload
    assert isinstance(started, CampaignStarted)
    assert settings.model_validate(started.options) == chosen
    assert settings.model_validate(usual) == settings()
    with pytest.raises(UsageError, match=f"the setting no_such of {name}") as caught:
        admission.check_request(scene(name, options={"no_such": 1}).request)
    assert all(setting in caught.value.hint for setting in usual)


def stammering(count: int, _ask: Ask) -> str:
    """Every other reply is of no use, so that it is asked for again."""
    return "I think so." if count % 2 else spoken.reply(spoken.kernel(count))


def hesitant(_count: int, _ask: Ask) -> str:
    return "I would rather not."


def repeating(count: int, _ask: Ask) -> str:
    """Copies, which are asked for again where that is the way of the workflow."""
    return spoken.reply(spoken.kernel(min(count, 2)) + "//" * count + "\n")


@pytest.mark.parametrize("answer", [stammering, hesitant, repeating])
@pytest.mark.parametrize("name", WRITTEN)
def test_a_preview_shows_the_first_question_and_counts_no_fewer_than_are_asked(
    store: Store, name: str, answer: Callable[[int, Ask], str]
) -> None:
    table = spoken.seats(spoken.Speaker(answer))
    asked = scene(name, model="scripted:spoken", patience=99).request
    started = plan_campaign(asked, table, table.problem.default_workload, spoken.Reader())
    foreseen = preview(table, started, spoken.Reader(), asked.source)
    assert foreseen is not None
    result = run_campaign(asked, store, spoken.Reader(), players=table)
    said = spoken.said(store, result)
    assert [message.content for message in foreseen.ask.messages] == said[0].messages
    assert 0 < len(said) <= foreseen.calls


def test_where_the_coder_asks_no_model_nothing_is_previewed() -> None:
    table = searching(PlayedModel())
    asked = scene("tune").request
    started = plan_campaign(asked, table, table.problem.default_workload, PlayedReferee())
    assert preview(table, started, PlayedReferee()) is None


@pytest.mark.parametrize("name", EVERY)
def test_the_other_kind_of_coder_is_refused_where_it_cannot_be(store: Store, name: str) -> None:
    """And the sentence names the workflow that would do."""
    other = searching(PlayedModel()) if name in WRITTEN else seats(Improviser())
    has_model = find_workflow(name).has_model
    asked = scene(name, limits={"evaluations": 1}).request
    if has_model is None:
        assert run_campaign(asked, store, PlayedReferee(), players=other).evaluated == 1
        return
    with pytest.raises(UsageError, match=name) as caught:
        run_campaign(asked, store, PlayedReferee(), players=other)
    assert ("tune" if has_model else "evolve") in f"{caught.value} {caught.value.hint}"
    assert store.campaigns() == []


REPAIRED = {
    "1/0/repair/1": kernel(step=20),
    "2/0/optimise/1": "no code",
    "3/0/optimise/1": kernel(step=2),
    "4/0/optimise/1": kernel(fails="INCORRECT"),
}
TOLD: dict[str, Script] = {
    "contrast": JUMP | {"2/0/contrast/1": kernel(fails="BUILD_FAILED")},
    "features": FIRST_FAILS | {"0/1/features/1": kernel(fails="INCORRECT")},
    "forge": FIRST_FAILS | REPAIRED,
    "refine": FIRST_FAILS | REPAIRED,
    "transpile": FIRST_FAILS
    | {
        "1/0/repair/1": kernel(fails="INCORRECT"),
        "2/0/repair/1": kernel(step=2),
        "3/0/optimise/1": kernel(fails="CRASHED"),
    },
}
"""What fails, says nothing or is too good at once."""
MET: dict[str, set[type[AnyDecision]]] = {
    "contrast": {ExemplarsChosen, LookedTwice, SecondOpinion},
    "evolve": {Born, Compared, IslandsStood, LessonsDrawn, Shortlisted, SoftVerdicts},
    "features": {Credited, GainsTabled},
    "forge": {BaseChosen},
    "refine": {BaseChosen},
}
"""Decisions that a death must have been tried between."""
LONG = {"contrast", "evolve"}
"""Workflows of so many events that each death is tried with one state of the checkpoints."""


def mortal(name: str) -> Scene:
    """The small campaign of a workflow with every helper that its seats may have."""
    more = {
        "contrast": {"rounds": 4, "options": {}},
        "evolve": {"options": {**SMALL["evolve"]["options"], "abreast": 2}},
        "forge": {"rounds": 5},
        "refine": {"rounds": 5},
        "transpile": {"options": {"fixes": 3, "tunings": 1, "optimisations": 2}},
    }
    played = scene(name, **more.get(name, {}))
    if name in WRITTEN:
        played.model = lambda: Improviser(TOLD.get(name, FIRST_FAILS))
        played.seats = lambda one: seats(one, lambda _: "ok", ["a lesson"], lambda _: "suspect")
    return played


EVERY_SO_MANY = 1 if IS_WHOLE else 2
"""Events, after which it dies."""


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_s6_b7_it_goes_on_from_every_prefix_of_its_events(tmp_path: Path, name: str) -> None:
    """S6, B7: whether its checkpoints are still there or the events are all that there is."""
    played = mortal(name)
    every, in_turn = EVERY_SO_MANY, name in LONG
    deaths = played.survives(tmp_path, every=every, cursors=("kept", "lost"), in_turn=in_turn)
    assert deaths > 10 // every
    with Store.open(tmp_path / "whole") as store:
        events = store.events(store.campaigns()[0])
    assert all(decided(events, kind) for kind in MET.get(name, ()))


@pytest.mark.parametrize(("name", "cap"), ENDED_BY)
def test_every_cap_ends_it_in_order_and_may_be_raised(tmp_path: Path, name: str, cap: str) -> None:
    clock = Clock()
    played = scene(name, clock, limits={cap: CAPS[cap]}, patience=99)
    model = played.model()
    table = played.seats(model)
    with Store.open(tmp_path / "home", clock=clock) as store:
        first = run_campaign(played.request, store, played.referee(), players=table, clock=clock)
        assert first.stopped_by == cap
        assert first.tokens <= CAPS["tokens"] or cap != "tokens"
        assert (first.usd or 0.0) <= CAPS["usd"] or cap != "usd"
        assert first.evaluated <= CAPS["evaluations"] or cap != "evaluations"
        more = resume_campaign(
            first.campaign, store, played.referee(), {cap: 1e9}, players=table, clock=clock
        )
        kinds = [event.payload.kind for event in store.events(first.campaign)]
    assert more.stopped_by not in CAPS
    assert more.evaluated >= first.evaluated > 0
    assert more.best is not None
    assert len(set(model.asked)) == len(model.asked)
    assert kinds.count("evaluation.started") == kinds.count("evaluation.finished")


@pytest.mark.parametrize("name", EVERY)
def test_it_names_its_version_and_another_one_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    played = scene(name, limits={"evaluations": 1})
    result = played.play(store)
    events = store.events(result.campaign)
    started = events[0].payload
    assert isinstance(started, CampaignStarted)
    known = find_workflow(name)
    assert started.workflow_version.split("+")[0] == f"{name}/{known.version}"
    has_asked = any(isinstance(event.payload, ModelRequested) for event in events)
    assert ("+" in started.workflow_version) == has_asked
    monkeypatch.setitem(WORKFLOWS, name, replace(known, version=known.version + 1))
    with pytest.raises(UsageError, match=f"was run by {name}/.*and this is {name}/") as caught:
        resume_campaign(
            result.campaign, store, PlayedReferee(), players=played.seats(played.model())
        )
    assert "start a new campaign" in caught.value.hint
    assert store.events(result.campaign) == events
