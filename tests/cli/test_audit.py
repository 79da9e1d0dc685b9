"""`audit` as a user meets it: a referee that really runs, records of before, what is told later."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.kernelbench import registry
from kernelwright.tests.cli import stored
from kernelwright.traces.events import (
    CampaignFinished,
    CandidateProposed,
    ChampionChanged,
    EvaluationFinished,
)
from kernelwright.traces.records import Depth, Speedup, Status, candidate_id
from kernelwright.traces.store import Store

from .conftest import Command

SEVEN = Path(__file__).parent.parent / "verifier" / "seven"


def champion(home: Path, name: str) -> str:
    """A campaign whose record claims that the kernel was verified, and no more than that."""
    source = (SEVEN / f"{name}.cpp").read_text("utf-8")
    candidate = candidate_id(source)
    spec = registry.get("spmm_csr").workload("tiny").model_dump(mode="json")
    claim = stored.verdict(1, Status.VERIFIED, Depth.CONFIRM)
    timed = stored.measurement().model_copy(
        # So little that no machine's mood could fall below it.
        update={"speedup": {"scipy": Speedup(median=2e-6, low=1e-6, high=3e-6)}}
    )
    claim = claim.model_copy(update={"candidate": candidate, "measurements": (timed,)})
    with Store.open(home) as store:
        store.put_blob(source)
        campaign = store.create(stored.started().model_copy(update={"workload_spec": spec}))
        for payload in (
            CandidateProposed(
                candidate=candidate, number=1, language="cpp", family=name, operator="initial"
            ),
            EvaluationFinished(verdict=claim),
            ChampionChanged(candidate=candidate, credited=1e-6),
            CampaignFinished(stopped_by="evaluations", best=candidate),
        ):
            store.append(campaign, payload)
    return campaign


@pytest.mark.heavy
@pytest.mark.slow
def test_all_champions_are_verified_again(kw: Command, private: dict[str, str]) -> None:
    home = Path(private["KERNELWRIGHT_HOME"])
    loser = stored.fill(home, has_winner=False)
    wrong, honest = champion(home, "wrong"), champion(home, "honest")
    done = kw("audit", "all", "--json")
    assert done.code == 1, done.err
    document = done.document
    assert not document["ok"]
    assert document["skipped"] == [{"campaign": loser, "why": "it has no verified winner"}]
    audits = {audit["campaign"]: audit for audit in document["audits"]}
    assert list(audits) == [honest, wrong]
    assert audits[wrong]["outcome"] == "no longer holds"
    assert audits[wrong]["reason"].startswith("INCORRECT: correct on")
    assert len(audits[wrong]["verdicts"]) == 1
    status = audits[honest]["verdicts"][-1]["status"]
    # A machine that is busy with something else may spoil both looks at the times.
    assert status in ("VERIFIED", "SUSPECT", "TIMED_OUT"), audits[honest]["reason"]
    assert (audits[honest]["outcome"] == "holds") is (status == "VERIFIED")
    assert audits[honest]["verdicts"][-1]["protocol"] == "confirm"
    assert "no isolation matrix" in audits[honest]["lacking"]
    assert f"the champion of {honest}" in done.err
    shown = kw("show", wrong)
    assert "#1 no longer holds: INCORRECT: correct on" in shown.out
    told = kw("show", wrong, "--json").document
    assert told["audit"].startswith("#1 no longer holds")
    assert told["best"]["status"] == "VERIFIED"


def test_a_champion_whose_source_is_gone_fails_the_audit(
    kw_here: Command, private: dict[str, str]
) -> None:
    home = Path(private["KERNELWRIGHT_HOME"])
    campaign = stored.fill(home)
    blob = home / "blobs" / stored.IDS[1][:2] / stored.IDS[1][2:]
    blob.write_text("int other;\n")
    done = kw_here("audit", "@last@best")
    assert done.code == 1, done.err
    assert f"{campaign}  spmm_csr / tiny on cpu" in done.out
    assert "#2 cannot be repeated: the source is not what was verified" in done.out
    assert "its record lacks: no isolation matrix" in done.out
    assert "cannot be repeated" in kw_here("show", campaign).out
    assert "cannot be repeated" in kw_here("report", campaign, "-o", "-").out


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["audit", "nothing"], 2, "nothing"),
        (["audit", "all"], 2, "has a champion"),
        (["audit", "@last"], 2, "no verified winner"),
        (["audit", "@last/1"], 2, "not the champion"),
        (["audit"], 2, "hint"),
    ],
)
def test_what_cannot_be_audited_is_told(
    kw_here: Command, private: dict[str, str], arguments: list[str], code: int, word: str
) -> None:
    stored.fill(Path(private["KERNELWRIGHT_HOME"]), has_winner=False)
    done = kw_here(*arguments)
    assert (done.code, done.out) == (code, "")
    assert word in done.err


def test_an_audit_makes_no_store(kw_here: Command, private: dict[str, str]) -> None:
    done = kw_here("audit", "all")
    assert done.code == 2
    assert "there is no store" in done.err
    assert not Path(private["KERNELWRIGHT_HOME"]).exists()


def test_one_that_is_being_run_is_left_alone(kw_here: Command, private: dict[str, str]) -> None:
    home = Path(private["KERNELWRIGHT_HOME"])
    campaign = stored.fill(home)
    with Store.open(home) as store, store.lease(campaign):
        named, every = kw_here("audit", campaign), kw_here("audit", "all")
        assert store.events(campaign)[-1].payload.kind == "campaign.finished"
    assert (named.code, every.code) == (2, 2)
    assert "already being run" in named.err
    assert "another process works on it" in every.err
