"""The scripted model: turns in their order, by purpose, with faults, and an end that is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.agents.model import RETRYABLE, FaultKind, Finish, ModelFault
from kernelwright.agents.models.choosing import ModelSettings, model
from kernelwright.agents.models.scripted import ScriptedModel, read_script
from kernelwright.errors import UsageError
from kernelwright.tests.agents.models.conftest import asked, asked_for_json

SCRIPT = """
[[turn]]
purpose = "judge repair"
text = '{"issue": "a race"}'

[[turn]]
fault = "rate limited"
reason = "slow down"
retry_after_s = 0.5

[[turn]]
file = "kernel.cpp"
usage = { prompt_tokens = 7, completion_tokens = 9 }

[[turn]]
purpose = "write"
text = "half"
finish = "length"

[[turn]]
purpose = "write"
"""


@pytest.fixture
def played(tmp_path: Path) -> ScriptedModel:
    (tmp_path / "script.toml").write_text(SCRIPT)
    (tmp_path / "kernel.cpp").write_text("```cpp\nint x;\n```\n")
    found = model(f"scripted:{tmp_path / 'script.toml'}", ModelSettings())
    assert isinstance(found, ScriptedModel)
    return found


def test_turns_are_played_in_order_and_by_purpose(played: ScriptedModel) -> None:
    with pytest.raises(ModelFault, match="slow down") as caught:
        played.complete(asked())
    assert (caught.value.kind, caught.value.retry_after_s) == (FaultKind.RATE_LIMITED, 0.5)
    kernel = played.complete(asked())
    assert kernel.text.startswith("```cpp")
    assert (kernel.usage.tokens, kernel.usage.is_estimated) == (16, False)
    half = played.complete(asked())
    assert (half.text, half.finish, half.usage.is_estimated) == ("half", Finish.LENGTH, True)
    assert played.complete(asked()).finish is Finish.EMPTY
    judged = played.complete(asked_for_json())
    assert (judged.text, judged.rung) == ('{"issue": "a race"}', "prompt")
    assert played.cost(kernel.usage) == 0.0
    assert played.bound(asked()).usd == 0.0


def test_a_script_that_has_run_out_says_so_and_is_not_retried(played: ScriptedModel) -> None:
    played.complete(asked_for_json())
    for _ in range(2):
        played.recall(asked_for_json())
    with pytest.raises(ModelFault, match="no turn left for 'judge repair': 3 of its 5") as caught:
        played.complete(asked_for_json())
    assert caught.value.kind not in RETRYABLE


def test_a_resumed_script_goes_on_where_it_stopped(played: ScriptedModel) -> None:
    for _ in range(2):
        played.recall(asked())
    assert played.complete(asked()).text == "half"


def test_json_lines_and_a_price(tmp_path: Path) -> None:
    lines = tmp_path / "script.jsonl"
    lines.write_text('{"text": "one"}\n\n{"text": "two"}\n')
    played = ScriptedModel("scripted:x", read_script(lines))
    assert [played.complete(asked()).text for _ in range(2)] == ["one", "two"]
    priced = tmp_path / "priced.toml"
    priced.write_text('[price]\nmodel = "*"\ninput = 1\noutput = 1000\n[[turn]]\ntext = "x"\n')
    dear = ScriptedModel("scripted:y", read_script(priced))
    usd = dear.bound(asked(max_output_tokens=1000)).usd
    assert usd is not None
    assert usd > 1.0


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "[[turn", "cannot read"),
        ("a.toml", '[[turn]]\ntxet = "x"', "txet"),
        ("a.toml", '[[turn]]\nfault = "boredom"', "fault"),
        ("a.toml", '[[turn]]\nfault = "timed out"\ntext = "x"', "not both"),
        ("a.toml", '[[turn]]\nfile = "missing.cpp"', "missing.cpp"),
        ("a.jsonl", '{"text": "x"}\n{"text"', "line 2"),
        ("a.jsonl", "[1]", "turn"),
    ],
)
def test_a_malformed_script_is_an_error(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=words) as caught:
        read_script(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert caught.value.hint
