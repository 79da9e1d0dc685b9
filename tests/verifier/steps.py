"""A row of the table of steps: a candidate, and all that an evaluation of it does."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from kernelwright.tests.verifier.stands import look
from kernelwright.traces.records import Check, Depth, Status, Verdict
from kernelwright.verifier.clock import clocks, roofline
from kernelwright.verifier.clock.turns import WAITED
from kernelwright.verifier.request import Order
from kernelwright.verifier.stands.session import Session
from kernelwright.verifier.stands.stand import Stand
from kernelwright.verifier.stands.verdict_draft import Draft

CLOCKS = "clocks"
BLOCKS = "time, start, time, start, time"


@dataclass
class Steps:
    """What evaluations do, in the order in which it is done."""

    taken: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = ", ".join(name for name, _ in itertools.groupby(self.taken))
        # Three blocks, or as many more as it takes beside a champion.
        each = f"((?:{WAITED}, )?time)"
        return re.sub(rf"{each}(, start, \1){{2,}}", r"\1, start, \1, start, \1", told)


def noted_steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Notes the steps of evaluations from now on."""
    found = Steps()
    span, admitted = Draft.span, Session.ensure_admitted

    @contextmanager
    def noted(draft: Draft, name: str) -> Iterator[None]:
        try:
            with span(draft, name):
                yield
        finally:
            found.taken.append(name)

    def admit(session: Session) -> None:
        found.taken.append("admit")
        admitted(session)

    monkeypatch.setattr(Draft, "span", noted)
    monkeypatch.setattr(Session, "ensure_admitted", admit)
    return found


@dataclass(frozen=True)
class Row:
    """A candidate, and all that an evaluation of it does."""

    source: str
    status: Status
    steps: str
    checks: str = ""
    protocol: Depth = Depth.SCREEN
    language: str = "cpp"
    champion: str = ""
    clocks_hold: bool = True

    @property
    def order(self) -> Order:
        """As a campaign gives it."""
        return Order(
            source=self.source,
            language=self.language,
            protocol=self.protocol,
            champion=self.champion,
        )

    def judged(self, stand: Stand) -> Verdict:
        """The verdict of one look, on a machine whose clocks hold or do not."""
        check = Check(name=CLOCKS, passed=self.clocks_hold, detail="as the row says")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(clocks, "checks", lambda *_: [check])
            patch.setattr(roofline, "check_plausible", lambda *_: Check(name="floor", passed=True))
            return look(stand, self.order)

    def holds(self, stand: Stand, steps: Steps) -> None:
        """Asserts that it goes as the row says."""
        verdict = self.judged(stand)
        names = ("correct" if c.name.startswith("correct on") else c.name for c in verdict.checks)
        told = ", ".join(name for name, _ in itertools.groupby(names))
        assert (verdict.status, str(steps), told) == (self.status, self.steps, self.checks)
        timed = verdict.status.is_pass and not verdict.emulated
        assert bool(verdict.measurements) is timed
        failed = not all(check.passed for check in verdict.checks)
        assert failed is (verdict.status in (Status.INCORRECT, Status.SUSPECT))
