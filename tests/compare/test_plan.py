"""What a bench takes and refuses, and what makes two benches the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernelwright.agents.model import TokenUsage
from kernelwright.compare.plan import (
    NO_BOUND,
    BenchCampaign,
    check,
    check_ends,
    parse_budget,
    parse_names,
)
from kernelwright.errors import UnknownNameError, UsageError
from kernelwright.tests.agents.asked import PlayedModel
from kernelwright.tests.agents.wording import reword
from kernelwright.tests.compare.held import bench


def test_a_budget_is_read() -> None:
    read = parse_budget("usd=0.50, evaluations=20,seconds=2m,device_seconds=30,tokens=9000")
    assert read == {
        "usd": 0.5,
        "evaluations": 20.0,
        "seconds": 120.0,
        "device_seconds": 30.0,
        "tokens": 9000.0,
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "without a value: ''"),
        ("usd", "without a value: 'usd'"),
        ("usd=1,", "without a value: ''"),
        ("=3", "without a value: '=3'"),
        ("usd=cheap", "usd 'cheap' is not a number"),
        ("seconds=soon", "seconds 'soon' is not a duration"),
        ("seconds=0", "seconds '0' is not a duration"),
        ("usd=-1", "must be a positive number, not -1"),
        ("usd=nan", "must be a positive number, not nan"),
        ("usd=inf", "must be a positive number, not inf"),
        ("euros=3", "no limit named 'euros'"),
        ("usd=1,usd=2", "names usd twice"),
    ],
)
def test_a_budget_that_is_none_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_budget(text)


@pytest.mark.parametrize("text", ["", ",", "forge,", "forge,forge"])
def test_a_list_with_holes_or_doubles_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--workflows"):
        parse_names(text, "--workflows")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"workflows": ("forge", "frge")}, "workflow named 'frge'"),
        ({"problems": ("sofmax",)}, "problem named 'sofmax'"),
        ({"workload": "tinny"}, "workload"),
    ],
)
def test_unknown_names_are_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises((UnknownNameError, UsageError), match=told):
        check(bench(**change))


def test_every_trial_has_the_same_caps_and_no_end_but_them() -> None:
    planned = bench()
    trials = [t for p in planned.problems for t in planned.trials(p)]
    assert len(set(trials)) == 12
    requests = [planned.request(trial) for trial in trials]
    assert {tuple(r.limits.items()) for r in requests} == {(("usd", 0.12), ("seconds", 600.0))}
    assert {(r.rounds, r.patience) for r in requests} == {(NO_BOUND, NO_BOUND)}
    assert len({r.trial for r in requests}) == 12


def test_no_workflow_is_always_the_first() -> None:
    firsts = list(bench(seeds=3).trials("softmax"))[::3]
    assert [trial.workflow for trial in firsts] == ["forge", "refine", "best_of_n"]


@pytest.mark.parametrize(
    "change",
    [
        {"limits": {"usd": 0.31}},
        {"model": "openai/other"},
        {"judge_model": "rules"},
        {"label": "again"},
        {"workload": "tiny"},
        {"cpus": (0,)},
        {"language": "cuda"},
        {"target": "sm_90"},
    ],
)
def test_what_a_result_rests_on_makes_another_trial(change: dict[str, Any]) -> None:
    trial = BenchCampaign("forge", "softmax", 0)
    assert bench().key(trial) != bench(**change).key(trial)


def test_more_workflows_problems_and_seeds_leave_a_trial_what_it_is() -> None:
    trial = BenchCampaign("forge", "softmax", 0)
    wider = bench(workflows=("refine", "forge"), problems=("gemm", "softmax"), seeds=9)
    assert bench().key(trial) == wider.key(trial)


def test_another_version_of_the_prompts_is_another_trial(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trial, before = (
        BenchCampaign("forge", "softmax", 0),
        bench().key(BenchCampaign("forge", "softmax", 0)),
    )
    reword(monkeypatch, tmp_path)
    assert bench().key(trial) != before


class Free(PlayedModel):
    """Costs nothing, as a local model does."""

    def cost(self, usage: TokenUsage) -> float:
        return 0.0 * usage.tokens


@pytest.mark.parametrize(
    ("limits", "model", "hint"),
    [
        ({"usd": 1.0}, None, "device_seconds, evaluations, seconds"),
        ({"tokens": 900.0}, None, "device_seconds, evaluations, seconds"),
        ({"evaluations": 9.0}, PlayedModel(), "seconds, tokens, usd"),
        ({"usd": 1.0}, Free(), "seconds, tokens"),
    ],
)
def test_a_budget_that_would_never_end_is_refused(
    limits: dict[str, float], model: PlayedModel | None, hint: str
) -> None:
    with pytest.raises(UsageError, match="would never end") as caught:
        check_ends(limits, [model] if model else [])
    assert caught.value.hint == f"add one of: {hint}"
    check_ends({**limits, "seconds": 3.0}, [model] if model else [])


def test_a_cap_on_dollars_needs_prices() -> None:
    with pytest.raises(UsageError, match="price of played/one is not known"):
        check_ends({"usd": 1.0, "seconds": 9.0}, [PlayedModel(is_priced=False)])
