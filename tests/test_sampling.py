"""Of a slow test's rows a run tries some, and six runs all."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from kernelwright.tests.sampling import FEW, IS_WHOLE, MANY, at_most, in_turn

TURNS = range(6)


class Collected:
    """What pytest knows of a collected test."""

    def __init__(self, of: str, number: int, *, is_slow: bool = True) -> None:
        self.name, self.originalname, self.path = f"{of}[{number}]", of, Path("test_it.py")
        self.callspec, self._is_slow = number, is_slow

    def get_closest_marker(self, name: str) -> object:
        return (self._is_slow and name == "slow") or None


def tried(*items: Any) -> list[Counter[str]]:
    return [Counter(each.originalname for each in in_turn(items, turn)) for turn in TURNS]


def test_every_row_has_its_turn() -> None:
    for count in (FEW, MANY - 1, MANY, 20):
        rows: list[Any] = [Collected("a", number) for number in range(count)]
        by_turn = [in_turn(rows, turn) for turn in TURNS]
        assert {row.name for found in by_turn for row in found} == {row.name for row in rows}
        share = 3 if count >= MANY else 2
        assert all(len(found) <= -(-count // share) for found in by_turn)
        assert all(found for found in by_turn)


def test_what_is_quick_or_has_few_rows_is_always_tried() -> None:
    quick = [Collected("quick", number, is_slow=False) for number in range(20)]
    few = [Collected("few", number) for number in range(FEW - 1)]
    assert all(found == Counter(quick=20, few=FEW - 1) for found in tried(*quick, *few))


def test_of_a_growing_table_no_more_are_tried_and_each_in_the_end() -> None:
    for length in (3, 12, 13, 50):
        rows = list(range(length))
        by_round = [at_most(12, rows, turn) for turn in range(length)]
        assert {row for found in by_round for row in found} == set(rows)
        assert IS_WHOLE or max(map(len, by_round)) <= 12
