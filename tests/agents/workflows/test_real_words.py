"""What the real Coder and Judge are told in each workflow, prompt by prompt."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernelwright.agents.model import Ask, Reply
from kernelwright.agents.workflows.workflow import WORKFLOWS
from kernelwright.tests.agents.spoken import STRATEGY, THOUGHT, UNDECLARED, kernel, play, reply
from kernelwright.tests.agents.workflows.staged import decided_at
from kernelwright.traces.decisions import Compared, GenerationPlanned
from kernelwright.traces.events import CandidateProposed, ModelReplied
from kernelwright.traces.place import Place
from kernelwright.traces.store import Store

HELPER = "static int helper() { return 3; }\n"
DIGEST = "# What this campaign has found so far"

LATER = {
    "best_of_n": "0/2/write",
    "contrast": "0/2/write",
    "evolve": "0/4/write",
    "features": "0/2/features",
    "forge": "2/0/",
    "refine": "2/0/",
    "transpile": "2/0/",
}
"""By workflow, the first question that is asked when two candidates have failed to build."""

ROUNDS = {"best_of_n": 6, "evolve": 1, "features": 1}


def stumbling(count: int, ask: Ask) -> str:
    """The first two answers do not build."""
    del ask
    return reply(kernel(count, fault="BUILD_FAILED" if count <= 2 else ""), more=HELPER)


@pytest.mark.parametrize("workflow", sorted(LATER))
def test_later_candidates_are_told_what_the_compiler_refused_before(
    store: Store, workflow: str
) -> None:
    played = play(store, workflow, stumbling, judged=False, rounds=ROUNDS.get(workflow, 3))
    assert UNDECLARED not in played.asked[0].text
    later = played.at(LATER[workflow]).text.partition(DIGEST)[2]
    # The fact alone, behind the list of failures: of other sources the line number says nothing.
    assert f"\n- {UNDECLARED}\nDATA-" in later
    assert "BUILD_FAILED" in later


def test_every_workflow_has_its_question() -> None:
    assert set(LATER) == set(WORKFLOWS)


@pytest.mark.parametrize("workflow", ["contrast", "evolve", "best_of_n"])
def test_others_are_told_a_strategy_as_its_coder_said_it(store: Store, workflow: str) -> None:
    """And nothing that was remarked of the reply: each has a field of its own."""
    played = play(store, workflow, stumbling, judged=False, rounds=ROUNDS.get(workflow, 2))
    told = [
        line
        for said in played.asked
        for line in said.text.splitlines()
        if line.startswith("- another candidate's strategy: ")
    ]
    assert told
    assert set(told) == {f"- another candidate's strategy: {STRATEGY}"}
    proposed = [
        p
        for e in store.events(played.result.campaign)
        if isinstance(p := e.payload, CandidateProposed)
    ]
    assert {(p.strategy, p.techniques) for p in proposed} == {(STRATEGY, ("loop-unrolling",))}
    assert all("1 other blocks passed over" in p.notes for p in proposed)


def test_lessons_are_drawn_from_strategies_without_remains_of_a_note(store: Store) -> None:
    """Lists of attempts, lessons and exemplars hold what Coders said, and no remark of ours."""
    options = {"proposals": 4, "islands": 1, "exemplars": 2, "reflect_every": 1}
    evolved = play(store, "evolve", stumbling, rounds=2, options=options)
    contrasted = play(store, "contrast", stumbling, rounds=5)
    (reflected, *_) = [said.text for said in evolved.asked if said.purpose == "reflect"]
    assert f"({STRATEGY}): BUILD_FAILED" in reflected
    assert "Unrolling by more gained each time." in evolved.at("1/0/").text
    lines = [
        line for said in (*evolved.asked, *contrasted.asked) for line in said.text.splitlines()
    ]
    about = [line for line in lines if STRATEGY in line]
    assert not [line for line in about if "techniques:" in line or "passed over" in line]


def test_a_reply_of_several_blocks_is_told_to_whoever_mends_it(store: Store) -> None:
    played = play(store, "forge", stumbling, rounds=3)
    for place in ("1/0/repair", "2/0/judge repair"):
        assert (
            "Of the reply that it came from: 1 other blocks passed over." in played.at(place).text
        )


def test_coder_and_judge_are_told_the_same_digest(store: Store) -> None:
    """The best with what they changed, the failures with their cause, however far back."""

    def answer(count: int, ask: Ask) -> str:
        del ask
        fault = {4: "INCORRECT"}.get(count, "")
        return reply(kernel(count, fault=fault), strategy=f"way {count}")

    played = play(store, "forge", answer, rounds=6)
    coder, judge = (
        next(s for s in played.asked if s.place.startswith("5/0/") and s.purpose == kind).text
        for kind in ("optimise", "judge optimise")
    )
    digests = [text.partition(DIGEST)[2].partition("\n# ")[0] for text in (coder, judge)]
    assert digests[0] == digests[1]
    best, failed, *_ = digests[0].split("The last ones that failed")
    numbers = [line.split()[0] for line in best.splitlines() if line.startswith("#")]
    assert len(numbers) == 3
    assert "-     const int step =" not in best
    assert "- const int step = 2;" in best
    assert "+ const int step = 3;" in best
    assert "way 4 -> INCORRECT: played INCORRECT" in failed


def test_what_grows_with_the_campaign_stands_behind_what_does_not(store: Store) -> None:
    """Endpoints keep the beginning of a prompt that they saw before, at a tenth of its price."""
    played = play(store, "forge", stumbling, rounds=4)
    coder = [said for said in played.asked if "judge" not in said.purpose]
    systems = [said.messages[0] for said in coder]
    task = coder[0].messages[1].partition("\n# What to do")[0]
    assert all(text.startswith(systems[0]) for text in systems)
    assert all(said.messages[1].startswith(task) for said in coder)
    assert all(said.text.index(DIGEST) > said.text.index(task) for said in coder[1:])


EDITED = "    const float unused{n} = {n}.0f;\n"


def long_body(last: int) -> str:
    lines = [EDITED.replace("{n}", str(n)) for n in range(60)]
    return "".join(lines[:-1]) + EDITED.replace("{n}", str(last))


def test_an_ordinary_edit_is_not_asked_for_again_and_a_copy_is(store: Store) -> None:
    def answer(count: int, ask: Ask) -> str:
        if ask.purpose in ("write", "cross over"):
            return reply(kernel(count, body=f"    const long other{count} = M;\n" * 40))
        if count % 2:
            return reply(kernel(7, body=long_body(9)) + f"// {count}\n")
        return reply(kernel(7, body=long_body(100 + count)))

    options = {"proposals": 4, "islands": 1, "exemplars": 2, "reflect_every": 0, "judged": False}
    played = play(store, "evolve", answer, judged=False, rounds=4, options=options)
    events = store.events(played.result.campaign)
    based = {
        Place(Place.parse(at).round, slot)
        for at, plan in decided_at(events, GenerationPlanned).items()
        for slot, planned in enumerate(plan.slots)
        if planned.base
    }
    compared = decided_at(events, Compared).items()
    found = {Place.parse(at): d for at, d in compared if Place.parse(at) in based}
    edits = [d for d in found.values() if 0.95 <= d.similarity < 1.0]
    copies = [d for d in found.values() if d.similarity == 1.0]
    assert edits
    assert not [d for d in edits if d.like]
    assert copies
    assert all(d.like for d in copies)
    # A copy is asked for once more, an edit is not.
    places = {Place.parse(said.place).step for said in played.asked}
    for place, details in found.items():
        number, slot = place.numbers
        assert (Place(number, 4 + slot) in places) == bool(details.like)


def test_a_suspected_candidate_is_no_example_in_the_digest(store: Store) -> None:
    from kernelwright.agents.books.progress import Progress
    from kernelwright.agents.prompting.history import history
    from kernelwright.agents.roles import Assignment
    from kernelwright.traces.decisions import SecondOpinion
    from kernelwright.traces.events import Decided

    played = play(store, "best_of_n", lambda n, _ask: reply(kernel(n)), judged=False, rounds=3)
    campaign = played.result.campaign
    before = history(Progress(store.events(campaign)), Assignment(), _source(store)).campaign
    assert [a.number for a in before.best] == [3, 2, 1]
    store.append(
        campaign, Decided(place=Place(0, 2), decision=SecondOpinion(candidate="c", label="suspect"))
    )
    after = history(Progress(store.events(campaign)), Assignment(), _source(store)).campaign
    assert [a.number for a in after.best] == [2, 1]


def _source(store: Store) -> Callable[[str], str]:
    return lambda candidate: store.get_blob(candidate).decode()


def test_what_a_model_thought_is_recorded_and_never_said_to_it_again(store: Store) -> None:
    def answer(count: int, ask: Ask) -> str:
        del ask
        return "no code" if count == 2 else reply(kernel(count))

    played = play(store, "forge", answer, rounds=3)
    replies = [
        Reply.model_validate_json(store.get_blob(p.reply))
        for e in store.events(played.result.campaign)
        if isinstance(p := e.payload, ModelReplied)
    ]
    assert [r for r in replies if r.reasoning == THOUGHT]
    # The second reply was useless and is quoted when it is asked for again; its thoughts are not.
    assert any("no code" in said.text for said in played.asked)
    assert not any(THOUGHT in said.text for said in played.asked)
