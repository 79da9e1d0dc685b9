"""The chain of `forge`, and its controls, against a played model and the played referee."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelwright.agents.books.asking import Asker, Asking
from kernelwright.agents.model import FaultKind, ModelFault
from kernelwright.agents.roles import Member, NoProposal, Proposal, SampleNumber, Situation
from kernelwright.agents.workflows.workflow import WORKFLOWS
from kernelwright.errors import SandboxError
from kernelwright.running import CampaignRequest, CampaignResult, resume_campaign, run_campaign
from kernelwright.tests.agents.asked import (
    BOUND,
    PlainCoder,
    PlayedModel,
    as_it_says,
    asking_players,
    kernel,
    needs,
    source,
)
from kernelwright.tests.agents.played import Clock, PlayedReferee, players
from kernelwright.traces.decisions import BaseChosen
from kernelwright.traces.events import AdviceGiven, CandidateMissing, Decided, ModelRequested
from kernelwright.traces.history import derive
from kernelwright.traces.records import Advice, Depth, candidate_id
from kernelwright.traces.store import Store


def request(workflow: str = "forge", **settings: object) -> CampaignRequest:
    return CampaignRequest.model_validate({"problem": "doubling", "workflow": workflow, **settings})


def run(
    store: Store, played: PlayedModel, workflow: str = "forge", **settings: object
) -> CampaignResult:
    referee = PlayedReferee(fate=as_it_says, noise=0.001)
    return run_campaign(
        request(workflow, **settings), store, referee, players=asking_players(played)
    )


def payloads(store: Store, result: CampaignResult) -> list[object]:
    return [event.payload for event in store.events(result.campaign)]


CHAIN = {
    "0/0/write/1": kernel(fails="BUILD_FAILED"),
    "1/0/repair/1": kernel(step=1),
    "2/0/optimise/1": kernel(step=8),
    "3/0/optimise/1": kernel(step=5),
    "4/0/optimise/1": kernel(step=12),
}


def test_a_chain_repairs_then_optimises_and_ends_verified(store: Store) -> None:
    model = PlayedModel(CHAIN)
    result = run(store, model, rounds=5)
    assert model.asked == [
        "0/0/write/1",
        "1/0/repair/1",  # what the compiler said needs no Judge
        "2/0/judge/1",
        "2/0/optimise/1",
        "3/0/judge/1",
        "3/0/optimise/1",
        "4/0/judge/1",
        "4/0/optimise/1",
    ]
    assert result.best is not None
    assert (result.best.candidate, result.stopped_by) == (candidate_id(source(step=12)), "rounds")
    assert result.tokens == 8 * 150
    assert result.usd == pytest.approx(8 * 0.015)


def test_a1_diagnosis_profile_and_edit_are_about_the_current_kernel(store: Store) -> None:
    """A1: round 3 is slower than round 2; round 4 judges and edits round 3's kernel."""
    model = PlayedModel(CHAIN)
    result = run(store, model, rounds=5)
    third = candidate_id(source(step=5))
    judged = next(a for a in model.asks if a.messages[0].content.startswith("4/0/judge"))
    edited = next(a for a in model.asks if a.messages[0].content.startswith("4/0/optimise"))
    assert f"about {third}" in judged.messages[0].content
    assert f"base {third}" in edited.messages[0].content
    assert f"advice {third}" in edited.messages[0].content
    advice = [p for p in payloads(store, result) if isinstance(p, AdviceGiven)][-1]
    assert (str(advice.place), advice.advice.candidate) == ("4/0", third)
    assert derive(store.events(result.campaign)).entries[third].verdict.candidate == third  # type: ignore[union-attr]


class ForgingJudge:
    """Speaks about another candidate than the one it was given."""

    name = "forger"

    def diagnose(self, member: Member, situation: Situation) -> Advice:
        del member, situation
        return Advice(candidate="f" * 64, bottleneck="another", change="nothing")


def test_a1_a_forged_mismatch_raises(store: Store) -> None:
    """A1: advice about another kernel never reaches an edit."""
    seats = asking_players(PlayedModel(CHAIN), ForgingJudge())
    with pytest.raises(SandboxError, match="advice on candidate ffffffffffff was about to reach"):
        run_campaign(request(), store, PlayedReferee(fate=as_it_says), players=seats)


def test_a10_a_model_that_never_compiles_stops_at_the_bound(store: Store) -> None:
    """A10: the spend is told, and nobody wins."""
    model = PlayedModel(
        {
            f"{n}/0/{m}/1": kernel(fails="BUILD_FAILED", n=n)
            for n in range(10)
            for m in ("write", "repair")
        }
    )
    result = run(store, model, patience=99)
    assert (result.best, result.stopped_by) == (None, "rounds")
    assert result.by_status == {"BUILD_FAILED": 10}
    # The Judge is left out of the first failure to build, and asked about repairs that do not.
    assert [p for p in model.asked if "judge" in p] == [f"{n}/0/judge/1" for n in range(2, 10)]
    assert len(model.asked) == 18
    assert result.tokens == 18 * 150


def test_five_rounds_without_a_gain_end_it(store: Store) -> None:
    model = PlayedModel(
        {"0/0/write/1": kernel(step=9)}
        | {f"{n}/0/optimise/1": kernel(step=1, n=n) for n in range(1, 10)}
    )
    result = run(store, model)
    assert (result.stopped_by, result.evaluated) == ("plateau", 6)


def test_it_goes_back_to_the_best_after_two_failures_or_a_much_slower_one(store: Store) -> None:
    best = candidate_id(source(step=60))
    model = PlayedModel(
        {
            "0/0/write/1": kernel(step=60),
            "1/0/optimise/1": kernel(fails="INCORRECT"),
            "2/0/repair/1": kernel(fails="CRASHED"),
            "3/0/optimise/1": kernel(step=0),
            "4/0/optimise/1": kernel(step=61),
        }
    )
    result = run(store, model, rounds=5)
    decided = [p for p in payloads(store, result) if isinstance(p, Decided)]
    chosen = [d.decision for d in decided if isinstance(d.decision, BaseChosen)]
    assert len(chosen) == len(decided)
    assert [(str(d.place), c.candidate) for d, c in zip(decided, chosen, strict=True)] == [
        ("2/0", best),
        ("3/0", best),
    ]
    assert "2 failures in a row" in chosen[0].why
    assert "times slower than the best" in chosen[1].why
    bases = [a.messages[0].content.splitlines()[1] for a in model.asks if a.purpose == "optimise"]
    assert bases == [f"base {best}"] * 3


def test_it_stops_near_the_roofline(store: Store) -> None:
    # The played roofline is 200 µs: this one takes about 204.
    result = run(store, PlayedModel({"0/0/write/1": kernel(step=68)}))
    assert (result.stopped_by, result.evaluated) == ("roofline", 1)


def test_useless_replies_are_recorded_and_the_chain_goes_on(store: Store) -> None:
    model = PlayedModel(
        {
            "0/0/write/1": "no code today",
            "1/0/write/1": kernel(step=3),
            "2/0/optimise/1": kernel(step=3),
            "3/0/optimise/1": ModelFault(FaultKind.CONTEXT, "9000 tokens are too many"),
            "4/0/optimise/1": kernel(step=9),
        }
    )
    result = run(store, model, rounds=5)
    missing = [p for p in payloads(store, result) if isinstance(p, CandidateMissing)]
    assert [(str(m.place), m.outcome) for m in missing] == [
        ("0/0", "no_candidate"),
        ("2/0", "duplicate"),
        ("3/0", "prompt too long"),
    ]
    assert missing[0].call == next(
        p.call for p in payloads(store, result) if isinstance(p, ModelRequested)
    )
    assert result.evaluated == 2
    assert result.best is not None


def test_rules_speak_where_a_candidate_does_not_fit_the_judges_model(store: Store) -> None:
    full = ModelFault(FaultKind.CONTEXT, "9000 tokens are too many")
    wrong = {"0/0/write/1": kernel(fails="INCORRECT")}
    model = PlayedModel(CHAIN | wrong | {"1/0/judge/1": full, "3/0/judge/1": full})
    result = run(store, model, rounds=5)
    said = [p for p in payloads(store, result) if isinstance(p, AdviceGiven)]
    assert [p.advice.by for p in said] == [
        "rules (fallback)",
        "played/one",
        "rules (fallback)",
        "played/one",
    ]
    assert [said[0].advice.mode, said[2].advice.mode] == ["repair", "optimise"]
    assert "9000 tokens are too many" in said[0].advice.notes[0]
    repaired = next(a for a in model.asks if a.messages[0].content.startswith("1/0/repair"))
    assert f"advice {said[0].advice.candidate}" in repaired.messages[0].content
    assert result.best is not None


def test_refine_is_the_chain_without_a_judge(store: Store) -> None:
    model = PlayedModel(CHAIN)
    result = run(store, model, "refine", rounds=5)
    assert model.asked == list(CHAIN)
    assert not [p for p in payloads(store, result) if isinstance(p, AdviceGiven)]
    assert result.best is not None


class Naming(PlainCoder):
    """Says which sample it is and what it was told, and names a strategy."""

    def __init__(self, asker: Asker) -> None:
        super().__init__(asker)
        self.heard: dict[str, tuple[SampleNumber | None, tuple[str, ...]]] = {}

    def propose(self, situation: Situation) -> Proposal | NoProposal | None:
        given = situation.assignment
        self.heard[str(given.place)] = (given.sample, given.told)
        found = super().propose(situation)
        named = isinstance(found, Proposal)
        return replace(found, strategy=f"way {given.place}", techniques=("x",)) if named else found


@pytest.mark.parametrize("slots", [1, 3])
def test_samples_are_told_their_number_and_the_strategies_before_their_block(
    store: Store, slots: int
) -> None:
    coders: list[Naming] = []

    def make(asker: Asker) -> Naming:
        coders.append(Naming(asker))
        return coders[-1]

    model = PlayedModel(slots=slots)
    seats = replace(asking_players(model), coder=Asking(model, make))
    run_campaign(request("best_of_n", rounds=5), store, PlayedReferee(), players=seats)
    heard = coders[0].heard
    assert [heard[f"0/{n}"][0] for n in range(5)] == [SampleNumber(n + 1, 5) for n in range(5)]
    ways = [f"another candidate's strategy: way 0/{n}" for n in range(5)]
    assert [list(heard[f"0/{n}"][1]) for n in range(5)] == [
        ways[:before] for before in (0, 0, 2, 2, 4)
    ]


@pytest.mark.parametrize("slots", [1, 4])
def test_best_of_n_records_in_the_order_of_its_slots(store: Store, slots: int) -> None:
    model = PlayedModel(slots=slots)
    result = run(store, model, "best_of_n")
    assert sorted(model.asked) == sorted(f"0/{n}/write/1" for n in range(10))
    assert model.most_in_flight <= slots
    entries = derive(store.events(result.campaign)).entries.values()
    assert [e.number for e in entries] == list(range(1, 11))
    tags = [store.get_blob(e.candidate).decode().split('tag = "')[1][:3] for e in entries]
    assert tags == [f"0/{n}" for n in range(10)]
    assert (result.stopped_by, result.evaluated) == ("rounds", 10)
    assert result.best is not None


def test_best_of_n_asks_for_no_more_than_it_may_evaluate(store: Store) -> None:
    model = PlayedModel(slots=8)
    result = run(store, model, "best_of_n", limits={"evaluations": 3})
    assert (len(model.asked), result.evaluated, result.stopped_by) == (3, 3, "evaluations")


@pytest.mark.parametrize("workflow", ["forge", "refine", "best_of_n"])
def test_every_workflow_runs_with_the_offline_brains(store: Store, workflow: str) -> None:
    result = run_campaign(request(workflow, rounds=8), store, PlayedReferee(), players=players())
    assert result.evaluated == 8 or result.stopped_by == "plateau"
    assert result.best is not None
    assert (result.usd, result.tokens) == (0.0, 0)


@pytest.mark.parametrize("cap", [{"tokens": 2600}, {"usd": 0.26}])
def test_s11_every_workflow_spends_to_within_one_reservation_of_the_cap(
    tmp_path: object, cap: dict[str, float]
) -> None:
    """S11: with the same cap the arms are comparable."""
    for workflow in (name for name, each in WORKFLOWS.items() if each.has_model is not False):
        with Store.open(tmp_path / workflow) as store:  # type: ignore[operator]
            model = PlayedModel(slots=3)
            more = needs(workflow)
            if workflow == "transpile":
                more["options"] = {"optimisations": 99}
            result = run(store, model, workflow, rounds=99, patience=99, limits=cap, **more)
        assert result.stopped_by == next(iter(cap)), workflow
        if "tokens" in cap:
            assert cap["tokens"] - BOUND.tokens < result.tokens <= cap["tokens"], workflow
        else:
            assert result.usd is not None
            assert BOUND.usd is not None
            assert cap["usd"] - BOUND.usd < result.usd <= cap["usd"], workflow


@pytest.mark.parametrize("workflow", ["forge", "refine", "best_of_n", "transpile"])
def test_what_was_screened_when_the_time_was_up_is_still_confirmed(
    store: Store, workflow: str
) -> None:
    """A confirmation belongs to its evaluation; without it a campaign would have no result."""
    clock = Clock()
    referee = PlayedReferee(fate=as_it_says, clock=clock, screen_s=10.0)
    asked = request(workflow, limits={"seconds": 5.0}, **needs(workflow))
    result = run_campaign(asked, store, referee, players=asking_players(PlayedModel()), clock=clock)
    assert [p for _, p in referee.asked] == [Depth.SCREEN, Depth.CONFIRM]
    assert (result.stopped_by, result.unconfirmed) == ("seconds", None)
    assert result.best is not None


@pytest.mark.parametrize("workflow", ["contrast", "features"])
def test_what_a_round_could_not_confirm_in_time_is_told_and_confirmed_later(
    store: Store, workflow: str
) -> None:
    clock = Clock()
    referee = PlayedReferee(fate=as_it_says, noise=0.001, clock=clock, screen_s=10.0)
    asked = request(workflow, rounds=1, limits={"seconds": 15.0})
    seats = asking_players(PlayedModel())
    store._clock = clock
    first = run_campaign(asked, store, referee, players=seats, clock=clock)
    assert (first.stopped_by, first.best, first.evaluated) == ("seconds", None, 2)
    assert first.unconfirmed in {candidate for candidate, _ in referee.asked}
    more = {"seconds": 9e9}
    second = resume_campaign(first.campaign, store, referee, more, players=seats, clock=clock)
    assert second.best is not None
    assert second.unconfirmed is None


def test_a_champion_is_confirmed_before_the_next_round(store: Store) -> None:
    referee = PlayedReferee(fate=as_it_says, noise=0.001)
    model = PlayedModel(CHAIN)
    run_campaign(request(rounds=3), store, referee, players=asking_players(model))
    assert [p for _, p in referee.asked] == [
        Depth.SCREEN,
        Depth.SCREEN,
        Depth.CONFIRM,
        Depth.SCREEN,
        Depth.CONFIRM,
    ]
