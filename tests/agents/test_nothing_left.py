"""The ways out of a chain: Judge or Coder see nothing left, or a modelled time is at its floor."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kernelwright.agents.books.asking import Asking
from kernelwright.agents.brains.llm_coder import LlmCoder
from kernelwright.agents.casting.cast import Players
from kernelwright.agents.roles import Coder, Judge, Member, Mode, NoProposal, Proposal, Situation
from kernelwright.running import CampaignRequest, CampaignResult, resume_campaign, run_campaign
from kernelwright.tests.agents.asked import (
    PlainCoder,
    PlayedModel,
    as_it_says,
    kernel,
    source,
)
from kernelwright.tests.agents.brains.answers import (
    SOURCE,
    answers,
    at,
    briefing_of,
    code,
    passed,
    situation,
)
from kernelwright.tests.agents.brains.test_llm_judge import diagnose, optimise
from kernelwright.tests.agents.played import PlayedReferee, problem
from kernelwright.traces.decisions import NothingLeft
from kernelwright.traces.events import CandidateMissing, Decided
from kernelwright.traces.records import (
    MODELLED_US,
    Advice,
    Metric,
    Profile,
    Status,
    Verdict,
    candidate_id,
)
from kernelwright.traces.store import Store
from kernelwright.verifier.request import Order

FIRST, BETTER, WORSE = source(step=3), source(step=9), source(step=7)
CHAIN = {
    "0/0/write/1": kernel(step=3),
    "1/0/optimise/1": kernel(step=9),
    "2/0/optimise/1": kernel(step=7),
}


class Decliner(PlainCoder):
    """Takes `No change` for an answer."""

    def propose(self, situation: Situation) -> Proposal | NoProposal | None:
        found = super().propose(situation)
        if isinstance(found, NoProposal):
            return NoProposal("no_change", "it is at the floor", found.call)
        return found


@dataclass
class Contented:
    """A Judge that sees nothing left in some candidates."""

    contented_with: tuple[str, ...]
    name: str = "contented"
    asked: list[str] = field(default_factory=list)

    def diagnose(self, member: Member, situation: Situation) -> Advice:
        self.asked.append(f"{situation.assignment.place} {member.number}")
        is_done = member.source in self.contented_with
        return Advice(
            candidate=member.candidate,
            bottleneck="b",
            change="c",
            nothing_left=is_done,
            why="all bytes are needed",
            mode="optimise",
        )


def players(model: PlayedModel, judge: Judge) -> Players:
    coder: Asking[Coder] = Asking(model, Decliner)
    return Players(problem(), coder, judge)


def run(
    store: Store, seats: Players, workflow: str = "forge", referee: PlayedReferee | None = None
) -> CampaignResult:
    request = CampaignRequest.model_validate(
        {"problem": "doubling", "workflow": workflow, "rounds": 6}
    )
    referee = referee or PlayedReferee(fate=as_it_says, noise=0.001)
    return run_campaign(request, store, referee, players=seats)


def decided(store: Store, result: CampaignResult) -> list[tuple[str, str]]:
    payloads = [event.payload for event in store.events(result.campaign)]
    return [
        (str(p.place), p.decision.candidate)
        for p in payloads
        if isinstance(p, Decided) and isinstance(p.decision, NothingLeft)
    ]


def test_a_judge_that_sees_nothing_left_in_the_best_ends_the_chain(store: Store) -> None:
    model, judge = PlayedModel(CHAIN), Contented((BETTER,))
    result = run(store, players(model, judge))
    assert result.stopped_by == "nothing left"
    assert model.asked == ["0/0/write/1", "1/0/optimise/1"]
    assert judge.asked == ["1/0 1", "2/0 2"]
    assert decided(store, result) == [("2/0", candidate_id(BETTER))]
    assert result.best is not None
    assert result.best.candidate == candidate_id(BETTER)


def test_nothing_left_in_another_than_the_best_turns_to_the_best(store: Store) -> None:
    model, judge = PlayedModel(CHAIN), Contented((WORSE,))
    result = run(store, players(model, judge))
    assert decided(store, result) == [("3/0", candidate_id(WORSE))]
    assert judge.asked[3] == "4/0 2"
    assert model.asked[3] == "4/0/optimise/1"


def test_a_coder_that_declines_ends_the_chain_and_is_not_asked_again(store: Store) -> None:
    model = PlayedModel({**CHAIN, "2/0/optimise/1": "No change: it is at the floor"})
    result = run(store, players(model, Contented(())), "refine")
    assert result.stopped_by == "nothing left"
    assert model.asked == ["0/0/write/1", "1/0/optimise/1", "2/0/optimise/1"]
    missing = [
        e.payload for e in store.events(result.campaign) if isinstance(e.payload, CandidateMissing)
    ]
    assert [(m.outcome, m.base) for m in missing] == [("no_change", candidate_id(BETTER))]


def test_an_end_for_nothing_left_is_found_again(store: Store) -> None:
    judge = Contented((WORSE, BETTER))
    result = run(store, players(PlayedModel(CHAIN), judge))
    model = PlayedModel(CHAIN)
    again = resume_campaign(
        result.campaign,
        store,
        PlayedReferee(fate=as_it_says, noise=0.001),
        players=players(model, Contented(())),
    )
    assert (again.stopped_by, model.asked) == ("nothing left", [])
    assert decided(store, again) == decided(store, result)


class Emulation(PlayedReferee):
    """Times nothing; what it models is 8 us of bytes, a launch, and what the source adds."""

    def _passed(self, order: Order) -> Verdict:
        more_us = 3.0 if order.source == FIRST else 0.1
        figures = {MODELLED_US: 10.5 + more_us, "model_memory_us": 8.0, "launches": 1.0}
        metrics = tuple(Metric(name=name, value=value) for name, value in figures.items())
        return self._verdict(
            order, Status.SCREENED, emulated=True, profile=Profile(metrics=metrics)
        )


def test_a_modelled_time_of_bytes_and_launches_ends_the_chain(store: Store) -> None:
    referee = Emulation(is_emulated=True)
    result = run(store, players(PlayedModel(CHAIN), Contented(())), referee=referee)
    assert result.stopped_by == "roofline"
    assert [candidate for candidate, _ in referee.asked] == [
        candidate_id(FIRST),
        candidate_id(BETTER),
    ]


def test_the_judge_that_asks_a_model_may_see_nothing_left() -> None:
    now = situation()
    member = passed(SOURCE, now)
    said = optimise(member, technique="none", method="the bytes are all needed", plan="")
    advice = diagnose(answers(said), member, now)
    assert advice.nothing_left
    assert advice.why == "the bytes are all needed"
    other = diagnose(answers(optimise(member, technique="other")), member, now)
    assert (other.nothing_left, other.technique, other.notes) == (False, "", ())


@pytest.mark.parametrize(
    ("mode", "text", "is_decided"),
    [
        (Mode.OPTIMISE, "No change: every byte is needed", True),
        (Mode.OPTIMISE, "**No change:** every byte is needed", True),
        (Mode.OPTIMISE, "I see no change that helps.", False),
        (Mode.WRITE, "No change: every byte is needed", False),
    ],
)
def test_no_change_is_a_decision_where_a_change_was_asked(
    mode: Mode, text: str, is_decided: bool
) -> None:
    now = situation(mode=mode)
    asker = answers(text)
    base = None if mode is Mode.WRITE else passed(SOURCE, now)
    found = LlmCoder(asker, briefing_of(now)).propose(at(now, base=base))
    assert isinstance(found, NoProposal)
    assert (found.outcome == "no_change") == is_decided
    assert len(asker.asked) == (1 if is_decided else 2)
    if is_decided:
        assert found.reason == "every byte is needed"


def test_words_of_no_change_beside_a_candidate_change_nothing() -> None:
    now = situation(mode=Mode.OPTIMISE)
    reply = code(head="No change: of the interface\nStrategy: wider rows")
    found = LlmCoder(answers(reply), briefing_of(now)).propose(at(now, base=passed(SOURCE, now)))
    assert isinstance(found, Proposal)
