# SPDX-License-Identifier: Apache-2.0
"""One model asked in one manner: `openai/NAME@temperature=0.9,effort=high`.

An ensemble of the same model in several manners is how temperature and effort are searched: its
bandit tells them apart by their names, and so does the record.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ...errors import UsageError
from ..model import Ask, CostBound, Model, Reply, TokenUsage

MOST_TEMPERATURE = 2.0
_MANNER = re.compile(r"@(?P<said>[a-z_]+=[^@,=]*(?:,[a-z_]+=[^@,=]*)*)\Z")
_EFFORT = re.compile(r"[a-z]{1,16}")


class Named(NamedTuple):
    """A model's own name and how it is to be asked."""

    name: str
    manner: dict[str, Any]
    """Fields of an Ask."""


def parse_name(text: str) -> Named:
    """Splits `NAME@temperature=0.9,effort=high`; a name without such an end is a name.

    Raises:
        UsageError: the end names something else, or a value that cannot be.
    """
    found = _MANNER.search(text)
    if found is None:
        return Named(text, {})
    pairs = [part.partition("=")[::2] for part in found["said"].split(",")]
    if len(dict(pairs)) != len(pairs):
        raise UsageError(f"'{text}' says one thing twice", hint="each of temperature, effort once")
    return Named(text[: found.start()], {name: _value(text, name, told) for name, told in pairs})


def _value(text: str, name: str, told: str) -> float | str:
    if name == "effort" and _EFFORT.fullmatch(told):
        return told
    if name == "temperature":
        try:
            value = float(told)
        except ValueError:
            value = -1.0
        if 0.0 <= value <= MOST_TEMPERATURE:
            return value
    raise UsageError(
        f"'{name}={told}' is no manner of asking a model, in '{text}'",
        hint=f"NAME@temperature=0…{MOST_TEMPERATURE:g},effort=low|medium|high",
    )


class MannerModel:
    """A Model that is asked in its manner wherever the question itself leaves it open."""

    def __init__(self, model: Model, name: str, manner: dict[str, Any]) -> None:
        self.name = name
        self.slots = model.slots
        self._model = model
        self._manner = manner

    def bound(self, ask: Ask) -> CostBound:
        """The most an attempt may cost."""
        return self._model.bound(self._with_manner(ask))

    def cost(self, usage: TokenUsage) -> float | None:
        """US dollars of a call; None where the price is unknown."""
        return self._model.cost(usage)

    def complete(self, ask: Ask) -> Reply:
        """One attempt."""
        return self._model.complete(self._with_manner(ask))

    @property
    def pause_s(self) -> float:
        """How long to wait before the next call."""
        return float(getattr(self._model, "pause_s", 0.0))

    def close(self) -> None:
        """Gives connections back. May be called twice."""
        self._model.close()

    def _with_manner(self, ask: Ask) -> Ask:
        is_open = {"temperature": ask.temperature is None, "effort": not ask.effort}
        return ask.model_copy(update={k: v for k, v in self._manner.items() if is_open[k]})
