"""A champion that no longer holds when a challenger meets it loses its crown, and stays known."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.agents.books.progress import Progress
from kernelwright.compare.plan import BenchCampaign
from kernelwright.compare.scores import score
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.agents.asked import kernel, needs, source
from kernelwright.tests.agents.played import PlayedReferee, players
from kernelwright.tests.agents.workflows.staged import Improviser, Scene, referee, request
from kernelwright.traces.events import EvaluationFinished, Event
from kernelwright.traces.history import derive
from kernelwright.traces.records import Depth, Status, Verdict, candidate_id
from kernelwright.traces.report import render_report
from kernelwright.traces.store import Store
from kernelwright.verifier.request import Order

STEPS = (2, 6, 12, 20)
SCRIPT = {f"{n}/0/{'optimise' if n else 'write'}/1": kernel(step=s) for n, s in enumerate(STEPS)}


def fallen(events: list[Event]) -> list[Verdict]:
    verdicts = [p.verdict for e in events if isinstance(p := e.payload, EvaluationFinished)]
    return [v.champion for v in verdicts if v.champion]


def third_meets_a_champion_that_fell(fails: Status | None = None) -> PlayedReferee:
    third, played = source(step=STEPS[2]), referee()
    inner = played.fate
    played.falls = lambda order: order.source == third
    played.fate = lambda order: (
        fails if order.source == third and order.protocol is Depth.CONFIRM else inner(order)
    )
    return played


def test_the_challenger_of_a_fallen_champion_takes_its_place(store: Store) -> None:
    scene = Scene(request("forge", 3), lambda: Improviser(SCRIPT), referee=_third_falls)
    result = scene.play(store)
    events = store.events(result.campaign)
    history = derive(events)
    second = candidate_id(source(step=STEPS[1]))
    assert [v.candidate for v in fallen(events)] == [second]
    assert result.best is not None
    assert result.best.candidate == history.champion == candidate_id(source(step=STEPS[2]))
    entry = history.entries[second]
    assert entry.verdict is not None
    assert entry.verdict.status is Status.CRASHED
    assert history.by_status[Status.CRASHED] == result.by_status["CRASHED"] == 1
    assert second not in {e.candidate for e in Progress(events).archive.elites()}
    assert [(f.candidate, f.beside) for f in history.falls] == [(second, history.champion)]
    page = render_report(store, result.campaign, charts=False)
    assert "which failed beside it and then alone: CRASHED, played CRASHED" in page


def test_where_the_challenger_fails_too_the_champion_before_is_champion_again(
    store: Store,
) -> None:
    scene = Scene(request("forge", 3), lambda: Improviser(SCRIPT), referee=_both_fail)
    result = scene.play(store)
    first = candidate_id(source(step=STEPS[0]))
    events = store.events(result.campaign)
    history = derive(events)
    assert result.best is not None
    assert result.best.candidate == history.champion == first
    steps = history.best_so_far()
    assert [step.number for step in steps] == [1, 2, 3]
    assert steps[0].credited == steps[2].credited < steps[1].credited
    trial = BenchCampaign(problem="doubling", seed=1, workflow="forge")
    scored = score(trial, result.campaign, events)
    assert scored.credited == scored.steps[0].credited < scored.steps[1].credited
    assert scored.steps[-1].credited == scored.credited


def test_the_first_champion_leaves_none_behind(store: Store) -> None:
    """Recipes, one at a time: the first confirmation beside a champion brings it down."""
    played = PlayedReferee()
    played.falls = _only_first()
    played.fate = lambda order: (
        Status.INCORRECT if order.protocol is Depth.CONFIRM and order.champion else None
    )
    asked = CampaignRequest(problem="doubling", limits={"evaluations": 30}, seed=7)
    result = run_campaign(asked, store, played, players=players())
    events = store.events(result.campaign)
    (lost,) = fallen(events)
    history = derive(events)
    assert history.champion != lost.candidate
    assert result.best is None or result.best.candidate == history.champion


@pytest.mark.slow
def test_a_death_anywhere_changes_nothing_of_a_fall(tmp_path: Path) -> None:
    scene = Scene(request("forge", 4), lambda: Improviser(SCRIPT), referee=_both_fail)
    assert scene.survives(tmp_path, every=3, cursors=("kept", "lost")) > 5


THIRD = kernel(step=STEPS[2])
LONG: dict[str, tuple[dict[str, object], dict[str, str]]] = {
    # The second of two rounds without a right kernel, if the champion never had been one.
    "forge": (
        {"rounds": 5},
        {
            "0/0/write/1": kernel(step=2),
            "1/0/optimise/1": kernel(fails="INCORRECT"),
            "2/0/repair/1": kernel(step=6),
            "3/0/optimise/1": THIRD,
            "4/0/optimise/1": kernel(step=20),
        },
    ),
    # Another one of the champion's round would be confirmed.
    "contrast": (
        {"rounds": 4, "options": {"proposals": 2}},
        {
            **{f"0/{n}/write/1": kernel(step=n) for n in range(4)},
            "1/0/contrast/1": kernel(step=6),
            "1/1/contrast/1": kernel(step=5),
            "2/0/contrast/1": THIRD,
            "2/1/contrast/1": kernel(step=4),
            "3/0/contrast/1": kernel(step=20),
            "3/1/contrast/1": kernel(step=7),
        },
    ),
    # What was tuned would be another one, and there would be more to optimise.
    "transpile": (
        {"options": {"tunings": 1, "optimisations": 3}},
        {
            "0/0/translate/1": f"```\n#define TILE 8\n{source(step=2)}```\n",
            "2/0/optimise/1": THIRD,
            "3/0/optimise/1": kernel(step=20),
            "4/0/optimise/1": kernel(step=19),
        },
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("workflow", list(LONG))
def test_a_choice_from_before_a_fall_comes_out_as_it_did(tmp_path: Path, workflow: str) -> None:
    """The checkpoint is lost, and the champion of the first rounds has fallen meanwhile."""
    settings, script = LONG[workflow]
    asked = request(workflow, **{**needs(workflow), **settings})
    scene = Scene(asked, lambda: Improviser(script), referee=_third_falls)
    with Store.open(tmp_path / "seen") as store:
        assert fallen(store.events(scene.play(store).campaign))
    assert scene.survives(tmp_path, every=3, cursors=("lost",)) > 5


def _third_falls() -> PlayedReferee:
    return third_meets_a_champion_that_fell()


def _both_fail() -> PlayedReferee:
    return third_meets_a_champion_that_fell(Status.INCORRECT)


def _only_first():
    seen: list[str] = []

    def falls(order: Order) -> bool:
        seen.append(order.source)
        return len(seen) == 1

    return falls
