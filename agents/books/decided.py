# SPDX-License-Identifier: Apache-2.0
"""The decisions of a campaign so far, found by place, by kind and by round without a search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

from ...traces.decisions import AnyDecision
from ...traces.events import Decided
from ...traces.place import Place

D = TypeVar("D", bound=AnyDecision)


class Decisions:
    """An index: `add` every decision in order."""

    def __init__(self) -> None:
        self._by_kind: dict[type[AnyDecision], dict[Place, AnyDecision]] = {}
        self._by_round: dict[tuple[type[AnyDecision], int | None], dict[Place, AnyDecision]] = {}

    def add(self, decided: Decided) -> None:
        """Takes in one; a later one of the same kind at the same place replaces it."""
        kind, place = type(decided.decision), decided.place
        self._by_kind.setdefault(kind, {})[place] = decided.decision
        self._by_round.setdefault((kind, place.round), {})[place] = decided.decision

    def at(self, place: Place, kind: type[D]) -> D | None:
        """What of this kind was decided at a place."""
        return cast("D | None", self._by_kind.get(kind, {}).get(place))

    def get_all(self, kind: type[D]) -> Mapping[Place, D]:
        """All of a kind by their places, oldest first."""
        return cast("Mapping[Place, D]", self._by_kind.get(kind, {}))

    def in_round(self, number: int, kind: type[D]) -> dict[int, D]:
        """Those of a kind at the places of a round's proposals, by slot."""
        found = self._by_round.get((kind, number), {}).items()
        by_slot = {place.numbers[1]: each for place, each in found if place.is_slot}
        return cast("dict[int, D]", dict(sorted(by_slot.items())))
