"""An evaluation that is kept: a campaign of one, which everybody who reads campaigns can read."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from markupsafe import escape

import kernelwright as kw
from kernelwright.agents.books.past import Past, find_past
from kernelwright.agents.books.progress import Progress
from kernelwright.audit import list_lacks
from kernelwright.cli import main
from kernelwright.cli.summary import winner_lines
from kernelwright.config import resolve
from kernelwright.errors import (
    ExitCode,
    StorageError,
    StorageRefusedError,
    UnknownNameError,
    UsageError,
)
from kernelwright.kernelbench import registry
from kernelwright.running import UnkeptVerdictError, resume_campaign, run_evaluation
from kernelwright.tests.agents.played import PlayedReferee
from kernelwright.tests.agents.spoken import Reader, kernel
from kernelwright.traces.events import (
    CampaignFinished,
    CandidateProposed,
    EvaluationFinished,
    Event,
    Payload,
    payload_adapter,
)
from kernelwright.traces.outcome import find_pace
from kernelwright.traces.records import Depth, Status, Verdict, candidate_id
from kernelwright.traces.report import render_report
from kernelwright.traces.store import Store
from kernelwright.traces.view.app import create_app
from kernelwright.verifier.request import Order
from kernelwright.workbench import tasks
from kernelwright.workbench.jobs import Fresh, Resume, make_ready

RIGHT, WRONG = kernel(3), kernel(3, fault="INCORRECT")


def evaluate(
    home: Path,
    source: str,
    depth: Depth = Depth.FULL,
    *,
    referee: PlayedReferee | None = None,
    file: Path | None = None,
) -> str:
    """With a referee that looks at nothing but the words of a source."""
    config = resolve({"home": home, "target": "cpu"}, environ={}).config
    task = tasks.make_task(config, "softmax", "tiny", None, "cpu", "cpp")
    with Store.open(home) as store:
        asked = (task, source, "cpp", depth, store, referee or Reader())
        return run_evaluation(*asked, file=file).campaign


def test_a_right_kernel_is_the_champion_of_a_campaign_of_one(tmp_path: Path) -> None:
    found = kw.campaign(evaluate(tmp_path, RIGHT, Depth.RECORD), home=tmp_path)
    kinds = [event.payload.kind for event in found.events]
    assert kinds == [
        "campaign.started",
        "candidate.proposed",
        "evaluation.started",
        "evaluation.finished",
        "champion.changed",
        "campaign.finished",
    ]
    started = found.history.started
    assert (started.workflow, started.model, started.judge_model) == ("eval", "hand", "")
    assert (started.workload, started.limits, started.brains) == ("tiny", {}, "hand")
    assert found.state == "finished (evaluated)"
    (only,) = found.candidates
    assert (only.number, only.source, only.status) == (1, RIGHT, Status.VERIFIED)
    assert only.verdict is not None
    assert only.verdict.protocol is Depth.RECORD
    assert found.champion is not None
    assert found.champion.id == candidate_id(RIGHT)
    assert found.why_no_winner == ""
    assert find_pace(found.history) is None
    lines = list(winner_lines(found.head, found.history.best))
    assert lines[0].startswith(f"winner: {only.id[:10]} (#1)")
    assert "VERIFIED, by the protocol record in a fresh process" in lines[1]


def test_a_wrong_one_has_no_champion_and_says_why(tmp_path: Path) -> None:
    found = kw.campaign(evaluate(tmp_path, WRONG), home=tmp_path)
    assert found.champion is None
    assert found.why_no_winner == "the candidate is INCORRECT: played INCORRECT"
    finished = found.events[-1].payload
    assert finished == CampaignFinished(stopped_by="evaluated")


def test_the_same_source_is_evaluated_anew_each_time(tmp_path: Path) -> None:
    first, second = evaluate(tmp_path, RIGHT), evaluate(tmp_path, RIGHT)
    assert first != second
    assert [each.id for each in kw.open_home(tmp_path)] == [second, first]


def test_viewer_and_report_show_it(tmp_path: Path) -> None:
    campaign, other = evaluate(tmp_path, RIGHT), evaluate(tmp_path, WRONG)
    with Store.open(tmp_path, read_only=True) as store:
        for each in (campaign, other):
            page = render_report(store, each)
            assert "hand" in page
            assert "nobody" in page
    with TestClient(create_app(tmp_path), base_url="http://127.0.0.1:8765") as client:
        for path in ("/", f"/c/{campaign}", f"/c/{campaign}/trace", f"/c/{other}"):
            answer = client.get(path)
            assert answer.status_code == 200, path
            assert "judged by" not in answer.text
            assert "--resume" not in answer.text


def test_what_the_file_is_called_is_kept_and_where_it_lies_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Rich would take [red] for a colour, JSON half a character for none, a terminal ESC for a code.
    file = tmp_path / "of_somebody" / "mine[red]\x1b\udcff<b>.cpp"
    called = "mine[red]??<b>.cpp"
    campaign, unnamed = evaluate(tmp_path, RIGHT, file=file), evaluate(tmp_path, WRONG)
    with Store.open(tmp_path, read_only=True) as store:
        events = [event.model_dump_json() for event in store.events(campaign)]
        page = render_report(store, campaign)
    assert not any("of_somebody" in text for text in (*events, page))
    assert page.count(str(escape(called))) >= 2
    found = kw.campaign(campaign, home=tmp_path)
    assert (found.history.file, kw.campaign(unnamed, home=tmp_path).history.file) == (called, "")
    for command in (["list"], ["show", campaign], ["show", f"{campaign}/1"]):
        told = []
        for more in ([], ["--json"]):
            assert main([*command, "--home", str(tmp_path), *more]) == 0
            told.append(capsys.readouterr().out)
        text, document = told
        assert "".join(called.split()) in "".join(text.split())
        assert json.dumps(called) in document
    with TestClient(create_app(tmp_path), base_url="http://127.0.0.1:8765") as client:
        for path in ("/", "/?q=MINE", f"/c/{campaign}", f"/c/{campaign}/{found[1].id}"):
            assert str(escape(called)) in client.get(path).text, path
        assert client.get(f"/api/c/{campaign}").json()["file"] == called


def test_a_record_from_before_files_were_kept_is_read(tmp_path: Path) -> None:
    campaign = evaluate(tmp_path, RIGHT, file=Path("mine.cpp"))
    proposed = kw.campaign(campaign, home=tmp_path).events[1].payload.model_dump()
    assert proposed.pop("file") == "mine.cpp"
    earlier = payload_adapter.validate_python(proposed)
    assert isinstance(earlier, CandidateProposed)
    assert (earlier.file, earlier.operator) == ("", "eval")


def test_nothing_goes_on_with_it_and_nothing_replays_it(tmp_path: Path) -> None:
    campaign = evaluate(tmp_path, RIGHT)
    config = resolve({"home": tmp_path, "target": "cpu"}, environ={}).config
    replayed = resolve(
        {"home": tmp_path, "target": "cpu", "model": f"replay:{campaign}"}, environ={}
    ).config
    for job in (Resume(config, campaign), Fresh(replayed, "softmax", workload="tiny")):
        refusal = pytest.raises(UsageError, match="is the evaluation of one file")
        with refusal as refused, make_ready(job):
            pass
        assert "`kernelwright eval softmax FILE`" in refused.value.hint
    with Store.open(tmp_path) as store, pytest.raises(UsageError, match="nothing was searched"):
        resume_campaign(campaign, store, Reader())
    assert kw.campaign(home=tmp_path).state == "finished (evaluated)"


def test_last_is_the_last_search_where_one_goes_on_or_is_replayed(tmp_path: Path) -> None:
    config = resolve({"home": tmp_path, "target": "cpu"}, environ={}).config
    replayed = resolve({"home": tmp_path, "target": "cpu", "model": "replay:@last"}, environ={})
    jobs = (Resume(config, "@last"), Fresh(replayed.config, "softmax", workload="tiny"))
    only = evaluate(tmp_path, RIGHT)
    for job in jobs:
        refusal = pytest.raises(UnknownNameError, match=f"evaluations .* alone, at last {only}")
        with refusal as refused, make_ready(job):
            pass
        assert "kernelwright run PROBLEM" in refused.value.hint
    limits = {"evaluations": 1.0}
    with make_ready(Fresh(config, "softmax", workload="tiny", limits=limits)) as ready:
        searched = ready.run(Reader()).campaign
    newest = evaluate(tmp_path, WRONG)
    for job in jobs:
        with make_ready(job) as ready:
            assert searched in ready.settled.note
    with make_ready(Resume(config, "@last", {"evaluations": 3.0})) as ready:
        assert ready.run(Reader()).campaign == searched
    # Everybody who only reads is told of the newest of all.
    assert kw.campaign(home=tmp_path).id == newest


def test_a_search_begins_without_it(tmp_path: Path) -> None:
    evaluate(tmp_path, RIGHT)
    with Store.open(tmp_path) as store:
        assert find_past(store, "softmax", "cpu", "cpp", "tiny") == Past()
        assert Progress(store.events(store.resolve("@last"))).evaluated == 1


def test_its_verdict_was_found_in_a_fresh_process(tmp_path: Path) -> None:
    verdict = kw.campaign(evaluate(tmp_path, RIGHT), home=tmp_path).candidates[0].verdict
    lacks = "it was not confirmed in a fresh process: VERIFIED by 'full'"
    assert lacks in list(list_lacks(verdict))
    assert lacks not in list(list_lacks(verdict, is_evaluation=True))


def test_a_store_that_fails_afterwards_does_not_cost_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Store.append

    def is_full(store: Store, campaign: str, payload: Payload) -> Event:
        if isinstance(payload, EvaluationFinished):
            full = OSError(errno.ENOSPC, "No space left on device")
            raise StorageRefusedError(str(full), hint="free some space") from full
        return append(store, campaign, payload)

    monkeypatch.setattr(Store, "append", is_full)
    with pytest.raises(UnkeptVerdictError, match=r"the verdict is not kept: .*No space") as lost:
        evaluate(tmp_path, RIGHT)
    assert lost.value.verdict.status is Status.VERIFIED
    assert (lost.value.exit_code, lost.value.hint) == (ExitCode.PREREQUISITE, "free some space")
    assert kw.campaign(home=tmp_path).state == "finished (error)"


def test_a_store_that_fails_before_costs_no_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_store: Store, _content: bytes | str) -> str:
        raise StorageRefusedError("a blob could not be written", hint="free some space")

    monkeypatch.setattr(Store, "put_blob", refuse)
    referee = Reader()
    with pytest.raises(StorageError, match="a blob could not be written") as failed:
        evaluate(tmp_path, RIGHT, referee=referee)
    assert not isinstance(failed.value, UnkeptVerdictError)
    assert referee.asked == []


def test_one_that_is_interrupted_says_so(tmp_path: Path) -> None:
    def press(_order: Order) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(tmp_path, RIGHT, referee=Reader(before=press))
    found = kw.campaign(home=tmp_path)
    assert found.state == "finished (interrupted)"
    assert found.why_no_winner == "no candidate was evaluated: it was interrupted"


def test_a_home_that_cannot_be_is_refused_before_the_referee_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kernelwright.workbench.evaluating.open_referee", pytest.fail)
    evaluator = kw.Evaluator("softmax", workload="tiny", target="cpu", home="/dev/null/x")
    with pytest.raises(StorageRefusedError, match="/dev/null/x"):
        evaluator.__enter__()


class Opened(Reader):
    """One that can be closed as the real one is."""

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_ended: object) -> None:
        self.close()


def test_from_python_it_is_kept_where_a_home_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelwright.workbench.evaluating.open_referee", lambda _task: Opened())
    asked = {"language": "cpp", "workload": "tiny", "target": "cpu"}
    monkeypatch.setenv("KERNELWRIGHT_HOME", str(tmp_path / "unasked"))
    alone = kw.evaluate("softmax", RIGHT, **asked)
    assert (alone.campaign, alone.home, alone.number) == ("", None, 0)
    assert not (tmp_path / "unasked").exists()
    home = tmp_path / "kept"
    with kw.Evaluator("softmax", home=home, **asked) as softmax:
        kept = [softmax.evaluate(source) for source in (RIGHT, WRONG)]
    assert [each.status for each in kept] == [Status.VERIFIED, Status.INCORRECT]
    assert [each.number for each in kept] == [1, 1]
    assert [each.id for each in kw.open_home(home)] == [each.campaign for each in kept[::-1]]
    for each in kept:
        stored = kw.campaign(each.campaign, home=home)[1]
        assert isinstance(stored.verdict, Verdict)
        assert (stored.verdict, stored.source) == (each.verdict, each.source)
    assert registry.get("softmax").text == ""
