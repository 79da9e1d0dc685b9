# SPDX-License-Identifier: Apache-2.0
"""What models learn of the record: a script where it stopped, an ensemble who was worth asking.

Both are folds over events, so that a resumed campaign asks on as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from ...traces.events import Event, ModelFailed, ModelReplied, ModelRequested
from ...traces.spending import OUTCOME_UNKNOWN
from ..model import Ask, Model
from ..models.ensemble import CallOutcome
from .ledger import Ledger


@runtime_checkable
class Recalling(Protocol):
    """A Model that plays its answers in an order."""

    def recall(self, ask: Ask) -> None:
        """Counts an answer as given that an earlier process got."""


@runtime_checkable
class Learning(Protocol):
    """A Model that chooses among others by what they brought."""

    def tell(self, outcome: CallOutcome) -> None:
        """Takes in what a call came to; once or again, it is the same."""


def recall(models: Iterable[Model], ledger: Ledger, events: Iterable[Event]) -> None:
    """Tells scripts which of their turns earlier processes were answered with."""
    scripts = {model.name: model for model in models if isinstance(model, Recalling)}
    asked: dict[str, ModelRequested] = {}
    for payload in (event.payload for event in events):
        if isinstance(payload, ModelRequested):
            asked[payload.call] = payload
        elif isinstance(payload, ModelReplied | ModelFailed):
            requested = asked[payload.call]
            was_heard = isinstance(payload, ModelReplied) or payload.fault != OUTCOME_UNKNOWN
            if was_heard and requested.model in scripts:
                scripts[requested.model].recall(ledger.read_ask(requested))


def teach(model: Model, ledger: Ledger) -> None:
    """Tells an ensemble what the calls came to whose places are done with.

    Calls of a place that is still open are left out: in which order they are answered must not
    decide who is asked next.
    """
    if not isinstance(model, Learning):
        return
    progress = ledger.progress
    for call in list(progress.spending.calls.values()):
        place = call.requested.place.step
        candidate = progress.placed.get(place, "")
        if call.replied and (candidate or place in progress.missing):
            model.tell(
                CallOutcome(
                    place=call.requested.place,
                    model=call.requested.model,
                    gain=progress.gains.get(candidate, 0.0),
                    usd=call.replied.usd,
                    tokens=call.replied.tokens,
                )
            )
