# SPDX-License-Identifier: Apache-2.0
"""Which knobs decide and which do nothing, by the surrogate of all that was tried.

A functional analysis of variance (Hooker 2007; Hutter, Hoos and Leyton-Brown 2014, "An efficient
approach for assessing hyperparameter importance"): what the surrogate expects of every point of the
space is split by each knob, and a knob's share is the variance of the means of its values. Within a
family of recipes, since other families lack it. What is left is how knobs work together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...kernelbench.space import ABSENT, FAMILY, Space
from ...traces.records import KnobShare
from .expected_gain import ModelGuided
from .told import Told

LEAST_RIGHT = 10
"""Points that were right and timed; of fewer nothing is told."""


def weigh_knobs(space: Space, told: Sequence[Told], seed: int) -> tuple[KnobShare, ...]:
    """The knobs with more than one value, the one that decides most first; () of too few points."""
    if sum(each.value is not None for each in told) < LEAST_RIGHT:
        return ()
    search = ModelGuided(space, seed, at_random=0)
    search.tell(told)
    watched, expected = search.expect_all()
    total = float(expected.var())
    if total <= 0.0:
        return ()
    places = space.points[watched]
    names = [knob.name for knob in space.knobs]
    families = places[:, names.index(FAMILY)] if FAMILY in names else np.zeros(len(watched))
    shares = [
        _share(space, at, families if names[at] != FAMILY else None, places, expected, total)
        for at in range(len(names))
    ]
    found = (share for share in shares if share is not None)
    return tuple(sorted(found, key=lambda share: -share.share))


def _share(
    space: Space,
    at: int,
    families: np.ndarray | None,
    places: np.ndarray,
    expected: np.ndarray,
    total: float,
) -> KnobShare | None:
    """Of one knob, within each of the families; None where it never varies."""
    variance, effects = 0.0, np.zeros(len(space.knobs[at].values))
    counts = np.zeros(len(effects))
    for chosen in _groups(families, len(expected)):
        values, mean = places[chosen, at], expected[chosen].mean()
        for value in np.unique(values[values != ABSENT]):
            here = values == value
            effect = float(expected[chosen][here].mean() - mean)
            variance += here.sum() * effect**2
            effects[value] += here.sum() * effect
            counts[value] += here.sum()
    seen = np.flatnonzero(counts)
    if len(seen) < 2:
        return None
    means = effects[seen] / counts[seen]
    best, worst = seen[means.argmin()], seen[means.argmax()]
    knob = space.knobs[at]
    return KnobShare(
        knob=knob.name,
        share=variance / len(expected) / total,
        best=str(knob.values[best]),
        worst=str(knob.values[worst]),
        gain=float(np.expm1(means.max() - means.min())),
    )


def _groups(families: np.ndarray | None, count: int) -> Iterator[np.ndarray]:
    if families is None:
        yield np.ones(count, bool)
        return
    for family in np.unique(families):
        yield families == family
