"""Of tables with many rows of one kind `make test` tries some, `make test-all` each.

What differs in a way that a test would choose by is chosen beside its table (`some_of`, `one_in`).
Of the rows of a slow test that are left, a run tries every second or third one, and another run the
others; of tests that are marked `heavy`, every second one. Whose turn it is goes by the day, so
that each is tried every three days.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import pytest

IS_WHOLE = bool(os.environ.get("TEST_ALL"))
"""Whether every row is tried, and each in every way."""

TURN = int(os.environ.setdefault("TEST_TURN", str(int(time.time() // 86400) % 6)))
"""Whose turn it is, from 0 to 5. Set for the workers too, which may begin after midnight."""

ROUND = int(os.environ.setdefault("TEST_ROUND", str(int(time.time() // 86400) // 6)))
"""How often all of them have had their turn."""

FEW, MANY = 3, 9
"""Rows of a slow test from which every second one is tried, and every third one."""

HEAVY = "heavy"
"""The mark of tests of half a minute or more that have no rows."""

_Row = TypeVar("_Row")


def some_of(rows: Iterable[_Row], is_chosen: Callable[[_Row], bool]) -> list[_Row]:
    """The rows that this run tries. What is chosen stands beside the table, with its reason: a row
    of each way through the code, the same ones in every run."""
    return [row for row in rows if IS_WHOLE or is_chosen(row)]


def one_in(count: int, rows: Iterable[_Row]) -> list[_Row]:
    """Every so many-th of rows that differ in nothing that a test would choose by."""
    return [row for at, row in enumerate(rows) if IS_WHOLE or at % count == 0]


def at_most(count: int, rows: Sequence[_Row], turn: int = ROUND) -> list[_Row]:
    """So many of rows whose number grows, as that of the problems does: other ones every six days,
    so that a row that is slow besides has had its turn after all of them."""
    share = -(-len(rows) // count)
    return [row for at, row in enumerate(rows) if IS_WHOLE or (at + turn) % share == 0]


def in_turn(items: Sequence[pytest.Item], turn: int = TURN) -> list[pytest.Item]:
    """Those of the collected tests that this run tries."""
    rows: defaultdict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker(HEAVY):
            rows["", HEAVY].append(item)
        elif item.get_closest_marker("slow") and hasattr(item, "callspec"):
            rows[str(item.path), getattr(item, "originalname", item.name)].append(item)
    left_out = {
        id(row)
        for of, each in rows.items()
        if len(each) >= FEW
        for at, row in enumerate(each)
        if (at + turn) % (2 if len(each) < MANY or of[1] == HEAVY else 3)
    }
    return [item for item in items if id(item) not in left_out]
