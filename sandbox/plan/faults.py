# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a launch plan: a value that is handed back, never an error of ours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ...errors import UnknownNameError
from ..front_matter import FilePlace

SHOWN = 60
"""Characters of a candidate's own words that a reason repeats."""
REASON_CHARACTERS = 800


class PlanFaultKind(StrEnum):
    """What kind of wrong it is, for the verdict's status."""

    MISTAKE = "mistake"
    """The plan is wrong on every target."""
    LIMIT = "limit"
    """It asks for more than the target has, or than we lend."""
    UNSUPPORTED = "unsupported"
    """The target lacks what it asks for; another one may have it."""


@dataclass(frozen=True)
class PlanFault:
    """Why a plan cannot be used, in one sentence that says what to change."""

    reason: str
    line: int = 1
    column: int = 1
    """Of the candidate's file, counted from 1."""
    kind: PlanFaultKind = PlanFaultKind.MISTAKE

    @property
    def sentence(self) -> str:
        """The reason with its place, as builders write theirs."""
        return f"error at line {self.line}:{self.column}: {self.reason}"


class PlanRefusedError(Exception):
    """Carries a fault from where it is seen to the functions that hand it back."""

    def __init__(
        self, reason: str, place: FilePlace, kind: PlanFaultKind = PlanFaultKind.MISTAKE
    ) -> None:
        super().__init__(reason)
        self.fault = fault_at(reason, place, kind)


def fault_at(
    reason: str, place: FilePlace, kind: PlanFaultKind = PlanFaultKind.MISTAKE
) -> PlanFault:
    """The fault with its reason made fit to be shown: a candidate's words are in it."""
    return PlanFault(_make_printable(reason)[:REASON_CHARACTERS], place.line, place.column, kind)


def quote(value: object) -> str:
    """A candidate's value in quotes: printable, on one line, short."""
    text = _make_printable(str(value))
    return f"'{text}'" if len(text) <= SHOWN else f"'{text[:SHOWN]}…'"


def _make_printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


def explain_missing(kind: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that there is not, with its nearest matches or all there are."""
    error = UnknownNameError.for_name(kind, quote(name)[1:-1], known)
    return f"{error}; {error.hint}"
