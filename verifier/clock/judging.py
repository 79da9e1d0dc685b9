# SPDX-License-Identifier: Apache-2.0
"""Holds the answers of timed calls against the truth while the next processes start.

Nothing else of the referee's may run while a side is timed, and what starts a process waits for it
most of the time: there the truth is found for nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from ...traces.records import Check
from .answers import Answer

_Blame = Callable[[Check], Exception]
"""What is raised for a gate that did not hold."""


class Judges:
    """One thread that judges what it is given; to be closed."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._given: deque[tuple[Future[Check | None], _Blame]] = deque()

    def give(self, answers: list[Answer], blame: _Blame) -> None:
        """Begins to judge these answers, up to the first that is wrong."""
        self._given.append((self._pool.submit(_find_failure, answers), blame))

    def settle(self) -> None:
        """Waits until all is judged. Raises what the first failure is blamed as."""
        while self._given:
            found, blame = self._given.popleft()
            if failed := found.result():
                raise blame(failed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)


def _find_failure(answers: list[Answer]) -> Check | None:
    return next((failed for answer in answers if (failed := answer.failure())), None)
