# SPDX-License-Identifier: Apache-2.0
"""What is done before it is asked for, on CPUs that the running evaluation leaves free.

The next candidates are built while one is evaluated: the build cache holds them by the time they
are asked about. Where nothing is timed whole verdicts are found ahead. On the target `cpu` a timing
needs the machine to itself: builds stand still meanwhile (sandbox/builders/standstill.py). Nothing
that fails here is told: the evaluation meets it again and says so.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import LifoQueue

from ...traces.records import Verdict
from ..evaluation import evaluate
from ..request import Order
from ..stands.session import count_abreast
from ..stands.stand import Stand, TimingStand

GIVES_WAY = 10
"""The niceness of builds beside a timing."""

Work = Callable[[Order], Verdict | None]
"""What is done ahead of an order: the verdict, or None where only its builds were made."""


class Ahead:
    """What was begun of orders that are expected. For one thread."""

    def __init__(self, work: Work, workers: int, *, gives_way: bool = False) -> None:
        """Without workers nothing is done ahead.

        Args:
            gives_way: what runs beside an evaluation only takes what that leaves.
        """
        self._work = work
        self._workers = workers
        self._jobs: dict[Order, Future[Verdict | None]] = {}
        self._pool = ThreadPoolExecutor(
            max(1, workers),
            thread_name_prefix="kernelwright-ahead",
            initializer=_give_way if gives_way else None,
        )

    def foresee(self, orders: Iterable[Order]) -> None:
        """Takes in what is expected next, in this order; what is known already costs nothing."""
        for order in map(_leave_rival, orders if self._workers > 0 else ()):
            if order not in self._jobs:
                self._jobs[order] = self._pool.submit(self._work, order)

    def take(self, order: Order) -> Verdict | None:
        """The verdict that was found ahead, if any; nothing that would disturb it goes on."""
        job = self._jobs.pop(_leave_rival(order), None)
        if job is None or job.cancel():
            return None
        return None if job.exception() else job.result()

    def close(self) -> None:
        """Gives up what was not begun, and waits for the rest."""
        self._pool.shutdown(cancel_futures=True)


def ahead_of(stand: Stand) -> Ahead:
    """What can be done ahead of its orders; on one CPU nothing can."""
    known = count_abreast(stand.session.workshop.cpus)
    if isinstance(stand, TimingStand):
        return Ahead(stand.build_ahead, known - 1, gives_way=True)
    return Ahead(_evaluations_on(stand), known if known > 1 else 0)


def _evaluations_on(stand: Stand) -> Work:
    """Evaluates side by side, each on CPUs of its own: threads are bound to the first they have.

    The last ones are taken first, since who is evaluated meanwhile is bound to the first.
    """
    cpus = stand.session.workshop.cpus
    count = count_abreast(cpus)
    free: LifoQueue[tuple[int, ...]] = LifoQueue()
    for number in range(count):
        free.put(cpus[number::count])

    def work(order: Order) -> Verdict:
        own = free.get()
        try:
            return evaluate(stand.on_cpus(own), order)
        finally:
            free.put(own)

    return work


def _leave_rival(order: Order) -> Order:
    """Who will be champion by then is not known, and is built already."""
    return order.model_copy(update={"champion": ""})


def _give_way() -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), GIVES_WAY)
