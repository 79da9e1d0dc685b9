"""What each precision policy allows passes, and what it does not allow fails.

`table.toml` lists the kernels by policy; `benchmarks/precisions.py` makes a page of it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from kernelwright.kernelbench.policies import POLICIES, split_name
from kernelwright.tests.sampling import one_in
from kernelwright.traces.records import Depth, Status

HERE = Path(__file__).parent
KERNELS: list[dict[str, str]] = tomllib.loads((HERE / "table.toml").read_text("utf-8"))["kernel"]
FIELDS = ("policy", "problem", "file", "kind", "name", "status", "why")
HONEST, CHEAT = "honest", "cheat"
MISSED = [each for each in KERNELS if each["kind"] == CHEAT and each["status"] == Status.SCREENED]
"""Cheats that are known to pass."""


def cases(kind: str, status: Status) -> list[Any]:
    """The rows of this kind that are to end so."""
    chosen = [each for each in KERNELS if (each["kind"], each["status"]) == (kind, status)]
    return [pytest.param(each, id=Path(each["file"]).stem) for each in chosen]


def judged(court, kernel: dict[str, str], protocol: Depth = Depth.SCREEN):
    source = (HERE / kernel["file"]).read_text("utf-8")
    return court.judge(source, kernel["problem"], protocol, expected=(Status.INCORRECT,))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", one_in(3, cases(HONEST, Status.SCREENED)))
def test_what_a_policy_allows_passes(court, kernel):
    verdict = judged(court, kernel)
    # SUSPECT: every answer was right, and a busy machine's clocks could not be believed.
    assert verdict.status in (Status.SCREENED, Status.SUSPECT), (verdict.reasons, verdict.log)
    assert verdict.checks[0].passed
    assert "correct on" in verdict.checks[0].name


@pytest.mark.slow
@pytest.mark.parametrize("kernel", one_in(2, cases(CHEAT, Status.INCORRECT)))
def test_what_a_policy_does_not_allow_fails(court, kernel):
    """A screening has few families of inputs: what it does not see, a whole evaluation does."""
    verdict = judged(court, kernel)
    if verdict.status.is_pass:
        verdict = judged(court, kernel, Depth.FULL)
    assert verdict.status is Status.INCORRECT, (verdict.reasons, verdict.log)
    assert verdict.measurement is None


def test_the_table_names_every_file_once_and_says_why():
    for kernel in KERNELS:
        assert tuple(kernel) == FIELDS
        assert kernel["why"]
        _, policy = split_name(kernel["problem"])
        assert policy is not None
        assert policy.name == kernel["policy"]
        assert kernel["kind"] in (HONEST, CHEAT)
    listed = [kernel["file"] for kernel in KERNELS]
    assert sorted(listed) == sorted(f"native/{path.name}" for path in HERE.glob("native/*"))
    for field in ("name", "file"):
        assert len({kernel[field] for kernel in KERNELS}) == len(KERNELS)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_has_enough_of_both(policy):
    kinds = [kernel["kind"] for kernel in KERNELS if kernel["policy"] == policy]
    assert kinds.count(HONEST) >= 3
    assert kinds.count(CHEAT) >= 3


def test_what_is_not_told_is_said():
    assert len(MISSED) <= 3
    assert all(kernel["why"].startswith("not told") for kernel in MISSED)
