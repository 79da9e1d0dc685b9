"""Beginning a campaign and going on with it, as `optimize`, `resume` and the command line do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kernelwright as kw
from kernelwright.config import Config, resolve
from kernelwright.errors import UnknownNameError, UsageError
from kernelwright.running import CampaignRequest, CampaignResult
from kernelwright.tests.agents.spoken import Reader
from kernelwright.tests.cli.test_earlier_release import BY_RECIPES
from kernelwright.traces.events import EvaluationFinished, Event
from kernelwright.traces.options import Options
from kernelwright.workbench.jobs import Fresh, Job, Resume, make_ready
from kernelwright.workbench.limits import limits_of
from kernelwright.workbench.own_kernel import OwnKernel, read_start


def config(home: Path, **settings: Any) -> Config:
    return resolve({"home": home, "target": "cpu", **settings}, environ={}).config


def fresh(home: Path, **more: Any) -> Fresh:
    given = {"workload": "tiny", "limits": {"evaluations": 2.0}, "asked": Options(seed=3), **more}
    return Fresh(config(home), "softmax", **given)


def run(job: Job, **more: Any) -> CampaignResult:
    """With a referee that looks at nothing but the words of a source."""
    with make_ready(job) as ready:
        return ready.run(Reader(), **more)


def test_a_campaign_begins_and_goes_on_to_its_new_limit(tmp_path: Path) -> None:
    told: list[Event] = []
    first = run(fresh(tmp_path), on_event=told.append)
    begun = kw.campaign(home=tmp_path)
    assert tuple(told) == begun.events
    assert (begun.id, begun.problem, begun.target) == (first.campaign, "softmax", "cpu")
    assert begun.state == "finished (evaluations)"
    assert begun.history.started.seed == 3
    more = run(Resume(config(tmp_path), "@last", {"evaluations": 5.0}), on_event=told.append)
    gone_on = kw.campaign(home=tmp_path)
    assert tuple(told) == gone_on.events
    assert more.campaign == first.campaign
    assert (begun.history.evaluated, gone_on.history.evaluated) == (2, 5)
    assert len(kw.open_home(tmp_path)) == 1


def _is_verdict(event: Event) -> bool:
    return isinstance(event.payload, EvaluationFinished)


def test_it_ends_in_order_when_somebody_asks_for_it(tmp_path: Path) -> None:
    stop = kw.Stop()
    result = run(
        fresh(tmp_path, limits={"evaluations": 50.0}),
        stop=stop,
        on_event=lambda event: stop.request() if _is_verdict(event) else None,
    )
    assert result.stopped_by == "interrupted"
    assert result.evaluated == 1
    assert kw.campaign(home=tmp_path).state == "finished (interrupted)"


def test_a_candidate_is_had_by_number_by_id_and_as_the_best(tmp_path: Path) -> None:
    run(fresh(tmp_path, limits={"evaluations": 6.0}))
    found = kw.campaign(home=tmp_path)
    second = found[2]
    assert second == found[second.id[:12]] == found.candidates[1]
    assert second.entry is not None
    assert second.entry.knobs
    assert found.champion is not None
    assert found["@best"] == found.champion
    with pytest.raises(UnknownNameError, match="no candidate of campaign"):
        _ = found[99]


def test_a_replay_is_settled_from_its_recording(tmp_path: Path) -> None:
    first = run(fresh(tmp_path))
    job = Fresh(config(tmp_path, model=f"replay:{first.campaign}"), "softmax")
    with make_ready(job) as ready:
        names = ready.settled.names
        assert isinstance(names, CampaignRequest)
        assert (names.seed, names.workload) == (3, "tiny")
        assert ready.settled.note == f"replays campaign {first.campaign}"
        again = ready.run(Reader())
    assert again.evaluated == first.evaluated


def test_a_dry_run_leaves_nothing(tmp_path: Path) -> None:
    with make_ready(fresh(tmp_path / "home"), is_dry=True) as ready:
        assert ready.settled.limits == {"evaluations": 2.0}
        assert ready.list_events() == []
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"problem": "softmx"}, "no problem named 'softmx'"),
        ({"workload": "huge"}, "no workload"),
        ({"language": "cuda"}, "takes no candidates in 'cuda'"),
        ({"asked": Options(options={"no_such": 1})}, "no_such"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(
    tmp_path: Path, job: dict[str, Any], words: str
) -> None:
    given = {"problem": "softmax", "config": config(tmp_path / "home"), **job}
    with pytest.raises(kw.KernelwrightError, match=words), make_ready(Fresh(**given), is_dry=True):
        pytest.fail("it was taken")
    assert not (tmp_path / "home").exists()


def test_a_campaign_keeps_what_it_began_with(earlier: Path) -> None:
    with pytest.raises(UsageError, match="cannot be given model, target"):
        kw.resume(home=earlier, target="cpu", model="recipe")
    with pytest.raises(UsageError, match="which is the workflow tune now") as caught:
        kw.resume(kw.campaign(BY_RECIPES, home=earlier), max_evals=99)
    assert "start a new campaign" in caught.value.hint


def test_there_must_be_one_to_go_on_with(tmp_path: Path) -> None:
    run(fresh(tmp_path))
    with pytest.raises(UnknownNameError, match="no campaign named 'nope'"):
        kw.resume("nope", home=tmp_path)


def test_limits_are_those_that_were_asked_for(tmp_path: Path) -> None:
    found = config(tmp_path, max_time="2m")
    assert limits_of(found) == {"seconds": 120.0}
    assert limits_of(found, usd=0.5, device_seconds=3) == {
        "seconds": 120.0,
        "usd": 0.5,
        "device_seconds": 3.0,
    }


@pytest.mark.parametrize(("content", "words"), [(b" \n", "is empty"), (b"\xff", "cannot read")])
def test_a_start_is_the_text_of_a_kernel(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "kernel.cu"
    with pytest.raises(UsageError, match="cannot read"):
        read_start(file, tmp_path)
    file.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        read_start(file, tmp_path)
    file.write_bytes(b"x" * (300 << 10))
    with pytest.raises(UsageError, match="larger than 256 KiB"):
        read_start(file, tmp_path)
    file.write_text("__global__ void f() {}")
    assert read_start(file, tmp_path) == OwnKernel("__global__ void f() {}", "cuda", "kernel.cu")
