"""Every acceptance number has a test, and docs/workflows.md names tests that exist."""

from __future__ import annotations

import re

import acceptance
import pytest

NAMED = re.compile(r"`([\w/.]+\.py)::(\w+)`")


def table() -> dict[str, list[tuple[str, str]]]:
    """What the page says: the tests of each number."""
    lines = acceptance.parts(acceptance.PAGE.read_text("utf-8"))[1].splitlines()
    cells = [line.split("|") for line in lines if re.match(r"\| [A-Z]\d+ \|", line)]
    return {row[1].strip(): NAMED.findall(row[3]) for row in cells}


def test_the_table_has_every_number_once() -> None:
    assert list(table()) == list(acceptance.WHAT)
    groups = {"A": 13, "S": 12, "E": 7, "B": 17}
    wanted = [f"{group}{n}" for group, count in groups.items() for n in range(1, count + 1)]
    assert list(acceptance.WHAT) == wanted


def test_a_name_carries_no_number_that_there_is_not() -> None:
    assert set(acceptance.carried()) == set(acceptance.WHAT)


@pytest.mark.parametrize("number", acceptance.WHAT)
def test_every_number_has_tests_that_exist(number: str) -> None:
    remedy = "name one test_NUMBER_…, then: python tests/house/acceptance.py"
    named = table()[number]
    assert named, f"{number} ({acceptance.WHAT[number]}) has no test; {remedy}"
    missing = set(named) - set(acceptance.tests())
    assert not missing, f"the page names what does not exist; {remedy}"
