"""Honest kernels that naive defences reject: all of them must pass ours.

A referee that cannot be fooled is worth nothing if it rejects honest work. `native.toml` lists the
kernels; each says which naive defence would reject it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from kernelwright.kernelbench import registry
from kernelwright.tests.sampling import one_in
from kernelwright.traces.records import Depth, Status, Verdict

HERE = Path(__file__).parent
KERNELS: list[dict[str, str]] = tomllib.loads((HERE / "native.toml").read_text("utf-8"))["kernel"]
FIELDS = ("name", "file", "problem", "workload", "protocol", "why")


def cases(protocol: Depth) -> list[Any]:
    return [pytest.param(row, id=row["name"]) for row in KERNELS if row["protocol"] == protocol]


FULL = one_in(4, cases(Depth.FULL))


def judged(court, kernel: dict[str, str], expected: tuple[Status, ...]) -> Verdict:
    source = (HERE / kernel["file"]).read_text("utf-8")
    protocol, workload = Depth(kernel["protocol"]), kernel["workload"]
    verdict = court.judge(source, kernel["problem"], protocol, workload=workload, expected=expected)
    assert verdict.status in expected, (verdict.reasons, verdict.log)
    return verdict


def assert_timed(verdict: Verdict, kernel: dict[str, str]) -> None:
    assert verdict.reasons == ()
    assert verdict.measurement is not None
    assert all(check.passed for check in verdict.checks)
    is_prepared = "_prepared_" in kernel["file"]
    assert (verdict.measurement.prepare_us is not None) == is_prepared


@pytest.mark.slow
@pytest.mark.parametrize("kernel", one_in(2, cases(Depth.SCREEN)))
def test_an_honest_kernel_is_not_refused(court, kernel):
    # SUSPECT: every answer was right, and a busy machine's clocks could not be believed.
    verdict = judged(court, kernel, (Status.SCREENED, Status.SUSPECT))
    if verdict.status is Status.SCREENED:
        assert_timed(verdict, kernel)


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.parametrize("kernel", FULL)
def test_an_honest_kernel_is_verified(court, kernel):
    assert_timed(judged(court, kernel, (Status.VERIFIED,)), kernel)


def test_the_table_names_every_file_once_and_says_why():
    for kernel in KERNELS:
        assert tuple(kernel) == FIELDS
        assert kernel["why"]
    listed = [kernel["file"] for kernel in KERNELS]
    assert sorted(listed) == sorted(f"native/{path.name}" for path in HERE.glob("native/*"))
    for field in ("name", "file", "why"):
        assert len({kernel[field] for kernel in KERNELS}) == len(KERNELS)


def test_the_table_has_many_problems_and_enough_full_evaluations():
    assert len(KERNELS) >= 30
    known = {kernel["problem"] for kernel in KERNELS}
    assert len(known) >= 22
    assert known <= set(registry.names())
    full = [kernel for kernel in KERNELS if kernel["protocol"] == Depth.FULL]
    assert 3 * len(full) >= len(KERNELS)
    assert {kernel["protocol"] for kernel in KERNELS} == {Depth.SCREEN, Depth.FULL}
