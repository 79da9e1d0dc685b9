"""Keys: found where they should be, refused where others could read them, shown nowhere."""

from __future__ import annotations

import copy
import json
import os
import pickle
from pathlib import Path

import pytest

from kernelwright.agents.model import ModelFault
from kernelwright.agents.models.choosing import ModelSettings, model
from kernelwright.agents.models.keys import REMOVED, Key, find_key, scrub
from kernelwright.config import OPENAI_URL, resolve
from kernelwright.errors import ConfigError, PrerequisiteError
from kernelwright.tests.agents.endpoint import Endpoint, Turn
from kernelwright.tests.agents.models.conftest import asked

CANARY = "sk-canary-9876543210fedcba"
URL = "http://host.example/v1"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "keys.toml"
    found.write_text(f'"{URL}/" = "{CANARY}"\n')
    found.chmod(0o600)
    return found


def test_the_environment_comes_before_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_key(URL, file)
    assert found is not None
    assert found.reveal() == CANARY
    assert str(file) in found.origin
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    found = find_key(URL, file)
    assert found is not None
    assert found.reveal() == "sk-of-the-environment"


def test_a_key_belongs_to_its_endpoint(file: Path) -> None:
    assert find_key("http://other.example/v1", file) is None
    assert find_key(URL, file.parent / "missing.toml") is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666, 0o601])
def test_a_file_that_others_can_reach_is_refused_with_the_remedy(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(ConfigError, match="can be reached by others") as caught:
        find_key(URL, file)
    assert caught.value.hint == f"chmod 600 {file}"
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        f"{CANARY}\n",
        f'"{URL}" = {CANARY}\n',
        f'"{URL}" = ["{CANARY}"]\n',
        f'"{URL}" = "{CANARY}\n',
        f'"{URL}" = "{CANARY} and more"\n',
        f'"{URL}" = "{CANARY}\\n"\n',
        b"\xff\xfe" + CANARY.encode(),
    ],
)
def test_a_malformed_file_is_an_error_that_shows_no_key(file: Path, content: str | bytes) -> None:
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError) as caught:
        find_key(URL, file)
    shown = f"{caught.value!r} {caught.value.hint} {caught.value.__cause__!r}"
    assert CANARY not in shown


def test_a_folder_or_a_pipe_is_no_key_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a regular file"):
        find_key(URL, tmp_path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="not a regular file"):
        find_key(URL, tmp_path / "pipe")


def test_a_key_shows_itself_nowhere() -> None:
    key = Key(CANARY, "a test")
    for shown in (repr(key), str(key), f"{key}", f"{[key]}", f"{key!a}"):
        assert CANARY not in shown
    for write in (pickle.dumps, json.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            write(key)
    assert not hasattr(key, "__dict__")


def test_any_text_can_be_scrubbed() -> None:
    Key(CANARY, "a test")
    Key("none", "a local server")
    text = f"Bearer {CANARY}, also sk-proj-abc***xyz1; none of it"
    assert scrub(text) == f"Bearer {REMOVED}, also {REMOVED}; none of it"


def test_e6_a_key_of_the_environment_is_in_no_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E6: neither the settings nor the models that are made of them tell the key."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    resolved = resolve({"base_url": URL}, folder=tmp_path, user=tmp_path / "none.toml")
    chosen = model("openai/m", ModelSettings.from_config(resolved.config))
    for shown in (resolved, resolved.config, ModelSettings.from_config(resolved.config), chosen):
        assert CANARY not in repr(shown)
        assert CANARY not in str(vars(shown) if hasattr(shown, "__dict__") else shown)
    chosen.close()


def test_e6_a_server_that_repeats_the_key_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E6: a wrong key, quoted by the server in every way, is in no message of ours."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    body = json.dumps({"error": {"message": f"bad key {CANARY}", "param": CANARY, "code": CANARY}})
    with Endpoint([Turn(status=401, body=body), Turn(status=400, body=body)]) as server:
        asked_one = model("openai/m", ModelSettings(server.url, tmp_path / "keys.toml"))
        for _ in range(2):
            with pytest.raises(ModelFault) as caught:
                asked_one.complete(asked())
            assert CANARY not in f"{caught.value} {caught.value!r} {vars(caught.value)}"
        asked_one.close()


def test_no_key_for_openai_says_where_to_put_one(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="no API key") as caught:
        model("openai/gpt-5", ModelSettings(key_file=tmp_path / "keys.toml"))
    for word in ("OPENAI_API_KEY", str(tmp_path / "keys.toml"), OPENAI_URL, "600"):
        assert word in caught.value.hint
