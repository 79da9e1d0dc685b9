# SPDX-License-Identifier: Apache-2.0
"""What is learned from: how long each candidate takes on each workload, and what is known of it.

A line of the record is one candidate on one workload, seen once. All that were seen make a Table.
It knows no referee and no clock.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from pydantic import Field, ValidationError

from ..errors import UsageError
from ..traces.records import Record, Status

FACTS = Mapping[str, float]
SURE = 1.96
"""Standard errors to each side of a 95 % interval."""
LEAST_ERROR = 0.01
"""Of the logarithm of a ratio: no two processes lie the same in memory."""


class Seen(Record):
    """One candidate on one workload, looked at once."""

    workload: str
    group: str
    """Workloads of one group share their pattern: none of them says much new of the others."""
    facts: dict[str, float]
    """Axes and statistics of the rows (kernelbench/features.py)."""
    weight: float = Field(default=1.0, gt=0)
    """How much the workload counts beside the others."""
    candidate: str
    """Its name in the portfolio."""
    source: str
    """The SHA-256 of its source: a name may come to mean another one."""
    reference: str
    """That of the candidate that it took turns with."""
    status: Status
    reasons: tuple[str, ...] = ()
    us: float | None = None
    """Its median call, microseconds; None where it was not timed."""
    ratio: float | None = None
    """How many times as fast as the reference candidate, which took turns with it; of the
    reference itself 1; None where it was not timed."""
    error: float | None = None
    """Standard error of the logarithm of `ratio`, from its 95 % interval; of the reference 0."""


@dataclass(frozen=True)
class Table:
    """Times of all candidates on all workloads."""

    workloads: tuple[str, ...]
    groups: tuple[str, ...]
    """Of each workload."""
    facts: tuple[FACTS, ...]
    """Of each workload."""
    candidates: tuple[str, ...]
    us: np.ndarray
    """[workload, candidate] microseconds, above zero."""
    weights: np.ndarray
    """[workload] how much each counts; above zero, 1 in the mean."""

    @property
    def regret(self) -> np.ndarray:
        """[workload, candidate] log of its time over the best one's there; the best has 0."""
        logs = np.log(self.us)
        return np.asarray(logs - logs.min(axis=1, keepdims=True))

    @property
    def cost(self) -> np.ndarray:
        """[workload, candidate] regret as it counts: its mean is the weighted mean of regret."""
        return np.asarray(self.regret * self.weights[:, None])

    def of(self, rows: Sequence[int] | np.ndarray) -> Table:
        """The table of these workloads only."""
        return Table(
            tuple(self.workloads[row] for row in rows),
            tuple(self.groups[row] for row in rows),
            tuple(self.facts[row] for row in rows),
            self.candidates,
            self.us[list(rows)],
            self.weights[list(rows)] / self.weights[list(rows)].mean(),
        )


@dataclass(frozen=True)
class LeftOut:
    """What a table holds nothing of, each with the reason."""

    candidates: dict[str, str]
    workloads: dict[str, str]


def read_seen(path: Path) -> list[Seen]:
    """The lines of a record, a JSON object each.

    Raises:
        UsageError: it cannot be read, or a line is none of a record.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the record {path} cannot be read: {error}") from error
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(Seen.model_validate_json(line))
        except ValidationError as error:
            raise UsageError(
                f"{path}:{number}: {error.errors()[0]['msg']}",
                hint="give the .jsonl that a portfolio's measuring wrote",
            ) from error
    return found


def make_table(seen: Iterable[Seen]) -> tuple[Table, LeftOut]:
    """The table of all that was seen, and what had to be left out.

    A candidate that was found wrong anywhere, or that was out of time whenever it was asked
    somewhere, is left out; so is a workload on which one that is left was never timed. A time is
    the reference's median time over the mean ratio, in logarithms, of all looks by their errors.

    Raises:
        UsageError: no workload is left, or fewer than two candidates.
    """
    seen = list(seen)
    timed = {(each.workload, each.candidate) for each in seen if each.ratio is not None}
    wrong = {
        each.candidate: _tell(each)
        for each in seen
        if is_wrong(each.status)
        or (each.status is Status.TIMED_OUT and (each.workload, each.candidate) not in timed)
    }
    kept = [each for each in seen if each.candidate not in wrong]
    names = tuple(dict.fromkeys(each.candidate for each in kept))
    first = {each.workload: each for each in reversed(kept)}
    order = dict.fromkeys(each.workload for each in kept)
    cells: dict[tuple[str, str], list[Seen]] = defaultdict(list)
    reference: dict[str, list[float]] = defaultdict(list)
    for each in kept:
        if each.us is not None and each.ratio is not None:
            cells[each.workload, each.candidate].append(each)
            reference[each.workload].append(each.us * each.ratio)
    lacking = {
        workload: f"never timed there: {', '.join(missing)}"
        for workload in order
        if (missing := [name for name in names if (workload, name) not in cells])
    }
    whole = [workload for workload in order if workload not in lacking]
    if not whole or len(names) < 2:
        raise UsageError(
            f"{len(names)} right candidates on {len(whole)} workloads are no portfolio",
            hint="; ".join([*wrong.values(), *lacking.values()][:3]) or "measure some more",
        )
    weights = np.array([first[w].weight for w in whole], dtype=np.float64)
    us = [[median(reference[w]) / mean_ratio(cells[w, name]) for name in names] for w in whole]
    table = Table(
        tuple(whole),
        tuple(first[w].group for w in whole),
        tuple(first[w].facts for w in whole),
        names,
        np.array(us, dtype=np.float64),
        weights / weights.mean(),
    )
    return table, LeftOut(wrong, lacking)


def mean_ratio(looks: Sequence[Seen]) -> float:
    """The ratio of all looks at one candidate on one workload; a disturbed one counts little.

    Args:
        looks: At least one; all of them timed.
    """
    known = [(each.ratio or 0.0, max(each.error or 0.0, LEAST_ERROR) ** -2) for each in looks]
    return math.exp(sum(w * math.log(r) for r, w in known) / sum(w for _, w in known))


def is_wrong(status: Status) -> bool:
    """Whether it says something of the candidate, and not of a machine that had no time."""
    return not status.is_pass and status not in (Status.TIMED_OUT, Status.HARNESS_ERROR)


def _tell(seen: Seen) -> str:
    why = "; ".join((str(seen.status), *seen.reasons[:1]))
    return f"{seen.candidate} on {seen.workload}: {why}"
