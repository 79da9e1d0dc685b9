# SPDX-License-Identifier: Apache-2.0
"""What campaigns left in a home: each with its candidates, its champion and its figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

from .. import extras
from ..config import resolve
from ..errors import UsageError
from ..traces import names
from ..traces.events import Event
from ..traces.fold import Entry
from ..traces.head import Head
from ..traces.history import History, derive
from ..traces.report import render_report
from ..traces.report_text import render_markdown
from ..traces.sheet import Sheet
from ..traces.store import Store
from ..traces.transcript import Transcript, transcribe
from ..traces.wording import usd
from .candidate import Candidate, table


@dataclass(frozen=True)
class Campaign:
    """A campaign of a home. What was asked of it once stays as it was then."""

    home: Path
    id: str
    """The name that every command takes."""
    is_running: bool = False
    """Whether some process worked on it."""

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Everything that was recorded; all else is derived from it."""
        with Store.open(self.home, read_only=True) as store:
            return tuple(store.events(self.id))

    @cached_property
    def history(self) -> History:
        """What the events tell: champion, candidates, limits, spending, audits."""
        return derive(self.events)

    @cached_property
    def transcript(self) -> Transcript:
        """What was asked of models, place by place."""
        return transcribe(self.events)

    @cached_property
    def head(self) -> Head:
        """All of it but its candidates and calls, however many those are."""
        with self.open() as (_, sheet):
            return sheet.head

    @contextmanager
    def open(self) -> Iterator[tuple[Store, Sheet]]:
        """Its candidates and calls as they are now, of which only those are read that are asked
        for, and the store that they are in."""
        with Store.open(self.home, read_only=True) as store, store.sheet(self.id) as sheet:
            yield store, sheet

    @property
    def state(self) -> str:
        """`running`, `finished (why)` or `cut off`."""
        return self.head.state(is_running=self.is_running).told

    @property
    def problem(self) -> str:
        """What it works on."""
        return self.head.started.problem

    @property
    def target(self) -> str:
        """Where its kernels run."""
        return self.head.started.target

    @property
    def usd(self) -> float | None:
        """What models cost; None where a price is unknown."""
        return self.head.spent.usd

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """Everything that was proposed, in order."""
        with self.open() as (store, sheet):
            entries = sheet.read_whole(sheet.entries)
            return tuple(self._make_candidate(store, entry) for entry in entries.values())

    @property
    def champion(self) -> Candidate | None:
        """The fastest verified candidate; None: there is none, and `why_no_winner` says why."""
        return self[names.BEST] if self.head.best else None

    def __getitem__(self, name: str | int) -> Candidate:
        """The candidate of this number, of an id that begins so, or `@best`.

        Raises:
            UnknownNameError: no candidate matches.
            UsageError: several match, or there is no best one.
        """
        with self.open() as (store, sheet):
            found = sheet.find(str(name))
            return self._make_candidate(store, sheet.read_whole([found])[found])

    @property
    def why_no_winner(self) -> str:
        """One sentence; empty where there is a champion."""
        return self.head.why_no_winner

    def render(self, *, as_markdown: bool = False, charts: bool = True) -> str:
        """The campaign as one HTML page that needs nothing else, or as Markdown.

        Args:
            charts: Whether the page has charts; its tables have the same figures.

        Raises PrerequisiteError where a package is missing that makes it.
        """
        extras.require("view", "the report")
        with Store.open(self.home, read_only=True) as store:
            if as_markdown:
                return render_markdown(store, self.id)
            return render_report(store, self.id, charts=charts)

    def report(self, file: str | Path, *, as_markdown: bool = False, charts: bool = True) -> Path:
        """Writes `render()` to a file, with the folders that it needs.

        Raises UsageError where it cannot be written there.
        """
        path, page = Path(file), self.render(as_markdown=as_markdown, charts=charts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page, encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"the report cannot be written to {path}: {error.strerror}",
                hint="name another file (-o on the command line)",
            ) from error
        return path

    def _make_candidate(self, store: Store, entry: Entry) -> Candidate:
        started = self.head.started
        source = store.get_blob(entry.candidate).decode("utf-8", "replace")
        return Candidate(
            started.problem,
            started.target,
            entry.language,
            source,
            entry.verdict,
            self.id,
            self.home,
            entry,
        )

    def __repr__(self) -> str:
        best = self.champion
        end = repr(best) if best else self.why_no_winner
        return f"<Campaign {self.id} {self.problem} on {self.target}: {end}>"

    def _repr_html_(self) -> str:
        """A line and a table of the candidates."""
        rows = [
            (f"#{each.number}", each.family or each.strategy, each.result())
            for each in self.candidates
        ]
        spent = f", {usd(self.usd)}" if self.head.spent.tokens else ""
        head = f"<p><b>{escape(self.id)}</b> {escape(self.problem)} on {escape(self.target)}{spent}"
        head += f": {escape(self.why_no_winner or repr(self.champion))}</p>"
        return head + table(("#", "family", "result"), rows)


class Home:
    """A folder of campaigns, read without changing it. Iterate over it, or ask it by name."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __getitem__(self, name: str) -> Campaign:
        """The campaign of this id, a unique part of it, or `@last`. Raises UnknownNameError."""
        with Store.open(self.path, read_only=True) as store:
            return self._read(store, store.resolve(name))

    def __iter__(self) -> Iterator[Campaign]:
        """Every campaign, the newest first."""
        with Store.open(self.path, read_only=True) as store:
            found = [self._read(store, campaign) for campaign in store.campaigns()]
        return iter(found)

    def __len__(self) -> int:
        with Store.open(self.path, read_only=True) as store:
            return len(store.campaigns())

    def _read(self, store: Store, campaign: str) -> Campaign:
        return Campaign(self.path, campaign, store.is_running(campaign))

    def __repr__(self) -> str:
        return f"<Home {self.path}: {len(self)} campaigns>"

    def _repr_html_(self) -> str:
        rows = [(each.id, each.problem, each.target, repr(each.champion)) for each in self]
        return table(("campaign", "problem", "target", "champion"), rows)


def open_home(path: str | Path | None = None) -> Home:
    """The campaigns of a folder.

    Args:
        path: None: the home of the settings, as the command line finds it.

    Raises:
        NoStoreError: no campaign was ever kept there.
    """
    home = resolve({"home": path}).config.home
    Store.open(home, read_only=True).close()
    return Home(home)


def campaign(name: str = "@last", *, home: str | Path | None = None) -> Campaign:
    """One campaign of a home: by its id, a unique part of it, or `@last`.

    Raises:
        NoStoreError: no campaign was ever kept there.
        UnknownNameError: there is none of that name.
    """
    return open_home(home)[name]
