"""What a campaign of models costs besides models and kernels, over 200 calls answered at once.

    python benchmarks/agent_overhead.py [--calls 200] [--real-calls 200] [--workflow forge]

The model is a real HTTP server in a process of its own that answers at once and counts how long it
took. It plays a Coder that is not always useful: a right kernel, prose and once more prose, a
kernel that does not build, one that it gave before; and a Judge for each of them. With a stub
referee everything but the server is our own work; with the real one, which `forge` alone is played
with, builds and runs are taken out as well, and what is left may be a tenth of the wall time at
most. Exits with 1 where it is more. On a quiet machine it takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from kernelwright.agents.models.choosing import ModelSettings
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.features import features
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.traces.events import EvaluationFinished, Event, ModelReplied
from kernelwright.traces.preparation import Preparation
from kernelwright.traces.records import (
    Capability,
    Depth,
    Enforcement,
    Isolation,
    Measurement,
    Metric,
    Profile,
    Speedup,
    Status,
    Timing,
    Verdict,
    candidate_id,
)
from kernelwright.traces.store import Store
from kernelwright.verifier.process.client import open_referee
from kernelwright.verifier.request import Order, Referee, Task

PROBLEM = "softmax"
LIMIT = 0.10
PIECE = 16
"""Characters in a piece of a stream: about what servers send."""

FIGURE = re.compile(r"^- (\S+) = (\S+)", re.MULTILINE)


COURSE = ("right", "prose", "prose", "broken", "again")
"""What the Coder's replies are, in turn. Prose is asked for once more within its round."""
ROUNDS_OF_COURSE = 4


def kernel(source: str, number: int) -> str:
    """The Coder's reply of this number; what it gives for right is new to the build cache."""
    turn, kind = number - number % len(COURSE), COURSE[number % len(COURSE)]
    if kind == "prose":
        return "Strategy: as before, and I would change nothing else."
    text = f"{source}\n// reply {turn}\n"
    if kind == "broken":
        text += f"#error of reply {number}\n"
    return f"Strategy: as before.\n\n```cpp\n{text}```\n"


def diagnosis(body: dict[str, Any]) -> str:
    """The Judge's reply, of whatever form is asked for, with figures that stand in the prompt."""
    # The profile stands in the last message; an example may stand before it.
    cited = dict(FIGURE.findall(body["messages"][-1]["content"]))
    evidence = [{"metric": name, "value": float(value)} for name, value in [*cited.items()][:3]]
    wanted = body["response_format"]["json_schema"]["schema"]["properties"]
    said: dict[str, object] = {}
    for name, form in wanted.items():
        is_list = form.get("type") == "array"
        said[name] = evidence if is_list else form.get("enum", ["load four values at once"])[0]
    return json.dumps(said)


class Answering(BaseHTTPRequestHandler):
    """Streams the answers; adds up the seconds that they took."""

    protocol_version = "HTTP/1.1"
    source = ""
    kernels = 0
    seconds = 0.0

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        start = time.monotonic()
        body = json.loads(raw)
        if "response_format" in body:
            text = diagnosis(body)
        else:
            text = kernel(self.source, Answering.kernels)
            Answering.kernels += 1
        base = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "at-once"}
        events = [
            {
                **base,
                "choices": [
                    {"index": 0, "delta": {"content": text[at : at + PIECE]}, "finish_reason": None}
                ],
            }
            for at in range(0, len(text), PIECE)
        ]
        events.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        usage = {"prompt_tokens": len(raw) // 4, "completion_tokens": len(text) // 4}
        events.append({**base, "choices": [], "usage": usage})
        lines = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)
        lines += b"data: [DONE]\n\n"
        self.send_response_only(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(lines)))
        self.end_headers()
        self.wfile.write(lines)
        Answering.seconds += time.monotonic() - start


def serve(channel: Connection, source: str) -> None:
    """The server's process: tells its port, and in the end how long it took."""
    Answering.source = source
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    server.timeout = 0.05
    channel.send(server.server_address[1])
    while not channel.poll():
        server.handle_request()
    channel.send(Answering.seconds)


@dataclass
class Server:
    """The server as the campaign sees it."""

    url: str
    seconds: float = 0.0
    """Known once it has ended."""


@contextmanager
def at_once(source: str) -> Iterator[Server]:
    """The server, for as long as the block runs."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs, source))
    process.start()
    server = Server(f"http://127.0.0.1:{ours.recv()}/v1")
    try:
        yield server
    finally:
        ours.send("end")
        server.seconds = ours.recv()
        process.join()


@dataclass
class Watched:
    """A referee, and the seconds that it was asked for."""

    referee: Referee
    seconds: float = 0.0
    builds_s: float = 0.0
    isolation: Isolation = field(init=False)
    facts: dict[str, float] = field(init=False)
    is_emulated: bool = False

    def __post_init__(self) -> None:
        self.isolation, self.facts = self.referee.isolation, self.referee.facts

    def evaluate(self, order: Order) -> Verdict:
        start = time.monotonic()
        verdict = self.referee.evaluate(order)
        self.seconds += time.monotonic() - start
        self.builds_s += verdict.seconds.get("build", 0.0)
        return verdict

    def prepare(self, is_wanted: Callable[[], bool] = lambda: True) -> Preparation | None:
        return self.referee.prepare(is_wanted)

    def foresee(self, orders: Sequence[Order]) -> None:
        self.referee.foresee(orders)

    def close(self) -> None:
        self.referee.close()


class Stub:
    """A referee that knows the answer: each kernel is a little faster than the one before."""

    is_emulated = False

    def __init__(self) -> None:
        problem = registry.get(PROBLEM)
        tiny = problem.structure(problem.workload("tiny"))
        self.facts = {**features(tiny), "cpus": 2.0, "vector_bytes": 64.0}
        enforced = Capability(state=Enforcement.ENFORCED, how="stub")
        self.isolation = Isolation(mechanism="stub", capabilities={"net": enforced})
        self._asked = 0

    def prepare(self, is_wanted: Callable[[], bool] = lambda: True) -> Preparation | None:
        """Nothing is to be made ready."""
        return Preparation() if is_wanted() else None

    def foresee(self, orders: Sequence[Order]) -> None:
        """It knows the answers already."""

    def evaluate(self, order: Order) -> Verdict:
        self._asked += order.protocol is Depth.SCREEN
        faster = 1.0 + 0.05 * self._asked
        latency = Timing(median_us=100 / faster, low_us=99 / faster, high_us=101 / faster)
        gained = Speedup(median=faster, low=faster * 0.99, high=faster * 1.01)
        against = Speedup(median=1.05, low=1.04, high=1.06)
        timed = Measurement(
            workload="tiny",
            candidate=latency,
            best_baseline="torch eager",
            roofline=0.2,
            speedup={"torch eager": gained} | ({"champion": against} if order.champion else {}),
        )
        metrics = [Metric(name=f"metric_{n}", value=float(n)) for n in range(8)]
        is_screen = order.protocol is Depth.SCREEN
        return Verdict(
            candidate=candidate_id(order.source),
            problem=PROBLEM,
            workload="tiny",
            language=order.language,
            target="cpu",
            protocol=order.protocol,
            status=Status.SCREENED if is_screen else Status.VERIFIED,
            measurements=(timed,),
            profile=Profile(metrics=tuple(metrics)),
        )

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class Split:
    """Where the seconds of a campaign went."""

    calls: int
    wall_s: float
    server_s: float
    builds_s: float
    runs_s: float
    first_half_s: float
    """Of our own time: what grows with the campaign shows here."""

    @property
    def own_s(self) -> float:
        """Everything else."""
        return self.wall_s - self.server_s - self.builds_s - self.runs_s

    @property
    def share(self) -> float:
        """Our own part of the wall time."""
        return self.own_s / self.wall_s


def play(workflow: str, calls: int, referee: Referee, source: str) -> Split:
    """A campaign of so many calls, to within a round."""
    calls_of_course = len(COURSE) + (ROUNDS_OF_COURSE if workflow == "forge" else 0)
    rounds = calls * ROUNDS_OF_COURSE // calls_of_course
    model = "openai/at-once"
    request = CampaignRequest(
        problem=PROBLEM,
        workload="tiny",
        workflow=workflow,
        model=model,
        rounds=rounds,
        judge_model=model if workflow == "forge" else "rules",
        patience=rounds + 1,
    )
    watched, halves, answered = Watched(referee), [0.0, 0.0], 0

    def hear(event: Event) -> None:
        nonlocal answered
        answered += isinstance(event.payload, ModelReplied)
        if isinstance(event.payload, EvaluationFinished | ModelReplied):
            halves[answered > calls // 2] = time.monotonic() - start - watched.seconds

    with tempfile.TemporaryDirectory() as home, Store.open(Path(home)) as store:
        with at_once(source) as server:
            settings = ModelSettings(base_url=server.url, slots=1)
            start = time.monotonic()
            run_campaign(request, store, watched, settings=settings, on_event=hear)
            wall_s = time.monotonic() - start
        runs_s = watched.seconds - watched.builds_s
        return Split(answered, wall_s, server.seconds, watched.builds_s, runs_s, halves[0])


def row(name: str, split: Split) -> str:
    """One line of the table."""
    cells = (split.wall_s, split.server_s, split.builds_s, split.runs_s, split.own_s)
    per_call_ms = split.own_s / max(1, split.calls) * 1e3
    return (
        f"{name:24}{split.calls:>7}"
        + "".join(f"{cell:>9.2f}" for cell in cells)
        + f"{per_call_ms:>11.1f}{split.share:>9.1%}"
    )


def main() -> int:
    """Prints the split of each campaign; 1 where our own part of a real one is too large."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--real-calls", type=int, default=200, help="0: no real referee")
    parser.add_argument("--workflow", action="append", choices=("forge", "refine", "best_of_n"))
    asked = parser.parse_args()
    recipe = recipes_for(PROBLEM)[0]
    source = recipe.render(recipe.first_knobs())
    workflows = asked.workflow or ["forge", "best_of_n"]
    headings = ("wall", "server", "builds", "runs", "own")
    print(
        f"{'seconds':24}{'calls':>7}"
        + "".join(f"{h:>9}" for h in headings)
        + f"{'ms a call':>11}{'share':>9}"
    )
    for workflow in workflows:
        split = play(workflow, asked.calls, Stub(), source)
        print(row(f"{workflow}, stub referee", split), flush=True)
        print(f"{'':24}  {split.first_half_s:.2f} s of own and server in the first half")
    if not asked.real_calls:
        return 0
    problem = registry.get(PROBLEM)
    with tempfile.TemporaryDirectory() as cache:
        task = Task(
            problem=PROBLEM,
            workload=problem.workload("tiny"),
            cache_dir=cache,
            baselines=("torch eager",),
        )
        with open_referee(task) as referee:
            split = play("forge", asked.real_calls, referee, source)
    print(row("forge, real referee", split), flush=True)
    print(f"our own share of a real campaign may be {LIMIT:.0%} at most")
    return int(split.share > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
