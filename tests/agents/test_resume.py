"""A campaign that dies at any point goes on as if it had not."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from kernelwright.running import CampaignRequest, resume_campaign, run_campaign
from kernelwright.tests.agents.played import PlayedReferee, players
from kernelwright.tests.sampling import IS_WHOLE
from kernelwright.traces.events import (
    CampaignFinished,
    CampaignPrepared,
    CampaignResumed,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    Payload,
)
from kernelwright.traces.store import Store

KILLS = 10 if IS_WHOLE else 5
REQUEST = CampaignRequest(problem="doubling", limits={"evaluations": 4}, seed=4)


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


def story(events: list[Event]) -> list[Payload]:
    """The events without what tells of deaths and resumptions."""
    kept = [
        event.payload
        for event in events
        if not isinstance(event.payload, CampaignResumed | CampaignPrepared)
    ]
    settled: list[Payload] = []
    for payload in kept:
        if isinstance(payload, EvaluationStarted) and payload in settled:
            continue  # begun again after it was cut off
        settled.append(payload)
    return settled


def uninterrupted(home: Path) -> list[Payload]:
    with Store.open(home) as store:
        result = run_campaign(REQUEST, store, PlayedReferee(), players=players())
        return story(store.events(result.campaign))


def test_death_at_every_event_changes_nothing(tmp_path: Path) -> None:
    expected = uninterrupted(tmp_path / "whole")
    for deaths_at in itertools.count():
        home = tmp_path / str(deaths_at)
        referee = PlayedReferee()
        with MortalStore.open(home) as store:
            store.left = deaths_at
            try:
                run_campaign(REQUEST, store, referee, players=players())
            except Died:
                pass
            else:
                break
        with Store.open(home) as store:
            (campaign,) = store.campaigns()
            resume_campaign(campaign, store, referee, players=players())
            told = story(store.events(campaign))
        finishes = [p for p in told if isinstance(p, CampaignFinished)]
        assert [p for p in told if p not in finishes] == expected[:-1], deaths_at
        assert finishes[-1] == expected[-1]
        # Only the evaluation that the death cut off is asked for again.
        assert sum(n - 1 for n in Counter(referee.asked).values()) <= 1
    assert deaths_at > 4 * 4


def test_a_candidate_that_died_in_the_referee_is_evaluated_once_more(store: Store) -> None:
    def die_at_the_third(_order: object) -> None:
        if len(referee.asked) == 3:
            raise Died

    referee = PlayedReferee(before=die_at_the_third)
    with pytest.raises(Died):
        run_campaign(REQUEST, store, referee, players=players())
    (campaign,) = store.campaigns()
    resume_campaign(campaign, store, referee, players=players())
    asked = Counter(referee.asked)
    assert asked[referee.asked[2]] == 2
    assert sum(asked.values()) == len(asked) + 1
    verdicts = [
        e.payload for e in store.events(campaign) if e.payload.kind == "evaluation.finished"
    ]
    assert len(verdicts) == len(asked)


CHILD = """
import sys, time
from pathlib import Path
from kernelwright.running import CampaignRequest, resume_campaign, run_campaign
from kernelwright.tests.agents.played import PlayedReferee, players
from kernelwright.traces.store import Store
import kernelwright.agents.workflows.tune

home, log = Path(sys.argv[1]), Path(sys.argv[2])
referee = PlayedReferee(log=log, before=lambda order: time.sleep(0.01))
with Store.open(home) as store:
    known = store.campaigns()
    print("ready", flush=True)
    if known:
        result = resume_campaign(known[0], store, referee, players=players())
    else:
        request = CampaignRequest(problem="doubling", limits={"evaluations": 40}, seed=4)
        result = run_campaign(request, store, referee, players=players())
print(result.stopped_by, flush=True)
"""


@pytest.mark.heavy
@pytest.mark.slow
def test_kill_9_at_random_instants_loses_and_repeats_nothing(tmp_path: Path) -> None:
    home, log = tmp_path / "home", tmp_path / "log"
    rng = random.Random(11)
    kills = 0
    for _ in range(40):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(home), str(log)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert child.stdout is not None
        with child.stdout:
            assert child.stdout.readline() == "ready\n"
            if kills < KILLS:
                time.sleep(rng.uniform(0.0, 0.15))
                child.send_signal(signal.SIGKILL)
            rest = child.stdout.read()
        if child.wait() == 0:
            assert rest == "evaluations\n"
            break
        kills += 1
    assert kills >= KILLS // 2
    expected = uninterrupted_of(tmp_path / "whole")
    with Store.open(home) as store:
        (campaign,) = store.campaigns()
        told = story(store.events(campaign))
    # A kill between the record of the end and the end of the process leaves two such records.
    assert [p for p in told if not isinstance(p, CampaignFinished)] == expected[:-1]
    assert told[-1] == expected[-1]
    verdicts = [
        (p.verdict.candidate, p.verdict.protocol) for p in told if isinstance(p, EvaluationFinished)
    ]
    assert len(set(verdicts)) == len(verdicts)
    # The referee was asked again at most once for each death.
    assert len(log.read_text().splitlines()) <= len(verdicts) + kills


def uninterrupted_of(home: Path) -> list[Payload]:
    request = REQUEST.model_copy(update={"limits": {"evaluations": 40}})
    with Store.open(home) as store:
        result = run_campaign(request, store, PlayedReferee(), players=players())
        return story(store.events(result.campaign))
