# SPDX-License-Identifier: Apache-2.0
"""Several models, and a bandit that asks the one which improves most per dollar.

Which model answers at a place is a pure function of the outcomes told so far, the seed and the
place: nothing depends on arrival order or on a generator's position, so that a resumed campaign,
which tells the same outcomes, chooses the same models. The bandit is UCB1 on gain per unit of cost,
scaled to the best model's; a model that was never asked comes first.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Iterable, Sequence

from ...errors import UsageError
from ...traces.place import Place, StoredPlace
from ...traces.records import Record
from ..model import Ask, CostBound, Model, Reply, TokenUsage

EXPLORATION = 0.5
"""Weight of what is unknown. UCB1's own sqrt(2) is for rewards that fill [0, 1]; gains are rare."""

SPREAD = 0.15
"""Share of the places that are drawn without regard to success: the slots of one generation are
chosen before any of them has an outcome, and would all go to the same model."""

LEAST_USD = 1e-4
"""A call costs time, too: without a floor a free model would be infinitely good."""


class CallOutcome(Record):
    """What a call at one place came to."""

    place: StoredPlace
    """Unique within the campaign; a second outcome of a place replaces the first."""
    model: str
    gain: float
    """Credited improvement: ln(new / old) of the credited speed-up; 0 where there was none."""
    usd: float | None = None
    """None where the price is unknown; then tokens are compared, for all models alike."""
    tokens: int = 0


class ModelRecord(Record):
    """What is known of one model."""

    model: str
    calls: int = 0
    gain: float = 0.0
    cost: float = 0.0
    """US dollars, or millions of tokens where a price is unknown."""


def fold(models: Sequence[str], outcomes: Iterable[CallOutcome]) -> tuple[ModelRecord, ...]:
    """The state of the bandit: the same for the same outcomes in any order."""
    by_place = {outcome.place: outcome for outcome in outcomes if outcome.model in models}
    ordered = [by_place[place] for place in sorted(by_place, key=str)]
    is_priced = all(outcome.usd is not None for outcome in ordered)

    def arm(model: str) -> ModelRecord:
        own = [outcome for outcome in ordered if outcome.model == model]
        costs = [(o.usd or 0.0) if is_priced else o.tokens / 1e6 for o in own]
        return ModelRecord(
            model=model,
            calls=len(own),
            # fsum: the sum must not depend on the order.
            gain=math.fsum(max(0.0, outcome.gain) for outcome in own),
            cost=math.fsum(max(LEAST_USD, cost) for cost in costs),
        )

    return tuple(arm(model) for model in models)


def choose(arms: Sequence[ModelRecord], *, seed: int, place: Place) -> str:
    """The model to ask at `place`."""
    drawn = {arm.model: _draw(seed, place, arm.model) for arm in arms}
    unknown = [arm.model for arm in arms if not arm.calls]
    if unknown or _draw(seed, place, "") < SPREAD:
        return max(unknown or drawn, key=lambda model: drawn[model])
    calls = sum(arm.calls for arm in arms)
    rates = {arm.model: arm.gain / arm.cost for arm in arms}
    best = max(rates.values()) or 1.0

    def score(arm: ModelRecord) -> tuple[float, float]:
        doubt = EXPLORATION * math.sqrt(math.log(calls) / arm.calls)
        return rates[arm.model] / best + doubt, drawn[arm.model]

    return max(arms, key=score).model


def _draw(seed: int, place: Place, what: str) -> float:
    """A number in [0, 1) of seed and place alone."""
    digest = hashlib.sha256(f"{seed}\0{place}\0{what}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


class Ensemble:
    """Several models behind one name. `at` gives the one for a place; `tell` teaches."""

    def __init__(self, models: Sequence[Model], seed: int = 0) -> None:
        names = [model.name for model in models]
        if len(set(names)) != len(names) or len(names) < 2:
            raise UsageError(f"the ensemble {'+'.join(names)} needs two models or more, each once")
        self.name = "+".join(names)
        self.slots = max(model.slots for model in models)
        self.models = {model.name: model for model in models}
        self._seed = seed
        self._outcomes: dict[Place, CallOutcome] = {}
        self._lock = threading.Lock()

    @property
    def arms(self) -> tuple[ModelRecord, ...]:
        """The bandit's state."""
        with self._lock:
            return fold(tuple(self.models), self._outcomes.values())

    def with_seed(self, seed: int) -> Ensemble:
        """The same models for a campaign of this seed."""
        return Ensemble(tuple(self.models.values()), seed)

    def tell(self, outcome: CallOutcome) -> None:
        """Takes in what a call came to; once or again, it is the same."""
        with self._lock:
            self._outcomes[outcome.place] = outcome

    def at(self, place: Place) -> Model:
        """The model to ask at `place`."""
        return self.models[choose(self.arms, seed=self._seed, place=place)]

    def bound(self, ask: Ask) -> CostBound:
        """The most an attempt may cost, whoever answers."""
        bounds = [model.bound(ask) for model in self.models.values()]
        prices = [bound.usd for bound in bounds]
        known = [usd for usd in prices if usd is not None]
        return CostBound(
            max(bound.tokens for bound in bounds),
            max(known) if len(known) == len(prices) else None,
        )

    def cost(self, usage: TokenUsage) -> float | None:
        """The most that any of them would take; `at(place).cost` tells a call's own."""
        costs = [model.cost(usage) for model in self.models.values()]
        known = [usd for usd in costs if usd is not None]
        return max(known) if len(known) == len(costs) else None

    def complete(self, ask: Ask) -> Reply:
        """One attempt of the model that the question itself falls to; prefer `at(place)`."""
        return self.at(Place(slot=ask.model_dump_json())).complete(ask)

    def close(self) -> None:
        """Closes them all."""
        for model in self.models.values():
            model.close()
