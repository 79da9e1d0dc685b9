# SPDX-License-Identifier: Apache-2.0
"""What each page shows, worked out from histories: rows, states, funnels, lineages.

Pure functions from the store's records to what templates print. Knows no HTML and no HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import KernelwrightError
from ..fold import Entry
from ..history import History
from ..outcome import how_sure, what_decides, why_no_winner
from ..records import Isolation, Speedup, Status, Verdict
from ..states import CampaignState, state_of
from ..store import Store
from ..why import list_ancestors
from .code import CodeDifference, difference, highlight

LOG_SHOWN = 60_000

NOT_BUILT = (Status.BUILD_FAILED, Status.UNSUPPORTED, Status.HARNESS_ERROR)
NOT_RUN = (Status.CRASHED, Status.TIMED_OUT, Status.RESOURCE, Status.PROTOCOL_ERROR)


@dataclass(frozen=True)
class CampaignRow:
    """One line of the list of campaigns."""

    id: str
    history: History
    state: CampaignState
    speedup: Speedup | None
    against: str
    is_estimated: bool = False
    """Some of what was spent on models was not told by a server."""

    @property
    def why_no_winner(self) -> str:
        """The sentence; empty where there is a winner, or may still be one."""
        return "" if self.state.word == "running" else why_no_winner(self.history)

    @property
    def how_sure(self) -> str:
        """That its winner is the fastest of its candidates."""
        return how_sure(self.history)

    @property
    def what_decides(self) -> str:
        """Which knobs of its recipes did."""
        return what_decides(self.history)

    @property
    def credited(self) -> float:
        """The credited speed-up of the champion; 0.0 without one."""
        return self.speedup.low if self.speedup else 0.0

    @property
    def modelled_us(self) -> float | None:
        """The shortest modelled time where nothing could be timed; it credits nothing."""
        leader = self.history.leader
        return leader.verdict.modelled_us if leader and leader.verdict else None


@dataclass(frozen=True)
class FunnelStep:
    """One step of the funnel."""

    name: str
    count: int
    share: float
    """Of what was proposed."""


def campaign_row(history: History, *, is_running: bool, is_estimated: bool = False) -> CampaignRow:
    """The campaign in one line."""
    best = history.best.verdict if history.best else None
    measurement = best.measurement if best and best.status is Status.VERIFIED else None
    return CampaignRow(
        id=history.campaign,
        history=history,
        state=state_of(
            history.campaign,
            history.started.workflow,
            history.evaluated,
            history.finished.stopped_by if history.finished else None,
            is_running=is_running,
        ),
        speedup=measurement.headline if measurement else None,
        against=measurement.best_baseline if measurement else "",
        is_estimated=is_estimated,
    )


Rank = tuple[float, float]

CANDIDATE_SORTS: dict[str, Callable[[Entry], float | str | Rank]] = {
    "number": lambda entry: entry.number,
    "speedup": lambda entry: _by_gain(entry.verdict),
    "status": lambda entry: entry.verdict.status if entry.verdict else "~",
    "family": lambda entry: entry.family,
}


def _by_gain(verdict: Verdict | None) -> Rank:
    """What is credited first, then what screenings estimate, then what is only modelled."""
    if verdict is None or not verdict.status.is_pass:
        return (4, 0.0)
    if verdict.credited is not None:
        return (0, -verdict.credited)
    if verdict.screen_estimate:
        return (1, -verdict.screen_estimate.median)
    return (2, verdict.modelled_us) if verdict.modelled_us else (3, 0.0)


def funnel(history: History) -> list[FunnelStep]:
    """How many candidates came how far."""
    entries = list(history.entries.values())
    verdicts = [entry.verdict for entry in entries if entry.verdict]
    built = [v for v in verdicts if v.status not in NOT_BUILT]
    ran = [v for v in built if v.status not in NOT_RUN]
    correct = [v for v in ran if v.status.is_pass]
    timed = [v for v in correct if v.status is Status.VERIFIED]
    counts = {
        "proposed": len(entries),
        "evaluated": len(verdicts),
        "built": len(built),
        "ran to the end": len(ran),
        "correct": len(correct),
        "verified and timed": len(timed),
        "faster than every baseline": sum((v.credited or 0.0) > 1.0 for v in timed),
    }
    whole = max(len(entries), 1)
    return [FunnelStep(name, count, count / whole) for name, count in counts.items()]


def isolation_of(history: History) -> Isolation | None:
    """The isolation matrix that the newest verdict carries."""
    return history.isolation


@dataclass(frozen=True)
class CandidatePage:
    """Everything the page of one candidate shows."""

    entry: Entry
    source: str
    lines: tuple[str, ...]
    parent: Entry | None
    change: CodeDifference | None
    ancestors: tuple[Entry, ...]
    children: tuple[Entry, ...]
    previous: Entry | None
    following: Entry | None
    log: str
    log_left_out: int
    missing: str
    """Why the source cannot be shown; empty where it can."""


def candidate_page(
    store: Store,
    history: History,
    candidate: str,
    *,
    clean: Callable[[str], str] = lambda text: text,
) -> CandidatePage:
    """The candidate with its source, its change against its first parent and its family."""
    entry = history.entries[candidate]
    source, missing = source_of(store, candidate, clean)
    parent = next((history.entries[p] for p in entry.parents if p in history.entries), None)
    change = None
    if parent and not missing:
        before, parent_missing = source_of(store, parent.candidate, clean)
        change = None if parent_missing else difference(before, source, entry.language)
    order = list(history.entries.values())
    place = order.index(entry)
    log = entry.verdict.log if entry.verdict else ""
    return CandidatePage(
        entry=entry,
        source=source,
        lines=highlight(source, entry.language),
        parent=parent,
        change=change,
        ancestors=tuple(list_ancestors(history, entry)),
        children=tuple(e for e in order if candidate in e.parents),
        previous=order[place - 1] if place else None,
        following=order[place + 1] if place + 1 < len(order) else None,
        log=log[-LOG_SHOWN:],
        log_left_out=max(len(log) - LOG_SHOWN, 0),
        missing=missing,
    )


def source_of(store: Store, candidate: str, clean: Callable[[str], str] = str) -> tuple[str, str]:
    """The source, or why it cannot be shown."""
    try:
        return clean(store.get_blob(candidate).decode(errors="replace")), ""
    except KernelwrightError as error:
        return "", f"The source cannot be shown: {error}"
