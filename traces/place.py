# SPDX-License-Identifier: Apache-2.0
"""Where in a workflow something is asked, decided or proposed: the one reader and writer of places.

A place is stored as `round/slot/purpose/turn`, of which the end may be missing. What is done for a
whole round has a word instead of a number for its slot (`3/plan`), and what is done for the whole
campaign has no round (`source`, `hand-over`): that is neither before nor after any round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

_NUMBER = r"0|[1-9][0-9]{0,8}"
_FORM = re.compile(
    rf"(?:(?P<round>{_NUMBER})(?:/|$))?(?P<slot>[^/]*)"
    rf"(?:/(?P<purpose>[^/]+)(?:(?:/(?P<vote>{_NUMBER}))?/(?P<turn>{_NUMBER}))?)?"
)


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a campaign's workflow; without anything it is nowhere, and false."""

    round: int | None = None
    """None: of the campaign as a whole."""
    slot: int | str | None = None
    """One of the round's proposals, or the name of what is done once for all of them."""
    purpose: str = ""
    """What a model is asked there for."""
    turn: int | None = None
    """Which question for that purpose it is."""
    vote: int | None = None
    """Where several answers to the same question are wanted: which; it stands before the turn."""

    def __post_init__(self) -> None:
        if self.round is None and isinstance(self.slot, int):
            raise ValueError(f"slot {self.slot} is of no round")
        if self.turn is not None and not self.purpose:
            raise ValueError(f"turn {self.turn} is for no purpose")
        if self.vote is not None and self.turn is None:
            raise ValueError(f"vote {self.vote} is of no turn")

    @classmethod
    def parse(cls, text: str) -> Place:
        """Reads what `str` writes; any other text is the name of a place of the whole campaign."""
        return _parse(text)

    def __str__(self) -> str:
        slot = "" if self.slot is None and self.purpose else self.slot
        parts = (self.round, slot, self.purpose or None, self.vote, self.turn)
        return "/".join(str(part) for part in parts if part is not None)

    def __bool__(self) -> bool:
        return self != NOWHERE

    @property
    def is_slot(self) -> bool:
        """Whether it is of one proposal of a round."""
        return isinstance(self.slot, int)

    @property
    def numbers(self) -> tuple[int, int]:
        """Round and slot. ValueError where it is not of one proposal of a round."""
        if self.round is None or not isinstance(self.slot, int):
            raise ValueError(f"'{self}' is no place of a proposal in a round")
        return self.round, self.slot

    @property
    def step(self) -> Place:
        """The place that a question is asked for: round and slot."""
        return Place(self.round, self.slot)

    @property
    def whole_round(self) -> Place:
        """The round alone."""
        return Place(self.round)

    def is_of(self, number: int) -> bool:
        """Whether it is of one of this round's proposals."""
        return self.round == number and self.is_slot

    def is_before(self, number: int) -> bool:
        """Whether it is of an earlier round than this one."""
        return self.round is not None and self.round < number

    def is_since(self, number: int) -> bool:
        """Whether it is of this round or a later one."""
        return self.round is not None and self.round >= number

    def for_purpose(self, purpose: str) -> Place:
        """Where a model is asked for this purpose here."""
        return replace(self.step, purpose=str(purpose))

    def for_vote(self, vote: int) -> Place:
        """Where one of several answers is asked for."""
        return replace(self, vote=vote, turn=0)

    def at_turn(self, turn: int) -> Place:
        """The same question, as this turn of it."""
        return replace(self, turn=turn)

    def is_same_question(self, other: Place) -> bool:
        """Whether both are of one question, in whatever turn."""
        return (self.step, self.purpose, self.vote) == (other.step, other.purpose, other.vote)


NOWHERE = Place()


@lru_cache(maxsize=4096)
def _parse(text: str) -> Place:
    """Remembered: each place stands in many records."""
    form = _FORM.fullmatch(text)
    if form is None:
        return Place(slot=text or None)
    number, slot = form["round"], form["slot"]
    is_number = number is not None and re.fullmatch(_NUMBER, slot)
    found = Place(
        None if number is None else int(number),
        int(slot) if is_number else slot or None,
        form["purpose"] or "",
        *(None if digits is None else int(digits) for digits in (form["turn"], form["vote"])),
    )
    return found if str(found) == text else Place(slot=text)


def in_round(number: int, items: Iterable[tuple[Place, str]]) -> list[str]:
    """What stands at the places of a round's proposals, by slot."""
    found = sorted((place.numbers, item) for place, item in items if place.is_of(number))
    return [item for _, item in found]


def _read(value: object) -> Place:
    if isinstance(value, Place):
        return value
    if not isinstance(value, str):
        raise ValueError(f"a place is written as text, not as {type(value).__name__}")
    return Place.parse(value)


StoredPlace = Annotated[
    Place,
    PlainValidator(_read),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string"}),
]
"""A place as a field of a record, which keeps the text."""
