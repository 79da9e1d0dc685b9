"""One campaign of each workflow with the real brains: what is asked, in which words, what follows.

The Coder's first reply does not build, its third is wrong, and every reply holds a second block.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kernelwright.agents.casting import roster
from kernelwright.agents.model import Ask
from kernelwright.agents.workflows.workflow import WORKFLOWS
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.agents.played import PlayedReferee, players, recipes
from kernelwright.tests.agents.spoken import (
    STRATEGY,
    UNDECLARED,
    Played,
    Speaker,
    kernel,
    play,
    reply,
    said,
)
from kernelwright.traces.events import AdviceGiven, CandidateProposed, Decided
from kernelwright.traces.store import Store

DIGEST = "# What this campaign has found so far"
OTHERS = "- another candidate's strategy: "
REMARK = "1 other blocks passed over"
LESSON = "Unrolling by more gained each time."


@dataclass(frozen=True)
class Expected:
    """What a workflow asks and decides when it is played so."""

    rounds: int
    asked: str
    """Place and purpose of every question, the first of its turns."""
    words: dict[str, list[str]]
    """By place, what its question says besides the task."""
    decided: set[str] = field(default_factory=set)
    options: dict[str, Any] = field(default_factory=dict)


EXPECTED = {
    "best_of_n": Expected(
        4,
        "0/0/write, 0/1/write, 0/2/write, 0/3/write",
        {
            "0/0/write": ["This is sample 1 of 4: the fastest one counts."],
            "0/3/write": [
                "This is sample 4 of 4: the fastest one counts. Choose another strategy",
                f"{OTHERS}{STRATEGY} (1)",
                f"{OTHERS}{STRATEGY} (2)",
            ],
        },
    ),
    "contrast": Expected(
        6,
        "0/0/write, 0/1/write, 1/0/write, 2/0/write, 3/0/write, 4/0/contrast, 5/0/contrast",
        {
            "1/0/write": [f"{OTHERS}{STRATEGY} (2)"],
            "4/0/contrast": ["const int step = 5;"],
        },
        {"round", "exemplars", "group score"},
        {"drafts": 2},
    ),
    "evolve": Expected(
        2,
        "0/0/write, 0/1/write, 0/2/write, 0/leader/judge optimise, 0/lessons/reflect, "
        "1/0/optimise, 1/1/optimise, 1/2/optimise, 1/leader/judge optimise, "
        "1/lessons/reflect",
        {
            "0/2/write": [f"{OTHERS}{STRATEGY} (1)", f"{OTHERS}{STRATEGY} (2)"],
            "0/lessons/reflect": [f"({STRATEGY} (1)): BUILD_FAILED", f"({STRATEGY} (2))"],
            "1/0/optimise": [LESSON],
            "1/2/optimise": [LESSON, f"{OTHERS}{STRATEGY} (4)", f"{OTHERS}{STRATEGY} (5)"],
        },
        {"generation", "novelty", "niche", "islands", "lessons"},
        {"proposals": 3, "islands": 1, "exemplars": 2, "reflect_every": 1, "abreast": 1},
    ),
    "features": Expected(
        2,
        "0/0/features, 0/1/features, 0/2/repair, 1/0/features, 1/1/features",
        {
            "0/0/features": ["# Techniques to use"],
            "0/2/repair": [UNDECLARED, f"Of the reply that it came from: {REMARK}."],
            "1/1/features": ["# Techniques to use", "const int step = 2;"],
        },
        {"features", "technique used", "table of gains"},
        {"proposals": 2, "repairs": 1},
    ),
    "forge": Expected(
        4,
        "0/0/write, 1/0/repair, 2/0/judge optimise, 2/0/optimise, 3/0/judge repair, 3/0/repair",
        {
            "1/0/repair": [UNDECLARED, f"Of the reply that it came from: {REMARK}."],
            "2/0/optimise": ["const int step = 2;"],
            "3/0/repair": ["include it", "played INCORRECT"],
        },
    ),
    "refine": Expected(
        4,
        "0/0/write, 1/0/repair, 2/0/optimise, 3/0/repair",
        {
            "1/0/repair": [UNDECLARED],
            "2/0/optimise": ["const int step = 2;"],
            "3/0/repair": ["played INCORRECT", f"Of the reply that it came from: {REMARK}."],
        },
    ),
    "transpile": Expected(
        9,
        "0/0/translate, 1/0/repair, 3/0/judge optimise, 3/0/optimise, "
        "4/0/judge optimise, 4/0/optimise",
        {
            "0/0/translate": ["__global__ void doubled"],
            "1/0/repair": [UNDECLARED],
            "3/0/optimise": ["const int step"],
        },
        options={"fixes": 2, "tunings": 1, "optimisations": 2},
    ),
}


def answer(count: int, _ask: Ask) -> str:
    fault = {1: "BUILD_FAILED", 3: "INCORRECT"}.get(count, "")
    return reply(
        kernel(count, fault=fault), strategy=f"{STRATEGY} ({count})", more="static int h;\n"
    )


def first_turns(played: Played) -> list[str]:
    return [place for each in played.asked if (place := each.place).endswith("/0")]


def test_each_workflow_is_played_here() -> None:
    assert {*EXPECTED, "tune"} == set(WORKFLOWS)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_what_is_asked_in_which_words_and_what_is_recorded(store: Store, name: str) -> None:
    wanted = EXPECTED[name]
    played = play(store, name, answer, rounds=wanted.rounds, options=wanted.options)
    assert ", ".join(place.removesuffix("/0") for place in first_turns(played)) == wanted.asked
    for place, words in wanted.words.items():
        text = played.at(place).text
        assert [word for word in words if word not in text] == [], place
    payloads = [event.payload for event in store.events(played.result.campaign)]
    decided = {p.decision.what for p in payloads if isinstance(p, Decided)}
    assert decided == wanted.decided
    proposed = [p for p in payloads if isinstance(p, CandidateProposed) and p.operator != "tune"]
    told = [f"{STRATEGY} ({n})" for n in range(1, len(proposed) + 1)]
    assert [p.strategy for p in proposed] == told
    assert {p.techniques for p in proposed} == {("loop-unrolling",)}
    assert all(REMARK in p.notes for p in proposed)
    for given in (p for p in payloads if isinstance(p, AdviceGiven)):
        coders = [s for s in played.asked if s.place.startswith(f"{given.place}/")]
        edits = [s.text for s in coders if s.purpose in ("optimise", "repair")]
        assert all(given.advice.change.splitlines()[0] in text for text in edits)
    assert played.result.best is not None
    assert played.result.by_status["BUILD_FAILED"] == played.result.by_status["INCORRECT"] == 1


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_strategies_and_the_digest_carry_no_remark_of_ours(store: Store, name: str) -> None:
    """What joins fields for people, and what is remarked of a reply, is said to no model as its
    own."""
    wanted = EXPECTED[name]
    played = play(store, name, answer, rounds=wanted.rounds, options=wanted.options)
    first, *later = played.asked
    assert DIGEST not in first.text
    digests = [
        text.partition(DIGEST)[2].partition("\n# ")[0]
        for each in later
        if DIGEST in (text := each.text)
    ]
    assert digests
    assert "BUILD_FAILED" in digests[-1]
    assert any(STRATEGY in digest for digest in digests)
    told = [line for each in played.asked for line in each.text.splitlines() if STRATEGY in line]
    leaked = ("techniques:", "passed over", "failed contrast", "edits were made")
    assert [line for line in told if any(word in line for word in leaked)] == []
    others = {line for each in played.asked for line in each.text.splitlines() if OTHERS in line}
    assert others <= {f"{OTHERS}{STRATEGY} ({n})" for n in range(1, 20)}


def test_tune_asks_a_judge_about_each_candidate_and_its_coder_nothing(store: Store) -> None:
    model = Speaker(answer)
    judge = roster.judge(model.name, recipes(), lambda _name: model)
    request = CampaignRequest(problem="doubling", judge_model=model.name, rounds=4)
    result = run_campaign(request, store, PlayedReferee(), players=replace(players(), judge=judge))
    questions = said(store, result)
    places = [each.place for each in questions if each.place.endswith("optimise/0")]
    # Two begin; then one is proposed for each that was evaluated.
    asked_at = ["0/0", "0/1", "1/0", "2/0"]
    assert places == [f"{place}/judge optimise/0" for place in asked_at]
    payloads = [event.payload for event in store.events(result.campaign)]
    advised = [p for p in payloads if isinstance(p, AdviceGiven)]
    proposed = [p for p in payloads if isinstance(p, CandidateProposed)]
    assert [str(p.place) for p in advised] == asked_at
    assert [p.advice.candidate for p in advised] == [p.candidate for p in proposed]
    for question, of in zip(
        [each for each in questions if each.place.endswith("/0")], proposed, strict=True
    ):
        assert of.candidate[:12] in question.text
        assert all(f"{k} = " in question.text for k in of.knobs)
    assert DIGEST in questions[-1].text
    assert result.best is not None
