"""What a person sees while a campaign runs: one live panel on a terminal, else one line a verdict.

It is fed the campaign's events after they were stored and decides nothing.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ..config import format_duration
from ..traces.events import (
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
from ..traces.records import Status, Verdict
from . import verdicts

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live

RECENT = 5


class Progress:
    """Follows one campaign on stderr."""

    def __init__(self, console: Console, limits: dict[str, float]) -> None:
        self._console = console
        self._limits = limits
        self._began = time.monotonic()
        self._numbers: dict[str, int] = {}
        self._counts: Counter[Status] = Counter()
        self._judged: set[str] = set()
        self._recent: deque[tuple[int, Verdict]] = deque(maxlen=RECENT)
        self._champion = ""
        self._doing = "starting"
        self._live: Live | None = None

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
        match event.payload:
            case CandidateProposed(candidate=candidate, number=number, family=family):
                self._numbers[candidate] = number
                self._doing = f"building #{number} {family}"
            case ModelRequested(model=model, purpose=purpose):
                self._doing = f"asking {model} ({purpose})"
            case ModelReplied(overran=True, tokens=tokens):
                self._say(f"a call took {tokens:,} tokens, more than was reserved", "yellow")
            case ModelFailed(fault=fault, reason=reason, retry_in_s=pause_s):
                then = "" if pause_s is None else f"; again in {format_duration(pause_s)}"
                self._say(f"no answer: {fault}: {reason}{then}", "yellow")
            case CandidateMissing(outcome=outcome, reason=reason):
                self._say(f"no candidate: {outcome}: {reason}", "yellow")
            case EvaluationStarted(candidate=candidate, protocol=protocol):
                self._doing = f"{protocol} of #{self._numbers.get(candidate, 0)}"
            case EvaluationFinished(verdict=verdict):
                self._take(verdict)
            case ChampionChanged(candidate=candidate, credited=credited):
                number = self._numbers.get(candidate, 0)
                self._champion = f"#{number}, credited {credited:.2f}×"
                self._say(f"new champion: {self._champion}", "bold green")

    def note(self, text: str) -> None:
        """A word to the user in between."""
        self._console.print(text, markup=False)

    def _take(self, verdict: Verdict) -> None:
        number = self._numbers.get(verdict.candidate, 0)
        self._judged.add(verdict.candidate)
        self._counts[verdict.status] += 1
        self._recent.append((number, verdict))
        self._say(
            f"#{number:<4} {verdict.protocol:8}{verdict.label:14} {verdicts.brief(verdict)}",
            verdicts.style_of(verdict.status),
        )
        if verdict.champion is not None:
            self._fall(verdict.champion)

    def _fall(self, verdict: Verdict) -> None:
        self._champion = ""
        number = self._numbers.get(verdict.candidate, 0)
        why = f"{verdict.status}: {verdicts.brief(verdict)}"
        self._say(f"champion no more: #{number} {why}", "bold red")

    def _say(self, line: str, style: str) -> None:
        if self._live is None:
            self._console.print(line, style=style, markup=False, soft_wrap=True)

    def _panel(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        spent = time.monotonic() - self._began
        budget = [
            f"{format_duration(max(1, round(spent)))} {_of(self._limits.get('seconds'))}".strip()
        ]
        limit = self._limits.get("evaluations")
        budget.append(f"{len(self._judged)}{f' of {limit:.0f}' if limit else ''} evaluated")
        budget.append(f"champion {self._champion or '-'}")
        lines = [Text("  ".join((*budget, self._doing)), style="bold")]
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


def _of(seconds: float | None) -> str:
    return f"of {format_duration(seconds)}" if seconds else ""
