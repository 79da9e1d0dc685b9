# SPDX-License-Identifier: Apache-2.0
"""What a person sees while a campaign runs: one live panel on a terminal, else one line a verdict.

It is fed the campaign's events after they were stored and decides nothing.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ..config import format_duration
from ..traces import wording
from ..traces.events import (
    CampaignPrepared,
    CampaignResumed,
    CampaignStarted,
    CandidateCounted,
    CandidateMissing,
    CandidateProposed,
    ChampionChanged,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    ModelFailed,
    ModelReplied,
    ModelRequested,
)
from ..traces.preparation import Preparation
from ..traces.records import Level, Status, Verdict
from ..traces.spending import Spending
from ..verifier.clock.turns import WAITED
from . import verdicts

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live

RECENT = 5
_SHOW_CURSOR = b"\x1b[?25h"


class ProgressLines:
    """Follows one campaign on stderr."""

    def __init__(
        self,
        console: Console,
        limits: dict[str, float],
        before: Iterable[Event] = (),
        clock: Callable[[], float] = time.monotonic,
        find_other: Callable[[], int] = lambda: 0,
    ) -> None:
        """Args:
        before: the events of a campaign that is taken up again.
        find_other: the process that times on this machine and is none of ours.
        """
        from ..agents.books.progress import Progress as WhereItStands

        before = list(before)
        self.campaign = before[0].campaign if before else ""
        """Its id, as soon as there is one."""
        self._console = console
        self._limits = limits
        self._clock = clock
        self._find_other = find_other
        self._spent_s = WhereItStands(before).spent_s
        self._counts_since: float | None = None
        """When the budget's clock began; None while the campaign is prepared."""
        self._numbers: dict[str, int] = {}
        self._judged: set[str] = set()
        self._counts: Counter[Status] = Counter()
        self._recent: deque[tuple[int, Verdict]] = deque(maxlen=RECENT)
        self._spending = Spending()
        self._champion = ""
        self._trouble = ""
        self._is_stopping = False
        self._live: Live | None = None
        self._begin_doing("preparing the baselines")
        for event in before:
            self._follow(event)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            from rich.live import Live

            self._live = Live(console=self._console, get_renderable=self._panel, transient=True)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def on_event(self, event: Event) -> None:
        """Takes one event of the campaign."""
        self._follow(event)
        self._tell(event)

    def stopping(self) -> None:
        """Somebody wants the end: says what is still waited for. Safe in a signal handler."""
        self._is_stopping = True
        if self._live is None:
            self._write(f"{self._ending()}\n".encode())

    def abandon(self, words: str) -> None:
        """The last words of a process that does not end in order. Safe in a signal handler."""
        cursor = _SHOW_CURSOR if self._live is not None else b""
        self._write(cursor + f"\n{words}\n".encode())

    def _write(self, words: bytes) -> None:
        """Past the console, whose lock another thread may hold."""
        os.write(self._console.file.fileno(), words)

    def _follow(self, event: Event) -> None:
        """Keeps what the panel shows."""
        self.campaign = event.campaign
        self._spending.apply(event)
        if self._counts_since is None:
            self._counts_since = self._clock()
        match event.payload:
            case CampaignStarted() | CampaignResumed():
                self._counts_since = None
                self._begin_doing("preparing the baselines")
            case CampaignPrepared():
                self._begin_doing("choosing what is tried first")
            case CandidateProposed(candidate=candidate, number=number, family=family):
                self._numbers[candidate] = number
                self._begin_doing(f"building #{number} {family}")
            case ModelRequested(model=model, purpose=purpose):
                self._begin_doing(f"asking {model} ({purpose})")
            case ModelReplied():
                self._trouble = ""
                self._begin_doing("reading the answer")
            case ModelFailed(retry_in_s=pause_s) as failed:
                self._trouble = _trouble(failed)
                if pause_s is not None:
                    self._begin_doing("waiting for the next attempt", pause_s)
            case EvaluationStarted(candidate=candidate, protocol=protocol):
                self._begin_doing(f"{protocol} of {self._number_of(candidate)}")
            case EvaluationFinished(verdict=verdict):
                self._take(verdict)
            case ChampionChanged(candidate=candidate, credited=credited):
                self._champion = f"{self._number_of(candidate)}, credited {wording.ratio(credited)}"

    def _take(self, verdict: Verdict) -> None:
        self._judged.add(verdict.candidate)
        self._counts[verdict.status] += 1
        self._recent.append((self._numbers.get(verdict.candidate, 0), verdict))
        self._begin_doing("choosing what is tried next")
        if verdict.champion is not None:
            self._champion = ""

    def _tell(self, event: Event) -> None:
        """Says it, where there is no panel."""
        match event.payload:
            case CampaignPrepared() as prepared:
                self._say(preparation(prepared), "dim")
                if expected := expectation(prepared):
                    self._say(expected, "dim")
            case ModelReplied(overran=True, tokens=tokens):
                taken = wording.tokens(tokens)
                self._say(f"a call took {taken} tokens, more than was reserved", "yellow")
            case ModelFailed() as failed:
                self._say(_trouble(failed), "yellow")
            case CandidateMissing(outcome=outcome, reason=reason):
                self._say(f"no candidate: {outcome}: {reason}", "yellow")
            case CandidateCounted() as counted:
                self._tell_counters(counted)
            case EvaluationFinished(verdict=verdict):
                self._tell_verdict(verdict)
            case ChampionChanged():
                self._say(f"new champion: {self._champion}", "bold green")

    def _tell_verdict(self, verdict: Verdict) -> None:
        number, waited_s = self._number_of(verdict.candidate), verdict.seconds.get(WAITED, 0.0)
        waited = f" (waited {_format_whole(waited_s)} for other timings)" if waited_s >= 1 else ""
        self._say(
            f"{number:<5} {verdict.protocol:8}{verdict.label:14} {verdicts.brief(verdict)}{waited}",
            verdicts.style_of(verdict.status),
        )
        if fallen := verdict.champion:
            why = f"{fallen.status}: {verdicts.brief(fallen)}"
            self._say(f"champion no more: {self._number_of(fallen.candidate)} {why}", "bold red")

    def _tell_counters(self, counted: CandidateCounted) -> None:
        number, took = self._number_of(counted.candidate), wording.duration(counted.took_s)
        if counted.profile is None:
            self._say(f"{number:<5} no hardware counters: {counted.reason}", "yellow")
        else:
            read = sum(metric.level is Level.MEASURED for metric in counted.profile.metrics)
            self._say(f"{number:<5} counted {read} figures of the hardware in {took}", "dim")

    def _number_of(self, candidate: str) -> str:
        return f"#{self._numbers.get(candidate, 0)}"

    def _begin_doing(self, what: str, for_s: float | None = None) -> None:
        """`for_s`: how long it will take, where that is known."""
        self._doing, self._since, self._for_s = what, self._clock(), for_s

    def _doing_now(self) -> str:
        """What it does, with a clock that moves."""
        took_s = self._clock() - self._since
        if self._for_s is not None:
            return f"{self._doing} in {_format_whole(self._for_s - took_s)}"
        if took_s < 1:
            return self._doing
        other = self._find_other()
        waits = f", waits for process {other}, which times on this machine" if other else ""
        return f"{self._doing}, {_format_whole(took_s)}{waits}"

    def _ending(self) -> str:
        return f"stopping after this: {self._doing_now()}; Ctrl-C again stops at once"

    def _say(self, line: str, style: str) -> None:
        if self._live is None:
            self._console.print(line, style=style, markup=False, soft_wrap=True)

    def _panel(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        lines = [Text("  ".join((*self._budget(), self._doing_now())), style="bold")]
        if self._trouble:
            lines.append(Text(f"  {self._trouble}", style="yellow", overflow="ellipsis"))
        if self._is_stopping:
            lines.append(Text(f"  {self._ending()}", style="bold yellow"))
        lines += [
            Text(
                f"  #{number:<4} {verdict.status:14} {verdicts.brief(verdict)}",
                style=verdicts.style_of(verdict.status),
                no_wrap=True,
                overflow="ellipsis",
            )
            for number, verdict in self._recent
        ]
        return Group(*lines)

    def _budget(self) -> list[str]:
        """What was spent, of what."""
        if self._counts_since is None:
            return ["not counted yet"]
        spent_s = self._spent_s + self._clock() - self._counts_since
        limit = self._limits.get("evaluations")
        parts = [
            f"{_format_whole(spent_s)} {_word_limit(self._limits.get('seconds'))}".strip(),
            f"{len(self._judged)}{f' of {limit:.0f}' if limit else ''} evaluated",
            f"champion {self._champion or '-'}",
        ]
        if self._spending.tokens:
            parts.append(self._tokens())
        return parts

    def _tokens(self) -> str:
        spent, limit = self._spending, self._limits.get("tokens")
        booked = (
            f" ({wording.tokens(spent.booked.tokens)} without an answer)"
            if spent.booked.tokens
            else ""
        )
        of = f" of {wording.tokens(limit)}" if limit else ""
        return f"{wording.tokens(spent.tokens)}{of} tokens{booked}"


def preparation(prepared: Preparation) -> str:
    """What it took until candidates could be judged, and what is left out, in a line."""
    parts = ", ".join(
        f"{name} {wording.duration(seconds)}" for name, seconds in prepared.seconds.items()
    )
    line = f"prepared in {wording.duration(prepared.total_s)}, outside the budget"
    line += f" ({parts})" if parts else ""
    missing = "; ".join(f"{name}: {why}" for name, why in prepared.missing.items())
    return f"{line}; left out: {missing}" if missing else line


def expectation(prepared: Preparation) -> str:
    """What baselines take and no kernel beats, in a line; empty where nothing is known."""
    told = [f"{name} {wording.micros(us)}" for name, us in prepared.baseline_us.items()]
    bounds = prepared.bounds
    if bounds is not None:
        how = f"modelled by {bounds.source}" if bounds.is_modelled else bounds.source
        told.append(f"floor {wording.micros(bounds.floor_us)} ({bounds.roof}; {how})")
        if bounds.gather_us > bounds.floor_us:
            told.append(f"gathers {wording.micros(bounds.gather_us)} ({bounds.gathers})")
    return f"before the first candidate: {', '.join(told)}" if told else ""


def _trouble(failed: ModelFailed) -> str:
    pause_s = failed.retry_in_s
    then = "" if pause_s is None else f"; again in {format_duration(pause_s)}"
    booked = f"; {wording.tokens(failed.tokens)} tokens are booked for it" if failed.tokens else ""
    return f"no answer: {failed.fault}: {failed.reason}{booked}{then}"


def _format_whole(seconds: float) -> str:
    return format_duration(max(1, round(seconds)))


def _word_limit(seconds: float | None) -> str:
    return f"of {format_duration(seconds)}" if seconds else ""
