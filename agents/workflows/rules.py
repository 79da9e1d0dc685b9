# SPDX-License-Identifier: Apache-2.0
"""What the module of a workflow brings: what may be set, what is asked, and how it is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ...errors import UsageError
from ...kernelbench.problem import Problem
from ...sandbox.host_plan.convert import is_published_form
from ...traces.events import CampaignStarted
from ...traces.place import Place
from ...traces.records import Record
from ..books.request import CampaignRequest
from ..offered import OFFLINE
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


def take_own_kernel(request: CampaignRequest) -> None:
    """The check of a workflow that may begin from the user's own kernel (own_start.py).

    Raises:
        UsageError: no launch plan could be written for it, and nobody is there to write one.
    """
    if is_published_form(request.source) and request.model in OFFLINE:
        raise UsageError(
            "the source launches its kernels from host code that no launch plan could be written "
            "from",
            hint="write the plan (docs/launch-plans.md), or have it written: --model openai/NAME",
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
    check: Callable[[CampaignRequest], None] = take_own_kernel
    """Raises UsageError for a request that it cannot serve."""
