# SPDX-License-Identifier: Apache-2.0
"""Knobs as a candidate's front matter declares them: numbers, and which others they may be.

`ROWS = 4` is a number, `ROWS = {value = 4, try = [2, 4, 8]}` one that may be another, and
`THREADS = "32 * ROWS"` follows from those above it. A build takes the values; who looks for better
ones takes the rest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..front_matter import FrontMatter, Path
from .expressions import FUNCTIONS, MAX_INTEGER, WORDS, Expression
from .faults import PlanRefusedError, explain_missing, quote
from .grammar import parse_expression

KNOBS = "knobs"
MOST_TRIED = 16
"""Values of one knob."""
MOST_POINTS = 4096
"""Combinations of all."""
_VALUE, _TRY = "value", "try"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)


@dataclass(frozen=True)
class DeclaredKnob:
    """One knob."""

    name: str
    value: int
    """As the file stands."""
    tried: tuple[int, ...] = ()
    """What it may be, its value among them, in order; empty: nothing else."""
    formula: Expression | None = None
    """What it follows from."""

    @property
    def path(self) -> Path:
        """Where its value stands in the front matter."""
        return (KNOBS, self.name, _VALUE) if self.tried else (KNOBS, self.name)


def read_knobs(matter: FrontMatter) -> tuple[DeclaredKnob, ...]:
    """All knobs of a front matter, in its order.

    Raises:
        PlanRefusedError: one cannot be, with its place.
    """
    table = matter.facts.get(KNOBS, {})
    if not isinstance(table, dict):
        raise _refusal_error(matter, f"[{KNOBS}] must be a table, not {quote(table)}", (KNOBS,))
    known: dict[str, DeclaredKnob] = {}
    for name, value in table.items():
        check_name(matter, name, (KNOBS, name))
        known[name] = _read(matter, name, value, {each.name: each.value for each in known.values()})
    points = math.prod(len(knob.tried) or 1 for knob in known.values())
    if points > MOST_POINTS:
        reason = f"the knobs have {points} combinations, at most {MOST_POINTS} are looked at"
        raise _refusal_error(matter, f"{reason}; try fewer values", (KNOBS,))
    return tuple(known.values())


def resolve_knobs(knobs: tuple[DeclaredKnob, ...], chosen: Mapping[str, int]) -> dict[str, int]:
    """The values of all knobs where some are chosen otherwise.

    Raises:
        PlanRefusedError: what follows from them cannot be computed.
    """
    values: dict[str, int] = {}
    for knob in knobs:
        follows = knob.formula.integer(values) if knob.formula else knob.value
        values[knob.name] = chosen.get(knob.name, follows)
    return values


def check_name(matter: FrontMatter, name: str, path: Path) -> None:
    """Refuses what cannot be a name in expressions. Raises PlanRefusedError."""
    if not _NAME.match(name) or name in FUNCTIONS or name in WORDS:
        raise PlanRefusedError(
            f"{quote(name)} cannot be a name: use letters, digits and _, no digit first, and "
            f"none of {', '.join([*FUNCTIONS, *sorted(WORDS)])}",
            matter.place(path, of_key=True),
        )


def _read(matter: FrontMatter, name: str, value: Any, above: Mapping[str, int]) -> DeclaredKnob:
    path = (KNOBS, name)
    if isinstance(value, str):
        return _follow(matter, name, value, above)
    if not isinstance(value, dict):
        return DeclaredKnob(name, _integer(matter, name, value, path))
    for key in value:
        if key not in (_VALUE, _TRY):
            reason = explain_missing("key", key, (_VALUE, _TRY))
            raise PlanRefusedError(reason, matter.place((*path, key), of_key=True))
    if _VALUE not in value or _TRY not in value:
        example = f"{name} = {{value = 4, try = [2, 4, 8]}}"
        raise _refusal_error(matter, f"the knob {quote(name)} needs both, as in {example}", path)
    now = _integer(matter, name, value[_VALUE], (*path, _VALUE))
    tried, where = value[_TRY], (*path, _TRY)
    if not isinstance(tried, list) or not 1 <= len(tried) <= MOST_TRIED:
        reason = f"try must be a list of 1 to {MOST_TRIED} integers, not {quote(tried)}"
        raise _refusal_error(matter, reason, where)
    others = {_integer(matter, name, each, (*where, at)) for at, each in enumerate(tried)}
    return DeclaredKnob(name, now, tuple(sorted({now, *others})))


def _follow(matter: FrontMatter, name: str, text: str, above: Mapping[str, int]) -> DeclaredKnob:
    path = (KNOBS, name)
    formula = parse_expression(text, lambda at: matter.place_inside(path, at))
    if not formula.names:  # a number in quotes
        _integer(matter, name, text, path)
    for used, at in formula.names:
        if used not in above:
            reason = explain_missing("knob above it", used, above)
            raise PlanRefusedError(reason, formula.place(at))
    return DeclaredKnob(name, formula.integer(above), formula=formula)


def _integer(matter: FrontMatter, name: str, value: object, path: Path) -> int:
    if type(value) is not int or abs(value) > MAX_INTEGER:
        raise _refusal_error(
            matter,
            f"the knob {quote(name)} is {quote(value)}; knobs are integers below 2^63",
            path,
        )
    return value


def _refusal_error(matter: FrontMatter, reason: str, path: Path) -> PlanRefusedError:
    return PlanRefusedError(reason, matter.place(path))
