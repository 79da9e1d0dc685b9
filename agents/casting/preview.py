# SPDX-License-Identifier: Apache-2.0
"""What a campaign would ask first and could cost at most: nothing is sent, nothing is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from ...traces.events import CampaignStarted
from ...traces.place import Place
from ...verifier.request import Referee
from ..books.asking import Asker, Asking
from ..model import Ask, CostBound
from ..roles import Situation
from ..workflows.workflow import find_workflow
from .cast import Players

TURNS = 2
"""A reply that cannot be used is asked for once again."""


@dataclass(frozen=True)
class Preview:
    """What is known before the first call."""

    ask: Ask
    """The first question to the Coder's model."""
    bound: CostBound
    """The most that this one call may cost."""
    calls: int
    """How many the workflow makes at most, failed attempts aside."""

    @property
    def usd(self) -> float | None:
        """All calls at the price of the first; None where that is unknown."""
        return None if self.bound.usd is None else self.calls * self.bound.usd


class _Overheard(Exception):
    def __init__(self, ask: Ask) -> None:
        super().__init__("overheard")
        self.ask = ask


class _Eavesdropper(Asker):
    """Stands in for the Asker and hears what would be asked."""

    def __init__(self, name: str, started: CampaignStarted) -> None:
        self.model_name = name
        self._started = started

    @property
    def started(self) -> CampaignStarted:
        return self._started

    def ask(self, ask: Ask, place: Place) -> NoReturn:
        del place
        raise _Overheard(ask)


def preview(
    players: Players, started: CampaignStarted, referee: Referee, source: str = ""
) -> Preview | None:
    """The first question and its bound; None where the Coder asks no model.

    Args:
        source: The foreign source that the campaign begins from.
    """
    if not isinstance(players.coder, Asking):
        return None
    model = players.coder.model
    coder = players.coder.make(_Eavesdropper(model.name, started))
    situation = Situation(
        problem=players.problem,
        target=started.target,
        language=started.language,
        facts=referee.facts,
        round=0,
        seed=started.seed,
        assignment=find_workflow(started.workflow).rules.first(players.problem, started, source),
    )
    try:
        coder.propose(situation)
    except _Overheard as overheard:
        return Preview(overheard.ask, model.bound(overheard.ask), _calls(players, started))
    return None


def _calls(players: Players, started: CampaignStarted) -> int:
    rules = find_workflow(started.workflow).rules
    most = rules.questions(rules.settings.model_validate(started.options), started.rounds)
    judge = most.judge if isinstance(players.judge, Asking) else 0
    return TURNS * (most.coder + judge + (most.aids if players.aids else 0))
