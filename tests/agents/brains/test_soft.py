"""Soft verifiers: votes, ranking, and what guesses were worth."""

from __future__ import annotations

import json

import pytest

from kernelwright.agents.brains.soft_verifier import (
    LEAST_CASES,
    Calibration,
    LlmSoftVerifier,
    calibrations,
    shortlist,
)
from kernelwright.tests.agents.brains.answers import (
    SOURCE,
    Answers,
    answers,
    briefing_of,
    failed,
    passed,
    situation,
)
from kernelwright.traces.decisions import Opinion, SoftKind
from kernelwright.traces.records import Status, Verdict


def vote(verdict: str) -> str:
    return json.dumps({"verdict": verdict, "line": 2, "reason": f"it is {verdict}"})


def opinion_of(asker: Answers) -> Opinion:
    now = situation()
    return LlmSoftVerifier(asker, briefing_of(now)).opinion(SoftKind.MEMORY, SOURCE, now)


@pytest.mark.parametrize(
    ("votes", "verdict", "broken"),
    [
        (("broken", "broken", "ok"), "broken", 2),
        (("broken", "ok", "ok"), "ok", 1),
        (("broken", "ok", "suspect"), "suspect", 1),
    ],
)
def test_the_majority_decides(votes: tuple[str, ...], verdict: str, broken: int) -> None:
    found = opinion_of(answers(*map(vote, votes)))
    assert (found.verdict, found.broken, found.votes) == (verdict, broken, 3)


def test_votes_that_cannot_be_read_are_left_out() -> None:
    asker = answers(vote("broken"), "no idea")
    found = opinion_of(asker)
    assert (found.verdict, found.votes) == ("broken", 1)
    assert opinion_of(answers("no idea")).verdict == "ok"
    assert len(set(asker.places)) == len(asker.places)


def opinion(broken: int) -> Opinion:
    word = "broken" if broken > 1 else "ok"
    return Opinion(kind=SoftKind.BUILD, model="m", verdict=word, broken=broken, votes=3)


def test_s10_a_verifier_that_calls_everything_broken_starves_nobody() -> None:
    """Every generation evaluates its share, and the verifier is switched off by the record."""
    now = situation()
    right = passed(SOURCE, now).verdict
    pairs: list[tuple[Opinion, Verdict]] = []
    generations = 0
    while not (found := calibrations(pairs).get((SoftKind.BUILD, "m"), Calibration())).why_off:
        proposals = {f"c{generations}-{n}": [opinion(3)] for n in range(8)}
        chosen = shortlist(proposals, 4, f"seed:{generations}")
        assert len(chosen) == 4
        pairs += [(opinion(3), right) for _ in chosen]
        generations += 1
        assert generations < 20
    assert found.cases >= LEAST_CASES
    assert found.precision == 0.0
    assert "accuracy 0.00" in found.why_off
    assert shortlist({"only": [opinion(3)]}, 0, "seed") == ("only",)


def test_the_shortlist_ranks_and_keeps_a_place_for_a_rejected_one() -> None:
    proposals = {f"c{n}": [opinion(n % 4)] for n in range(8)}
    chosen = shortlist(proposals, 4, "draw")
    assert chosen == shortlist(proposals, 4, "draw")
    assert chosen[:3] == ("c0", "c4", "c1")
    drawn = {shortlist(proposals, 4, f"draw {n}")[3] for n in range(40)}
    assert drawn == {"c2", "c6", "c3", "c7"}
    assert shortlist(proposals, 8, "draw") == ("c0", "c4", "c1", "c5", "c2", "c6", "c3", "c7")


def test_precision_and_recall_come_from_recorded_pairs() -> None:
    now = situation()
    wrong = failed(SOURCE, now).verdict
    unbuilt = failed(SOURCE, now, Status.BUILD_FAILED).verdict
    ours = failed(SOURCE, now, Status.HARNESS_ERROR).verdict
    right = passed(SOURCE, now).verdict

    def guess(kind: SoftKind, word: str) -> Opinion:
        return Opinion.model_validate(
            {"kind": kind, "model": "m", "verdict": word, "broken": 0, "votes": 3}
        )

    pairs = [
        (guess(SoftKind.NUMERICS, "broken"), wrong),
        (guess(SoftKind.NUMERICS, "broken"), right),
        (guess(SoftKind.NUMERICS, "ok"), wrong),
        (guess(SoftKind.NUMERICS, "suspect"), right),
        (guess(SoftKind.NUMERICS, "broken"), unbuilt),
        (guess(SoftKind.NUMERICS, "broken"), ours),
        (guess(SoftKind.BUILD, "broken"), unbuilt),
    ]
    found = calibrations(pairs)
    assert found[SoftKind.NUMERICS, "m"] == Calibration(caught=1, wronged=1, missed=1, cleared=1)
    assert found[SoftKind.NUMERICS, "m"].precision == 0.5
    assert found[SoftKind.NUMERICS, "m"].recall == 0.5
    assert found[SoftKind.BUILD, "m"] == Calibration(caught=1)
    assert found[SoftKind.NUMERICS, "m"].why_off == ""
