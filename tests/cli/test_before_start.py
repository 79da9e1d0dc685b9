"""What is refused before anything starts, which limits end a campaign, what a resumption shows."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kernelwright.agents import offered
from kernelwright.agents.workflows.workflow import WORKFLOWS
from kernelwright.cli.progress import ProgressLines
from kernelwright.traces.events import EvaluationStarted, Event, ModelFailed, ModelRequested
from kernelwright.traces.store import Store
from kernelwright.workbench.limits import with_an_end

from . import stored
from .conftest import Command

MINUTE, HALF_HOUR = {"seconds": 60.0}, {"seconds": 1800.0}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "sofmax"], 2, "did you mean softmax"),
        (["run", "softmax", "--workflow", "evolv"], 2, "did you mean evolve"),
        (["run", "softmax", "--workload", "tin"], 2, "tin"),
        (["run", "spmm_csr", "--matrix", "none.mtx"], 2, "none.mtx"),
        (["run", "softmax", "--model", "gpt-5"], 2, "did you mean openai/gpt-5?"),
        (["run", "softmax", "--model", "anthropic/claude"], 2, "openai/NAME"),
        (["run", "softmax", "--model", "recipes"], 2, "did you mean recipe?"),
        (["run", "softmax", "--judge-model", "gpt-5"], 2, "did you mean openai/gpt-5?"),
        (["run", "softmax", "--judge-model", "rule"], 2, "did you mean rules?"),
        (["run", "softmax", "--model", "scripted:none.toml"], 2, "none.toml"),
        (["run", "softmax", "--model", "openai/gpt-5"], 3, "OPENAI_API_KEY"),
        (["run", "softmax", "--set", "confirm=2"], 2, "confirm_after"),
        (["run", "softmax", "--cpus", "9999"], 2, "CPU 9999 of --cpus"),
        (["bench", "--cpus", "9999"], 2, "CPU 9999 of --cpus"),
        (["audit", "all", "--cpus", "9999"], 2, "CPU 9999 of --cpus"),
        (["run", "softmax", "--home", "/dev/null/x"], 3, "/dev/null/x"),
        (["run", "softmax", "--max-preparation", "0s"], 2, "--max-preparation"),
        (["show", "@last"], 2, "there is no store"),
        (["report", "@last"], 2, "there is no store"),
        (["run", "--resume", "@last"], 2, "campaign"),
    ],
)
def test_slips_are_told_before_the_referee_starts(
    kw_here: Command, arguments: list[str], code: int, words: str
) -> None:
    done = kw_here(*arguments)
    assert (done.code, done.out) == (code, ""), done.err
    assert words in done.err
    assert "\n\nhint: " in done.err
    assert "starting the referee" not in done.err
    assert "went wrong" not in done.err


def test_every_form_of_a_model_is_told_with_a_slip(kw_here: Command) -> None:
    said = kw_here("run", "softmax", "--model", "gpt-5").err
    assert all(form in said for form in (*offered.MODELS, "recipe"))


def test_a_file_of_no_language_is_told_what_to_do(kw_here: Command, tmp_path: Path) -> None:
    (tmp_path / "work" / "k.rs").write_text("fn main() {}\n")
    done = kw_here("eval", "softmax", "k.rs")
    assert done.code == 2
    assert "k.rs names no language" in done.err
    assert "--language cpp" in done.err
    assert ".cu" in done.err


def test_an_empty_source_is_told(kw_here: Command, tmp_path: Path) -> None:
    (tmp_path / "work" / "k.cu").write_text("\n")
    done = kw_here("run", "softmax", "--workflow", "transpile", "--from", "k.cu")
    assert done.code == 2
    assert "the source k.cu is empty" in done.err


def test_cpus_that_may_be_used_are_taken() -> None:
    from kernelwright.config import resolve
    from kernelwright.workbench.tasks import make_task

    for cpus in (tuple(sorted(os.sched_getaffinity(0))), ()):
        config = resolve({"cpus": ",".join(map(str, cpus))} if cpus else {}).config
        assert make_task(config, "softmax", None, None, "cpu", "cpp").cpus == cpus


def test_the_help_names_every_workflow_and_every_form_of_a_model(kw_here: Command) -> None:
    said = kw_here("run", "--help").out
    summaries = {name: workflow.summary for name, workflow in WORKFLOWS.items()}
    for name, meaning in (summaries | offered.MODELS | offered.OFFLINE).items():
        assert any(
            line.strip().startswith(name) and line.endswith(meaning) for line in said.splitlines()
        ), name


@pytest.mark.parametrize(
    ("limits", "model", "judge", "found"),
    [
        ({}, "recipe", "rules", MINUTE),
        ({"usd": 1.0}, "recipe", "rules", {"usd": 1.0} | MINUTE),
        ({"tokens": 9.0}, "recipe", "rules", {"tokens": 9.0} | MINUTE),
        ({"usd": 1.0}, "recipe", "openai/j", {"usd": 1.0} | HALF_HOUR),
        ({"evaluations": 9.0}, "recipe", "rules", {"evaluations": 9.0}),
        ({"device_seconds": 9.0}, "recipe", "rules", {"device_seconds": 9.0}),
        ({"seconds": 9.0, "usd": 1.0}, "recipe", "rules", {"seconds": 9.0, "usd": 1.0}),
        ({"usd": 1.0}, "openai/m", "rules", {"usd": 1.0}),
        ({}, "openai/m", "rules", {"tokens": 500_000.0} | HALF_HOUR),
    ],
)
def test_a_coder_that_spends_nothing_has_a_time_unless_something_binds_it(
    limits: dict[str, float], model: str, judge: str, found: dict[str, float]
) -> None:
    assert with_an_end(limits, model, judge) == found


def test_a_resumed_one_gets_its_time_beside_what_was_spent() -> None:
    found = with_an_end({"usd": 1.0}, "recipe", "rules", spent_s=500.0)
    assert found == {"usd": 1.0, "seconds": 560.0}


@pytest.mark.slow
def test_a_cap_in_dollars_leaves_recipes_their_minute(kw: Command) -> None:
    done = kw("run", "softmax", "--workload", "tiny", "--max-usd", "1", "--dry-run", "--json")
    assert done.code == 0, done.err
    assert done.document["plan"]["limits"] == {"usd": 1.0} | MINUTE


@pytest.mark.slow
def test_a_dry_run_with_a_model_needs_no_key(kw: Command) -> None:
    done = kw(
        "run",
        "softmax",
        "--workload",
        "tiny",
        "--model",
        "openai/gpt-5",
        "--workflow",
        "forge",
        "--dry-run",
        "--json",
    )
    assert done.code == 0, done.err
    assert done.document["plan"]["first_call"]["messages"]


class Screen:
    """A Progress on a stream, or on a terminal that is not drawn."""

    def __init__(self, before: list[Event], **more: Any) -> None:
        self.now = 100.0
        self.out = io.StringIO()
        console = Console(file=self.out, width=150, no_color=True, highlight=False)
        self.progress = ProgressLines(console, {"tokens": 500.0}, before, lambda: self.now, **more)

    def panel(self) -> str:
        """As it would be drawn now."""
        console = Console(file=io.StringIO(), width=150, no_color=True)
        console.print(self.progress._panel())
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue()

    def hear(self, *payloads: Any) -> None:
        for payload in payloads:
            self.progress.on_event(Event(seq=1, campaign="c", at=1.0, payload=payload))


@pytest.fixture
def before(tmp_path: Path) -> list[Event]:
    campaign = stored.fill(tmp_path / "home")
    with Store.open(tmp_path / "home", read_only=True) as store:
        return store.events(campaign)


def test_a_resumption_knows_the_numbers_and_the_champion_of_before(before: list[Event]) -> None:
    screen = Screen(before)
    screen.hear(EvaluationStarted(candidate=stored.IDS[2], protocol="screen"))
    assert "screen of #3" in screen.panel()
    screen.hear(*stored.judged(3, stored.Status.INCORRECT, stored.Depth.SCREEN))
    assert screen.out.getvalue().startswith("#3 ")
    assert "#0" not in screen.out.getvalue() + screen.panel()
    assert "champion #2, credited 0.75×" in screen.panel()


def test_a_refused_call_is_told_with_its_words_and_a_moving_clock(before: list[Event]) -> None:
    screen = Screen(before)
    screen.hear(
        ModelRequested(
            call="k",
            attempt=1,
            place="0/0",
            purpose="write",
            model="openai/m",
            ask="b",
            reserved_tokens=400,
        ),
        ModelFailed(
            call="k",
            attempt=1,
            fault="rate limited",
            reason="http://e/v1: slow down",
            retry_in_s=30.0,
        ),
    )
    assert "no answer: rate limited: http://e/v1: slow down; again in 30s" in screen.out.getvalue()
    assert "waiting for the next attempt in 30s" in screen.panel()
    screen.now += 12
    assert "waiting for the next attempt in 18s" in screen.panel()
    assert "slow down" in screen.panel()
    screen.progress._is_stopping = True
    assert "stopping after this: waiting for the next attempt in 18s" in screen.panel()
