"""When a file of GPU tests is told by its tests, and when it failed as a whole."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kernelwright.benchmarks.contact.processes import Ended
from kernelwright.benchmarks.contact.records import Records, Scene
from kernelwright.benchmarks.contact.suite import TEACHES, is_told_by_tests
from kernelwright.benchmarks.contact.work import ON_DEVICE, Work

ROOT = Path(__file__).parents[2]
SCENE = Scene("a device", "580.95.05", "sm_90", "2026-11-29", "python it", True)


def test_every_file_of_gpu_tests_has_its_place_in_the_order() -> None:
    files = {path.stem.removeprefix("test_") for path in (ROOT / "tests" / "gpu").glob("test_*.py")}
    assert files == set(ON_DEVICE.files) == set(TEACHES)


@pytest.mark.parametrize(
    ("status", "outcomes", "is_told"),
    [
        (0, ["passed"], True),
        (1, ["passed", "failed"], True),
        # A file that cannot be read, or whose session broke.
        (1, [], False),
        (2, ["passed"], False),
        # Another file gives kernels to a device; this one tried it all the same.
        (5, ["passed", "skipped"], True),
        (5, ["skipped"], False),
        (-9, ["passed"], False),
    ],
)
def test_a_file_is_told_by_its_tests(
    tmp_path: Path, status: int, outcomes: list[str], is_told: bool
) -> None:
    records = Records(tmp_path)
    for number, outcome in enumerate(outcomes):
        records.add("tests", f"tests/gpu/test_runs.py::test_{number}", outcome=outcome)
    records.add("tests", "tests/gpu/test_device.py::test_it", outcome="failed")
    work = Work("tests", records, SCENE, ON_DEVICE, tmp_path, time.monotonic() + 60)
    assert is_told_by_tests(work, "runs", Ended(status, False, 1.0)) == is_told
