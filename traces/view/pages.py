# SPDX-License-Identifier: Apache-2.0
"""What each page shows of a campaign: states, funnels, lineages. Knows no HTML and no HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import KernelwrightError
from ..fold import Entry
from ..head import Head
from ..records import Status
from ..sheet import Sheet
from ..states import CampaignState
from ..store import Store
from ..why import list_ancestors
from .code import CodeDifference, difference, highlight
from .machine_code import ShownCode, list_hot_lines, show_code

LOG_SHOWN = 60_000

NOT_BUILT = (Status.BUILD_FAILED, Status.UNSUPPORTED, Status.HARNESS_ERROR)
NOT_RUN = (Status.CRASHED, Status.TIMED_OUT, Status.RESOURCE, Status.PROTOCOL_ERROR)


@dataclass(frozen=True)
class CampaignRow:
    """What stands above every page of a campaign."""

    head: Head
    state: CampaignState

    @property
    def id(self) -> str:
        """The name that every page takes."""
        return self.head.campaign

    @property
    def why_no_winner(self) -> str:
        """The sentence; empty where there is a winner, or may still be one."""
        return "" if self.state.word == "running" else self.head.why_no_winner


@dataclass(frozen=True)
class FunnelStep:
    """One step of the funnel."""

    name: str
    count: int
    share: float
    """Of what was proposed."""


def campaign_row(head: Head, *, is_running: bool) -> CampaignRow:
    """The campaign as it stands now."""
    return CampaignRow(head, head.state(is_running=is_running))


def funnel(head: Head) -> list[FunnelStep]:
    """How many candidates came how far."""

    def count(*without: Status) -> int:
        return sum(each for status, each in head.by_status.items() if status not in without)

    correct = sum(each for status, each in head.by_status.items() if status.is_pass)
    counts = {
        "proposed": head.proposed,
        "evaluated": head.evaluated,
        "built": count(*NOT_BUILT),
        "ran to the end": count(*NOT_BUILT, *NOT_RUN),
        "correct": correct,
        "verified and timed": head.by_status.get(Status.VERIFIED, 0),
        "faster than every baseline": head.faster,
    }
    whole = max(head.proposed, 1)
    return [FunnelStep(name, count, count / whole) for name, count in counts.items()]


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
    hot: tuple[ShownCode, ...]
    """The machine code of its hot loops."""
    hot_lines: frozenset[int]


def candidate_page(
    store: Store,
    sheet: Sheet,
    candidate: str,
    *,
    clean: Callable[[str], str] = lambda text: text,
) -> CandidatePage:
    """The candidate with its source, its change against its first parent and its family."""
    entry = sheet.read_whole([candidate])[candidate]
    source, missing = source_of(store, candidate, clean)
    parent = next(iter(sheet.entries.find(entry.parents).values()), None)
    change = None
    if parent and not missing:
        before, parent_missing = source_of(store, parent.candidate, clean)
        change = None if parent_missing else difference(before, source, entry.language)
    previous, following = sheet.find_neighbours(entry)
    log = entry.verdict.log if entry.verdict else ""
    hot = show_code(entry.verdict.profile if entry.verdict else None, source)
    return CandidatePage(
        entry=entry,
        source=source,
        lines=highlight(source, entry.language),
        parent=parent,
        change=change,
        ancestors=tuple(list_ancestors(sheet.entries, entry)),
        children=tuple(sheet.list_children(candidate)),
        previous=previous,
        following=following,
        log=log[-LOG_SHOWN:],
        log_left_out=max(len(log) - LOG_SHOWN, 0),
        missing=missing,
        hot=hot,
        hot_lines=list_hot_lines(hot),
    )


def source_of(store: Store, candidate: str, clean: Callable[[str], str] = str) -> tuple[str, str]:
    """The source, or why it cannot be shown."""
    try:
        return clean(store.get_blob(candidate).decode(errors="replace")), ""
    except KernelwrightError as error:
        return "", f"The source cannot be shown: {error}"
