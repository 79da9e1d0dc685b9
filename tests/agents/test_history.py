"""What was tried before: the fold over a campaign's events, and the words of both prompts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelwright.agents.books.progress import Progress
from kernelwright.agents.brains.llm_coder import LlmCoder
from kernelwright.agents.brains.llm_judge import LlmJudge
from kernelwright.agents.brains.rules import RuleJudge
from kernelwright.agents.prompting.history import history
from kernelwright.agents.prompting.history_text import told_history
from kernelwright.agents.roles import Assignment, Digest, Lineage, Member, Mode, TriedChange
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.agents.asked import (
    PlayedModel,
    as_it_says,
    asking_players,
    kernel,
    source,
)
from kernelwright.tests.agents.brains.answers import (
    SOURCE,
    answers,
    at,
    briefing_of,
    code,
    failed,
    passed,
    situation,
)
from kernelwright.tests.agents.played import PlayedReferee
from kernelwright.traces.place import Place
from kernelwright.traces.records import Speedup, candidate_id
from kernelwright.traces.store import Store

CHAIN = {
    "0/0/write/1": kernel(step=8),
    "1/0/optimise/1": kernel(step=2),
    "2/0/optimise/1": kernel(fails="INCORRECT"),
    "3/0/repair/1": "no code today",
    "4/0/repair/1": kernel(step=12),
}

SOURCES: dict[str, str] = {}
"""Of the candidates that were played."""


@pytest.fixture
def played(store: Store) -> Progress:
    model = PlayedModel(CHAIN)
    request = CampaignRequest.model_validate(
        {"problem": "doubling", "workflow": "forge", "rounds": 5}
    )
    referee = PlayedReferee(fate=as_it_says, noise=0.001)
    result = run_campaign(request, store, referee, players=asking_players(model))
    progress = Progress(store.events(result.campaign))
    SOURCES.update({each: store.get_blob(each).decode() for each in progress.candidates})
    return progress


def asked_at(progress: Progress, place: str, base: str = "") -> Lineage:
    """What a place is told whose base has this source."""
    if not base:
        return history(progress, Assignment(place=Place.parse(place)), SOURCES.__getitem__)
    found = progress.candidates[candidate_id(base)]
    assert found.basis is not None
    member = Member(
        candidate=candidate_id(base),
        number=found.number,
        source=base,
        language="cpp",
        family="",
        knobs={},
        verdict=found.basis,
    )
    return history(progress, Assignment(place=Place.parse(place), base=member), SOURCES.__getitem__)


def test_a_place_is_told_of_the_rounds_before_it_and_of_no_later_one(played: Progress) -> None:
    first, second, third = source(step=8), source(step=2), source(fails="INCORRECT")
    assert asked_at(played, "1/0", first).tried == ()
    told = asked_at(played, "2/0", first)
    assert [a.number for a in told.tried] == [2]
    assert told.tried[0].before_us is not None
    assert told.tried[0].after_us is not None
    assert told.tried[0].after_us > told.tried[0].before_us
    assert "better so far" in told.standing
    later = asked_at(played, "3/0", second)
    assert [a.number for a in later.led_here] == [1, 2]
    assert [a.failure.partition(":")[0] for a in later.tried] == ["INCORRECT"]
    assert "another one: #1" in later.standing
    assert asked_at(played, "4/0", third).refused == ("no fenced block",)
    assert asked_at(played, "3/0", third).refused == ()


def test_a_place_without_a_round_is_told_of_the_campaign_alone(played: Progress) -> None:
    everything = asked_at(played, "9/0").campaign
    assert asked_at(played, "", source(step=8)) == Lineage(campaign=everything)
    assert asked_at(played, "9/0") == Lineage(campaign=everything)


def test_the_digest_has_the_best_with_what_they_changed_and_the_failures(played: Progress) -> None:
    told = asked_at(played, "9/0").campaign
    assert [(a.number, a.parent) for a in told.best] == [(4, 1), (1, 0), (2, 1)]
    assert [a.number for a in told.failed] == [3]
    assert told.failed[0].failure.startswith("INCORRECT: played")
    assert told.best[2].change.splitlines() == [
        "1 lines added, 1 removed",
        "- step = 8",
        "+ step = 2",
    ]
    assert asked_at(played, "0/0").campaign == Digest()
    assert [a.number for a in asked_at(played, "1/0").campaign.best] == [1]


def around(ratio: float) -> Speedup:
    return Speedup(median=ratio, low=0.9 * ratio, high=1.1 * ratio)


TRIED = TriedChange(
    number=5,
    strategy="twice the tile",
    advised="register-blocking",
    before_us=12.4,
    after_us=21.3,
    is_modelled=True,
)


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (
            TRIED,
            "#5 twice the tile [advised: register-blocking] -> 12.4 us to 21.3 us modelled, slower",
        ),
        (replace(TRIED, after_us=6.2, advised=""), "12.4 us to 6.2 us modelled, faster"),
        (replace(TRIED, after_us=12.5, is_modelled=False), "12.4 us to 12.5 us, no difference"),
        (
            replace(
                TRIED, is_modelled=False, before_speedup=around(2.0), after_speedup=around(2.5)
            ),
            "-> speed-up 2 [1.8, 2.2] to 2.5 [2.25, 2.75], faster",
        ),
        (
            replace(
                TRIED,
                is_modelled=False,
                before_speedup=around(2.0),
                after_speedup=around(2.1),
                beside_champion=around(1.0),
            ),
            "-> speed-up 2 [1.8, 2.2] to 2.1 [1.89, 2.31], within the noise; beside the best of "
            "then 1 [0.9, 1.1]",
        ),
        (
            replace(TRIED, is_modelled=False, before_us=None, after_speedup=around(2.5)),
            "-> speed-up 2.5 [2.25, 2.75]",
        ),
        (replace(TRIED, failure="INCORRECT: y[3] is wrong"), "-> INCORRECT: y[3] is wrong"),
        (replace(TRIED, strategy="", before_us=None), "named no strategy [advised: register-"),
    ],
)
def test_an_attempt_is_one_line(attempt: TriedChange, words: str) -> None:
    assert words in told_history(Lineage(tried=(attempt,)), "6/0")


def test_coder_and_judge_are_told_the_same_and_another_thing_after_a_lost_child() -> None:
    now = situation("softmax", "cpp", mode=Mode.OPTIMISE)
    base = passed(SOURCE, now)
    before = at(now, base=base)
    after = replace(before, history=Lineage(standing="No candidate was better.", tried=(TRIED,)))
    refused = replace(before, history=Lineage(refused=("the same source as candidate 1",)))
    prompts = []
    for each in (before, after, refused):
        coder, judge = answers(code()), answers("{}")
        LlmCoder(coder, briefing_of(now)).propose(each)
        LlmJudge(judge, briefing_of(now), RuleJudge()).diagnose(base, each)
        section = told_history(each.history, each.assignment.place)
        assert section in coder.prompt(0)
        assert section in judge.prompt(0)
        prompts += [coder.prompt(0), judge.prompt(0)]
    assert len(set(prompts)) == len(prompts)
    assert "Do not repeat" in prompts[2]
    assert "the same source as candidate 1" in prompts[4]


def test_a_repair_is_told_which_fixes_failed() -> None:
    now = situation("softmax", "cpp", mode=Mode.REPAIR)
    base = failed(SOURCE, now)
    lost = TriedChange(number=6, strategy="mask the tail", failure="INCORRECT: y[9] is wrong")
    told = replace(at(now, base=base), history=Lineage(tried=(lost,)))
    coder, judge = answers(code()), answers("{}")
    LlmCoder(coder, briefing_of(now)).propose(told)
    LlmJudge(judge, briefing_of(now), RuleJudge()).diagnose(base, told)
    for prompt in (coder.prompt(0), judge.prompt(0)):
        assert "#6 mask the tail -> INCORRECT: y[9] is wrong" in prompt
