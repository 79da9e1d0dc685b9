"""`bench` on the command line: what it refuses before anything starts, and a whole one."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--workflows", "forge,frge"), "there is no workflow named 'frge'"),
        (("--workflows", "forge,,refine"), "--workflows 'forge,,refine' has an empty name"),
        (("--problems", "softmax,softmax"), "--problems names softmax twice"),
        (("--problems", "sofmax"), "there is no problem named 'sofmax'"),
        (("--budget", "usd"), "a part without a value: 'usd'"),
        (("--budget", "euros=3"), "there is no limit named 'euros'"),
        (("--budget", "evaluations=many"), "evaluations 'many' is not a number"),
        (("--budget", "usd=1"), "a budget of usd would never end a campaign that asks no model"),
        (("--seeds", "0"), "'--seeds'"),
        (("--workload", "tinny"), "tinny"),
        (("--model", "gpt-5"), "there is no model"),
        (("--model", "replay:x"), "a bench cannot replay a campaign"),
        (("--language", "fortran"), "takes no candidates in 'fortran'"),
        (
            ("--model", "openai/nobody-knows-it", "--budget", "usd=1"),
            "the price of openai/nobody-knows-it is not known",
        ),
        (
            ("--model", "openai/local", "--budget", "evaluations=3"),
            "would never end a campaign whose model finds no kernel",
        ),
    ],
)
def test_bad_input_is_told_before_anything_starts(
    kw_here, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: tuple[str, ...], told: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    done = kw_here("bench", "--target", "cpu", *flags)
    assert (done.code, done.out) == (2, ""), done.err
    assert told in done.err
    assert not (tmp_path / "home").exists()


@pytest.mark.heavy
@pytest.mark.slow
def test_a_bench_is_run_told_and_told_again(kw) -> None:
    arguments = (
        "bench",
        "--target",
        "cpu",
        "--workflows",
        "refine,best_of_n",
        "--problems",
        "softmax",
        "--workload",
        "tiny",
        "--seeds",
        "1",
        "--budget",
        "evaluations=2,seconds=90",
        "--json",
    )
    first = kw(*arguments)
    assert first.code == 0, first.err
    assert [arm["workflow"] for arm in first.document["arms"]] == ["refine", "best_of_n"]
    for arm in first.document["arms"]:
        assert arm["per_kernel"]["evaluations"] <= 2
        assert arm["campaigns"][0]["stopped_by"] in ("evaluations", "seconds", "roofline")
    again = kw(*arguments)
    assert again.document == first.document
    assert "2 of them known from before" in again.err
    assert "referee" not in again.err
    table = kw(*arguments[:-1])
    assert "fast_1.5" in table.out
    assert "best_of_n" in table.out
