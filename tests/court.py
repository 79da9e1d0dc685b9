"""Real referees for the tests: one per problem, workload and target, kept for the session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.traces.records import Depth, Status, Verdict
from kernelwright.verifier.evaluation import evaluate, look
from kernelwright.verifier.process.client import RefereeProcess, open_referee
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.stands.leased import Machine
from kernelwright.verifier.stands.opening import open_stand
from kernelwright.verifier.stands.stand import Stand
from kernelwright.verifier.stands.verdict_draft import Draft

RETRIED = (Status.SUSPECT, Status.TIMED_OUT)
"""A machine that is busy with something else can cause these; a second look tells."""
MOST_OPEN = 4
"""Referees, and emulated stands, that stay open: with torch in them they take half a GB each."""

EAGER, COMPILED = "torch eager", "torch.compile"
_Key = tuple[str, ...]
_Opened = TypeVar("_Opened", RefereeProcess, Stand)


class Court:
    """Opens referees when they are first asked for and keeps them for the session."""

    def __init__(self, cache: Path, turns: Path) -> None:
        self.cache, self.turns = cache, turns
        self._open: dict[_Key, RefereeProcess] = {}
        self._emulated: dict[_Key, Stand] = {}

    def referee(
        self, problem: str, workload: str = "tiny", jail: str = "auto", baseline: str = EAGER
    ) -> RefereeProcess:
        """A running referee for the problem's workload, with one baseline."""

        def opened() -> RefereeProcess:
            task = self._task(problem, workload, jail=jail, baselines=(baseline,))
            return open_referee(task)

        return _kept(self._open, (problem, workload, jail, baseline), opened)

    def judge(
        self,
        source: str,
        problem: str = "spmm_csr",
        protocol: Depth = Depth.SCREEN,
        *,
        expected: tuple[Status, ...] = (),
        language: str = "cpp",
        **more: Any,
    ) -> Verdict:
        """The verdict; asked a second time where a busy machine may have spoken."""
        order = Order(source=source, language=language, protocol=protocol)
        verdict = self.referee(problem, **more).evaluate(order)
        if verdict.status in RETRIED and verdict.status not in expected:
            verdict = self.referee(problem, **more).evaluate(order)
        return verdict

    def emulated(self, problem: str, language: str, workload: str = "tiny") -> Stand:
        """What judges for sm_90 by emulation, whatever this machine has; skips where it cannot."""

        def opened() -> Stand:
            task = self._task(problem, workload, target="sm_90", languages=(language,))
            try:
                stand = open_stand(task, Machine(allowed=()))
            except PrerequisiteError as error:
                pytest.skip(str(error))
            assert stand.is_emulated
            return stand

        return _kept(self._emulated, (problem, language, workload), opened)

    def look(
        self,
        source: str,
        problem: str,
        language: str,
        protocol: Depth = Depth.FULL,
        *,
        workload: str = "tiny",
        seed: bytes = b"",
    ) -> Verdict:
        """The verdict in emulation, as `eval --target sm_90` comes to it.

        Args:
            workload: empty: the problem's default.
            seed: what the trials are drawn from; empty: fresh, as for `eval`.
        """
        stand = self.emulated(problem, language, workload)
        order = Order(source=source, language=language, protocol=protocol)
        if not seed:
            return evaluate(stand, order)
        return look(stand, Draft(order, stand.session, seed))

    def close(self) -> None:
        for referee in self._open.values():
            referee.close()
        for stand in self._emulated.values():
            stand.close()

    def _task(self, problem: str, workload: str, **more: Any) -> Task:
        known = registry.get(problem)
        return Task(
            problem=problem,
            problem_text=known.text,
            workload=registry.workload_for(known, workload),
            cache_dir=str(self.cache),
            timing_lock=str(self.turns),
            **more,
        )


def _kept(kept: dict[_Key, _Opened], key: _Key, opened: Callable[[], _Opened]) -> _Opened:
    """The one of this key; what was not asked for for the longest time makes room for it."""
    found = kept.pop(key, None) or opened()
    kept[key] = found
    while len(kept) > MOST_OPEN:
        kept.pop(next(iter(kept))).close()
    return found
