"""What makes Triton's interpreter quick changes neither an answer nor an error."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.jail

PROGRAM = Path(__file__).with_name("same_answers.py")


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, Any]]:
    found = {}
    for way in ("plain", "quick"):
        done = subprocess.run(
            [sys.executable, str(PROGRAM), way], capture_output=True, text=True, check=True
        )
        found[way] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("kernel", ["mixed", "ordered"])
def test_tiles_are_the_same_to_the_bit(answers: dict[str, Any], kernel: str) -> None:
    compared = 0
    for name, plain in answers["plain"].items():
        if name.startswith(kernel):
            assert isinstance(plain, list), plain
            assert answers["quick"][name] == plain
            compared += 1
    assert compared


@pytest.mark.parametrize("kernel", ["reduced", "scanned"])
def test_a_tree_rounds_otherwise_and_no_more(answers: dict[str, Any], kernel: str) -> None:
    compared = 0
    for name, plain in answers["plain"].items():
        if name.startswith(kernel):
            assert isinstance(plain, list), plain
            assert answers["quick"][name] == pytest.approx(plain, rel=1e-5, abs=1e-6)
            compared += 1
    assert compared


def test_a_reduction_of_several_tiles_over_all_axes_is_had(answers: dict[str, Any]) -> None:
    """Triton's own interpreter flattens the first tile alone."""
    (name,) = (name for name in answers["quick"] if name.startswith("whole"))
    found = answers["quick"][name]
    rows = [math.sin(-3 + 6 * n / 63) for n in range(4 * 13)]
    assert found[:2] == pytest.approx([sum(rows) / 64, 64.0], rel=1e-5)


@pytest.mark.parametrize("kernel", ["odd_tile", "unlike"])
def test_what_is_wrong_is_said_in_the_same_words(answers: dict[str, Any], kernel: str) -> None:
    name = next(name for name in answers["plain"] if name.startswith(kernel))
    assert isinstance(answers["plain"][name], str)
    assert answers["quick"][name] == answers["plain"][name]
