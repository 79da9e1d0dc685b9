"""Acceptance tests on what the books hold, whatever the workflow."""

from __future__ import annotations

import threading

import pytest

from kernelwright.agents.books.candidate import KnownCandidate
from kernelwright.agents.books.ledger import Ledger
from kernelwright.agents.books.progress import Progress
from kernelwright.agents.roles import Proposal
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.agents.asked import PlayedModel, asking_players, kernel, needs, source
from kernelwright.tests.agents.played import PlayedReferee, verdict_with
from kernelwright.traces.events import CandidateProposed, EvaluationFinished, EvaluationStarted
from kernelwright.traces.records import Depth, Status, candidate_id
from kernelwright.traces.store import Store
from kernelwright.verifier.request import Order


def request(workflow: str, **more: object) -> CampaignRequest:
    return CampaignRequest.model_validate({"problem": "doubling", "workflow": workflow, **more})


def test_a6_two_candidates_of_one_instant_are_two(store: Store) -> None:
    """A6: ids come from the content, not from a clock that stands still."""
    run = run_campaign(
        request("forge", rounds=1), store, PlayedReferee(), players=asking_players(PlayedModel())
    )
    store._clock = lambda: 1000.0
    ledger = Ledger(store, run.campaign, PlayedReferee(), Progress(store.events(run.campaign)))
    texts = (source(step=1), source(step=2))
    ids = [
        ledger.propose(Proposal(text, "cpp", "model", {}, "write"), f"9/{number}")
        for number, text in enumerate(texts)
    ]
    assert len(set(ids)) == 2
    assert [store.get_blob(each).decode() for each in ids] == list(texts)


class Crowded(PlayedReferee):
    """Counts how many ask it at once; each evaluation lasts until somebody else could come."""

    inside = 0
    most = 0

    def evaluate(self, order: Order):  # type: ignore[no-untyped-def]
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        threading.Event().wait(0.005)
        with self.lock:
            self.inside -= 1
        return super().evaluate(order)

    lock = threading.Lock()


def test_e5_one_evaluation_at_a_time_however_many_ask(store: Store) -> None:
    """E5: builds and timings have one slot; the events of a campaign show it, too."""
    referee = Crowded()
    run = run_campaign(
        request("best_of_n", rounds=12),
        store,
        referee,
        players=asking_players(PlayedModel(slots=8)),
    )
    ledger = Ledger(store, run.campaign, referee, Progress(store.events(run.campaign)))
    ids = [
        ledger.propose(Proposal(source(step=n, by="threads"), "cpp", "model", {}, "write"))
        for n in range(8)
    ]
    threads = [threading.Thread(target=ledger.evaluate, args=(each, Depth.SCREEN)) for each in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert referee.most == 1
    open_now = 0
    for payload in (event.payload for event in store.events(run.campaign)):
        open_now += isinstance(payload, EvaluationStarted)
        open_now -= isinstance(payload, EvaluationFinished)
        assert open_now in (0, 1)
    assert len(ledger.progress.candidates) == 20


@pytest.mark.parametrize("protocol", [Depth.SCREEN, Depth.CONFIRM])
@pytest.mark.parametrize(
    "workflow",
    ["forge", "refine", "best_of_n", "evolve", "contrast", "features", "transpile"],
)
def test_s9_what_is_faster_than_physics_is_no_champion(
    store: Store, workflow: str, protocol: Depth
) -> None:
    """S9: the referee calls it SUSPECT; it wins nothing, whichever protocol found it out."""
    planted = candidate_id(source(step=300))

    def fate(order: Order) -> Status | None:
        is_planted = candidate_id(order.source) == planted
        return Status.SUSPECT if is_planted and order.protocol is protocol else None

    places = ("1/0/write/1", "1/0/optimise/1", "0/1/write/1", "0/1/features/1", "0/0/translate/1")
    model = PlayedModel(dict.fromkeys(places, kernel(step=300)))
    referee = PlayedReferee(fate=fate)
    limits = {"evaluations": 5, "seconds": 600}
    asked = request(workflow, rounds=5, limits=limits, **needs(workflow))
    run = run_campaign(asked, store, referee, players=asking_players(model))
    assert (planted, protocol) in referee.asked
    assert run.best is not None
    assert run.best.candidate != planted
    assert run.by_status["SUSPECT"] == 1
    # Whoever edits it mends it; what is made faster is another one.
    proposed = [
        p for e in store.events(run.campaign) if isinstance(p := e.payload, CandidateProposed)
    ]
    assert {p.operator for p in proposed if planted in p.parents} <= {"repair"}


def known(*looks: tuple[Depth, Status]) -> KnownCandidate:
    proposed = CandidateProposed(
        candidate="c", number=1, language="cpp", family="model", operator="write", place="0/0"
    )
    verdicts = [
        verdict_with(2.0 if status.is_pass else None, status=status).model_copy(
            update={"protocol": depth}
        )
        for depth, status in looks
    ]
    return KnownCandidate.from_proposal(proposed, *verdicts)


def test_a_fault_of_the_harness_says_nothing_against_a_candidate_that_passed() -> None:
    passed, ours = (Depth.SCREEN, Status.SCREENED), (Depth.RACE, Status.HARNESS_ERROR)
    assert known(passed, ours).is_sound()
    assert not known(passed, (Depth.RACE, Status.INCORRECT)).is_sound()
    assert not known((Depth.SCREEN, Status.HARNESS_ERROR)).is_sound()
