"""Real referees for the tests: one per problem, workload and target, kept for the session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.traces.records import Protocol, Status, Verdict
from kernelwright.verifier import emulation
from kernelwright.verifier.client import RefereeProcess, open_referee
from kernelwright.verifier.device_session import Machine
from kernelwright.verifier.draft import Draft
from kernelwright.verifier.evaluation import evaluate
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.session import Session

RETRIED = (Status.SUSPECT, Status.TIMED_OUT)
"""A machine that is busy with something else can cause these; a second look tells."""
EMULATED = 4
"""Emulated sessions that stay open: some hold interpreters, and all are quickly opened again."""


class Court:
    """Opens referees when they are first asked for and keeps them for the session."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self._open: dict[tuple[str, str, str], RefereeProcess] = {}
        self._emulated: dict[tuple[str, str, str], Session] = {}

    def referee(self, problem: str, workload: str = "tiny", jail: str = "auto") -> RefereeProcess:
        """A running referee for the problem's workload, with torch eager as its baseline."""
        key = (problem, workload, jail)
        if key not in self._open:
            task = self._task(problem, workload, jail=jail, baselines=("torch eager",))
            self._open[key] = open_referee(task)
        return self._open[key]

    def judge(
        self,
        source: str,
        problem: str = "spmm_csr",
        protocol: Protocol = Protocol.SCREEN,
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

    def emulated(self, problem: str, language: str, workload: str = "tiny") -> Session:
        """What judges for sm_90 by emulation, whatever this machine has; skips where it cannot."""
        key = (problem, language, workload)
        found = self._emulated.pop(key, None) or self._emulating(key)
        # The one that was used last is closed last.
        self._emulated[key] = found
        while len(self._emulated) > EMULATED:
            self._emulated.pop(next(iter(self._emulated))).close()
        return found

    def look(
        self,
        source: str,
        problem: str,
        language: str,
        protocol: Protocol = Protocol.FULL,
        *,
        workload: str = "tiny",
        seed: bytes = b"",
    ) -> Verdict:
        """The verdict in emulation, as `eval --target sm_90` comes to it.

        Args:
            workload: empty: the problem's default.
            seed: what the trials are drawn from; empty: fresh, as for `eval`.
        """
        session = self.emulated(problem, language, workload)
        order = Order(source=source, language=language, protocol=protocol)
        if not seed:
            return evaluate(session, order)
        assert session.device is not None
        return emulation.look(Draft(order, session, seed), session.device)

    def close(self) -> None:
        for each in (*self._open.values(), *self._emulated.values()):
            each.close()

    def _task(self, problem: str, workload: str, **more: Any) -> Task:
        chosen = registry.workload_for(registry.get(problem), workload)
        return Task(problem=problem, workload=chosen, cache_dir=str(self.cache), **more)

    def _emulating(self, key: tuple[str, str, str]) -> Session:
        problem, language, workload = key
        task = self._task(problem, workload, target="sm_90", languages=(language,))
        try:
            session = Session.open(task, Machine(allowed=()))
        except PrerequisiteError as error:
            pytest.skip(str(error))
        assert session.is_emulated
        return session


Look = Callable[..., Verdict]
"""`Court.look`."""
