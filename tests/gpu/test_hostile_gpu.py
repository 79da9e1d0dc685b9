"""The rows of the hostile corpus that need a device, and what disarms each there."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kernelwright.sandbox.run.device.health import probe
from kernelwright.sandbox.run.process import RunFault
from kernelwright.traces.records import Status
from kernelwright.verifier.failure import Failed

if TYPE_CHECKING:
    from .conftest import Bench

PATIENCE_S = 6.0
"""For calls that take microseconds, or for ever."""
CORPUS = Path(__file__).parent.parent / "hostile"
ROWS = {row["id"]: row for row in tomllib.loads((CORPUS / "gpu.toml").read_text())["row"]}
OUTCOMES = {
    "B10": {"failed check", "CRASHED"},
    "C1": {"BUILD_FAILED"},
    "C10": {"failed check", "CRASHED"},
    "C11": {"right"},
    "C13": {"right", "BUILD_FAILED"},
    "E10": {"TIMED_OUT"},
}
"""What may become of each: C1 does not link without the device runtime, which is not given; C11 and
C13 are right answers whose trick does not pay; C13 does not build below 9.0."""


def test_every_row_has_an_outcome() -> None:
    assert ROWS.keys() == OUTCOMES.keys()


@pytest.mark.parametrize("row", sorted(ROWS))
def test_a_row_of_the_corpus(bench: Bench, leased: object, row: str) -> None:
    text = (CORPUS / "gpu" / ROWS[row]["file"]).read_text()
    try:
        with bench.side(text, timeout_s=PATIENCE_S) as side:
            outcome = "right"
            for number in range(4):
                slot = side.slots[number % 2]
                found = side.answer(bench.item(), slot)
                if not all(check.passed for check in found):
                    outcome = "failed check"
    except (RunFault, Failed) as fault:
        outcome = str(fault.status)
    if outcome in (Status.TIMED_OUT, Status.CRASHED):
        health = leased.recover(  # type: ignore[attr-defined]
            lambda _: probe(bench.workshop, bench.way), f"{row}: {outcome}"
        )
        assert health.is_well, health.reason
    assert outcome in OUTCOMES[row]


def test_work_after_a_trigger_is_timed(bench: Bench) -> None:
    """C13: what runs on after it let dependents start is still within the events."""
    text = (CORPUS / "gpu" / "C13_early_trigger.cu").read_text()
    plain = text.replace('asm volatile("griddepcontrol.launch_dependents;");', "")
    times = []
    try:
        for one in (text, plain):
            with bench.side(one) as side:
                items = [bench.item()]
                side.take(items, 0)
                times.append(min(side.take(items, 0) for _ in range(5)))
    except Failed as refused:
        pytest.skip(f"it does not build for this device: {refused.reason}")
    assert times[0] > 0.5 * times[1]
