"""Knobs of a leader: tried without a call, within a share, and the same again after a death."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kernelwright.agents.casting.cast import replay_request
from kernelwright.agents.models import replay
from kernelwright.agents.models.replay import ReplayModel
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.agents.asked import as_it_says, kernel
from kernelwright.tests.agents.deciding import decisions
from kernelwright.tests.agents.played import PlayedReferee
from kernelwright.tests.agents.workflows.staged import (
    Improviser,
    Scene,
    decided,
    request,
    seats,
)
from kernelwright.traces.decisions import KnobsTuned
from kernelwright.traces.events import CandidateProposed, EvaluationFinished
from kernelwright.traces.records import Status, candidate_id
from kernelwright.traces.store import Store
from kernelwright.verifier.request import Order

STEPS, WIDTHS = (1, 2, 3, 5, 8), (2, 4, 8)
HEAD = f"""\
/*---
[knobs]
STEP = {{value = 2, try = {list(STEPS)}}}
WIDTH = {{value = 4, try = {list(WIDTHS)}}}
---*/
#define STEP 2
constexpr int WIDTH = 4;
"""
LEADER = f"{HEAD}// the first\n"
BEST = LEADER.replace("value = 2", "value = 5").replace("STEP 2", "STEP 5")


@dataclass
class Numbers(PlayedReferee):
    """Its candidates are fastest where STEP is 5 and WIDTH 4."""

    def _latency_us(self, order: Order, source: str) -> float:
        step, width = (re.search(rf"\b{n} (?:= )?(\d+)[;\n]", source) for n in ("STEP", "WIDTH"))
        if not step or not width:
            return super()._latency_us(order, source)
        return 800.0 * (1 + 0.05 * abs(int(step[1]) - 5)) * (1 + 0.02 * abs(int(width[1]) - 4))


def numbers() -> PlayedReferee:
    return Numbers(fate=as_it_says, noise=0.001)


def reply(text: str) -> str:
    return f"```\n{text}```\n"


def played(store: Store, workflow: str, script: dict[str, str], **more: Any):
    model = Improviser(script)
    asked = request(workflow, **more)
    result = run_campaign(asked, store, numbers(), players=seats(model))
    events = store.events(result.campaign)
    variants = [
        p for e in events if isinstance(p := e.payload, CandidateProposed) and p.operator == "knobs"
    ]
    return result, model, events, variants


def test_the_first_kernels_numbers_are_tuned_without_a_call_and_the_tuned_one_wins(
    store: Store,
) -> None:
    result, model, events, variants = played(
        store, "forge", {"0/0/write/1": reply(LEADER)}, rounds=1
    )
    assert model.asked == ["0/0/write/1"]
    assert result.best is not None
    assert result.best.candidate == candidate_id(BEST)
    (tuned,) = decided(events, KnobsTuned)
    assert (tuned.leader, tuned.best) == (candidate_id(LEADER), candidate_id(BEST))
    assert tuned.points == len(STEPS) * len(WIDTHS)
    assert tuned.tried == len(variants) < tuned.points
    assert all(each.parents == (candidate_id(LEADER),) for each in variants)
    (won,) = [each for each in variants if each.candidate == candidate_id(BEST)]
    assert (won.strategy, won.knobs) == ("STEP = 5 instead of 2", {"STEP": 5, "WIDTH": 4})


def test_what_the_next_call_edits_is_the_tuned_one(store: Store) -> None:
    script = {
        "0/0/write/1": reply(LEADER),
        "1/0/judge/1": "wider",
        "1/0/optimise/1": kernel(step=1),
    }
    _, model, _, _ = played(store, "forge", script, rounds=2)
    prompt = next(a.messages[0].content for a in model.asks if "1/0/optimise/1" in str(a))
    assert f"base {candidate_id(BEST)}" in prompt


def test_a_variant_is_tuned_no_more_and_a_slower_kernel_never(store: Store) -> None:
    slower = (
        LEADER.replace("// the first", "// the second")
        .replace("STEP = {value = 2", "STEP = {value = 1")
        .replace("STEP 2", "STEP 1")
    )
    script = {"0/0/write/1": reply(LEADER), "1/0/optimise/1": reply(slower)}
    _, _, events, _ = played(store, "refine", script, rounds=2)
    assert [each.leader for each in decided(events, KnobsTuned)] == [candidate_id(LEADER)]


@pytest.mark.parametrize("workflow", ["best_of_n", "contrast", "evolve", "features", "refine"])
def test_every_workflow_tunes_its_leaders(store: Store, workflow: str) -> None:
    model = Improviser(answer=lambda place: reply(f"{HEAD}// {place}\n"))
    options = {"contrast": {"drafts": 2}, "evolve": {"proposals": 2, "evaluated": 2}}
    asked = request(workflow, 1, options=options.get(workflow, {}))
    result = run_campaign(asked, store, numbers(), players=seats(model))
    assert decided(store.events(result.campaign), KnobsTuned)
    assert result.best is not None
    best = store.get_blob(result.best.candidate).decode()
    assert "#define STEP 5" in best


def test_variants_take_no_more_than_their_share(store: Store) -> None:
    answers = {
        f"{n}/0/{kind}/1": reply(f"{HEAD}// {n}\n")
        for n in range(9)
        for kind in ("write", "optimise")
    }
    result, _, events, variants = played(
        store, "refine", answers, rounds=9, limits={"evaluations": 12}
    )
    assert len(variants) == 3
    assert {each.why for each in decided(events, KnobsTuned)} == {
        "their share of the evaluations is spent"
    }
    evaluated = {
        e.payload.verdict.candidate for e in events if isinstance(e.payload, EvaluationFinished)
    }
    assert len(evaluated) <= 12
    assert result.best is not None


def test_where_all_variants_fail_the_leader_stays(store: Store) -> None:
    def fate(order: Order):
        return (
            None
            if "#define STEP 2" in order.source and "WIDTH = 4;" in order.source
            else Status.CRASHED
        )

    asked = request("forge", 1)
    model = Improviser({"0/0/write/1": reply(LEADER)})
    result = run_campaign(asked, store, Numbers(fate=fate), players=seats(model))
    assert result.best is not None
    assert result.best.candidate == candidate_id(LEADER)


def test_a_replay_tunes_the_same_numbers_although_every_timing_differs(store: Store) -> None:
    """And stops where it stopped, though another clock ended it then."""
    answers = {
        f"{n}/0/{k}/1": reply(f"{HEAD}// {n}\n") for n in range(3) for k in ("write", "optimise")
    }
    asked = request("refine", 3, limits={"evaluations": 20})
    first = run_campaign(
        asked, store, Numbers(seed=1, noise=0.2), players=seats(Improviser(answers))
    )
    recording = replay.load(store, first.campaign)
    players = dataclasses.replace(
        seats(ReplayModel(recording, "played/one")),  # type: ignore[arg-type]
        recorded=recording.verdicts,
        recalled=recording.recalled,
    )
    wanted = replay_request(
        CampaignRequest(problem="doubling", limits={"evaluations": 90}), recording
    )
    again = run_campaign(wanted, store, Numbers(seed=2, noise=0.2), players=players)
    before, after = store.events(first.campaign), store.events(again.campaign)
    assert decided(before, KnobsTuned)
    assert decisions(after) == decisions(before)


@pytest.mark.slow
@pytest.mark.parametrize("workflow", ["forge", "evolve", "features"])
def test_a_death_amid_the_tuning_changes_nothing(tmp_path: Path, workflow: str) -> None:
    scene = Scene(
        request(
            workflow, 2, options={"evolve": {"proposals": 2, "evaluated": 2}}.get(workflow, {})
        ),
        lambda: Improviser(answer=lambda place: reply(f"{HEAD}// {place}\n")),
        referee=numbers,
    )
    assert scene.survives(tmp_path, every=4, cursors=("kept", "lost")) > 5
