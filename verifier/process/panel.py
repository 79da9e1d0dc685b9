# SPDX-License-Identifier: Apache-2.0
"""The stands of a referee: one for each workload of its task, asked one after the other.

A candidate that fails on one workload is not asked on the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

from ...traces.preparation import Preparation
from ...traces.records import Isolation, Verdict
from ..evaluation import evaluate
from ..request import Order, Task
from ..stands.leased import Machine
from ..stands.opening import open_stands
from ..stands.stand import Stand
from .several import join_verdicts


@dataclass
class Panel:
    """Judges an order on every workload of a task."""

    task: Task
    stands: list[Stand]

    @classmethod
    def open(cls, task: Task, machine: Machine | None = None) -> Self:
        """Raises what `open_stand` raises."""
        return cls(task, open_stands(task, machine))

    @property
    def first(self) -> Stand:
        """Of the workload that counts most; it answers for what all have in common."""
        return self.stands[0]

    @property
    def isolation(self) -> Isolation:
        """See verifier.request.Referee."""
        return self.first.session.isolation

    @property
    def facts(self) -> Mapping[str, float]:
        """Of the workload that counts most."""
        return self.first.facts

    @property
    def is_emulated(self) -> bool:
        """See verifier.request.Referee."""
        return self.first.is_emulated

    def wait_prepared(self) -> Preparation:
        """Those baselines that are ready on every workload, and what any of them lacks."""
        found = [stand.wait_prepared() for stand in self.stands]
        if len(found) == 1:
            return found[0]
        return Preparation(
            baselines=tuple(n for n in found[0].baselines if all(n in f.baselines for f in found)),
            missing={name: why for each in found for name, why in each.missing.items()},
        )

    def evaluate(self, order: Order, known: Verdict | None = None) -> Verdict:
        """The verdict on all workloads. Raises SandboxError where the harness itself failed.

        Args:
            known: What was found ahead on the first of them.
        """
        verdicts = [known or evaluate(self.first, order)]
        for stand in self.stands[1:]:
            if not verdicts[-1].status.is_pass or verdicts[-1].champion is not None:
                break
            verdicts.append(evaluate(stand, order))
        if len(self.stands) == 1:
            return verdicts[0]
        weights = [part.weight for part in self.task.workload.parts[: len(verdicts)]]
        return join_verdicts(self.task.workload.name, verdicts, weights)

    def close(self) -> None:
        """Ends all of them."""
        with ExitStack() as stack:
            for stand in self.stands:
                stack.callback(stand.close)
