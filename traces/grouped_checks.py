# SPDX-License-Identifier: Apache-2.0
"""A verdict's checks in few rows: those of one kind that passed are one, with the worst figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .records import Check


class CheckRow(NamedTuple):
    """One row of a table of checks."""

    name: str
    """What was checked; of several how often."""
    check: Check
    """The one with the worst figure of them."""


def group_checks(checks: tuple[Check, ...], *, is_full: bool = False) -> Iterator[CheckRow]:
    """The rows, in the order of first appearance; a check that failed stands alone.

    Args:
        is_full: Every check has a row of its own.
    """
    groups: dict[tuple[object, ...], list[Check]] = {}
    for place, check in enumerate(checks):
        alone = is_full or not check.passed
        groups.setdefault((place,) if alone else (_kind_of(check), check.limit), []).append(check)
    for group in groups.values():
        worst = max(group, key=lambda check: check.figure or 0.0)
        several = f"{_kind_of(worst)} ({len(group):,} times)"
        yield CheckRow(worst.name if len(group) == 1 else several, worst)


def _kind_of(check: Check) -> str:
    return check.name.partition(" on ")[0]
