"""Run by the tests in a process of its own, as another user or on a poorer machine.

Reads `{"cache": ..., "sources": {name: [source, protocol]}}` on stdin, has a referee judge them,
prints its isolation matrix and what it found.
"""

from __future__ import annotations

import json
import sys

from kernelwright.kernelbench import registry
from kernelwright.traces.records import Depth, Status, Verdict
from kernelwright.verifier.process.client import RefereeProcess, open_referee
from kernelwright.verifier.request import Order, Task

RETRIED = (Status.SUSPECT, Status.TIMED_OUT)


def judge(referee: RefereeProcess, source: str, protocol: str) -> Verdict:
    """The verdict; asked a second time where a busy machine may have spoken."""
    order = Order(source=source, language="cpp", protocol=Depth(protocol))
    verdict = referee.evaluate(order)
    return referee.evaluate(order) if verdict.status in RETRIED else verdict


def main() -> None:
    asked = json.load(sys.stdin)
    task = Task(
        problem="spmm_csr",
        workload=registry.get("spmm_csr").workload("tiny"),
        cache_dir=asked["cache"],
        baselines=("scipy",),
    )
    with open_referee(task) as referee:
        verdicts = {name: judge(referee, *order) for name, order in asked["sources"].items()}
        told = {
            name: {"status": verdict.status, "reasons": verdict.reasons, "log": verdict.log}
            for name, verdict in verdicts.items()
        }
        print(json.dumps({"isolation": referee.isolation.model_dump(mode="json"), "told": told}))


if __name__ == "__main__":
    main()
