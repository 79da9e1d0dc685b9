"""Python candidates that cheat: each gets its exact status, and none is credited.

A file that stands for several rows of the catalogue is judged once.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from kernelwright.kernelbench.languages import Tier
from kernelwright.traces.records import Depth, Status

pytestmark = pytest.mark.jail

HERE = Path(__file__).parent
ROWS: list[dict[str, Any]] = tomllib.loads((HERE / "host.toml").read_text("utf-8"))["row"]
FILES = {row["file"]: row for row in ROWS}


def same_for(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("id", "name")}


def test_every_file_is_in_the_table_and_rows_of_one_file_agree() -> None:
    assert set(FILES) == {f"host/{file.name}" for file in (HERE / "host").glob("*.py")}
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert same_for(row) == same_for(FILES[row["file"]])


@pytest.mark.slow
@pytest.mark.parametrize(
    "file",
    [
        # What is seen by a clock has the machine to itself.
        pytest.param(
            file,
            id=Path(file).stem,
            marks=[pytest.mark.timed] if row["status"] == Status.SUSPECT else [],
        )
        for file, row in FILES.items()
    ],
)
def test_a_cheat_gets_its_status(court, file: str) -> None:
    row = FILES[file]
    status = Status(row["status"])
    verdict = court.judge(
        (HERE / file).read_text("utf-8"),
        row["problem"],
        Depth(row["protocol"]),
        expected=(status,),
        language="python",
        workload=row["workload"],
    )
    assert verdict.status is status, verdict.reasons
    checks = [row["check"]] if isinstance(row["check"], str) else row["check"]
    assert any(check in reason for check in checks for reason in verdict.reasons), verdict.reasons
    assert verdict.tier is Tier.HOST_CODE
    assert not verdict.measurements
