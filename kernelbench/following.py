# SPDX-License-Identifier: Apache-2.0
"""Structures of which some sizes and index arrays follow from a drawn pattern: a second pattern,
and that of a product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum

import numpy as np

from .problem import Structure, Variations, Workload
from .tried import Tried


class Drawn(StrEnum):
    """What a structure is drawn for."""

    ASKED = "asked"
    """It is a workload's, and as dear as it is."""
    HIDDEN = "hidden"
    BULK = "bulk"


Follow = Callable[[Structure, Drawn], Structure | None]
"""A structure with what follows from it; None where a hidden one would be too dear."""
Bulk = Callable[[Structure, np.random.Generator], Iterator[Structure]]


def follow_workload(
    structure: Callable[[Workload], Structure], follow: Follow
) -> Callable[[Workload], Structure]:
    """The `structure` of a problem, with what follows."""

    def make(workload: Workload) -> Structure:
        made = follow(structure(workload), Drawn.ASKED)
        assert made is not None, "a workload is as dear as it is"
        return made

    return make


def follow_variations(variations: Variations, follow: Follow) -> Variations:
    """The hidden shapes of a problem, with what follows; without those that are too dear."""

    def vary(
        structure: Structure, rng: np.random.Generator, tried: Tried | None = None
    ) -> Iterator[Structure]:
        return _follow_each(variations(structure, rng, tried), follow, Drawn.HIDDEN)

    return vary


def follow_bulk(bulk: Bulk, follow: Follow) -> Bulk:
    """The same of large ones."""
    return lambda structure, rng: _follow_each(bulk(structure, rng), follow, Drawn.BULK)


def _follow_each(drawn: Iterator[Structure], follow: Follow, what: Drawn) -> Iterator[Structure]:
    return (made for each in drawn if (made := follow(each, what)) is not None)
