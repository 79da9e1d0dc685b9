"""A recorded campaign in the place of its models: the same decisions, without asking anybody."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kernelwright.agents.books.asking import Asking
from kernelwright.agents.casting.cast import Players, recording_of, replay_request
from kernelwright.agents.model import FaultKind, ModelFault
from kernelwright.agents.models import replay
from kernelwright.agents.models.replay import Recording, ReplayModel
from kernelwright.errors import ProviderError, UsageError
from kernelwright.running import CampaignRequest, CampaignResult, resume_campaign, run_campaign
from kernelwright.tests.agents.asked import (
    PlainCoder,
    PlainJudge,
    PlayedModel,
    as_it_says,
    asking_players,
    kernel,
    needs,
)
from kernelwright.tests.agents.deciding import decisions
from kernelwright.tests.agents.played import PlayedReferee, players, problem
from kernelwright.tests.agents.wording import reword
from kernelwright.tests.agents.workflows import staged
from kernelwright.traces.decisions import Born, LessonsDrawn, Shortlisted, SoftVerdicts
from kernelwright.traces.events import EvaluationFinished, ModelReplied
from kernelwright.traces.history import derive
from kernelwright.traces.records import Status
from kernelwright.traces.store import Store
from kernelwright.verifier.request import Order

SCRIPT = {
    "0/0/write/1": kernel(fails="BUILD_FAILED"),
    "2/0/optimise/1": "no code",
    "4/0/optimise/1": kernel(fails="INCORRECT"),
    "5/0/repair/1": ModelFault(FaultKind.CONTEXT, "too long"),
}


def record(store: Store, workflow: str = "forge", **limits: float) -> CampaignResult:
    asked = {"workflow": workflow, "rounds": 7, "limits": limits, **needs(workflow)}
    request = CampaignRequest.model_validate({"problem": "doubling", **asked})
    return run_campaign(
        request, store, noisy(1), players=asking_players(PlayedModel(SCRIPT, slots=3))
    )


def noisy(seed: int) -> PlayedReferee:
    """Timings that are never the same for two seeds, and rank candidates anew."""
    return PlayedReferee(seed=seed, noise=0.2, fate=as_it_says)


def seats(recording: Recording) -> Players:
    model = ReplayModel(recording, "played/one")
    return Players(
        problem(), Asking(model, PlainCoder), Asking(model, PlainJudge), recording.verdicts
    )


def play_again(store: Store, campaign: str, referee: PlayedReferee) -> CampaignResult:
    recording = replay.load(store, campaign)
    request = replay_request(CampaignRequest(problem="doubling"), recording)
    return run_campaign(request, store, referee, players=seats(recording))


@pytest.mark.parametrize(
    "workflow", ["forge", "refine", "best_of_n", "evolve", "contrast", "features", "transpile"]
)
def test_a_replay_decides_the_same_although_every_timing_differs(
    store: Store, workflow: str
) -> None:
    first = record(store, workflow)
    again = play_again(store, first.campaign, noisy(2))
    before, after = store.events(first.campaign), store.events(again.campaign)
    assert decisions(after) == decisions(before)
    assert (again.usd, again.tokens) == (0.0, 0)
    credits = [
        [e.payload.verdict.credited for e in events if isinstance(e.payload, EvaluationFinished)]
        for events in (before, after)
    ]
    assert credits[0] != credits[1]


def test_a_replay_of_generations_hears_doubts_and_lessons_again(store: Store) -> None:
    options = {"proposals": 4, "evaluated": 2, "islands": 2, "reflect_every": 1, "soft": True}
    asked = staged.request("evolve", 3, options=options)

    def players_of(model: PlayedModel | ReplayModel) -> Players:
        return staged.seats(model, says=lambda _source: "broken", lessons=["wider"])  # type: ignore[arg-type]

    first = run_campaign(asked, store, noisy(1), players=players_of(PlayedModel(slots=3)))
    recording = replay.load(store, first.campaign)
    again = run_campaign(
        replay_request(CampaignRequest(problem="doubling"), recording),
        store,
        noisy(2),
        players=dataclasses.replace(
            players_of(ReplayModel(recording, "played/one")), recorded=recording.verdicts
        ),
    )
    before, after = store.events(first.campaign), store.events(again.campaign)
    for kind in (Shortlisted, SoftVerdicts, LessonsDrawn, Born):
        assert staged.decided(before, kind)
    assert decisions(after) == decisions(before)


def test_the_replay_shows_its_own_verdicts(store: Store) -> None:
    first = record(store)
    again = play_again(store, first.campaign, noisy(2))
    shown = derive(store.events(again.campaign)).best
    assert shown is not None
    assert again.best is not None
    assert first.best is not None
    assert shown.verdict is not None
    assert shown.verdict.measurement is not None
    assert again.best.latency_us == shown.verdict.measurement.candidate.median_us
    assert again.best.candidate == first.best.candidate
    assert again.best.latency_us != first.best.latency_us


def test_a_replay_of_a_replay_is_one_too(store: Store) -> None:
    first = record(store)
    second = play_again(store, first.campaign, noisy(2))
    third = play_again(store, second.campaign, noisy(3))
    assert replay.load(store, second.campaign).coder == "recipe"
    assert decisions(store.events(third.campaign)) == decisions(store.events(first.campaign))


def test_a_replay_ends_where_a_cap_ended_the_recording(store: Store) -> None:
    first = record(store, tokens=1000.0)
    again = play_again(store, first.campaign, noisy(2))
    assert again.stopped_by == first.stopped_by == "tokens"
    assert decisions(store.events(again.campaign)) == decisions(store.events(first.campaign))


def test_a_replay_can_be_interrupted_and_resumed(store: Store) -> None:
    first = record(store)
    recording = replay.load(store, first.campaign)
    request = replay_request(
        CampaignRequest(problem="doubling", limits={"evaluations": 2}), recording
    )
    part = run_campaign(request, store, noisy(2), players=seats(recording))
    assert part.stopped_by == "evaluations"
    resume_campaign(part.campaign, store, noisy(2), {"evaluations": 99}, players=seats(recording))
    told = [d for d in decisions(store.events(part.campaign)) if d[0] != "campaign.finished"]
    assert told == decisions(store.events(first.campaign))[:-1]


def test_another_status_is_the_truth_and_leads_out_of_the_record(store: Store) -> None:
    def fate(order: Order) -> Status | None:
        return as_it_says(order) or (Status.INCORRECT if 'tag = "1/0' in order.source else None)

    first = record(store)
    with pytest.raises(ProviderError, match=r"recorded nothing at 2/0/repair/1") as caught:
        play_again(store, first.campaign, PlayedReferee(seed=2, fate=fate))
    assert "a verdict came out otherwise" in caught.value.hint


def test_with_other_prompts_the_place_alone_tells_the_answer(store: Store) -> None:
    first = record(store)
    recording = replay.load(store, first.campaign)
    words = {
        (place, "of another version"): answer for (place, _), answer in recording.answers.items()
    }
    old = dataclasses.replace(recording, answers=words)
    request = replay_request(CampaignRequest(problem="doubling"), old)
    with pytest.raises(ProviderError, match=r"recorded other words at 0/0/write/1"):
        run_campaign(request, store, noisy(2), players=seats(old))
    aware = dataclasses.replace(old, same_words=False)
    again = run_campaign(request, store, noisy(2), players=seats(aware))
    assert decisions(store.events(again.campaign)) == decisions(store.events(first.campaign))


def test_prompts_of_another_version_are_known(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = record(store)
    assert recording_of(store, first.campaign).same_words
    reword(monkeypatch, tmp_path)
    assert not recording_of(store, first.campaign).same_words


def test_a_replay_takes_everything_but_limits_from_the_record(store: Store) -> None:
    first = record(store)
    recording = replay.load(store, first.campaign)
    asked = CampaignRequest(problem="doubling", seed=99, workflow="evolve")
    request = replay_request(asked, recording)
    assert (request.workflow, request.rounds, request.seed) == ("forge", 7, 0)
    assert request.model == f"replay:{first.campaign}"
    assert request.limits == {}
    with pytest.raises(UsageError, match="was about doubling, not spmm_csr"):
        replay_request(asked.model_copy(update={"problem": "spmm_csr"}), recording)


def test_an_offline_campaign_replays_as_well(store: Store) -> None:
    request = CampaignRequest(problem="doubling", workflow="forge", rounds=9)
    first = run_campaign(request, store, noisy(1), players=players())
    recording = replay.load(store, first.campaign)
    offline = players()
    again = run_campaign(
        replay_request(CampaignRequest(problem="doubling"), recording),
        store,
        noisy(2),
        players=Players(offline.problem, offline.coder, offline.judge, recording.verdicts),
    )
    assert decisions(store.events(again.campaign)) == decisions(store.events(first.campaign))
    assert not [e for e in store.events(again.campaign) if isinstance(e.payload, ModelReplied)]
