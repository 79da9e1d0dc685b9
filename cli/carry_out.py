# SPDX-License-Identifier: Apache-2.0
"""Shows the plan of a campaign, runs it and hears Ctrl-C.

What a campaign is and how it begins is decided in `workbench/jobs.py`, as for whoever calls
`optimize`; this file holds the terminal's end of the strings.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from ..agents.stop import Stop
from ..errors import ExitCode
from ..verifier.clock.turns import find_other
from ..verifier.process.client import RefereeProcess, open_referee
from ..workbench.home import Campaign, Home
from ..workbench.jobs import Job, Ready, make_ready
from . import planning
from .progress import ProgressLines

if TYPE_CHECKING:
    from rich.console import Console

    from ..running import CampaignResult
    from .shapes import Plan


@dataclass(frozen=True)
class RunOutcome:
    """What a run left behind; a dry run has only a plan."""

    plan: Plan
    campaign: Campaign | None = None
    result: CampaignResult | None = None
    is_interrupted: bool = False


def carry_out(job: Job, prose: Console, *, is_dry: bool, tail: str = "") -> RunOutcome:
    """Prints the plan and, unless it is a dry run, carries it out.

    Args:
        tail: `--home …` where a command that goes on with the campaign needs it.
    """
    with remembered_presses() as pressed, make_ready(job, is_dry=is_dry) as ready:
        prose.print("starting the referee and trying the sandbox …")
        with open_referee(ready.settled.task) as referee:
            plan = planning.show_plan(ready, referee, prose)
            if is_dry:
                plan["first_call"] = planning.show_foreseen(ready, referee, prose)
                return RunOutcome(plan)
            if pressed:
                raise KeyboardInterrupt
            stop = Stop()
            result = _run(ready, referee, stop, prose, tail)
            campaign = Home(job.config.home)[result.campaign]
            return RunOutcome(plan, campaign, result, is_interrupted=stop.requested)


def _run(
    ready: Ready, referee: RefereeProcess, stop: Stop, prose: Console, tail: str
) -> CampaignResult:
    watched = ProgressLines(
        prose,
        ready.settled.limits,
        ready.list_events(),
        find_other=partial(find_other, Path(ready.settled.task.timing_lock)),
    )
    with (
        watched as progress,
        interrupts(stop, progress, referee.kill, lambda: _resume_line(progress, tail)),
    ):
        return ready.run(referee, stop=stop, on_event=progress.on_event)


def _resume_line(progress: ProgressLines, tail: str) -> str:
    resume = f"kernelwright run --resume {progress.campaign} {tail}".rstrip()
    return f"resume   {resume}" if progress.campaign else ""


@contextmanager
def remembered_presses() -> Iterator[list[int]]:
    """The Ctrl-C since then: an exception that one raises is lost where a finalizer runs."""
    pressed: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        del frame
        pressed.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def interrupts(
    stop: Stop, progress: ProgressLines, kill: Callable[[], None], goes_on: Callable[[], str]
) -> Iterator[None]:
    """The first Ctrl-C asks for an end in order; the second ends everything at once.

    Nothing is lost by that: all that was found is recorded, and what was cut off is done again.

    Args:
        kill: ends the referee and what runs below it.
        goes_on: how the user goes on later, in a line.
    """

    def hear(number: int, frame: FrameType | None) -> None:
        del number, frame
        if stop.requested:
            kill()
            progress.abandon(f"stopped at once; what was running is done again\n{goes_on()}")
            # Threads that wait for a model or for the store would keep an orderly end waiting.
            os._exit(int(ExitCode.INTERRUPTED))
        stop.request()
        progress.stopping()

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
