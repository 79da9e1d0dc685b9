"""The command line itself: help, errors, exit statuses, streams, JSON."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = (
    "run",
    "eval",
    "problems",
    "doctor",
    "audit",
    "bench",
    "suite",
    "portfolio",
    "list",
    "show",
    "view",
    "report",
    "bundle",
    "archive",
    "delete",
    "gc",
    "demo",
    "reindex",
    "export",
    "ab",
    "schema",
)


def test_help_names_every_command(kw) -> None:
    done = kw("--help")
    assert done.code == 0
    assert done.err == ""
    listed = set(re.findall(r"^  ([a-z]+) ", done.out.split("Commands:")[1], re.MULTILINE))
    assert listed == {*COMMANDS, "metrics", "space", "config", "new"}


@pytest.mark.parametrize(
    "command",
    [
        *COMMANDS,
        "metrics",
        "metrics derive",
        "metrics fit",
        "space",
        "space replay",
        "config",
        "config show",
    ],
)
def test_each_command_has_help(kw_here, command: str) -> None:
    done = kw_here(*command.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: kernelwright {command}")


def test_the_contract_of_run_is_in_its_help(kw) -> None:
    text = kw("run", "--help").out
    for flag in [
        "--target",
        "--language",
        "--workflow",
        "--model",
        "--judge-model",
        "--matrix",
        "--workload",
        "--max-evals",
        "--max-time",
        "--max-usd",
        "--seed",
        "--resume",
        "--dry-run",
        "--json",
        "--home",
        "--cpus",
        "--jail",
    ]:
        assert f"{flag} " in text


def test_version(kw) -> None:
    done = kw("--version")
    assert done.code == 0
    assert re.fullmatch(r"kernelwright \d+\.\d+\.\d+\n", done.out)


def test_no_command_is_a_usage_error_with_help(kw) -> None:
    done = kw()
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("Usage: kernelwright")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["rnu"], "run"),
        (["run", "--max-evils", "3"], "--max-evals"),
        (["run", "spmm_csr", "--max-evals", "many"], "max_evals = 'many'"),
        (["run", "spmm_csr", "--max-evals", "0"], "max_evals = '0' is not a whole number"),
        (["run", "spmm_csr", "--max-time", "soon"], "max_time = 'soon' is not a duration"),
        (["run", "spmm_csr", "--jail", "prison"], "jail = 'prison'"),
        (["run"], "run needs the name of a problem"),
        (["run", "spmm_csr", "--resume", "@last"], "cannot be given PROBLEM"),
        (["run", "--resume", "@last", "--seed", "3"], "cannot be given --seed"),
        (["run", "--resume", "@last", "--seed", "0"], "cannot be given --seed"),
        (["run", "--resume", "@last", "--set", "a=1"], "cannot be given --set"),
        (["problems", "--signature", "cpp"], "--signature needs the name of a problem"),
        (["--color", "pink", "config", "show"], "color = 'pink'"),
        (["view", "--port", "70000"], "--port"),
        (["eval", "spmm_csr", "nothing-here.cpp"], "nothing-here.cpp"),
        (["export", "@last"], "output"),
        (["config", "shwo"], "show"),
    ],
)
def test_usage_errors(kw_here, arguments: list[str], word: str) -> None:
    done = kw_here(*arguments)
    assert done.code == 2, done.err
    assert done.out == ""
    first, blank, hint = done.err.splitlines()[:3]
    assert first.startswith("error: ")
    assert word in done.err
    assert (blank, hint[:6]) == ("", "hint: ")
    assert "Traceback" not in done.err


def test_config_show_as_json_tells_each_origin(kw, tmp_path: Path) -> None:
    (tmp_path / "work" / "kernelwright.toml").write_text("max_evals = 5\n")
    settings = kw("config", "show", "--json", env={"KERNELWRIGHT_CPUS": "1"}).document["settings"]
    assert settings["max_evals"]["value"] == 5
    assert settings["max_evals"]["source"] == "project file"
    assert settings["max_evals"]["place"].endswith("kernelwright.toml:1")
    assert settings["cpus"]["value"] == [1]
    assert settings["home"]["place"] == "KERNELWRIGHT_HOME"
    assert all(entry["meaning"] for entry in settings.values())


def test_config_show_origin_reads_as_a_table(kw) -> None:
    done = kw("config", "show", "--origin", "--home", "elsewhere")
    assert done.code == 0
    line = next(line for line in done.out.splitlines() if line.startswith("home"))
    assert re.fullmatch(r"home +=.*/elsewhere +flag --home", line)


def test_config_path_names_the_users_file(kw, tmp_path: Path) -> None:
    assert kw("config", "path").out.strip().startswith(str(tmp_path / "config"))


def test_a_broken_project_file_stops_every_command(kw, tmp_path: Path) -> None:
    (tmp_path / "work" / "kernelwright.toml").write_text("hoem = 1\n")
    for command in (["config", "show"], ["list"], ["doctor"]):
        done = kw(*command)
        assert done.code == 2
        assert "hint: did you mean home?" in done.err


def run_into(
    path: str, private: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Runs the command with its stdout going into `path`."""
    with open(path, "w") as out:
        return subprocess.run(
            [sys.executable, "-m", "kernelwright", *arguments],
            env=private,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )


def test_an_internal_error_is_logged_and_shown_only_on_request(private: dict[str, str]) -> None:
    # A full disk under stdout is nothing that a command foresees.
    done = run_into("/dev/full", private, "config", "show")
    assert done.returncode == 70
    assert done.stderr.startswith("error: something inside Kernelwright went wrong (OSError")
    assert "\n\nhint: run `kernelwright --debug" in done.stderr
    assert "Traceback" not in done.stderr
    (log,) = (Path(private["KERNELWRIGHT_HOME"]) / "logs").iterdir()
    assert str(log) in done.stderr
    assert "Traceback" in log.read_text("utf-8")
    shown = run_into("/dev/full", private, "--debug", "config", "show")
    assert shown.returncode == 70
    assert "Traceback" in shown.stderr


def test_an_error_of_the_harness_shows_its_traceback_only_on_request(kw_here) -> None:
    done = kw_here("report", "@last")
    assert "Traceback" not in done.err
    shown = kw_here("--debug", "report", "@last")
    assert "Traceback" in shown.err
    assert shown.err.splitlines()[-1].startswith("hint: ")


def test_a_closed_pipe_is_no_error(private: dict[str, str]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "kernelwright", "config", "show"],
            env=private,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(write)
    assert done.stderr == ""
