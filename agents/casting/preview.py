"""What a campaign would ask first and could cost at most: nothing is sent, nothing is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from ...traces.events import CampaignStarted
from ...traces.place import Place
from ...verifier.request import Referee
from ..books.asking import Asker, Asking
from ..model import Ask, Bound
from ..roles import Assignment, Mode, Situation
from .cast import Players

TURNS = 2
"""A reply that cannot be used is asked for once again."""

ROUNDS = 10
"""Of every workflow, unless told otherwise."""

_COUNTED = ("forge", "refine", "best_of_n")
_JUDGED = ("forge",)


@dataclass(frozen=True)
class Preview:
    """What is known before the first call."""

    ask: Ask
    """The first question to the Coder's model."""
    bound: Bound
    """The most that this one call may cost."""
    calls: int | None
    """How many the workflow may make, failed attempts aside; None: only the caps end it."""

    @property
    def usd(self) -> float | None:
        """All calls at the price of the first; None where price or number are unknown."""
        return None if self.calls is None or self.bound.usd is None else self.calls * self.bound.usd


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
        assignment=_first(players, started, source),
    )
    try:
        coder.propose(situation)
    except _Overheard as overheard:
        return Preview(overheard.ask, model.bound(overheard.ask), _calls(players, started))
    return None


def _first(players: Players, started: CampaignStarted, source: str) -> Assignment:
    if started.workflow == "transpile":
        from ..workflows.transpile import translation

        return translation(Place(0, 0), source)
    if started.workflow == "features":
        from ..workflows.features import first

        return first(players.problem, started.language, started.target, started.seed)
    return Assignment(place=Place(0, 0), mode=Mode.WRITE)


def _calls(players: Players, started: CampaignStarted) -> int | None:
    if started.workflow not in _COUNTED:
        return None
    rounds = started.rounds or ROUNDS
    judges = started.workflow in _JUDGED and isinstance(players.judge, Asking)
    return TURNS * (rounds + (rounds - 1 if judges else 0))
