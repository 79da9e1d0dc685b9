# SPDX-License-Identifier: Apache-2.0
"""The populations of `evolve`: several islands, each with the best of every niche.

A pure fold over births, generation by generation: the same births give the same islands, guests
and parents. It knows ids, niches and scores; it knows no source, no store and no model.

Each island has its own niches, so that the same niche may hold different elites on two islands. A
migrant is a copy: it stands beside the island's own members as a guest, never displaces one, and
does not count as born there.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from . import niches
from .archive import Archive, Elite

STEEPNESS = 10.0
"""Of the sigmoid over scores (ShinkaEvolve)."""

EMPTY_NEIGHBOUR = 0.5
"""Bonus of a parent whose cell borders on one that nobody holds."""

MIGRANTS = 0.1
"""Share of an island's members that is copied to the next one; one at least."""


class Birth(NamedTuple):
    """One candidate that was evaluated."""

    candidate: str
    generation: int
    island: int
    niche: str
    score: float | None
    """None: it was not right."""
    parents: tuple[str, ...] = ()


class Island:
    """One population: its own members, and copies of others'."""

    def __init__(self, kept_per_niche: int) -> None:
        self.own = Archive(kept_per_niche)
        self.guests = Archive(1)

    @property
    def members(self) -> tuple[Elite, ...]:
        """Everybody, best first."""
        both = {e.candidate: e for e in (*self.guests.elites(), *self.own.elites())}
        return tuple(sorted(both.values(), key=lambda e: (-e.score, e.candidate)))

    @property
    def cells(self) -> dict[str, Elite]:
        """The best member of each niche, the best niche first."""
        best: dict[str, Elite] = {}
        for elite in self.members:
            best.setdefault(elite.niche, elite)
        return best

    def migrants(self) -> tuple[Elite, ...]:
        """Who is copied to the next island."""
        own = self.own.elites()
        return own[: max(1, math.ceil(MIGRANTS * len(own)))] if own else ()


class Islands:
    """The fold. Give it every generation in order; read the rest."""

    def __init__(self, count: int, *, kept_per_niche: int, every: int) -> None:
        self._every = every
        self.islands = tuple(Island(kept_per_niche) for _ in range(count))
        self.scores: dict[str, float | None] = {}
        self.children: dict[str, int] = {}

    def generation(self, number: int, births: Iterable[Birth]) -> None:
        """Takes in what was born in a generation, then lets members migrate if it is time."""
        for birth in births:
            self.scores[birth.candidate] = birth.score
            self.islands[birth.island].own.add(birth.candidate, birth.niche, birth.score)
            for parent in birth.parents:
                self.children[parent] = self.children.get(parent, 0) + 1
        if self._every and (number + 1) % self._every == 0 and len(self.islands) > 1:
            self._migrate()

    def _migrate(self) -> None:
        """Around the ring, all at once: nobody travels two islands far."""
        leaving = [island.migrants() for island in self.islands]
        for number, migrants in enumerate(leaving):
            there = self.islands[(number + 1) % len(self.islands)].guests
            for elite in migrants:
                there.add(elite.candidate, elite.niche, self.scores[elite.candidate])

    def parent(self, island: int, rng: random.Random) -> str:
        """One to change; "" where the island has nobody yet."""
        members = self.islands[island].members
        if not members:
            return ""
        held = {elite.niche for elite in members}
        weights = weigh(members, self.children)
        borders = [1 + EMPTY_NEIGHBOUR * _has_empty_neighbour(e.niche, held) for e in members]
        chances = [weight * border for weight, border in zip(weights, borders, strict=True)]
        return rng.choices([e.candidate for e in members], chances)[0]

    def list_others(self, island: int, parent: str, most: int) -> tuple[str, ...]:
        """The best of other cells than the parent's, slow to fast."""
        cells = self.islands[island].cells
        own = next((e.niche for e in self.islands[island].members if e.candidate == parent), "")
        best = [e for name, e in cells.items() if name != own and e.candidate != parent][:most]
        return tuple(e.candidate for e in reversed(best))

    def score(self, candidate: str) -> float:
        """What ranks the member."""
        every = (e for island in self.islands for e in island.members)
        return next((e.score for e in every if e.candidate == candidate), 0.0)

    def describe_elites(self) -> list[dict[str, str]]:
        """Each island's niches with their elites, for the record."""
        return [{name: e.candidate for name, e in island.cells.items()} for island in self.islands]


def weigh(members: Sequence[Elite], children: Mapping[str, int]) -> list[float]:
    """Chances by score against the others, less for those that have many children already.

    sigmoid(10 (score - median) / MAD) / (1 + children), after ShinkaEvolve.
    """
    scores = [elite.score for elite in members]
    median = statistics.median(scores)
    spread = statistics.median(abs(score - median) for score in scores) or 1e-9

    def chance(elite: Elite) -> float:
        steep = max(-50.0, min(50.0, STEEPNESS * (elite.score - median) / spread))
        return 1.0 / (1.0 + math.exp(-steep)) / (1 + children.get(elite.candidate, 0))

    return [chance(elite) for elite in members]


def _has_empty_neighbour(name: str, held: set[str]) -> bool:
    cell = niches.parse(name)
    return any(near.name not in held for near in niches.neighbours(cell))
