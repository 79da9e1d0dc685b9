"""A campaign that died and went on asks the same words: digest, history and told strategies alike.

Answers follow from the words of the question, so that a single other word is another story.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kernelwright.agents.model import Ask
from kernelwright.running import CampaignRequest, resume_campaign, run_campaign
from kernelwright.tests.agents.asked import needs
from kernelwright.tests.agents.spoken import Reader, Speaker, kernel, reply, seats
from kernelwright.tests.agents.test_forge_resume import Died, MortalStore, damage
from kernelwright.traces.events import Event, ModelRequested
from kernelwright.traces.store import Store

EVOLVE = {
    "proposals": 4,
    "abreast": 2,
    "islands": 2,
    "migrate_every": 2,
    "exemplars": 2,
    "reflect_every": 1,
}
CASES = {
    "best_of_n": (5, {}),
    "contrast": (3, {}),
    "evolve": (2, EVOLVE),
    "features": (2, {}),
    "forge": (5, {}),
    "transpile": (4, {"tunings": 0}),
}
EVERY = 7
"""Events between two deaths: each is a whole campaign."""


def answer(count: int, ask: Ask) -> str:
    del count
    words = hashlib.sha256(ask.messages[-1].content.encode()).digest()
    fault = {0: "BUILD_FAILED", 1: "INCORRECT", 2: "BUILD_FAILED"}.get(words[0] % 8, "")
    return reply(kernel(words[1] % 40, fault=fault), strategy=f"way {words[2]}")


def asked(events: list[Event]) -> list[tuple[str, str]]:
    """Places and the blobs of the words, each once, in no order: calls run side by side."""
    return sorted(
        {(str(p.place), p.ask) for e in events if isinstance(p := e.payload, ModelRequested)}
    )


@pytest.mark.slow
@pytest.mark.parametrize("cursor", ["kept", "lost"])
@pytest.mark.parametrize("workflow", sorted(CASES))
def test_the_same_words_are_asked_after_a_death(tmp_path: Path, workflow: str, cursor: str) -> None:
    rounds, options = CASES[workflow]
    request = CampaignRequest.model_validate(
        {"problem": "doubling", "workflow": workflow, "rounds": rounds, "options": options}
        | needs(workflow)
        | {"model": "scripted:spoken"}
    )
    with Store.open(tmp_path / "whole") as store:
        whole = run_campaign(request, store, Reader(), players=seats(Speaker(answer, slots=4)))
        events = store.events(whole.campaign)
    for left in range(3, len(events) - 1, EVERY):
        # Another number of calls at once changes no word either.
        with MortalStore.open(tmp_path / str(left)) as mortal:
            mortal.left = left
            with pytest.raises(Died):
                run_campaign(request, mortal, Reader(), players=seats(Speaker(answer, slots=4)))
        with Store.open(tmp_path / str(left)) as store:
            (campaign,) = store.campaigns()
            damage(store.cursor_path(campaign), cursor)
            resume_campaign(campaign, store, Reader(), players=seats(Speaker(answer)))
            assert asked(store.events(campaign)) == asked(events), left
