"""What an audit makes of what a referee says now and of what the record said then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kernelwright.agents.books.progress import Progress
from kernelwright.audit import audit_campaign, differences, list_lacks
from kernelwright.errors import MatrixError, PrerequisiteError, UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.machine import machine_facts
from kernelwright.kernelbench.problem import Workload
from kernelwright.tests.cli import stored
from kernelwright.traces.audits import audit_sentence, last_audit_sentence
from kernelwright.traces.documents import campaign_document
from kernelwright.traces.events import AuditOutcome, CampaignAudited
from kernelwright.traces.history import derive
from kernelwright.traces.preparation import Preparation
from kernelwright.traces.records import (
    CAPABILITIES,
    Capability,
    Check,
    Depth,
    Enforcement,
    Isolation,
    Speedup,
    Status,
    Verdict,
)
from kernelwright.traces.report import render_report
from kernelwright.traces.store import Store
from kernelwright.verifier.request import Counted, Order, Referee

HOLDS, SLOWER = AuditOutcome.HOLDS, AuditOutcome.SLOWER
FAILED, UNREPEATABLE = AuditOutcome.FAILED, AuditOutcome.UNREPEATABLE
CHAMPION = stored.IDS[1]


def said(status: Status = Status.VERIFIED, low: float = 0.75, **more: Any) -> Verdict:
    """A verdict on the champion; the record has it between 0.75 and 0.85 of scipy."""
    verdict = stored.verdict(2, status, Depth.CONFIRM)
    if verdict.measurement:
        speedup = {"scipy": Speedup(median=low + 0.05, low=low, high=low + 0.1)}
        timed = verdict.measurement.model_copy(update={"speedup": speedup})
        more = {"measurements": (timed,), **more}
    return verdict.model_copy(update=more)


@dataclass
class Script:
    """A bench whose referee reads its verdicts from a list, and remembers what it was asked."""

    verdicts: list[Verdict]
    error: Exception | None = None
    asked: list[Order] = field(default_factory=list)
    opened: list[tuple[str, str, str]] = field(default_factory=list)
    isolation = Isolation(mechanism="bare", capabilities={})
    facts: dict[str, float] = field(default_factory=dict)
    is_emulated: bool = False
    counting = None

    @contextmanager
    def __call__(self, problem: str, workload: Workload, target: str) -> Iterator[Referee]:
        self.opened.append((problem, workload.name, target))
        if self.error:
            raise self.error
        yield self

    def prepare(self, is_wanted: Callable[[], bool] = lambda: True) -> Preparation | None:
        """Nothing is to be made ready."""
        return Preparation() if is_wanted() else None

    def foresee(self, orders: Sequence[Order]) -> None:
        """An audit looks at one after the other."""

    def evaluate(self, order: Order) -> Verdict:
        self.asked.append(order)
        return self.verdicts[len(self.asked) - 1]

    def count(self, order: Order) -> Counted:
        raise AssertionError(order)

    def close(self) -> None:
        """Nothing to give back."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def audited(home: Path, script: Script) -> CampaignAudited:
    campaign = write(home)
    with Store.open(home) as store:
        found = audit_campaign(campaign, store, script)
        assert store.events(campaign)[-1].payload == found
    return found


def write(home: Path, **changes: Any) -> str:
    """The stored campaign, with a workload that can be made again."""
    spec = registry.get("spmm_csr").workload("tiny").model_dump(mode="json")
    begun = stored.started().model_copy(update={"workload_spec": spec, **changes})
    return stored.fill(home, begun=begun)


@pytest.mark.parametrize(
    ("verdicts", "outcome", "looks"),
    [
        ([said()], HOLDS, 1),
        ([said(low=0.66)], HOLDS, 1),
        ([said(low=3.0)], HOLDS, 1),
        ([said(low=0.5), said(low=0.5)], SLOWER, 2),
        ([said(low=0.5), said(low=0.7)], HOLDS, 2),
        ([said(low=0.5), said(Status.SUSPECT)], SLOWER, 2),
        ([said(Status.SUSPECT), said()], HOLDS, 2),
        ([said(Status.TIMED_OUT), said(low=0.5)], SLOWER, 2),
        ([said(Status.SUSPECT), said(Status.SUSPECT)], FAILED, 2),
        ([said(low=0.5), said(Status.INCORRECT)], FAILED, 2),
        ([said(Status.INCORRECT), said()], FAILED, 1),
        ([said(Status.BUILD_FAILED), said()], FAILED, 1),
        ([said(Status.UNSUPPORTED)], UNREPEATABLE, 1),
        ([said(Status.NOT_DISCRIMINATING)], UNREPEATABLE, 1),
    ],
)
def test_what_is_said_now_decides(
    home: Path, verdicts: list[Verdict], outcome: AuditOutcome, looks: int
) -> None:
    script = Script(verdicts)
    found = audited(home, script)
    assert found.outcome is outcome
    assert sorted(map(str, found.verdicts)) == sorted(map(str, verdicts[:looks]))
    assert bool(found.reason) is (outcome is not HOLDS)
    assert found.verdict is not None
    assert (found.verdict.status is Status.VERIFIED) is (outcome in (HOLDS, SLOWER))
    assert found.recorded == Speedup(median=0.8, low=0.75, high=0.85)
    assert script.opened == [("spmm_csr", "tiny", "cpu")]
    for order in script.asked:
        assert (order.source, order.language) == (stored.SOURCES[1], "cpp")
        assert (order.protocol, order.champion) == (Depth.CONFIRM, "")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"problem": "spmm_coo"}, "spmm_coo"),
        ({"problem_version": 77}, "version 77"),
        ({"workload_spec": {"name": "tiny"}}, "does not describe its workload: kind"),
        ({}, "the matrix is gone"),
    ],
)
def test_what_cannot_be_repeated_is_a_finding(
    home: Path, changes: dict[str, Any], word: str
) -> None:
    campaign = write(home, **changes)
    with Store.open(home) as store:
        found = audit_campaign(campaign, store, Script([], MatrixError("the matrix is gone")))
        assert store.events(campaign)[-1].payload == found
    assert found.outcome is UNREPEATABLE
    assert word in found.reason
    assert found.verdict is None


@pytest.mark.parametrize("content", [b"int changed;\n", None])
def test_a_source_that_was_changed_is_a_finding(home: Path, content: bytes | None) -> None:
    campaign = write(home)
    blob = home / "blobs" / CHAMPION[:2] / CHAMPION[2:]
    blob.unlink() if content is None else blob.write_bytes(content)
    script = Script([said()])
    with Store.open(home) as store:
        found = audit_campaign(campaign, store, script)
    assert found.outcome is UNREPEATABLE
    assert "blob" in found.reason
    assert script.opened == []


def test_who_has_no_champion_or_is_busy_is_not_audited(home: Path) -> None:
    campaign = stored.fill(home, has_winner=False)
    with Store.open(home) as store:
        before = store.last_seq()
        with pytest.raises(UsageError, match="no verified winner"):
            audit_campaign(campaign, store, Script([said()]))
        busy = write(home)
        count = store.count(busy)
        with (
            Store.open(home) as other,
            other.lease(busy),
            pytest.raises(UsageError, match="already being run"),
        ):
            audit_campaign(busy, store, Script([said()]))
        with pytest.raises(PrerequisiteError):
            audit_campaign(busy, store, Script([], PrerequisiteError("no compiler")))
        assert store.count(busy) == count
        assert store.last_seq(campaign) == before


def test_an_audit_changes_nothing_else(home: Path) -> None:
    campaign = write(home)
    with Store.open(home, clock=lambda: 5e9) as store:
        events = store.events(campaign)
        audit_campaign(campaign, store, Script([said(Status.INCORRECT)]))
        after = store.events(campaign)
        page = render_report(store, campaign, charts=False)
    assert after[:-1] == events
    before, now = derive(events), derive(after)
    assert now.last_seq == before.last_seq + 1
    assert [audit.event.outcome for audit in now.audits] == [FAILED]
    for name in ("entries", "champion", "changes", "finished", "limits", "last_at", "resumes"):
        assert getattr(now, name) == getattr(before, name)
    told = {**campaign_document(before), "audit": last_audit_sentence(now)}
    assert campaign_document(now) == told
    assert Progress(after).spent_s == Progress(events).spent_s
    assert Progress(after).champion == CHAMPION
    assert "#2 no longer holds: INCORRECT" in page


def test_the_sentence_has_both_figures(home: Path) -> None:
    found = audited(home, Script([said(low=0.9)]))
    with Store.open(home, read_only=True) as store:
        history = derive(store.events(store.campaigns()[0]))
    sentence = audit_sentence(history.entries, found)
    assert sentence.startswith("#2 holds: 0.95× (95 % 0.90–1.00) against scipy; recorded 0.80×")
    assert "its record lacks" in sentence


@pytest.mark.parametrize(
    "broken",
    [
        {"outcome": HOLDS},
        {"outcome": HOLDS, "verdicts": [said(Status.INCORRECT)]},
        {"outcome": FAILED, "verdicts": [said(Status.INCORRECT)]},
        {"outcome": HOLDS, "verdicts": [said()], "candidate": "another"},
    ],
)
def test_an_audit_that_contradicts_itself_cannot_be(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="an audit"):
        CampaignAudited(**{"candidate": CHAMPION, **broken})


def whole(**changes: Any) -> Verdict:
    """A verdict whose record lacks nothing."""
    rows = {name: Capability(state=Enforcement.ENFORCED) for name in CAPABILITIES}
    names = ("kernelwright", "python", "kernel", "cpu", "compiler", "torch", "numpy", "scipy")
    base = said()
    assert base.measurement
    full: dict[str, Any] = {
        "checks": tuple(Check(name=f"correct on shape {i}", passed=True) for i in range(30)),
        "isolation": Isolation(mechanism="bubblewrap", capabilities=rows),
        "versions": dict.fromkeys(names, "1"),
        "seed": "ab",
        "artefact": "cd",
        "measurements": (base.measurement.model_copy(update={"missing": {}}),),
    }
    return base.model_copy(update={**full, **changes})


def rows_with(name: str, state: Enforcement | None) -> Isolation:
    rows = dict(whole().isolation.capabilities)  # type: ignore[union-attr]
    del rows[name]
    if state:
        rows[name] = Capability(state=state, how="it got out")
    return Isolation(mechanism="landlock", capabilities=rows)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"protocol": Depth.FULL}, "not confirmed in a fresh process"),
        ({"schema_version": 0}, "schema is version 0"),
        ({"isolation": None}, "no isolation matrix"),
        ({"isolation": rows_with("mem", None)}, "no row 'mem'"),
        ({"isolation": rows_with("mem", Enforcement.ABSENT)}, "'mem' was not enforced: it got"),
        ({"isolation": rows_with("net", Enforcement.PARTIAL)}, "'net' was enforced in part"),
        ({"versions": {"cpu": "x"}}, "no version of kernelwright, python"),
        ({"seed": ""}, "no seed"),
        ({"artefact": ""}, "no hash of the artefact"),
        ({"checks": whole().checks[1:]}, "29 trials"),
        (
            {"checks": (*whole().checks, Check(name="race", passed=True, detail="not run: x"))},
            "unchecked: race",
        ),
        ({"unchecked": ("sanitizers: no library",)}, "unchecked: sanitizers: no library"),
        ({"measurements": said().measurements}, "not held against torch.compile"),
    ],
)
def test_a_gap_in_the_record_is_told(changes: dict[str, Any], word: str) -> None:
    assert list(list_lacks(whole(), whole())) == []
    (told,) = list_lacks(whole(**changes))
    assert word in told


def test_a_partial_row_that_nobody_must_have_is_no_gap() -> None:
    assert list(list_lacks(whole(isolation=rows_with("mem", Enforcement.PARTIAL)))) == []
    assert list(list_lacks(None)) == ["there is no verdict on it"]


def test_what_is_checked_only_today_is_told() -> None:
    new = Check(name="sanitizer on shape 3", passed=True)
    (told,) = list_lacks(whole(), whole(checks=(*whole().checks, new, new)))
    assert told == "unchecked: 'sanitizer', which is checked today"


def test_what_is_other_than_then_is_told() -> None:
    begun = stored.started().model_copy(update={"machine": {**machine_facts(), "cpu": "old"}})
    then = whole(versions={**whole().versions, "torch": "2.0", "cpu": "old", "gone": "1"})
    now = whole(isolation=rows_with("mem", None))
    found = {each.name: (each.then, each.now) for each in differences(begun, then, now)}
    assert found == {
        "cpu": ("old", "1"),
        "torch": ("2.0", "1"),
        "sandbox": ("bubblewrap", "landlock"),
    }
    assert {each.name for each in differences(begun, then, None)} == {"cpu", "kernel"}
