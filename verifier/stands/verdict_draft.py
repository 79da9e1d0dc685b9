# SPDX-License-Identifier: Apache-2.0
"""What becomes a verdict while an evaluation is under way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...kernelbench.languages import tier_of
from ...sandbox.builders.model import Built
from ...traces.records import Check, Measurement, Profile, Status, Verdict, candidate_id
from ..failure import Failed
from ..request import Order
from ..truth import gates
from .session import Session

LOG_CHARACTERS = 32 << 10


@dataclass
class Draft:
    """What becomes the verdict."""

    order: Order
    session: Session
    seed: bytes
    tried: str = field(init=False)
    """What hidden sizes were tried before it (kernelbench.sizes.Tried)."""
    started: float = field(default_factory=time.monotonic)
    seconds: dict[str, float] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    """Of its answers and accesses: where one failed it is INCORRECT."""
    timed: list[Check] = field(default_factory=list)
    """Of its timing: where one failed it is SUSPECT."""
    unchecked: list[str] = field(default_factory=list)
    suspicions: tuple[str, ...] = ()
    """What may be the cause where an answer is wrong (sandbox.plan.suspicions)."""
    log: str = ""
    artefact: str = ""
    """SHA-256 of what was built."""
    compiler: str = ""
    emulated: bool = False

    def __post_init__(self) -> None:
        self.tried = self.session.stage.tried.text

    def take(self, built: Built) -> None:
        """Notes what was built."""
        self.artefact, self.compiler, self.log = built.sha256, built.compiler, built.log

    def hear(self, words: str) -> None:
        """Keeps what a process of it wrote, once where several wrote the same."""
        if words.strip() not in self.log:
            self.log = f"{self.log.rstrip()}\n{words}".lstrip()[:LOG_CHARACTERS]

    @property
    def is_right(self) -> bool:
        """Whether nothing wrong was found until now."""
        return gates.first_failure(self.checks) is None

    def ensure_right(self) -> None:
        """Raises Failed where something wrong was found."""
        if failed := gates.first_failure(self.checks):
            raise Failed(Status.INCORRECT, f"{failed.name}: {failed.detail}")

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Adds the time spent inside to `seconds[name]`."""
        start = time.monotonic()
        try:
            yield
        finally:
            spent = time.monotonic() - start
            self.seconds[name] = round(self.seconds.get(name, 0.0) + spent, 4)

    def fail(self, failed: Failed, cause: str = "", known: Profile | None = None) -> Verdict:
        """The record of a failure, led by its cause where that is known."""
        self.timed += [failed.check] if failed.check else []
        self.log = failed.log or self.log
        reason = f"{cause}; {failed.reason}" if cause else failed.reason
        return self.close(failed.status, reason, known=known)

    def close(
        self,
        status: Status,
        reason: str = "",
        measured: Measurement | None = None,
        known: Profile | None = None,
    ) -> Verdict:
        """The finished record."""
        session = self.session
        told = (reason, *(self.suspicions if status is Status.INCORRECT else ()))
        return Verdict(
            candidate=candidate_id(self.order.source),
            problem=session.problem.name,
            problem_version=session.problem.version,
            workload=session.task.workload.name,
            language=self.order.language,
            target=session.task.target,
            tier=tier_of(self.order.language),
            protocol=self.order.protocol,
            status=status,
            reasons=told if reason else (),
            checks=(*self.checks, *self.timed),
            unchecked=tuple(self.unchecked),
            measurements=(measured,) if measured else (),
            profile=known,
            isolation=session.isolation,
            seed=self.seed.hex(),
            tried=self.tried,
            seconds=self.seconds,
            versions=self._versions(),
            emulated=self.emulated,
            artefact=self.artefact,
            log=self.log,
        )

    def _versions(self) -> dict[str, str]:
        compiler = {"compiler": self.compiler} if self.compiler else {}
        return {**self.session.versions, **compiler}
