"""A campaign of models that dies at any point goes on as if it had not, and pays nothing twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from kernelwright.agents.books.asking import Asking
from kernelwright.agents.casting.cast import Players
from kernelwright.agents.roles import NoProposal, Proposal, Situation
from kernelwright.agents.stop import Stop
from kernelwright.errors import UsageError
from kernelwright.running import CampaignRequest, CampaignResult, resume_campaign, run_campaign
from kernelwright.tests.agents.asked import (
    PlainCoder,
    PlayedModel,
    as_it_says,
    asking_players,
    kernel,
)
from kernelwright.tests.agents.played import PlayedReferee, players
from kernelwright.tests.agents.wording import reword
from kernelwright.traces.events import (
    CampaignFinished,
    CampaignPrepared,
    CampaignResumed,
    CandidateMissing,
    EvaluationStarted,
    Event,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    Payload,
)
from kernelwright.traces.place import Place
from kernelwright.traces.store import Store

SCRIPT = {
    "0/0/write/1": kernel(fails="BUILD_FAILED"),
    "1/0/repair/1": kernel(step=2),
    "2/0/optimise/1": "no code",
    "4/0/optimise/1": kernel(fails="INCORRECT"),
}
WORKFLOWS = ("forge", "refine", "best_of_n")


def request(workflow: str, rounds: int = 5, **limits: float) -> CampaignRequest:
    return CampaignRequest(problem="doubling", workflow=workflow, rounds=rounds, limits=limits)


def referee(log: Path | None = None) -> PlayedReferee:
    return PlayedReferee(fate=as_it_says, noise=0.001, log=log)


def model() -> PlayedModel:
    # One slot: with more, deaths would meet several calls in flight.
    return PlayedModel(SCRIPT)


def story(events: list[Event]) -> list[Payload]:
    """What was found and decided, without what tells of deaths and resumptions."""
    told: list[Payload] = []
    for payload in (event.payload for event in events):
        match payload:
            case CampaignResumed() | CampaignPrepared() | CampaignFinished():
                continue
            case ModelRequested() | ModelFailed():
                continue
            case EvaluationStarted() if payload in told:
                continue  # begun again after it was cut off
            # Keys tell campaigns apart.
            case ModelReplied():
                told.append(payload.model_copy(update={"call": "", "attempt": 0}))
            case CandidateMissing():
                told.append(payload.model_copy(update={"call": ""}))
            case _:
                told.append(payload)
    return told


class Whole(NamedTuple):
    """A campaign that nobody disturbed."""

    told: list[Payload]
    result: CampaignResult
    events: int
    asked: list[str]


def whole(home: Path, workflow: str) -> Whole:
    one = model()
    with Store.open(home) as store:
        result = run_campaign(request(workflow), store, referee(), players=asking_players(one))
        events = store.events(result.campaign)
    return Whole(story(events), result, len(events), one.asked)


class Died(BaseException):
    """The process is gone: nothing after it happens."""


class MortalStore(Store):
    """A store whose process dies once so many events are on the disk."""

    left = 10**9

    def append(self, campaign: str, payload: Payload) -> Event:
        if self.left == 0:
            raise Died
        self.left -= 1
        return super().append(campaign, payload)


def damage(cursor: Path, how: str) -> None:
    """What may happen to the file of the checkpoints between two processes."""
    if not cursor.exists() or how == "kept":
        return
    if how == "lost":
        cursor.unlink()
    elif how == "truncated":
        os.truncate(cursor, cursor.stat().st_size // 2)
    else:
        cursor.write_bytes(b"nothing of the kind" * 400)


@pytest.mark.parametrize("how", ["truncated", "garbled"])
def test_b8_a_damaged_checkpoint_is_thrown_away(tmp_path: Path, how: str) -> None:
    """B8: the events are enough."""
    expected = whole(tmp_path / "whole", "forge")
    one, home = model(), tmp_path / "home"
    with MortalStore.open(home) as mortal:
        mortal.left = expected.events // 2
        with pytest.raises(Died):
            run_campaign(request("forge"), mortal, referee(), players=asking_players(one))
    with Store.open(home) as store:
        (campaign,) = store.campaigns()
        assert store.cursor_path(campaign).exists()
        damage(store.cursor_path(campaign), how)
        resume_campaign(campaign, store, referee(), players=asking_players(one))
        assert story(store.events(campaign))[1:] == expected.told[1:]


KILLING = """
import json, os, signal, sys
from pathlib import Path
from kernelwright.running import resume_campaign, run_campaign
from kernelwright.tests.agents import test_forge_resume as t
from kernelwright.tests.agents.asked import PlayedModel, asking_players
from kernelwright.traces.store import Store
import kernelwright.agents.workflows.forge, kernelwright.agents.workflows.best_of_n

class KilledStore(Store):
    left = 10**9
    def append(self, campaign, payload):
        event = super().append(campaign, payload)
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return event

def work(home, log, left, inside):
    kill = lambda place: os.kill(os.getpid(), signal.SIGKILL)
    model = PlayedModel(t.SCRIPT, log=log / "calls")
    referee = t.referee(log / "evaluations")
    if inside == "model":
        model.before = lambda place: kill(place) if len(model.asked) == left else None
    if inside == "referee":
        referee.before = lambda order: kill(order) if len(referee.asked) == left else None
    with KilledStore.open(home) as store:
        store.left = left if inside == "store" else 10**9
        seats = asking_players(model)
        if known := store.campaigns():
            resume_campaign(known[0], store, referee, players=seats)
        else:
            run_campaign(t.request(sys.argv[2]), store, referee, players=seats)

def in_a_process_of_its_own(*args):
    child = os.fork()
    if child == 0:
        try:
            work(*args)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

told = []
for inside, left in json.loads(sys.argv[3]):
    place = Path(sys.argv[1]) / f"{inside}-{left}"
    place.mkdir(parents=True)
    first = in_a_process_of_its_own(place / "home", place, left, inside)
    told.append([inside, left, first, in_a_process_of_its_own(place / "home", place, -1, "")])
print(json.dumps(told))
"""


@pytest.mark.slow
@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_b7_e4_kill_9_between_and_inside_the_nodes(tmp_path: Path, workflow: str) -> None:
    """B7, E4: SIGKILL after chosen events, while a model is asked, while the referee works."""
    expected = whole(tmp_path / "whole", workflow)
    chosen = [("store", n) for n in range(1, expected.events - 1, 4)]
    chosen += [("model", n) for n in (1, 3, len(expected.asked))]
    chosen += [("referee", n) for n in (1, 3)]
    done = subprocess.run(
        [sys.executable, "-c", KILLING, str(tmp_path), workflow, json.dumps(chosen)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # The first process was killed, the second came to the end.
    assert json.loads(done.stdout) == [[*kill, -9, 0] for kill in chosen], done.stderr
    for inside, left in chosen:
        place = tmp_path / f"{inside}-{left}"
        with Store.open(place / "home") as store:
            (campaign,) = store.campaigns()
            events = store.events(campaign)
        assert story(events)[1:] == expected.told[1:], (inside, left)
        calls = (place / "calls").read_text().split()
        again = Counter(calls) - Counter(expected.asked)
        # Only a model that was already speaking when the process died is heard twice.
        assert sum(again.values()) == (1 if inside == "model" else 0), (inside, left)
        assert set(calls) == set(expected.asked)
        evaluated = (place / "evaluations").read_text().splitlines()
        assert len(evaluated) == len(set(evaluated)), "evaluated twice"
        unknown = [e for e in events if isinstance(e.payload, ModelFailed)]
        assert len(unknown) <= 1
        assert not [e for e in unknown if e.payload.fault != "outcome unknown"]  # type: ignore[union-attr]


def test_b12_resuming_a_finished_campaign_adds_only_its_resumption(store: Store) -> None:
    """B12: no doubled lists, no paid call, the same answer."""
    one = model()
    first = run_campaign(request("forge"), store, referee(), players=asking_players(one))
    asked, told = len(one.asked), story(store.events(first.campaign))
    again = resume_campaign(first.campaign, store, referee(), players=asking_players(one))
    assert len(one.asked) == asked
    assert story(store.events(first.campaign)) == told
    assert again.model_copy(update={"wall_s": 0.0}) == first.model_copy(update={"wall_s": 0.0})


@pytest.mark.parametrize("workflow", WORKFLOWS)
@pytest.mark.parametrize("cap", [{"evaluations": 2.0}, {"tokens": 700.0}])
def test_a_raised_cap_lets_a_stopped_campaign_go_on(
    tmp_path: Path, workflow: str, cap: dict[str, float]
) -> None:
    expected = whole(tmp_path / "whole", workflow)
    one = model()
    with Store.open(tmp_path / "home") as store:
        first = run_campaign(
            request(workflow, **cap), store, referee(), players=asking_players(one)
        )
        assert first.stopped_by == next(iter(cap))
        more = dict.fromkeys(cap, 1000000.0)
        second = resume_campaign(
            first.campaign, store, referee(), more, players=asking_players(one)
        )
        assert story(store.events(first.campaign))[1:] == expected.told[1:]
    assert second.best == expected.result.best
    assert one.asked == expected.asked


def test_an_interrupt_ends_it_between_two_steps_and_it_goes_on(tmp_path: Path) -> None:
    expected = whole(tmp_path / "whole", "forge")
    one, stop = model(), Stop()
    one.before = lambda place: stop.request() if place == "3/0/judge/1" else None
    with Store.open(tmp_path / "home") as store:
        first = run_campaign(
            request("forge"), store, referee(), players=asking_players(one), stop=stop
        )
        assert first.stopped_by == "interrupted"
        assert one.asked[-1] == "3/0/judge/1"
        resume_campaign(first.campaign, store, referee(), players=asking_players(one))
        assert story(store.events(first.campaign))[1:] == expected.told[1:]
    assert one.asked == expected.asked


def test_b9_another_version_of_the_workflow_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B9: never mixed; the remedy is told."""
    from kernelwright.agents.workflows.workflow import WORKFLOWS as KNOWN

    seats = asking_players(model())
    first = run_campaign(request("forge", rounds=1), store, referee(), players=seats)
    before = len(store.events(first.campaign))
    monkeypatch.setitem(KNOWN, "forge", replace(KNOWN["forge"], version=99))
    with pytest.raises(
        UsageError, match=r"was run by forge/\d+\+\w+, and this is forge/99"
    ) as caught:
        resume_campaign(first.campaign, store, referee(), players=seats)
    assert "new campaign" in caught.value.hint
    assert len(store.events(first.campaign)) == before


def test_b9_other_prompts_are_refused_where_a_model_reads_them(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """B9: prompts count only for brains that send them; what was begun with others is refused."""
    seats, offline = asking_players(model()), players()
    asked = run_campaign(request("forge", rounds=1), store, referee(), players=seats)
    free = run_campaign(request("forge", rounds=1), store, referee(), players=offline)
    reword(monkeypatch, tmp_path)
    with pytest.raises(UsageError, match=r"was run by forge/\d+\+\w+, and this is forge/\d+\+\w+"):
        resume_campaign(asked.campaign, store, referee(), players=seats)
    assert resume_campaign(free.campaign, store, referee(), players=offline).evaluated == 1


class FaultyCoder(PlainCoder):
    """One of its slots runs into a fault of ours, once."""

    faults = 1

    def propose(self, situation: Situation) -> Proposal | NoProposal | None:
        if situation.assignment.place == Place(0, 2) and FaultyCoder.faults:
            FaultyCoder.faults -= 1
            raise RuntimeError("a fault of the harness")
        return super().propose(situation)


def test_b10_a_fault_in_one_slot_costs_the_others_nothing(store: Store) -> None:
    """B10: what the siblings were told is in the ledger and not paid again."""
    one = PlayedModel(slots=4)
    judge = asking_players(one).judge
    seats = Players(players().problem, Asking(one, FaultyCoder), judge)
    FaultyCoder.faults = 1
    with pytest.raises(RuntimeError, match="a fault of the harness"):
        run_campaign(request("best_of_n", rounds=4), store, referee(), players=seats)
    (campaign,) = store.campaigns()
    result = resume_campaign(campaign, store, referee(), players=seats)
    assert Counter(one.asked) == Counter({f"0/{n}/write/1": 1 for n in range(4)})
    assert result.evaluated == 4


def test_b11_a_second_process_is_refused_and_told_who_runs_it(store: Store) -> None:
    """B11: and once that one is gone, its lock is no hindrance."""
    seats = asking_players(model())
    first = run_campaign(request("forge", rounds=1), store, referee(), players=seats)
    with (
        store.lease(first.campaign),
        pytest.raises(UsageError, match=f"already being run by process {os.getpid()}"),
    ):
        resume_campaign(first.campaign, store, referee(), players=seats)
    assert resume_campaign(first.campaign, store, referee(), players=seats).evaluated == 1


STRICT = """
import sys
from pathlib import Path
from kernelwright.tests.agents.workflows import test_every_workflow as t
t.test_s6_b7_it_goes_on_from_every_prefix_of_its_events(Path(sys.argv[1]), "best_of_n")
print("done")
"""


@pytest.mark.slow
def test_b13_it_resumes_with_strict_deserialisation(tmp_path: Path) -> None:
    """B13: a graph's state holds nothing that would come back as something else."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", STRICT, str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(sys.path), "LANGGRAPH_STRICT_MSGPACK": "true"},
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
