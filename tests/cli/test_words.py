"""Small pure parts: names, figures, plans, progress without a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from kernelwright.cli import summary, verdicts
from kernelwright.cli.progress import ProgressLines
from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.tests.cli import stored
from kernelwright.tests.sandbox.run.device.fake_nvml import FakeNvml
from kernelwright.traces import documents, names
from kernelwright.traces.events import EvaluationFinished, Event, Payload
from kernelwright.traces.head import head_of
from kernelwright.traces.history import derive
from kernelwright.traces.records import (
    CAPABILITIES,
    Capability,
    Depth,
    Enforcement,
    Isolation,
    Status,
)
from kernelwright.workbench import tasks
from kernelwright.workbench.cases import recorded_cases


@pytest.mark.parametrize(
    ("text", "campaign", "candidate"),
    [
        ("abc", "abc", None),
        ("@last", "@last", None),
        ("@best", "@last", "@best"),
        ("abc@best", "abc", "@best"),
        ("abc/@best", "abc", "@best"),
        ("abc/12", "abc", "12"),
    ],
)
def test_names(text: str, campaign: str, candidate: str | None) -> None:
    assert names.parse(text) == (campaign, candidate)


@pytest.mark.parametrize("text", ["", "/", "abc/", "/12"])
def test_half_a_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="does not name"):
        names.parse(text)


@pytest.mark.parametrize(
    ("target", "language"), [("sm_91", ""), ("gpu", ""), ("cpu", "cuda"), ("auto", "triton")]
)
def test_a_target_that_cannot_be_is_refused(target: str, language: str) -> None:
    with pytest.raises(UsageError) as caught:
        tasks.choose_target(target, language, FakeNvml(fails_with="Driver Not Loaded"))
    assert caught.value.hint


def test_auto_is_the_first_device_or_the_cpu() -> None:
    present, absent = FakeNvml(), FakeNvml(fails_with="Driver Not Loaded")
    assert tasks.choose_target("auto", nvml=absent) == "cpu"
    assert tasks.choose_target("auto", nvml=present) == "sm_90"
    assert tasks.choose_target("auto", "cuda", present) == "sm_90"
    assert tasks.choose_target("auto", "python", present) == "cpu"
    assert tasks.choose_target("cpu", "cpp", present) == "cpu"


def history(*payloads: Payload):
    return derive(
        Event(seq=n, campaign="c", at=float(n), payload=payload)
        for n, payload in enumerate((stored.started(), *payloads), 1)
    )


def test_resuming_is_offered_with_more_than_was_allowed() -> None:
    assert summary.more_limits(head_of(history())) == "--max-evals 6 --max-time 2m"
    steps = list(summary.next_steps(head_of(history()), "--home x"))
    assert steps[0] == "resume   kernelwright run --resume c --max-evals 6 --max-time 2m --home x"
    assert not any("export" in step for step in steps)


def matrix(mechanism: str, *absent: str) -> Isolation:
    states = {name: "absent" if name in absent else "enforced" for name in CAPABILITIES}
    return Isolation(
        mechanism=mechanism,
        capabilities={name: Capability(state=Enforcement(s)) for name, s in states.items()},
    )


def test_what_was_open_in_any_evaluation_is_told_at_the_end() -> None:
    first, second = (
        EvaluationFinished(
            verdict=stored.verdict(n, Status.INCORRECT, Depth.SCREEN).model_copy(
                update={"isolation": isolation}
            )
        )
        for n, isolation in ((1, matrix("bare", "uid", "net")), (2, matrix("bubblewrap", "uid")))
    )
    strong = history(stored.proposed(2, "a"), second)
    assert documents.campaign_document(strong)["not_enforced"] == ["uid"]
    assert not any("sandbox" in line for line in summary.winner_lines(head_of(strong), None))
    mixed = history(stored.proposed(1, "a"), first, stored.proposed(2, "a"), second)
    document = documents.campaign_document(mixed)
    assert document["isolation"]["mechanism"] == "bubblewrap"
    assert document["not_enforced"] == ["net", "uid"]
    last = list(summary.winner_lines(head_of(mixed), None))[-1]
    assert last == "  in a sandbox that does not enforce net, uid"
    assert documents.verdict_document(first.verdict)["not_enforced"] == ["net", "uid"]
    assert documents.campaign_document(history())["isolation"] is None


def test_progress_without_a_terminal_is_one_line_a_verdict() -> None:
    stream = io.StringIO()
    payloads = [
        stored.proposed(1, "row-balanced"),
        *stored.judged(1, Status.INCORRECT, Depth.SCREEN),
        stored.proposed(2, "nnz-balanced"),
        *stored.judged(2, Status.VERIFIED, Depth.CONFIRM),
    ]
    with ProgressLines(Console(file=stream, width=40), {"seconds": 60.0}) as progress:
        for n, payload in enumerate(payloads, 1):
            progress.on_event(Event(seq=n, campaign="c", at=0.0, payload=payload))
    first, second = stream.getvalue().splitlines()
    assert first.split()[:3] == ["#1", "screen", "INCORRECT"]
    assert first.endswith("C[7] was written outside")
    assert second.split()[:3] == ["#2", "confirm", "VERIFIED"]
    assert "0.80×" in second


def test_progress_on_a_terminal_shows_the_budget() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=100, force_terminal=True)
    with ProgressLines(console, {"seconds": 60.0, "evaluations": 4.0}) as progress:
        for payload in (
            stored.proposed(1, "row-balanced"),
            *stored.judged(1, Status.VERIFIED, Depth.FULL),
        ):
            progress.on_event(Event(seq=1, campaign="c", at=0.0, payload=payload))
    assert "of 1m" in stream.getvalue()
    assert "1 of 4 evaluated" in stream.getvalue()


def test_what_was_not_checked_is_told() -> None:
    verdict = stored.verdict(2, Status.VERIFIED, Depth.FULL)
    missing = "sanitizers: not run, libasan is not installed"
    lines = list(verdicts.explain(verdict.model_copy(update={"unchecked": (missing,)})))
    assert lines[1] == f"not checked: {missing}"
    assert not any("not checked" in line for line in verdicts.explain(verdict))


@pytest.mark.parametrize("name", registry.names())
def test_recorded_cases_are_the_same_every_time(name: str) -> None:
    import numpy as np

    first, second = recorded_cases(name), recorded_cases(name)
    # Of large tensors there is room for fewer.
    assert 1 <= len(first) <= 3
    problem = registry.get(name)
    for case, again in zip(first, second, strict=True):
        for tensor in problem.tensors:
            group = {**case.inputs, **case.outputs}
            same = {**again.inputs, **again.outputs}
            assert group[tensor.name].shape == tensor.extent(case.axes)
            np.testing.assert_array_equal(group[tensor.name], same[tensor.name])
        for allowed in case.tolerances.values():
            assert (allowed >= 0).all()
