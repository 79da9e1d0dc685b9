"""A viewer and a living search know the same of a campaign, at every moment of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.agents.books.progress import Progress
from kernelwright.agents.books.request import CampaignRequest
from kernelwright.agents.casting.cast import replay_request
from kernelwright.agents.models import replay
from kernelwright.agents.models.replay import ReplayModel
from kernelwright.running import run_campaign
from kernelwright.tests.agents.played import verdict_with
from kernelwright.tests.agents.recorded.file import read
from kernelwright.tests.agents.test_fallen_champion import SCRIPT, third_meets_a_champion_that_fell
from kernelwright.tests.agents.workflows.staged import Improviser, Scene, referee, request, seats
from kernelwright.traces.events import (
    CampaignStarted,
    CandidateProposed,
    ChampionChanged,
    EvaluationFinished,
    Event,
)
from kernelwright.traces.history import History, derive
from kernelwright.traces.records import Depth, Status, Verdict
from kernelwright.traces.store import Store

CAMPAIGNS = sorted((Path(__file__).parent / "recorded" / "campaigns").glob("*.json.gz"))
STARTED = CampaignStarted(
    problem="doubling",
    workload="usual",
    target="cpu",
    language="cpp",
    tier="cpu",
    workflow="forge",
    model="m",
    judge_model="m",
    seed=0,
    limits={},
)


def champion_of(events: Sequence[Event]) -> str | None:
    """The rule in a few words: the last that was crowned and has not fallen since."""
    crowned: list[str] = []
    for payload in (event.payload for event in events):
        if isinstance(payload, ChampionChanged):
            crowned.append(payload.candidate)
        elif isinstance(payload, EvaluationFinished):
            fell = (payload.decided_on or payload.verdict).champion
            crowned = [c for c in crowned if fell is None or c != fell.candidate]
    return crowned[-1] if crowned else None


def shown(fold: Any) -> tuple[object, ...]:
    return (
        fold.champion,
        fold.credited,
        fold.evaluated,
        fold.by_status,
        fold.limits,
        fold.finished,
        fold.falls,
        fold.spending,
        [
            (e.candidate, e.verdict and light(e.verdict), tuple(map(light, e.relied_on)), e.advice)
            for e in fold.entries.values()
        ],
    )


def light(verdict: Verdict) -> Verdict:
    """A search forgets what passed: it is most of a campaign, and nobody in it asks."""
    champion = verdict.champion and light(verdict.champion)
    failed = tuple(check for check in verdict.checks if not check.passed)
    return verdict.model_copy(update={"checks": failed, "champion": champion})


def assert_one_story(events: Sequence[Event]) -> None:
    progress, history = Progress(), History()
    for number, event in enumerate(events, 1):
        progress.apply(event)
        history.apply(event)
        assert progress.champion == history.champion == champion_of(events[:number])
        assert shown(progress) == shown(history)
    assert shown(derive(events)) == shown(Progress(events)) == shown(progress)
    for entry in progress.entries.values():
        held = (*entry.verdicts, *entry.relied_on, *([entry.fallen] if entry.fallen else []))
        assert not any(check.passed for verdict in held for check in verdict.checks)


@pytest.mark.parametrize("path", CAMPAIGNS, ids=lambda path: path.stem)
def test_of_every_recorded_campaign(path: Path, store: Store) -> None:
    assert_one_story(store.events(read(path, store)))


@pytest.mark.parametrize("fails", [None, Status.INCORRECT])
def test_where_champions_fall(store: Store, fails: Status | None) -> None:
    told = partial(third_meets_a_champion_that_fell, fails)
    result = Scene(request("forge", 3), lambda: Improviser(SCRIPT), referee=told).play(store)
    events = store.events(result.campaign)
    assert derive(events).falls
    assert_one_story(events)


def test_a_replay_in_which_the_champion_holds_goes_on_from_there(store: Store) -> None:
    """The same status beside another end of the champion is not the same outcome."""
    asked = request("forge", 3)
    played = Scene(asked, lambda: Improviser(SCRIPT), referee=third_meets_a_champion_that_fell)
    recording = replay.load(store, played.play(store).campaign)
    models = seats(ReplayModel(recording, "played/one"))
    again = run_campaign(
        replay_request(CampaignRequest(problem="doubling"), recording),
        store,
        referee(),
        players=dataclasses.replace(models, recorded=recording.verdicts),
    )
    events = store.events(again.campaign)
    finished = [p for e in events if isinstance(p := e.payload, EvaluationFinished)]
    assert [p.decided_on is None for p in finished].count(True) == 1
    assert not derive(events).falls
    assert_one_story(events)
    assert again.best is not None
    assert again.best.candidate == derive(events).champion


def looked_at(candidate: str, is_right: bool, fell: str | None) -> Verdict:
    """A confirmation; `fell`: the champion that failed beside it."""
    found = verdict_with(1.5 if is_right else None, status=Status.VERIFIED if is_right else None)
    told: dict[str, Any] = {"candidate": candidate, "protocol": Depth.CONFIRM}
    if fell is not None:
        wrong = verdict_with(None).model_copy(update={"protocol": Depth.CONFIRM})
        told["champion"] = wrong.model_copy(update={"candidate": fell})
    return found.model_copy(update=told)


@given(st.data())
def test_of_any_course_of_crowns_and_falls(data: st.DataObject) -> None:
    """Replays included, in which the referee may see another champion fall than was recorded."""
    payloads: list[Any] = [STARTED]
    crowned: list[str] = []
    for number in range(1, data.draw(st.integers(1, 6)) + 1):
        name = f"c{number}"
        payloads.append(
            CandidateProposed(
                candidate=name, number=number, language="cpp", family="f", operator="edit"
            )
        )
        standing = st.none() | st.sampled_from(crowned) if crowned else st.none()
        is_right = data.draw(st.booleans())
        verdict = looked_at(name, is_right, data.draw(standing))
        recorded = looked_at(name, is_right, data.draw(standing))
        decided_on = data.draw(st.sampled_from([None, recorded]))
        payloads.append(EvaluationFinished(verdict=verdict, decided_on=decided_on))
        fell = (decided_on or verdict).champion
        crowned = [c for c in crowned if fell is None or c != fell.candidate]
        if is_right and data.draw(st.booleans()):
            payloads.append(ChampionChanged(candidate=name, credited=1.0 + number))
            crowned.append(name)
    assert_one_story(
        [Event(seq=at, campaign="c", at=float(at), payload=p) for at, p in enumerate(payloads, 1)]
    )
