# SPDX-License-Identifier: Apache-2.0
"""A candidate as users meet it: its source, where it comes from and what the referee found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ..traces.fold import Entry
from ..traces.records import Measurement, Speedup, Status, Verdict, candidate_id
from ..traces.wording import interval, micros, ratio, speedup


@dataclass(frozen=True)
class Candidate:
    """One source file in one language, with its verdict. A notebook shows it as a code cell."""

    problem: str
    target: str
    language: str
    source: str
    verdict: Verdict | None = None
    """None: it was proposed and not evaluated."""
    campaign: str = ""
    """Empty: it was not kept."""
    home: Path | None = None
    """Where its campaign is kept."""
    entry: Entry | None = None
    """All that its campaign recorded of it: knobs, parents, advice, every verdict."""

    @property
    def number(self) -> int:
        """Of the campaign's candidates, from 1 on; 0: it was not kept."""
        return self.entry.number if self.entry else 0

    @property
    def family(self) -> str:
        """Of recipes or of strategies; empty where it was not kept."""
        return self.entry.family if self.entry else ""

    @property
    def strategy(self) -> str:
        """What its Coder says it does."""
        return self.entry.strategy if self.entry else ""

    @property
    def id(self) -> str:
        """The SHA-256 of the source."""
        return self.entry.candidate if self.entry else candidate_id(self.source)

    @property
    def status(self) -> Status | None:
        """The verdict's; None without one."""
        return self.verdict.status if self.verdict else None

    @property
    def measurement(self) -> Measurement | None:
        """The paired timing; None where nothing was timed."""
        return self.verdict.measurement if self.verdict else None

    @property
    def speedup(self) -> Speedup | None:
        """As measured against the best baseline; `credited` is what was shown."""
        return self.measurement.headline if self.measurement else None

    @property
    def credited(self) -> float | None:
        """The lower end of the 95 % interval, of a VERIFIED candidate only."""
        return self.verdict.credited if self.verdict else None

    def __repr__(self) -> str:
        number = f"#{self.number} " if self.number else ""
        return f"<Candidate {number}{self.id[:10]}: {self.result()}>"

    def result(self) -> str:
        """The status and what was measured, or why nothing was, in a line."""
        if self.verdict is None:
            return "not evaluated"
        if self.speedup and self.measurement:
            return f"{self.status}, {speedup(self.speedup)} vs {self.measurement.best_baseline}"
        return "; ".join((str(self.status), *self.verdict.reasons[:1]))

    def _repr_html_(self) -> str:
        """A line, the times against each baseline and the source."""
        head = f"<p><b>{escape(self.problem)}</b> in {escape(self.language)} on "
        head += f"{escape(self.target)}: {escape(self.result())}</p>"
        return head + self._times() + f"<pre><code>{escape(self.source)}</code></pre>"

    def _times(self) -> str:
        timed = self.measurement
        if timed is None:
            return ""
        rows = [("this candidate", micros(timed.candidate.median_us), "", "")]
        for name, timing in timed.baselines.items():
            found = timed.speedup.get(name)
            median = ratio(found.median) if found else ""
            rows.append((name, micros(timing.median_us), median, interval(found)))
        return table(("side", "median", "speed-up", "95 %"), rows)


def table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """An HTML table of texts, which are escaped."""
    head = "".join(f"<th>{escape(each)}</th>" for each in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
