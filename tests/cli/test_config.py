"""Precedence, origins and errors of the settings; durations."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.config import (
    Config,
    Resolved,
    Source,
    format_duration,
    parse_duration,
    resolve,
)
from kernelwright.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def settled(folder: Path, flags: dict[str, object] | None = None, **environ: str) -> Resolved:
    return resolve(flags, environ=environ, folder=folder, user=folder / "user" / "config.toml")


def write_user(folder: Path, text: str) -> None:
    (folder / "user").mkdir(exist_ok=True)
    (folder / "user" / "config.toml").write_text(text)


def test_the_layers_give_way_in_order(folder: Path) -> None:
    write_user(folder, 'model = "of user"\n')
    assert settled(folder).config.model == "of user"
    (folder / "pyproject.toml").write_text('[tool.kernelwright]\nmodel = "of pyproject"\n')
    assert settled(folder).config.model == "of pyproject"
    (folder / "kernelwright.toml").write_text('\nmodel = "of project"\n')
    assert settled(folder).config.model == "of project"
    environ = {"KERNELWRIGHT_MODEL": "of environment"}
    assert settled(folder, **environ).config.model == "of environment"
    assert settled(folder, {"model": "of flag"}, **environ).config.model == "of flag"
    assert settled(folder, {"model": None}, **environ).config.model == "of environment"


def test_every_value_knows_its_origin(folder: Path) -> None:
    write_user(folder, '# mine\ncpus = "0-2,5"\n')
    (folder / "kernelwright.toml").write_text('max_time = "2m"\nmax_evals = 7\n')
    found = settled(folder, {"jail": "landlock"}, KERNELWRIGHT_TARGET="cpu", NO_COLOR="1")
    assert set(found.origins) == set(vars(found.config))
    sources = {key: origin.source for key, origin in found.origins.items()}
    assert sources["cpus"] is Source.USER
    assert sources["max_time"] is Source.PROJECT
    assert sources["target"] is Source.ENVIRONMENT
    assert sources["jail"] is Source.FLAG
    assert sources["home"] is Source.DEFAULT
    assert found.origins["cpus"].place.endswith("config.toml:2")
    assert found.origins["max_evals"].place.endswith("kernelwright.toml:2")
    assert found.origins["jail"].place == "--jail"
    assert found.config.cpus == (0, 1, 2, 5)
    assert found.config.max_time == 120.0
    assert found.config.color == "never"


def test_no_color_gives_way_to_our_own_variable(folder: Path) -> None:
    found = settled(folder, NO_COLOR="1", KERNELWRIGHT_COLOR="always")
    assert found.config.color == "always"
    assert settled(folder, NO_COLOR="").config.color == "auto"


def test_what_any_cuda_program_obeys_is_obeyed(folder: Path) -> None:
    found = settled(folder, CUDA_HOME="/opt/cuda", CUDA_VISIBLE_DEVICES="1, GPU-8932f937").config
    assert found.cuda_home == Path("/opt/cuda")
    assert found.devices == ("1", "GPU-8932f937")
    ours = settled(folder, CUDA_HOME="/opt/cuda", KERNELWRIGHT_CUDA_HOME="/opt/other")
    assert ours.config.cuda_home == Path("/opt/other")
    assert settled(folder, CUDA_VISIBLE_DEVICES="").config.devices == ()
    assert settled(folder).config.devices is None
    assert settled(folder, CUDA_HOME="").config.cuda_home is None
    with pytest.raises(ConfigError, match="CUDA_VISIBLE_DEVICES"):
        settled(folder, CUDA_VISIBLE_DEVICES="the fast one")


def test_a_projects_file_names_no_toolkit_whose_programs_would_be_run(folder: Path) -> None:
    (folder / "kernelwright.toml").write_text('cuda_home = "."\n')
    with pytest.raises(ConfigError, match="cuda_home may not stand in a project's file"):
        settled(folder)


def test_a_path_in_a_file_is_relative_to_the_file(folder: Path) -> None:
    write_user(folder, 'home = "store"\n')
    assert settled(folder).config.home == folder / "user" / "store"
    assert settled(folder, KERNELWRIGHT_HOME="here").config.home == folder / "here"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hoem = 'x'", ["unknown setting 'hoem'", "kernelwright.toml:1"]),
        ("jail = 'prison'", ["jail = 'prison'", "bubblewrap", "kernelwright.toml:1"]),
        ("max_evals = 0", ["max_evals = 0", "at least 1"]),
        ("max_evals = true", ["max_evals = True"]),
        ("max_time = 'soon'", ["max_time = 'soon'", "1h30m"]),
        ("cpus = '3-1'", ["cpus = '3-1'", "backwards"]),
        ("cpus = 'all'", ["cpus = 'all'", "0,2-3"]),
        ("debug = 'maybe'", ["debug = 'maybe'"]),
        ("home = 3", ["home = 3"]),
        ("model = ''", ["model = ''"]),
        ("model = ", ["kernelwright.toml"]),
    ],
)
def test_a_bad_project_file_is_an_error_with_its_place(
    folder: Path, text: str, words: list[str]
) -> None:
    (folder / "kernelwright.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        settled(folder)
    for word in words:
        assert word in str(caught.value)
    assert caught.value.hint
    assert caught.value.exit_code == 2


def test_an_unknown_key_gets_its_nearest_name(folder: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        settled(folder, KERNELWRIGHT_CASHE_DIR="x")
    assert "KERNELWRIGHT_CASHE_DIR" in str(caught.value)
    assert caught.value.hint == "did you mean cache_dir?"
    with pytest.raises(ConfigError) as caught:
        settled(folder, KERNELWRIGHT_ZZZZ="x")
    assert "known: home, cache_dir" in caught.value.hint


def test_a_checked_out_folder_cannot_weaken_the_sandbox(folder: Path) -> None:
    for name, table in (("pyproject.toml", "[tool.kernelwright]\n"), ("kernelwright.toml", "")):
        (folder / name).write_text(f"{table}accept_weak_isolation = true\n")
        with pytest.raises(ConfigError, match="may not stand in a project's file"):
            settled(folder)
        (folder / name).unlink()
    write_user(folder, "accept_weak_isolation = true\n")
    assert settled(folder).config.accept_weak_isolation


def test_other_tools_tables_are_left_alone(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.other]\nkernelwright = 1\n[project]\nname='x'\n")
    assert settled(folder).config == settled(folder / "nowhere").config


def test_the_defaults_are_a_config(folder: Path) -> None:
    config = settled(folder).config
    assert isinstance(config, Config)
    assert config.home.is_absolute()
    assert config.cache_dir != config.home
    assert (config.model, config.judge_model, config.jail) == ("recipe", "rules", "auto")
    assert not config.accept_weak_isolation


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("2m", 120),
        ("1h30m", 5400),
        ("1h", 3600),
        ("1h2m3s", 3723),
        ("0.5m", 30),
        ("45", 45),
        ("1.5", 1.5),
        (" 2M ", 120),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "s", "-5s", "0", "0s", "1d", "30m1h", "5 s 3", "nan", "inf", "1e3", True]
)
def test_what_is_not_a_duration(text: object) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@given(st.integers(min_value=1, max_value=10**6))
def test_a_duration_is_read_back_as_it_was_spelled(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    "line",
    [
        'home = "~nobody-of-that-name/x"',
        'home = "a\\u0000b"',
        'cpus = "0-99999999999"',
        'cpus = "0-70000"',
        'max_time = "' + "9" * 400 + '"',
        "max_evals = " + "9" * 5000,
        "cpus = " + "[" * 20_000,
    ],
    ids=["home", "zero byte", "long range", "range", "endless", "digits", "nesting"],
)
def test_what_once_ended_in_a_crash_is_an_error(folder: Path, line: str) -> None:
    (folder / "kernelwright.toml").write_text(line + "\n")
    with pytest.raises(ConfigError):
        settled(folder)


def test_the_endpoint_of_openais_variable_gives_way_to_our_own(folder: Path) -> None:
    url = "http://127.0.0.1:8000/v1"
    assert settled(folder).config.base_url == "https://api.openai.com/v1"
    found = settled(folder, OPENAI_BASE_URL=f"{url}/", OPENAI_API_KEY="sk-secret")
    assert found.config.base_url == url
    assert found.origins["base_url"].place == "OPENAI_BASE_URL"
    assert "sk-secret" not in repr(found)
    ours = settled(folder, OPENAI_BASE_URL=url, KERNELWRIGHT_BASE_URL="https://our.example/v1")
    assert ours.config.base_url == "https://our.example/v1"


@pytest.mark.parametrize("key", ["base_url", "key_file", "prices_file", "capabilities_file"])
def test_a_checked_out_folder_cannot_send_the_key_elsewhere(folder: Path, key: str) -> None:
    (folder / "kernelwright.toml").write_text(f'{key} = "http://evil.example/v1"\n')
    with pytest.raises(ConfigError, match="may not stand in a project's file"):
        settled(folder)


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://host/v1",
        "http://",
        "http://host:99999/v1",
        "http://[::1/v1",
        "http://host/v1?key=x",
        "http://host /v1",
        "http://host/v1#x",
        "",
    ],
)
def test_what_is_no_base_url(folder: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="base_url = "):
        settled(folder, {"base_url": url})


def test_a_password_in_a_url_is_refused_and_not_repeated(folder: Path) -> None:
    with pytest.raises(ConfigError, match="keys stand in the key file") as caught:
        settled(folder, KERNELWRIGHT_BASE_URL="https://me:secret@host.example/v1")
    assert "secret" not in str(caught.value)
