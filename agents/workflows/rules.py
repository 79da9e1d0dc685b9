# SPDX-License-Identifier: Apache-2.0
"""What the module of a workflow brings: what may be set, what is asked, and how it is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ...errors import UsageError
from ...kernelbench.problem import Problem
from ...traces.events import CampaignStarted
from ...traces.place import Place
from ...traces.records import Record
from ..books.request import CampaignRequest
from ..roles import Assignment, Mode

if TYPE_CHECKING:
    from .loop import Loop

S = TypeVar("S", bound=Record)


class NoSettings(Record):
    """Of a workflow without any."""


class Questions(NamedTuple):
    """The most that a campaign asks of each brain; a useless reply is asked for once again."""

    coder: int
    judge: int = 0
    aids: int = 0


def refuse_source(request: CampaignRequest) -> None:
    """The check of a workflow that begins from nothing but the problem."""
    if request.source:
        raise UsageError(
            f"{request.workflow} takes no source to begin from", hint="--workflow transpile does"
        )


def write_first(problem: Problem, started: CampaignStarted, source: str) -> Assignment:
    """A first kernel, out of the problem alone."""
    del problem, started, source
    return Assignment(place=Place(0, 0), mode=Mode.WRITE)


@dataclass(frozen=True)
class Rules(Generic[S]):
    """All that whoever asks for, previews or runs a campaign needs to know of its workflow."""

    run: Callable[[Loop], str]
    """Runs the campaign on from where its events stand; says what stopped it."""
    settings: type[S]
    """What may be set."""
    questions: Callable[[S, int | None], Questions]
    """By settings, and by the rounds that the user set; None: the workflow's own number."""
    first: Callable[[Problem, CampaignStarted, str], Assignment] = write_first
    """What the first proposal is to be, as far as is known before anything ran; with the foreign
    source."""
    check: Callable[[CampaignRequest], None] = refuse_source
    """Raises UsageError for a request that it cannot serve."""
