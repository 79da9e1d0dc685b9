"""CUDA in the form in which people publish it (`load_inline`, launchers, programs) gets its launch
plan from its own host code, and is then judged as any candidate for `sm_90` in emulation.

`host.toml` has a row for each file of `host/`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from kernelwright.kernelbench import registry
from kernelwright.sandbox.host_plan.convert import Converted, convert
from kernelwright.sandbox.plan.faults import PlanFault
from kernelwright.tests.court import Court
from kernelwright.tests.sampling import one_in

HERE = Path(__file__).parent
ROWS = tomllib.loads((HERE / "host.toml").read_text("utf-8"))
CONVERTED = [name for name, row in ROWS.items() if row["status"] != "refused"]


def convert_file(name: str) -> Converted | PlanFault:
    text = (HERE / "host" / name).read_text("utf-8")
    return convert(text, registry.get(ROWS[name]["problem"]))


def test_each_file_has_its_row_and_most_become_candidates() -> None:
    assert sorted(file.name for file in (HERE / "host").iterdir()) == sorted(ROWS)
    assert len(CONVERTED) >= 0.8 * len(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_it_gets_its_plan_or_is_refused_with_a_line(name: str) -> None:
    found = convert_file(name)
    if ROWS[name]["status"] == "refused":
        assert isinstance(found, PlanFault)
        assert ROWS[name]["words"] in found.reason
        return
    assert isinstance(found, Converted), found
    assert "<<<" not in found.text
    assert "PYBIND11_MODULE" not in found.text
    assert convert(found.text, registry.get(ROWS[name]["problem"])) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(3, CONVERTED))
def test_it_is_judged(name: str, court: Court) -> None:
    found = convert_file(name)
    assert isinstance(found, Converted)
    row = ROWS[name]
    verdict = court.look(found.text, row["problem"], "cuda")
    assert verdict.status == row["status"], verdict.reasons
    assert row.get("words", "") in " ".join(verdict.reasons)
