# SPDX-License-Identifier: Apache-2.0
"""The page that holds two to four candidates against each other, of one campaign or of several.

Knows no HTML and no HTTP.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ...errors import UsageError
from .. import wording
from ..fold import Entry
from ..head import Head
from ..records import Level, Measurement, Metric
from ..sheet import Sheet
from ..store import Store
from ..wording import NOTHING
from . import words
from .code import CodeDifference, difference
from .pages import source_of

FEWEST, MOST = 2, 4
HOW = f"choose {FEWEST} to {MOST}: tick them in a campaign's table, or /compare?of=ID/1&of=ID/7"
SAME_AS_FIRST = 1.005
"""Ratios nearer to 1 are told as none."""


@dataclass(frozen=True)
class Column:
    """One of the candidates."""

    head: Head
    entry: Entry
    source: str
    missing: str
    """Why its source cannot be shown; empty where it can."""

    @property
    def measurement(self) -> Measurement | None:
        """What was timed on the workload asked for."""
        return self.entry.verdict.measurement if self.entry.verdict else None

    @property
    def address(self) -> str:
        """As this page is asked for it."""
        return f"{self.head.campaign}/{self.entry.candidate}"

    @property
    def task(self) -> tuple[str, str, str]:
        """What times can be compared within."""
        started = self.head.started
        return started.problem, started.workload, started.target


class Cell(NamedTuple):
    """A figure of one candidate."""

    text: str
    ratio: float | None = None
    """Over that of the first; None where it is the first, or has none."""


class Row(NamedTuple):
    """One figure of all candidates."""

    name: str
    unit: str
    level: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class ComparePage:
    """Everything that the page shows."""

    columns: tuple[Column, ...]
    facts: tuple[Row, ...]
    profile: tuple[Row, ...]
    changes: tuple[tuple[Column, CodeDifference | None], ...]
    """Of each but the first, its source against the first's; None where one cannot be read."""
    is_one_task: bool
    """Whether all had the same problem, workload and target."""


def check_count(count: int) -> None:
    """Raises UsageError where so many cannot be held against each other."""
    if not FEWEST <= count <= MOST:
        raise UsageError(
            f"{count} candidate{'' if count == 1 else 's'} cannot be compared",
            hint=HOW,
        )


def column_of(store: Store, sheet: Sheet, candidate: str) -> Column:
    """One of the candidates, by its number, the beginning of its id or `@best`.

    Raises:
        UnknownNameError: there is no such candidate.
        UsageError: several match, or there is no best one.
    """
    name = sheet.find(candidate)
    return Column(sheet.head, sheet.read_whole([name])[name], *source_of(store, name))


def compare_page(columns: Iterable[Column]) -> ComparePage:
    """The page of these, the first of which the others are held against."""
    columns = tuple(columns)
    first = columns[0]
    return ComparePage(
        columns,
        facts=tuple(_list_facts(columns)),
        profile=tuple(_list_metrics(columns)),
        changes=tuple((column, _difference(first, column)) for column in columns[1:]),
        is_one_task=len({column.task for column in columns}) == 1,
    )


def _difference(first: Column, other: Column) -> CodeDifference | None:
    if first.missing or other.missing:
        return None
    return difference(first.source, other.source, other.entry.language)


def _list_facts(columns: tuple[Column, ...]) -> Iterable[Row]:
    def tell(name: str, word: Callable[[Column], str]) -> Row:
        return Row(name, "", "", tuple(Cell(word(column)) for column in columns))

    def measure(
        name: str, value: Callable[[Measurement], float | None], word: Callable[[float], str]
    ) -> Row:
        found = [value(c.measurement) if c.measurement else None for c in columns]
        return Row(name, "", "", _cells(found, word))

    yield tell("speed-up", lambda column: words.gain(column.entry))
    yield tell(
        "95 % interval",
        lambda c: wording.interval(c.measurement.headline if c.measurement else None),
    )
    yield tell("against", lambda c: c.measurement.best_baseline if c.measurement else NOTHING)
    yield measure("time of a call", lambda m: m.candidate.median_us, wording.micros)
    yield measure("roofline reached", lambda m: m.roofline, wording.percent)
    yield measure("CPU time of a call", lambda m: m.cpu_us, wording.micros)
    yield tell("language", lambda column: column.entry.language)
    yield tell("family", lambda column: column.entry.family)
    yield tell("how", lambda column: column.entry.how)
    for knob in dict.fromkeys(itertools.chain.from_iterable(c.entry.knobs for c in columns)):
        values = (str(column.entry.knobs.get(knob, NOTHING)) for column in columns)
        yield Row(f"knob {knob}", "", "", tuple(map(Cell, values)))


def _list_metrics(columns: tuple[Column, ...]) -> Iterable[Row]:
    """Figures of profiles, those that differ most first within those that came about alike."""
    found: dict[tuple[str, Level], list[Metric | None]] = {}
    for at, column in enumerate(columns):
        profile = column.entry.verdict.profile if column.entry.verdict else None
        for metric in profile.metrics if profile else ():
            of_all = found.setdefault((metric.name, metric.level), [None] * len(columns))
            of_all[at] = metric
    for (name, level), metrics in found.items():
        unit = next(metric.unit for metric in metrics if metric)
        values = [metric.value if metric else None for metric in metrics]
        yield Row(name, unit, level.value, _cells(values, wording.figure))


def _cells(values: list[float | None], word: Callable[[float], str]) -> tuple[Cell, ...]:
    first = values[0]
    cells = []
    for at, value in enumerate(values):
        ratio = value / first if at and value is not None and first else None
        if ratio is not None and 1 / SAME_AS_FIRST < ratio < SAME_AS_FIRST:
            ratio = None
        cells.append(Cell(NOTHING if value is None else word(value), ratio))
    return tuple(cells)
