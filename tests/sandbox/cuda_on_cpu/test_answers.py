"""Right kernels give the right answer under every schedule and in every build."""

from __future__ import annotations

import os

import numpy as np
import pytest
from emulated_cases import RIGHT
from emulated_operators import Right
from emulation import Machine

from kernelwright.sandbox.builders.emulated import schedules
from kernelwright.sandbox.builders.model import EmulatedVariant


def assert_right(right: Right, outputs: dict[str, np.ndarray]) -> None:
    for name, expected in right.expected.items():
        if right.tolerance == 0.0:
            np.testing.assert_array_equal(outputs[name], expected)
        else:
            np.testing.assert_allclose(
                outputs[name], expected, rtol=right.tolerance, atol=right.tolerance
            )


@pytest.mark.parametrize("schedule", schedules(7))
@pytest.mark.parametrize("name", RIGHT)
def test_plain(machine: Machine, name: str, schedule: str) -> None:
    right = RIGHT[name]()
    assert_right(right, machine.run(right.case, schedule))


@pytest.mark.parametrize("name", RIGHT)
def test_with_the_sanitizers(machine: Machine, name: str) -> None:
    right = RIGHT[name]()
    assert_right(right, machine.run(right.case, variant=EmulatedVariant.ASAN))


@pytest.mark.parametrize("name", RIGHT)
def test_while_accesses_are_told(machine: Machine, name: str) -> None:
    right = RIGHT[name]()
    report = machine.report(right.case)
    assert_right(right, report.outputs)
    assert report.races == ()
    assert report.unwritten == {}
    assert report.accesses


@pytest.mark.parametrize("name", ["reduce float", "histogram", "two steps"])
def test_blocks_on_several_threads(machine: Machine, name: str) -> None:
    cpus = tuple(sorted(os.sched_getaffinity(0)))[:2]
    right = RIGHT[name]()
    for schedule in schedules(5):
        assert_right(right, machine.run(right.case, schedule, cpus=cpus))
