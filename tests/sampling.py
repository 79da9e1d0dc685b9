"""Of tables with many rows of one kind `make test` tries some, `make test-all` each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TypeVar

IS_WHOLE = bool(os.environ.get("TEST_ALL"))
"""Whether every row is tried, and each in every way."""

_Row = TypeVar("_Row")


def some_of(rows: Iterable[_Row], is_chosen: Callable[[_Row], bool]) -> list[_Row]:
    """The rows that this run tries. What is chosen stands beside the table, with its reason: a row
    of each way through the code, the same ones in every run."""
    return [row for row in rows if IS_WHOLE or is_chosen(row)]


def one_in(count: int, rows: Iterable[_Row]) -> list[_Row]:
    """Every so many-th of rows that differ in nothing that a test would choose by."""
    return [row for at, row in enumerate(rows) if IS_WHOLE or at % count == 0]
