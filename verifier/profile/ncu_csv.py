# SPDX-License-Identifier: Apache-2.0
"""Reads what `ncu --csv --page raw --print-units base` writes: one row for each profiled launch.

Below the header stands a row of units. Lines of ncu itself begin with `==`. Numbers may hold
thousands separators; what a chip could not tell is `n/a` or `(!) nan`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

KERNEL = "Kernel Name"
_GRID, _BLOCK = "Grid Size", "Block Size"
_FACTS = (
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    KERNEL,
    "Context",
    "Stream",
    _BLOCK,
    _GRID,
    "Device",
    "CC",
    "Section Name",
)


class NcuValue(NamedTuple):
    """One value with its unit."""

    value: float
    unit: str


@dataclass(frozen=True)
class ProfiledLaunch:
    """One profiled launch."""

    kernel: str
    grid: str
    block: str
    figures: Mapping[str, NcuValue]
    missing: tuple[str, ...]
    """Metrics that the chip had no value for."""

    def keep_only(self, names: Collection[str]) -> ProfiledLaunch:
        """The same with what is told of these metrics alone."""
        figures = {name: value for name, value in self.figures.items() if name in names}
        missing = tuple(name for name in self.missing if name in names)
        return replace(self, figures=figures, missing=missing)

    def get(self, name: str) -> float | None:
        """The value of a metric, None where there is none."""
        figure = self.figures.get(name)
        return figure.value if figure else None


def read(text: str) -> list[ProfiledLaunch]:
    """The launches in their order; none where nothing was profiled."""
    rows = csv.reader(line for line in text.splitlines() if not line.lstrip().startswith("=="))
    header = next((row for row in rows if KERNEL in row), None)
    units = next(rows, None) if header else None
    if header is None or units is None:
        return []
    # Without the row of units, which older versions leave out on this page.
    first = [] if _is_units(header, units) else [units]
    unit_of = dict(zip(header, units, strict=False)) if not first else {}
    return [_launch(header, row, unit_of) for row in (*first, *_keep_whole(header, rows))]


def number(text: str) -> float | None:
    """A value as ncu writes it; None for what is none."""
    plain = text.replace("(!)", "").replace(",", "").strip()
    try:
        value = float(plain)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _keep_whole(header: list[str], rows: Iterator[list[str]]) -> Iterator[list[str]]:
    return (row for row in rows if len(row) == len(header))


def _is_units(header: list[str], row: list[str]) -> bool:
    """Whether this is the row of units: it names no kernel."""
    return len(row) == len(header) and not row[header.index(KERNEL)].strip()


def _launch(header: list[str], row: list[str], units: Mapping[str, str]) -> ProfiledLaunch:
    cells = dict(zip(header, row, strict=False))
    figures, missing = {}, []
    for name, text in cells.items():
        if name in _FACTS:
            continue
        value = number(text)
        if value is None:
            missing.append(name)
        else:
            figures[name] = NcuValue(value, units.get(name, ""))
    return ProfiledLaunch(
        cells[KERNEL], cells.get(_GRID, ""), cells.get(_BLOCK, ""), figures, tuple(missing)
    )
