"""A campaign on a device whose Judge reads hardware counters: over the fake driver and a stand-in
for Nsight Compute, which runs the real host program and counts what it is told to."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernelwright.agents.brains import gpu_signs as signs
from kernelwright.agents.models.choosing import ModelSettings
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.sampling import TURN, at_most
from kernelwright.tests.sandbox.run.device.fake_driver import fake_driver
from kernelwright.tests.verifier.stand_in_ncu import StandInNcu
from kernelwright.tests.verifier.stands import PROBLEM, machine, on_device, task
from kernelwright.traces.events import AdviceGiven, Event
from kernelwright.traces.history import derive
from kernelwright.traces.preparation import Preparation
from kernelwright.traces.records import (
    Advice,
    Counting,
    Isolation,
    Measurement,
    Verdict,
)
from kernelwright.traces.store import Store
from kernelwright.verifier import evaluation
from kernelwright.verifier.process.panel import Panel
from kernelwright.verifier.profile import nsight
from kernelwright.verifier.request import Counted, Order
from kernelwright.verifier.stands.device import MountedOnDevice

pytestmark = pytest.mark.slow

JUDGED = ("sm__warps_active.avg.pct_of_peak_sustained_active", "stalls", "dram__bytes.sum")


@dataclass
class PanelReferee:
    """Implements verifier.request.Referee in this process."""

    panel: Panel

    def prepare(self, is_wanted: Callable[[], bool] = lambda: True) -> Preparation | None:
        return self.panel.wait_prepared() if is_wanted() else None

    def foresee(self, orders: Sequence[Order]) -> None:
        """Nothing is built ahead."""

    def evaluate(self, order: Order) -> Verdict:
        return self.panel.evaluate(order)

    def count(self, order: Order) -> Counted:
        return evaluation.count(self.panel.first, order)

    @property
    def counting(self) -> Counting | None:
        return self.panel.first.counting

    @property
    def isolation(self) -> Isolation:
        return self.panel.isolation

    @property
    def facts(self) -> dict[str, float]:
        return dict(self.panel.facts)

    @property
    def is_emulated(self) -> bool:
        return self.panel.is_emulated

    def close(self) -> None:
        self.panel.close()


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandInNcu:
    folder = tmp_path / "ncu"
    folder.mkdir()
    made = StandInNcu(folder)
    monkeypatch.setattr(nsight, "find_ncu", lambda: nsight.Ncu(made.path, "2025.3.1.0"))
    return made


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    os.chmod(folder, 0o755)
    return folder


@pytest.fixture(scope="module")
def library(cache: Path) -> Path:
    return fake_driver(cache)


@pytest.fixture(autouse=True)
def _clocks_are_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake driver's events are the host's time as they are enqueued, which a referee doubts."""
    conclude = MountedOnDevice.conclude_times

    def believe(mounted: MountedOnDevice) -> Measurement | None:
        found = conclude(mounted)
        mounted.draft.timed.clear()
        return found

    monkeypatch.setattr(MountedOnDevice, "conclude_times", believe)


@pytest.fixture
def referee(cache: Path, library: Path, ncu: StandInNcu) -> Iterator[PanelReferee]:
    assert ncu.path.exists()
    counting = Counting(which="rules", judged=JUDGED)
    asked = task(cache, "sm_90", "cuda").model_copy(update={"counting": counting})
    with closing(PanelReferee(Panel.open(asked, machine(library)))) as opened:
        yield opened


def said(source: str) -> str:
    return f"Strategy: as it is.\nTechniques: none\n\n```cuda\n{source}```\n"


def begin(store: Store, referee: PanelReferee, folder: Path) -> str:
    """A forge whose Coder writes a right kernel, and the same once more: the campaign's id."""
    first = on_device("gelu_right")
    turns = [
        {"purpose": "write", "text": said(first)},
        {"purpose": "optimise", "text": said(f"{first}// again\n")},
    ]
    script = folder / "script.jsonl"
    script.write_text("\n".join(json.dumps(turn) for turn in turns))
    asked = CampaignRequest(
        problem=PROBLEM,
        workload="tiny",
        target="sm_90",
        language="cuda",
        workflow="forge",
        rounds=2,
        model=f"scripted:{script}",
    )
    return run_campaign(asked, store, referee, settings=ModelSettings()).campaign


def advice_in(events: Sequence[Event]) -> Advice:
    (advice,) = [p.advice for e in events if isinstance(p := e.payload, AdviceGiven)]
    return advice


GOOD = {
    signs.LOAD_BYTES: 100.0,
    signs.STORE_BYTES: 100.0,
    signs.EXECUTED: 1e6,
    signs.TIME_NS: 1e9,
    signs.WARPS_ACTIVE: 70.0,
    signs.WAVES: 8.0,
    signs.BUSIEST_SM: 1e4,
    signs.MEAN_SM: 1e4,
    "dram__bytes.sum": 4e6,
}


@pytest.mark.parametrize(
    ("counts", "bottleneck"),
    at_most(
        1,
        [
            ({signs.LOAD_BYTES: 12.5}, "uncoalesced global loads"),
            ({signs.ATOMIC_UNIT: 80.0}, "contended atomics"),
        ],
        TURN,
    ),
)
def test_what_the_judge_says_follows_from_a_counter(
    tmp_path: Path,
    referee: PanelReferee,
    ncu: StandInNcu,
    counts: dict[str, float],
    bottleneck: str,
) -> None:
    ncu.count(**{**GOOD, **counts})
    with Store.open(tmp_path / "home") as store:
        campaign = begin(store, referee, tmp_path)
        events = store.events(campaign)
    history = derive(events)
    assert all(status.is_pass for status in history.by_status)
    assert history.started.counting == Counting(which="rules", judged=JUDGED)
    told = advice_in(events)
    assert told.bottleneck == bottleneck
    assert counts.items() <= told.rests_on.items()
    # The set, and beside it what a Judge is fed.
    for asked in ncu.asked:
        assert {signs.LOAD_BYTES, signs.ATOMIC_UNIT, "dram__bytes.sum"} <= set(asked)
        assert "smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio" in asked
    shown = history.entries[told.candidate].verdict
    assert shown is not None
    assert shown.profile is not None
    assert shown.profile.get(signs.LOAD_BYTES) == counts.get(signs.LOAD_BYTES, 100.0)


def test_the_counters_of_a_right_candidate_are_read_without_trying_it_again(
    referee: PanelReferee, ncu: StandInNcu
) -> None:
    ncu.count(**GOOD)
    counted = referee.count(Order(source=on_device("gelu_right"), language="cuda"))
    assert (counted.reason, len(ncu.asked)) == ("", 1)
    assert counted.took_s > 0
    assert counted.profile is not None
    assert counted.profile.get(signs.WARPS_ACTIVE) == 70.0
    # And what its build says beside them.
    assert counted.profile.get("registers") is not None


@pytest.mark.parametrize(
    ("kernel", "breaks", "words"),
    [
        ("gelu_right", "ERR_NVGPUCTRPERM - no permission", "for administrators only"),
        ("gelu_right", "Failed to find metric sm__nonsense.sum", "does not know the metric"),
        ("not_in_the_cubin", "", "has no kernel"),
    ],
)
def test_what_cannot_be_counted_has_a_reason(
    referee: PanelReferee, ncu: StandInNcu, kernel: str, breaks: str, words: str
) -> None:
    if breaks:
        ncu.refuse(breaks)
    counted = referee.count(Order(source=on_device(kernel), language="cuda"))
    assert counted.profile is None
    assert words in counted.reason
