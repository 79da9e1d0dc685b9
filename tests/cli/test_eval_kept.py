"""`eval` keeps what it finds: listed, shown, reported, audited and exported like any campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.traces.events import CampaignStarted
from kernelwright.traces.records import candidate_id
from kernelwright.traces.store import Store

from .conftest import Command, Done
from .test_end_to_end import SEVEN, Place
from .test_own_problem import FAST

WRONG, HONEST = SEVEN / "wrong.cpp", SEVEN / "honest.cpp"
FAILING = """import sys
from kernelwright.cli import main
from kernelwright.errors import StorageRefusedError
from kernelwright.traces.store import Store

append = Store.append

def refuse(store, campaign, payload):
    if payload.kind == "evaluation.finished":
        raise StorageRefusedError("the event could not be recorded: full", hint="free some space")
    return append(store, campaign, payload)

Store.append = refuse
sys.exit(main(sys.argv[1:]))
"""
"""A store that takes everything until there is a verdict."""


def evaluated(kw: Command, *more: str, file: Path = WRONG) -> Done:
    return kw("eval", "spmm_csr", str(file), "--workload", "tiny", "--target", "cpu", *more)


@pytest.mark.slow
def test_a_wrong_kernel_is_kept_and_told_of(kw: Command, private: dict[str, str]) -> None:
    done = evaluated(kw, "--json")
    assert done.code == 1, done.err
    campaign = done.document["campaign"]
    assert f"kept as campaign {campaign}; kernelwright show {campaign}\n" in done.err
    (row,) = kw("list", "--json").document["campaigns"]
    assert (row["campaign"], row["workflow"], row["model"]) == (campaign, "eval", "hand")
    assert (row["state"], row["evaluated"], row["pace"]) == ("finished (evaluated)", 1, None)
    shown = kw("show", "@last")
    assert "no verified winner: the candidate is INCORRECT: correct on" in shown.out
    assert kw("show", "@last/1", "--source").out == WRONG.read_text("utf-8")
    (candidate,) = kw("show", "@last", "--json").document["candidates"]
    assert candidate["candidate"] == candidate_id(WRONG.read_text("utf-8"))
    resumed = kw("run", "--resume", "@last")
    assert resumed.code == 2
    assert f"evaluations of single files alone, at last {campaign}" in resumed.err
    assert "\n\nhint: `kernelwright run PROBLEM` begins a search" in resumed.err
    for command in (("--resume", campaign), ("spmm_csr", "--model", f"replay:{campaign}")):
        refused = kw("run", *command)
        assert refused.code == 2
        assert "is the evaluation of one file on spmm_csr" in refused.err
        assert "\n\nhint: `kernelwright eval spmm_csr FILE`" in refused.err
        assert "starting the referee" not in refused.err
    audit = kw("audit", "@last")
    assert audit.code == 2
    assert f"`kernelwright show {campaign}/1` says why" in audit.err
    export = kw("export", "@last@best", "-o", "out")
    assert export.code == 2
    content = (Path(private["KERNELWRIGHT_HOME"]) / "kernelwright.sqlite").read_bytes()
    assert str(WRONG.parent).encode() not in content


@pytest.mark.slow
def test_nothing_is_kept_that_is_not_to_be(kw: Command, private: dict[str, str]) -> None:
    done = evaluated(kw, "--no-save", "--json")
    assert (done.code, done.document["campaign"]) == (1, None)
    assert "kept as" not in done.err
    assert not Path(private["KERNELWRIGHT_HOME"]).exists()


@pytest.mark.slow
def test_a_home_of_its_own_stands_in_the_command_that_shows_it(kw: Command, tmp_path: Path) -> None:
    done = evaluated(kw, "--home", str(tmp_path / "other"))
    shown = done.err.rstrip().rpartition("; kernelwright ")[2].split()
    assert shown[-2:] == ["--home", str(tmp_path / "other")]
    assert "INCORRECT" in kw(*shown).out


def test_a_home_that_cannot_be_written_is_told_before_anything_starts(
    kw_here: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelwright.workbench.evaluating.open_referee", pytest.fail)
    done = evaluated(kw_here, "--home", "/dev/null/x", "--json")
    assert (done.code, done.out) == (3, "")
    assert "/dev/null/x" in done.err
    assert "\n\nhint: " in done.err


@pytest.mark.slow
def test_a_verdict_is_printed_though_the_store_fails(place: Place) -> None:
    script = place.folder / "failing.py"
    script.write_text(FAILING)
    place.program = (str(script),)
    try:
        done = evaluated(place.kw, "--json")
    finally:
        place.program = ("-m", "kernelwright")
    assert done.code == 3
    assert (done.document["status"], done.document["campaign"]) == ("INCORRECT", None)
    assert done.err.rstrip().endswith(
        "error: the verdict is not kept: the event could not be recorded: full\n\n"
        "hint: free some space"
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Place:
    return Place(tmp_path_factory.mktemp("kept"), shared_cache)


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.timed
def test_a_right_kernel_is_reported_audited_and_exported(place: Place) -> None:
    done = evaluated(place.kw, "--json", file=HONEST)
    assert done.code == 0, done.err
    campaign = done.document["campaign"]
    report = place.folder / "report.html"
    assert place.kw("report", campaign, "-o", str(report)).code == 0
    page = report.read_text("utf-8")
    assert "VERIFIED" in page
    assert str(SEVEN) not in page
    audit = place.kw("audit", campaign, "--json")
    assert audit.document["audits"][0]["verdicts"][-1]["status"] == "VERIFIED"
    assert "fresh process" not in " ".join(audit.document["audits"][0]["lacking"])
    out = place.folder / "out"
    exported = place.kw("export", f"{campaign}@best", "--format", "source", "-o", str(out))
    assert exported.code == 0, exported.err
    assert [f.read_text("utf-8") for f in out.rglob("*.cpp")] == [HONEST.read_text("utf-8")]
    searched = place.kw("run", "spmm_csr", "--workload", "tiny", "--max-evals", "1", "--json")
    assert searched.code in (0, 5), searched.err
    derived = place.kw("metrics", "derive")
    assert "enough measured candidates" in derived.err


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.timed
def test_a_problem_of_ones_own_is_kept_with_its_text(place: Place) -> None:
    work = place.folder / "work"
    assert place.kw("new", "problem", "swi").code == 0
    file = work / "swi.py"
    # Compiled it takes half a minute more, once.
    text = file.read_text("utf-8")
    file.write_text(text[: text.index("\n\ndef by_compile")])
    (work / "swi.cpp").write_text(FAST)
    done = place.kw("eval", "./swi.py", "swi.cpp", "--workload", "tiny", "--json")
    assert done.code == 0, done.err
    file.unlink()
    with Store.open(place.folder / "home", read_only=True) as store:
        started = store.events(done.document["campaign"])[0].payload
    assert isinstance(started, CampaignStarted)
    assert str(place.folder) not in started.model_dump_json()
    audit = place.kw("audit", "@last", "--json")
    assert audit.document["audits"][0]["verdicts"][-1]["status"] == "VERIFIED", audit.err
    out = place.folder / "package"
    exported = place.kw("export", "@last@best", "--format", "package", "-o", str(out))
    assert exported.code == 0, exported.err
