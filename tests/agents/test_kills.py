"""Forty times SIGKILL at random instants, over the workflows, against a real HTTP server.

What holds, for a campaign that was killed and taken up again until it ended:

- it evaluated the same candidates, crowned the same one, and every evaluation has one verdict;
- it sent exactly the requests of an undisturbed run, and each was answered and paid into the books
  exactly once;
- a request that the server saw more than once was in flight at a kill: the books have every such
  attempt as `outcome unknown`, with its whole reservation as spent. There are at most as many as
  calls may be in flight, for each kill. An attempt that was recorded and had not been sent yet is
  booked the same way, since nobody can tell the two apart.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kernelwright.tests.agents.asked import CUDA, generated, kernel
from kernelwright.tests.agents.endpoint import Endpoint, Request, Turn
from kernelwright.tests.sampling import IS_WHOLE, one_in
from kernelwright.traces.events import (
    EvaluationFinished,
    Event,
    ModelFailed,
    ModelReplied,
    ModelRequested,
)
from kernelwright.traces.history import derive
from kernelwright.traces.store import Store

WORKFLOWS: dict[str, dict[str, Any]] = {
    "forge": {"rounds": 5},
    "refine": {"rounds": 5},
    "best_of_n": {"rounds": 5},
    "evolve": {
        "rounds": 2,
        "options": {
            "proposals": 3,
            "evaluated": 2,
            "abreast": 2,
            "islands": 2,
            "soft": True,
            "reflect_every": 1,
        },
    },
    "contrast": {"rounds": 3},
    "features": {"rounds": 2, "options": {"proposals": 2, "repairs": 1}},
    "transpile": {"source": CUDA, "options": {"fixes": 2, "optimisations": 2}},
}
"""What each is asked: a handful of rounds, with every step that it has."""

KILLS = 6 if IS_WHOLE else 3
"""Of each workflow, forty and more in all; in a sample half of them, of every second workflow."""

SLOTS = 3
SCRIPT = {
    "0/0/write/1": kernel(fails="BUILD_FAILED"),
    "0/0/features/1": kernel(fails="INCORRECT"),
    "0/0/translate/1": kernel(fails="BUILD_FAILED"),
    "1/0/repair/1": kernel(step=2),
    "2/0/optimise/1": "no code",
    "4/0/optimise/1": kernel(fails="INCORRECT"),
}

DRIVER = """
import json, os, random, signal, sys, time
from pathlib import Path
import openai
from kernelwright.agents.models.choosing import ModelSettings, model
from kernelwright.running import CampaignRequest, resume_campaign, run_campaign
from kernelwright.agents.workflows.workflow import find_workflow
from kernelwright.tests.agents.asked import as_it_says
from kernelwright.tests.agents.played import PlayedReferee
from kernelwright.tests.agents.workflows.staged import seats
from kernelwright.traces.store import Store

place, url, asked = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
kills, slots, seed = map(int, sys.argv[4:])
# Once, before the first child: each would have to import it anew.
assert find_workflow(asked["workflow"]).rules

def work(home):
    one = model("openai/test-model", ModelSettings(base_url=url, slots=slots))
    players = seats(one, says=lambda source: "ok", lessons=["a lesson"])
    referee = PlayedReferee(fate=as_it_says, noise=0.001)
    with Store.open(home) as store:
        if known := store.campaigns():
            resume_campaign(known[0], store, referee, players=players)
        else:
            request = CampaignRequest.model_validate(asked)
            run_campaign(request, store, referee, players=players)

def begun(home):
    child = os.fork()
    if child == 0:
        try:
            work(home)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return child

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def killed_after(child, seconds):
    time.sleep(seconds)
    # It is not waited for yet: its number is still its own.
    os.kill(child, signal.SIGKILL)
    return ended(child)

start = time.monotonic()
assert ended(begun(place / "whole")) == 0
whole_s = time.monotonic() - start
print(json.dumps({"home": "whole", "kills": 0}), flush=True)
rng, done, number = random.Random(f"{seed}:{asked['workflow']}"), 0, 0
while done < kills:
    name, here, wanted = f"killed-{number}", 0, min(5, kills - done)
    print(json.dumps({"home": name}), flush=True)
    assert sys.stdin.readline() == "go\\n"
    code = None
    while here < wanted and code != 0:
        code = killed_after(begun(place / name), rng.uniform(0.0, 0.6) * whole_s)
        assert code in (0, -9), code
        here += code == -9
    assert code == 0 or ended(begun(place / name)) == 0
    print(json.dumps({"home": name, "kills": here}), flush=True)
    done, number = done + here, number + 1
    assert number < 20 * kills, "the campaigns end before they can be killed"
"""


def answer(request: Request) -> Turn:
    """By the place that stands in the prompt's first line; a little later than at once."""
    place = request.text.splitlines()[0]
    return Turn(SCRIPT.get(place) or generated(place), delay_s=0.05)


def seen(server: Endpoint, since: int) -> Counter[str]:
    """What the server was asked, prompt by prompt."""
    return Counter(request.text for request in server.requests[since:])


def verdicts(events: list[Event]) -> Counter[tuple[str, str]]:
    finished = [p.verdict for e in events if isinstance(p := e.payload, EvaluationFinished)]
    return Counter((verdict.candidate, str(verdict.protocol)) for verdict in finished)


def events_of(home: Path) -> list[Event]:
    with Store.open(home) as store:
        (campaign,) = store.campaigns()
        return store.events(campaign)


def check(
    events: list[Event], whole: list[Event], asked: Counter[str], expected: Counter[str], kills: int
) -> None:
    """That everything of the module's head holds."""
    assert verdicts(events) == verdicts(whole)
    assert set(verdicts(events).values()) == {1}
    assert derive(events).champion == derive(whole).champion
    replied = [p for e in events if isinstance(p := e.payload, ModelReplied)]
    assert len({p.call for p in replied}) == len(replied)
    paid = [p for e in whole if isinstance(p := e.payload, ModelReplied)]
    assert sum(p.tokens for p in replied) == sum(p.tokens for p in paid)
    assert len(replied) == len(paid)
    assert set(asked) == set(expected)
    unknown = [p for e in events if isinstance(p := e.payload, ModelFailed)]
    assert {p.fault for p in unknown} <= {"outcome unknown"}
    assert len(unknown) <= kills * SLOTS
    attempts = [p for e in events if isinstance(p := e.payload, ModelRequested)]
    assert len(attempts) == len(replied) + len(unknown)
    assert len(replied) <= asked.total() <= len(attempts)
    reserved = {(p.call, p.attempt): p.reserved_tokens for p in attempts}
    assert all(p.tokens == reserved[p.call, p.attempt] > 0 for p in unknown)


@pytest.mark.slow
@pytest.mark.parametrize("workflow", one_in(2, WORKFLOWS))
def test_b7_kills_at_random_instants_pay_nothing_twice(tmp_path: Path, workflow: str) -> None:
    """B7: the same spend but for calls in flight, the same candidates."""
    asked = {
        "problem": "doubling",
        "workflow": workflow,
        "patience": 9,
        "model": "openai/test-model",
        "limits": {"evaluations": 8, "tokens": 10**9},
        **WORKFLOWS[workflow],
    }
    with Endpoint(answer) as server:
        arguments = [tmp_path, server.url, json.dumps(asked), KILLS, SLOTS, 11]
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        try:
            kills = _followed(driver, server, tmp_path)
        finally:
            driver.kill()
            driver.communicate()
    assert kills == KILLS


def _followed(driver: subprocess.Popen[str], server: Endpoint, place: Path) -> int:
    """Checks each campaign when it has ended; gives the number of kills."""
    assert driver.stdin is not None
    assert driver.stdout is not None

    def told() -> dict[str, Any]:
        line = driver.stdout.readline()  # type: ignore[union-attr]
        return dict(json.loads(line)) if line else {}

    assert told() == {"home": "whole", "kills": 0}
    whole, expected, kills = events_of(place / "whole"), seen(server, 0), 0
    assert set(expected.values()) == {1}
    assert len(verdicts(whole)) >= 3
    while begun := told():
        since = len(server.requests)
        driver.stdin.write("go\n")
        driver.stdin.flush()
        ended = told()
        assert ended.get("home") == begun["home"], "the driver failed; see stderr"
        events = events_of(place / ended["home"])
        check(events, whole, seen(server, since), expected, ended["kills"])
        kills += ended["kills"]
    assert driver.wait() == 0
    return kills
