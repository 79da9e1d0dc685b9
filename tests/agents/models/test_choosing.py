"""From names to models, and from mistaken names to the right ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.agents.models.choosing import ModelSettings, is_model, model
from kernelwright.agents.models.ensemble import Ensemble
from kernelwright.agents.models.openai_client import DEFAULT_SLOTS, OpenAIModel
from kernelwright.config import resolve
from kernelwright.errors import UnknownNameError, UsageError
from kernelwright.tests.agents.endpoint import Endpoint, Turn
from kernelwright.tests.agents.models.conftest import asked

LOCAL = "http://localhost:8000/v1"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("openai/gpt-5", "gpt-5"),
        ("openai/meta-llama/Llama-3.3-70B", "meta-llama/Llama-3.3-70B"),
        ("openai/qwen3:8b", "qwen3:8b"),
        ("openai/a+b", "a+b"),
    ],
)
def test_b15_any_name_at_any_endpoint(name: str, short: str) -> None:
    """B15: unlisted names, names with slashes, colons and pluses."""
    with Endpoint([Turn("yes")], prefix="/some/where/v1") as server:
        found = model(name, ModelSettings(server.url))
        assert found.complete(asked()).text == "yes"
        found.close()
    assert found.name == name
    assert server.requests[0].body["model"] == short
    assert server.requests[0].path == "/some/where/v1/chat/completions"


def test_an_ensemble_shares_one_connection() -> None:
    found = model("openai/a+openai/b+c", ModelSettings(LOCAL))
    assert isinstance(found, Ensemble)
    assert list(found.models) == ["openai/a", "openai/b+c"]
    connections = {id(each._connection) for each in found.models.values()}  # type: ignore[attr-defined]
    assert len(connections) == 1


def test_one_model_in_several_manners_is_an_ensemble_of_arms() -> None:
    """What a question leaves open is filled in; what it sets stands."""
    name = "openai/m@temperature=0.9,effort=high+openai/m@effort=low+openai/m"
    found = model(name, ModelSettings(LOCAL))
    assert isinstance(found, Ensemble)
    assert list(found.models) == name.split("+")
    with Endpoint(lambda _request: Turn("yes")) as server:
        for each in name.split("+"):
            one = model(each, ModelSettings(server.url))
            assert one.name == each
            one.complete(asked())
            one.complete(asked(temperature=0.2))
            one.close()
        bodies = [request.body for request in server.requests]
    assert {body["model"] for body in bodies} == {"m"}
    assert [body.get("temperature") for body in bodies] == [0.9, 0.2, None, 0.2, None, 0.2]
    assert [body.get("reasoning_effort") for body in bodies] == [
        "high",
        "high",
        "low",
        "low",
        None,
        None,
    ]


@pytest.mark.parametrize(
    "end", ["@effort=9", "@temperature=hot", "@temperature=2.1", "@top=1", "@effort=low,effort=low"]
)
def test_a_manner_that_cannot_be_is_refused(end: str) -> None:
    with pytest.raises(UsageError, match=r"manner|twice"):
        model(f"openai/m{end}", ModelSettings(LOCAL))


@pytest.mark.parametrize("short", ["m@v1", "owner/m@sha256:ab", "m@"])
def test_an_at_sign_may_stand_in_a_name(short: str) -> None:
    assert model(f"openai/{short}", ModelSettings(LOCAL)).name == f"openai/{short}"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gpt-5-mini", "did you mean openai/gpt-5-mini?"),
        ("opneai/gpt-5", "did you mean openai/gpt-5?"),
        ("OpenAI/gpt-5", "did you mean openai/gpt-5?"),
        ("script:play.toml", "did you mean scripted:play.toml?"),
        ("claude", "A model is one of: openai/NAME, "),
        ("openai/a+gpt-5", None),
    ],
)
def test_a_mistaken_name_gets_the_right_form(name: str, hint: str | None) -> None:
    if hint is None:
        assert model(name, ModelSettings(LOCAL)).name == name
        return
    with pytest.raises(UnknownNameError, match="there is no model named") as caught:
        model(name, ModelSettings(LOCAL))
    assert hint in caught.value.hint
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["openai/", "openai/a b", "openai/a\n", "openai/" + "x" * 201])
def test_a_name_that_no_model_has(name: str) -> None:
    with pytest.raises(UsageError, match="names no model"):
        model(name, ModelSettings(LOCAL))


def test_which_names_are_models() -> None:
    assert is_model("openai/x")
    assert is_model("scripted:x.toml")
    assert not is_model("recipe")
    assert not is_model("rules")


def test_the_settings_of_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('[[price]]\nmodel = "m"\ninput = 1\noutput = 2\n')
    (tmp_path / "caps.toml").write_text("[[capability]]\ntakes = { temperature = false }\n")
    flags = {
        "base_url": LOCAL + "/",
        "prices_file": "prices.toml",
        "capabilities_file": "caps.toml",
        "model_silence": "20m",
        "model_slots": 3,
    }
    resolved = resolve(flags, environ={}, folder=tmp_path, user=tmp_path / "none.toml")
    settings = ModelSettings.from_config(resolved.config, seed=4)
    assert (settings.base_url, settings.silence_s, settings.seed) == (LOCAL, 1200.0, 4)
    found = model("openai/m", settings)
    assert isinstance(found, OpenAIModel)
    assert found.price is not None
    assert found.price.output == 2
    assert not found.capabilities.temperature
    assert found.slots == 3


def test_slots_follow_the_place() -> None:
    assert model("openai/m", ModelSettings(LOCAL)).slots == 1
    assert model("openai/m", ModelSettings("https://far.example/v1")).slots == DEFAULT_SLOTS
