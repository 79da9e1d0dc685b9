"""Campaigns that readers of the prompts played as Coder and Judge, replayed without them.

The referee answers with the recorded verdicts, so that nothing is built or timed; Coder, Judge,
workflow and books are the real ones, and come to the same decisions by reading the same replies.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.agents.casting.cast import recording_of, replay_request
from kernelwright.kernelbench.problem import Workload
from kernelwright.running import CampaignRequest, CampaignResult, run_campaign
from kernelwright.tests.agents.deciding import decisions
from kernelwright.tests.agents.recorded.file import content, read
from kernelwright.tests.agents.recorded.referee import RecordedReferee
from kernelwright.traces.events import CampaignStarted, EvaluationFinished, ModelReplied
from kernelwright.traces.history import derive
from kernelwright.traces.records import Status
from kernelwright.traces.store import Store

CAMPAIGNS = sorted((Path(__file__).parent / "recorded" / "campaigns").glob("*.json.gz"))


def replayed(store: Store, campaign: str) -> CampaignResult:
    recording = recording_of(store, campaign)
    started = recording.started
    request = replay_request(CampaignRequest(problem=started.problem), recording)
    workload = Workload.model_validate(started.workload_spec)
    return run_campaign(request, store, RecordedReferee(recording), workload=workload)


@pytest.mark.parametrize("path", CAMPAIGNS, ids=lambda path: path.stem)
def test_a_played_campaign_replays_with_the_same_decisions(path: Path, store: Store) -> None:
    campaign = read(path, store)
    again = replayed(store, campaign)
    before, after = store.events(campaign), store.events(again.campaign)
    was, now = decisions(before), decisions(after)
    # They were recorded before campaigns ended with a race.
    assert now[: len(was) - 1] == was[:-1]
    assert now[-1][1]["stopped_by"] == was[-1][1]["stopped_by"]  # type: ignore[index]
    assert (again.usd, again.tokens) == (0.0, 0)


def test_they_cover_what_people_use() -> None:
    """Six at least: two workflows, three languages, and three problems among them."""
    started = [_started(path) for path in CAMPAIGNS]
    assert len(started) >= 6
    assert {"forge"} < {s.workflow for s in started}
    assert {s.language for s in started} >= {"cpp", "cuda", "triton"}
    assert {s.problem for s in started} >= {"spmm_csr", "softmax", "gemm"}
    assert all(s.model.startswith("openai/") for s in started)


@pytest.mark.parametrize("path", CAMPAIGNS, ids=lambda path: path.stem)
def test_what_was_played_on_a_cpu_ended_verified(path: Path, store: Store) -> None:
    """And claims no speed-up where no kernel ran on its target."""
    events = store.events(read(path, store))
    verdicts = [p.verdict for e in events if isinstance(p := e.payload, EvaluationFinished)]
    history = derive(events)
    assert [e for e in events if isinstance(e.payload, ModelReplied)]
    if history.started.target == "cpu":
        assert history.best is not None
        assert history.best.verdict is not None
        assert history.best.verdict.status is Status.VERIFIED
    else:
        assert history.champion is None
        assert not any(m.speedup for verdict in verdicts for m in verdict.measurements)


def _started(path: Path) -> CampaignStarted:
    return CampaignStarted.model_validate(content(path)["events"][0])
