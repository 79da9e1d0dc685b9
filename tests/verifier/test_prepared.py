"""Baselines that prepare a matrix: outside of the timed call, and anew for each call's values."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Family
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.verifier.baselines.host import _Host
from kernelwright.verifier.baselines.process import BaselineProcess
from kernelwright.verifier.clock.timed_sides import BaselineSide
from kernelwright.verifier.truth import gates
from kernelwright.verifier.truth.trials import make_item

NAME = "MKL prepared"


class Noted:
    """A handle that notes what is asked of it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def refresh(self) -> None:
        self.done.append("refresh")

    def __call__(self) -> None:
        self.done.append("call")


def test_the_host_refreshes_where_it_is_asked_to_and_calls_where_not() -> None:
    host, handle = _Host(), Noted()
    host.gate, host.looks = (memoryview(array("I", [word])) for word in (7, 0))
    host.thunks["x", 0] = handle
    for refresh in (True, False):
        asked = {"do": "call", "baseline": "x", "slots": [0], "nonce": 7, "refresh": refresh}
        assert host.answer(asked)["ns"] >= 0
    assert handle.done == ["refresh", "call"]


@pytest.mark.slow
def test_mkl_answers_for_the_values_of_each_call(tmp_path: Path) -> None:
    problem, rng = registry.get("spmm_csr"), np.random.default_rng(0)
    structure = problem.structure(problem.workload("tiny"))
    process = BaselineProcess(Workshop(BareJail(), tmp_path, (0,)), problem, structure, slots=2)
    try:
        usable, missing = process.prepare((NAME,), rng)
        if missing:
            pytest.skip(missing[NAME])
        assert usable == [NAME]
        for _ in range(3):
            items = [make_item(problem, structure, Family.NORMAL, rng) for _ in process.slots]
            assert BaselineSide(NAME, process).take(items, 0) > 0
            for item, slot in zip(items, process.slots, strict=True):
                for name, expected in item.expected.items():
                    checks = gates.check_output(
                        name,
                        slot.outputs[name],
                        expected,
                        problem.precision,
                        item.family,
                        poison=None,
                    )
                    assert gates.first_failure(checks) is None
    finally:
        process.close()
