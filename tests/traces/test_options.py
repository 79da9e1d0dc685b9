"""A campaign's options: declared once, carried from the command line to the workflow's loop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelwright.agents.workflows.loop import Loop
from kernelwright.agents.workflows.workflow import find_workflow
from kernelwright.errors import UsageError
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.agents.played import PlayedReferee, players
from kernelwright.traces.events import CampaignStarted
from kernelwright.traces.options import Options
from kernelwright.traces.store import Store

EVERY: dict[str, Any] = {
    "rounds": 2,
    "patience": 3,
    "options": {"confirm_after": 1},
    "transfer": False,
    "seed": 4,
}


def test_every_option_reaches_the_first_event_and_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(EVERY) == set(Options.model_fields)
    rules = find_workflow("tune").rules
    heard: list[Options] = []

    def run(loop: Loop) -> str:
        heard.append(loop.asked)
        return rules.run(loop)

    monkeypatch.setitem(vars(find_workflow("tune")), "rules", replace(rules, run=run))
    request = CampaignRequest.model_validate({"problem": "doubling", **EVERY})
    with Store.open(tmp_path / "home") as store:
        result = run_campaign(request, store, PlayedReferee(), players=players())
        started = store.events(result.campaign)[0].payload
    assert isinstance(started, CampaignStarted)
    assert (
        heard
        == [Options.from_record(started)]
        == [Options.from_record(request)]
        == [Options(**EVERY)]
    )


def test_what_was_written_is_read_and_what_was_not_is_as_ever() -> None:
    assert Options.read(dict.fromkeys(Options.flags())) == Options()
    written = {"rounds": 5, "options": ["kept-per-niche=3", "soft = yes"], "seed": 0}
    assert Options.read(written) == Options(
        rounds=5, options={"kept_per_niche": "3", "soft": "yes"}, seed=0
    )


@pytest.mark.parametrize("words", ["islands", "=2"])
def test_a_setting_needs_a_name_and_a_value(words: str) -> None:
    with pytest.raises(UsageError, match="no NAME=VALUE"):
        Options.read({"options": [words]})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rounds": 0}, r"--rounds 0: Input should be greater"),
        ({"patience": "soon"}, r"patience 'soon': Input should be a valid integer"),
        ({"no_such": 1}, r"no_such 1: Extra inputs"),
    ],
)
def test_what_cannot_be_is_said_with_its_value(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        Options.choose(**given)
    assert "patience" in caught.value.hint
