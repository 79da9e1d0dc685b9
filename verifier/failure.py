# SPDX-License-Identifier: Apache-2.0
"""What ends an evaluation early: a candidate, or its champion, that did not do what it must.

Builders give a result and runners raise a fault; here both become one exception.
"""

from __future__ import annotations

from typing import Self, TypeVar

from ..sandbox.builders.model import BuildFailed, Unsupported
from ..sandbox.run.process import RunFault
from ..traces.records import Check, Status

_Built = TypeVar("_Built")


class Failed(Exception):
    """What is wrong with a candidate, and the status it gets."""

    def __init__(
        self, status: Status, reason: str, log: str = "", check: Check | None = None
    ) -> None:
        """`check` is one that failed and is in no list of checks yet."""
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.log = log
        self.check = check

    @classmethod
    def of_run(cls, fault: RunFault) -> Self:
        """By its process."""
        return cls(fault.status, fault.reason, fault.log)

    @classmethod
    def of_answer(cls, check: Check) -> Self:
        """By an answer that was wrong as it was timed."""
        reason = f"a timed call was wrong: {check.name}: {check.detail}"
        return cls(Status.INCORRECT, reason, check=check)


class ChampionFailed(Exception):
    """The champion could not be built, started or called while a candidate was timed."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason


def built_or_failed(result: _Built | BuildFailed | Unsupported) -> _Built:
    """What a builder made. Raises Failed."""
    if isinstance(result, BuildFailed):
        status = Status.RESOURCE if result.is_resource else Status.BUILD_FAILED
        raise Failed(status, result.reason, result.log)
    if isinstance(result, Unsupported):
        raise Failed(Status.UNSUPPORTED, "; ".join(result.reasons), result.log)
    return result
