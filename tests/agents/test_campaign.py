"""A whole campaign against the played referee: what it records, what it answers, how it ends."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.agents.books.progress import Progress
from kernelwright.agents.stop import Stop
from kernelwright.errors import SandboxError, UnknownNameError, UsageError
from kernelwright.kernelbench.problem import Workload
from kernelwright.running import (
    CampaignRequest,
    CampaignResult,
    resume_campaign,
    run_campaign,
)
from kernelwright.tests.agents.played import (
    FACTS,
    Clock,
    Fate,
    PlayedReferee,
    players,
    recipe,
    recipes,
)
from kernelwright.traces.events import CampaignStarted, Event
from kernelwright.traces.history import derive
from kernelwright.traces.records import Depth, Status
from kernelwright.traces.store import Store
from kernelwright.verifier.request import Order

FAILURES = [status for status in Status if not status.is_pass]


def request(seed: int = 7, **limits: float) -> CampaignRequest:
    return CampaignRequest(problem="doubling", limits=limits, seed=seed)


def run(store: Store, referee: PlayedReferee, seed: int = 7, **limits: float) -> CampaignResult:
    return run_campaign(request(seed, **limits), store, referee, players=players())


def fails_on(protocol: Depth, status: Status) -> Fate:
    return lambda order: status if order.protocol is protocol else None


def test_a_campaign_finds_records_and_confirms_a_winner(store: Store) -> None:
    referee = PlayedReferee()
    result = run(store, referee, evaluations=30)
    history = derive(store.events(result.campaign))
    assert result.evaluated == 30
    assert result.stopped_by == "evaluations"
    assert result.best is not None
    assert result.best.status == Status.VERIFIED
    assert result.best.candidate == history.champion
    assert set(result.best.speedup) == {"torch eager"}
    assert len(set(referee.asked)) == len(referee.asked)
    assert sum(1 for _, protocol in referee.asked if protocol is Depth.SCREEN) == 30
    assert all(entry.advice for entry in history.entries.values())


def test_the_first_event_tells_everything_a_reader_needs(store: Store) -> None:
    result = run(store, PlayedReferee(), evaluations=2)
    started = store.events(result.campaign)[0].payload
    assert isinstance(started, CampaignStarted)
    assert started.config["problem"] == {
        "title": "Doubling",
        "definition": "y = 2 x",
        "axes": {"M": "elements"},
        "inputs": [{"name": "x", "dtype": "float32", "shape": ["M"], "is_index": False}],
        "outputs": [{"name": "y", "dtype": "float32", "shape": ["M"], "is_index": False}],
        "entry": "doubling",
    }
    assert started.config["facts"] == FACTS
    assert started.workload_spec["axes"] == {"M": 1000}
    assert started.versions["kernelwright"]
    assert started.machine["cpus"]
    assert (started.workload, started.tier) == ("usual", "native")


def test_the_result_is_the_document_of_the_command_line(store: Store) -> None:
    document = run(store, PlayedReferee(), evaluations=3).model_dump(mode="json")
    assert list(document) == [
        "campaign",
        "problem",
        "target",
        "tier",
        "workflow",
        "model",
        "best",
        "unconfirmed",
        "evaluated",
        "by_status",
        "usd",
        "tokens",
        "wall_s",
        "stopped_by",
    ]
    assert list(document["best"]) == ["candidate", "status", "latency_us", "roofline", "speedup"]
    assert list(document["best"]["speedup"]["torch eager"]) == ["median", "low", "high", "blocks"]


def test_it_reaches_the_best_point_of_a_small_space(store: Store) -> None:
    result = run(store, PlayedReferee())
    assert result.stopped_by in ("space exhausted", "no gain expected")
    assert 40 <= result.evaluated <= sum(r.size(FACTS) for r in recipes())
    best = derive(store.events(result.campaign)).entries[result.best.candidate]  # type: ignore[union-attr]
    assert best.knobs == {"width": 4, "unroll": 2, "prefetch": 8}


def test_the_same_seed_tells_the_same_story(tmp_path: Path) -> None:
    def story(name: str, seed: int) -> list[object]:
        with Store.open(tmp_path / name) as store:
            result = run(store, PlayedReferee(), seed, evaluations=20)
            return [event.payload for event in store.events(result.campaign)]

    assert story("a", 1) == story("b", 1)
    assert story("c", 2) != story("d", 1)


def test_a_new_champion_beat_the_old_one_in_a_fresh_process(store: Store) -> None:
    result = run(store, PlayedReferee(), evaluations=30)
    history = derive(store.events(result.campaign))
    changes = [change.event for change in history.changes]
    assert len(changes) > 1
    assert [c.previous for c in changes] == [None, *(c.candidate for c in changes[:-1])]
    for change in changes:
        confirmed = history.entries[change.candidate].verdict
        assert confirmed is not None
        assert confirmed.protocol is Depth.CONFIRM
        assert change.credited == confirmed.credited
        if change.previous:
            assert confirmed.measurement is not None
            assert confirmed.measurement.speedup["champion"].low > 1.02


def test_candidates_no_better_than_the_noise_do_not_displace(store: Store) -> None:
    flat = (recipe("row-balanced", tag=(1, 2, 3, 4, 5, 6)),)
    referee = PlayedReferee(noise=0.005)
    result = run_campaign(request(), store, referee, players=players(flat))
    history = derive(store.events(result.campaign))
    protocols = [protocol for _, protocol in referee.asked]
    searched = protocols[: protocols.index(Depth.RACE)]
    assert searched.count(Depth.CONFIRM) == 1
    # One of equals has to win the race; it is not the same as gaining.
    assert len(history.changes) <= 2
    gained = [change.event.credited for change in history.changes]
    assert max(gained) / min(gained) < 1.03


@pytest.mark.parametrize("status", FAILURES)
def test_a_candidate_that_fails_its_confirmation_is_never_crowned(
    store: Store, status: Status
) -> None:
    referee = PlayedReferee(fate=fails_on(Depth.CONFIRM, status))
    result = run(store, referee, evaluations=5)
    assert result.best is None
    assert result.by_status == {str(status): 5}
    assert sorted({p for _, p in referee.asked}) == [Depth.CONFIRM, Depth.SCREEN]
    assert len(set(referee.asked)) == len(referee.asked) == 10


@pytest.mark.parametrize("status", FAILURES)
def test_where_everything_fails_the_campaign_ends_in_order(store: Store, status: Status) -> None:
    referee = PlayedReferee(fate=lambda _order: status)
    result = run(store, referee, evaluations=6)
    assert (result.best, result.stopped_by) == (None, "evaluations")
    assert result.by_status == {str(status): 6}
    assert Progress(store.events(result.campaign)).archive.elites() == ()


def test_failures_of_every_kind_stay_out_of_the_archive(store: Store) -> None:
    def fate(order: Order) -> Status | None:
        draw = hashlib.sha256(order.source.encode()).digest()[0]
        return FAILURES[draw % len(FAILURES)] if draw % 2 else None

    result = run(store, PlayedReferee(fate=fate), evaluations=40)
    progress = Progress(store.events(result.campaign))
    assert len(result.by_status) > 5
    assert sum(result.by_status.values()) == result.evaluated == 40
    elites = [progress.candidates[e.candidate].basis for e in progress.archive.elites()]
    assert elites
    assert all(verdict and verdict.status.is_pass for verdict in elites)
    assert result.best is not None


@pytest.mark.parametrize("limit_s", [1.0, 3.0, 12.0, 30.0])
def test_time_is_overrun_by_one_evaluation_at_most(tmp_path: Path, limit_s: float) -> None:
    clock = Clock()
    with Store.open(tmp_path / "home", clock=clock) as store:
        referee = PlayedReferee(clock=clock, screen_s=2.0, confirm_s=5.0)
        result = run_campaign(
            request(seconds=limit_s), store, referee, players=players(), clock=clock
        )
    assert result.stopped_by == "seconds"
    assert 0.8 * limit_s <= result.wall_s < limit_s + 5.0
    if limit_s > 2.0:
        assert result.best is not None


@pytest.mark.parametrize(("seed", "limit_s"), [(1, 33), (3, 31), (4, 32)])
def test_what_waits_is_confirmed_before_the_time_is_over(
    tmp_path: Path, seed: int, limit_s: int
) -> None:
    """Who seems better and is left unconfirmed is left for want of time."""
    clock = Clock()
    rising = (recipe("row-balanced", step=tuple(range(40))),)
    with Store.open(tmp_path / "home", clock=clock) as store:
        referee = PlayedReferee(clock=clock, screen_s=1.0, confirm_s=8.0, noise=0.0)
        result = run_campaign(
            request(seed, seconds=limit_s), store, referee, players=players(rising), clock=clock
        )
        history = derive(store.events(result.campaign))
        progress = Progress(store.events(result.campaign))
    assert result.wall_s < limit_s + 1.0
    assert any(protocol is Depth.RACE for _, protocol in referee.asked)
    # A heat and the confirmation that may follow it take nine seconds.
    assert progress.challenger is None or result.wall_s > limit_s - 9.0
    assert history.finished is not None
    assert history.finished.sureness is not None


def test_the_workload_at_hand_is_the_one_recorded(store: Store) -> None:
    resized = Workload(name="usual", kind="realistic", axes={"M": 17})
    result = run_campaign(
        request(evaluations=1), store, PlayedReferee(), players=players(), workload=resized
    )
    started = store.events(result.campaign)[0].payload
    assert isinstance(started, CampaignStarted)
    assert Workload.model_validate(started.workload_spec) == resized


def test_a_challenger_without_time_waits_for_a_resumption(tmp_path: Path) -> None:
    clock = Clock()
    with Store.open(tmp_path / "home", clock=clock) as store:
        referee = PlayedReferee(clock=clock, screen_s=1.0, confirm_s=20.0)
        first = run_campaign(request(seconds=30), store, referee, players=players(), clock=clock)
        assert 30 <= first.wall_s < 31
        assert [p for _, p in referee.asked].count(Depth.CONFIRM) == 1
        assert Progress(store.events(first.campaign)).challenger
        resume_campaign(
            first.campaign, store, referee, {"seconds": 60}, players=players(), clock=clock
        )
        assert [p for _, p in referee.asked].count(Depth.CONFIRM) == 2


def test_resuming_counts_what_was_spent_and_takes_new_limits(tmp_path: Path) -> None:
    clock = Clock()
    with Store.open(tmp_path / "home", clock=clock) as store:
        referee = PlayedReferee(clock=clock)
        first = run_campaign(request(seconds=30), store, referee, players=players(), clock=clock)
        clock.now += 10_000.0
        again = resume_campaign(first.campaign, store, referee, players=players(), clock=clock)
        assert (again.evaluated, again.stopped_by) == (first.evaluated, "seconds")
        clock.now += 10_000.0
        more = resume_campaign(
            first.campaign, store, referee, {"seconds": 40}, players=players(), clock=clock
        )
        assert more.evaluated > first.evaluated
        assert first.wall_s < more.wall_s < 45
        assert derive(store.events(first.campaign)).resumes == 2
        assert len(set(referee.asked)) == len(referee.asked)


def test_a_broken_harness_ends_the_campaign_with_everything_saved(store: Store) -> None:
    def break_at_the_fourth(_order: Order) -> None:
        if len(referee.asked) == 4:
            raise SandboxError("the jail did not start", hint="try again")

    referee = PlayedReferee(before=break_at_the_fourth)
    with pytest.raises(SandboxError, match="the jail did not start"):
        run(store, referee, evaluations=10)
    (campaign,) = store.campaigns()
    history = derive(store.events(campaign))
    assert history.finished is not None
    assert history.finished.stopped_by == "error"
    result = resume_campaign(campaign, store, referee, players=players())
    assert (result.evaluated, result.stopped_by) == (10, "evaluations")
    assert referee.asked.count(referee.asked[3]) == 2


def test_a_wish_to_stop_lets_the_running_evaluation_finish(store: Store) -> None:
    stop = Stop()

    def wish(_order: Order) -> None:
        if len(referee.asked) == 5:
            stop.request()

    referee = PlayedReferee(before=wish)
    result = run_campaign(request(evaluations=10), store, referee, stop=stop, players=players())
    assert result.stopped_by == "interrupted"
    assert len(referee.asked) == 5
    kinds = [event.payload.kind for event in store.events(result.campaign)]
    assert kinds.count("evaluation.finished") == 5
    resumed = resume_campaign(result.campaign, store, referee, players=players())
    assert (resumed.evaluated, resumed.stopped_by) == (10, "evaluations")
    assert len(set(referee.asked)) == len(referee.asked)


def test_a_second_interrupt_stops_at_once_and_is_recorded(store: Store) -> None:
    def interrupt(_order: Order) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(store, PlayedReferee(before=interrupt), evaluations=3)
    (campaign,) = store.campaigns()
    finished = derive(store.events(campaign)).finished
    assert finished is not None
    assert finished.stopped_by == "interrupted"


def test_every_event_is_told_after_it_was_recorded(store: Store) -> None:
    told: list[Event] = []

    def listen(event: Event) -> None:
        assert store.events(event.campaign)[-1] == event
        told.append(event)

    result = run_campaign(
        request(evaluations=3), store, PlayedReferee(), players=players(), on_event=listen
    )
    assert told == store.events(result.campaign)


def test_two_processes_never_run_one_campaign(store: Store) -> None:
    result = run(store, PlayedReferee(), evaluations=1)
    with store.lease(result.campaign), pytest.raises(UsageError, match="already being run"):
        resume_campaign(result.campaign, store, PlayedReferee(), players=players())
    assert store.events(result.campaign)[-1].payload.kind == "campaign.finished"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"problem": "spmm_crs"}, "no problem named 'spmm_crs'"),
        ({"problem": "spmm_csr", "model": "recipes"}, "no model named 'recipes'"),
        ({"problem": "spmm_csr", "judge_model": "rule"}, "no model named 'rule'"),
        ({"problem": "spmm_csr", "workflow": "evolv"}, "no workflow named 'evolv'"),
        ({"problem": "spmm_csr", "workload": "reel"}, "named 'reel'"),
    ],
)
def test_unknown_names_leave_no_campaign_behind(
    store: Store, change: dict[str, str], message: str
) -> None:
    with pytest.raises(UnknownNameError, match=message):
        run_campaign(CampaignRequest(**change), store, PlayedReferee())  # type: ignore[arg-type]
    assert store.campaigns() == []


def test_a_limit_that_cannot_limit_is_told_as_the_users_mistake() -> None:
    with pytest.raises(UsageError, match="'seconds' must be a positive number, not 0"):
        request(seconds=0)


def test_a_campaign_of_another_version_of_the_problem_is_not_mixed_with_this_one(
    store: Store,
) -> None:
    result = run(store, PlayedReferee(), evaluations=1)
    newer = players()
    newer = replace(newer, problem=replace(newer.problem, version=2))
    with pytest.raises(UsageError, match=r"version 1 of doubling, and this is version 2"):
        resume_campaign(result.campaign, store, PlayedReferee(), players=newer)


def test_a_language_without_recipes_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="no recipe for this problem"):
        run_campaign(
            CampaignRequest(problem="spmm_csr", language="fortran"), store, PlayedReferee()
        )
    assert store.campaigns() == []


WATCHED = """
import sys
connected = []
sys.addaudithook(lambda name, args: connected.append(args) if name == "socket.connect" else None)
import kernelwright.agents, kernelwright.running
assert not {"langgraph", "torch", "langsmith"} & set(sys.modules), "heavy import"
from pathlib import Path
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.agents.played import PlayedReferee, players
from kernelwright.traces.store import Store
with Store.open(Path(sys.argv[1])) as store:
    request = CampaignRequest(problem="doubling", limits={"evaluations": 9})
    result = run_campaign(request, store, PlayedReferee(), players=players())
assert connected == [], connected
print(result.evaluated)
"""


def test_long_campaigns_stay_within_no_bound_of_steps_and_call_nobody(tmp_path: Path) -> None:
    """The environment asks for remote traces and a tiny bound on steps; neither happens."""
    asks = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "LANGGRAPH_DEFAULT_RECURSION_LIMIT": "5",
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_API_KEY": "none",
        "LANGSMITH_ENDPOINT": "http://127.0.0.1:9",
    }
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(tmp_path / "home")],
        capture_output=True,
        text=True,
        env=os.environ | asks,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "9\n"), done.stderr
