# SPDX-License-Identifier: Apache-2.0
"""The list of campaigns: a row of each from its line in the store, sorted and searched.

Pure functions; what they show of a campaign is `documents.line_document`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..lines import Line
from ..records import Speedup, Status
from ..states import CampaignState


@dataclass(frozen=True)
class HomeRow:
    """One campaign in the list."""

    line: Line
    is_running: bool

    @property
    def id(self) -> str:
        """The name that every page takes."""
        return self.line.campaign

    @property
    def told(self) -> dict[str, Any]:
        """What is known of it."""
        return self.line.document

    @cached_property
    def state(self) -> CampaignState:
        """Whether it runs."""
        return self.line.state(is_running=self.is_running)

    @cached_property
    def speedup(self) -> Speedup | None:
        """The champion's, against the best baseline."""
        best = self.told["best"]
        found = best and best["speedup"].get(best["best_baseline"])
        is_sure = found and best["status"] == Status.VERIFIED
        return Speedup.model_validate(found) if is_sure else None

    @property
    def against(self) -> str:
        """The best baseline."""
        return self.told["best"]["best_baseline"] if self.speedup else ""

    @property
    def credited(self) -> float:
        """The credited speed-up of the champion; 0.0 without one."""
        return self.speedup.low if self.speedup else 0.0

    @property
    def modelled_us(self) -> float | None:
        """The shortest modelled time where nothing could be timed; it credits nothing."""
        leader = self.told["leader"]
        return float(leader["modelled_us"]) if leader else None

    @property
    def by_status(self) -> dict[Status, int]:
        """How many candidates have each status."""
        return {Status(status): count for status, count in self.told["by_status"].items()}


Rank = tuple[float, float]

SORTS: dict[str, Callable[[HomeRow], float | str | Rank]] = {
    "started": lambda row: -row.told["started_at"],
    "problem": lambda row: row.told["problem"],
    "state": lambda row: row.state.word,
    "candidates": lambda row: -row.told["proposed"],
    "speedup": lambda row: (-row.credited, row.modelled_us or math.inf),
}


def search(rows: Sequence[HomeRow], text: str) -> list[HomeRow]:
    """The rows in which every word of the text occurs."""
    wanted = text.casefold().split()
    return [row for row in rows if all(word in _search_text(row) for word in wanted)]


_SEARCHED = ("problem", "workload", "target", "language", "model", "workflow", "file")


def _search_text(row: HomeRow) -> str:
    parts = (row.id, *(row.told[name] for name in _SEARCHED), row.state.word)
    return " ".join(parts).casefold()


def summarize(row: HomeRow) -> dict[str, Any]:
    """A campaign in a few fields, as JSON."""
    told = row.told
    kept = ("problem", "workload", "target", "started_at", "last_at", "proposed", "evaluated")
    same = ("by_status", "usd", "tokens", "booked", "stopped_by", "audit")
    return {
        "campaign": row.id,
        "seq": row.line.seq,
        **{name: told[name] for name in kept},
        "file": told["file"] or None,
        "state": row.state.word,
        "best": told["best"]["candidate"] if told["best"] else None,
        "speedup": row.speedup.model_dump() if row.speedup else None,
        "against": row.against or None,
        "modelled_us": row.modelled_us,
        **{name: told[name] for name in same},
        "why_no_winner": None if row.is_running else told["why_no_winner"],
        "how_sure": told["how_sure"],
        "what_decides": told["what_decides"],
    }
