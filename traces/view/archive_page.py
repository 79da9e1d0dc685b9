# SPDX-License-Identifier: Apache-2.0
"""The page of what a search keeps: the elite of each niche of each island, after any generation,
and the best of each family. Knows no HTML and no HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...errors import UnknownNameError
from ..decisions import IslandsStood
from ..events import Decided
from ..fold import Entry
from ..index import REST, grade
from ..sheet import FamilyRow, Sheet

ARCHIVE = "archive"
"""The slot of a round's place at which islands are recorded."""


class NicheRow(NamedTuple):
    """A niche with its elite on each island."""

    niche: str
    elites: tuple[Entry | None, ...]


@dataclass(frozen=True)
class ArchivePage:
    """Everything that the page shows."""

    generations: tuple[int, ...]
    """Those after which islands were recorded; none where the workflow has no islands."""
    generation: int | None
    islands: int
    niches: tuple[NicheRow, ...]
    """Those with the best elites first."""
    families: tuple[tuple[FamilyRow, Entry], ...]
    """Each with its best."""


def archive_page(sheet: Sheet, generation: int | None = None) -> ArchivePage:
    """The page after one generation; None: after the last.

    Raises:
        UnknownNameError: nothing is recorded of that generation.
    """
    steps = {place.round: number for number, place in sheet.list_places(ARCHIVE)}
    generations = tuple(sorted(number for number in steps if number is not None))
    if generation is None and generations:
        generation = generations[-1]
    if generation is not None and generation not in steps:
        known = map(str, generations)
        raise UnknownNameError.for_name("generation", str(generation), known)
    islands = _read_islands(sheet, steps[generation]) if generation is not None else ()
    return ArchivePage(
        generations,
        generation,
        len(islands),
        tuple(_list_niches(sheet, islands)),
        tuple((row, sheet.entries[row.best]) for row in sheet.list_families()),
    )


def _read_islands(sheet: Sheet, number: int) -> tuple[dict[str, str], ...]:
    """What was recorded last at a place."""
    (step,) = sheet.list_steps(number - 1, 1)
    stood = [
        moment.decision
        for moment in step.moments
        if isinstance(moment, Decided) and isinstance(moment.decision, IslandsStood)
    ]
    return stood[-1].islands if stood else ()


def _list_niches(sheet: Sheet, islands: tuple[dict[str, str], ...]) -> list[NicheRow]:
    elites = sheet.entries.find(name for island in islands for name in island.values())
    rows = [
        NicheRow(niche, tuple(elites.get(island.get(niche, "")) for island in islands))
        for niche in dict.fromkeys(niche for island in islands for niche in island)
    ]
    return sorted(rows, key=_rank)


def _rank(row: NicheRow) -> tuple[int, float]:
    grades = (grade(elite.verdict) for elite in row.elites if elite)
    return min(grades, default=(REST, 0.0))
