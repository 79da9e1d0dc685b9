# SPDX-License-Identifier: Apache-2.0
"""The baselines of a stand that times: started beside everything else, and what they reach.

They start in the background, because importing torch and compiling takes seconds that builds can
use. What they reach decides counts, batches and deadlines.
"""

from __future__ import annotations

import hashlib
import json
import statistics as stats
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from ...errors import PrerequisiteError, SandboxError
from ...kernelbench.problem import Family
from ...traces.preparation import Preparation
from ..baselines.process import BaselinePlace, BaselineProcess, NotReady
from ..clock.bounds import bounds_of
from ..clock.calm import LEAST_COPIED, Calm, MachineSide
from ..clock.pace import Pace
from ..clock.roofline import Peaks
from ..clock.timed_sides import BaselineSide
from ..clock.timing import MAX_BATCH
from ..truth.trials import Item, make_item
from .session import CALL_S, Session, versions

CALIBRATION_CALLS, LEAST_CALIBRATION_CALLS = 5, 2
CALIBRATION_S = 0.2
"""Of calls that take longer together the least tell."""
UNDISTURBED = "undisturbed"
"""Folder in the cache folder: what baselines take while nobody disturbs them (calm.py)."""


@dataclass
class Reference:
    """The baselines that run here, fastest first, with a first idea of their times."""

    process: BaselineProcess
    latency_us: dict[str, float]
    missing: dict[str, str]
    peaks: Peaks | None
    """Of what they run on; None where nobody knows them."""
    measure_peaks: Callable[[], Peaks | None]
    """Measures them once more, and gives the better of each."""
    pace: Pace
    """What comes between their timed calls."""
    machine: MachineSide | None = None
    """What tells of the machine's memory; None on a device, and where calls need little of it."""
    cpus: tuple[int, ...] = ()
    """On which they are timed; empty: on a device."""
    calm: Calm = field(default_factory=Calm)
    """What they take while the machine is left alone, of all evaluations of the session."""

    def renew_peaks(self) -> Peaks | None:
        """The peaks, measured once more while nothing else is timed."""
        self.peaks = self.measure_peaks()
        return self.peaks

    @property
    def fastest_us(self) -> float:
        """The fastest baseline's median; decides counts, batches and deadlines."""
        return min(self.latency_us.values())

    def sides(self, within: float = float("inf")) -> list[BaselineSide]:
        """The baselines within this factor of the fastest; all of them unless told otherwise."""
        limit = within * self.fastest_us
        return [
            BaselineSide(name, self.process, pace=self.pace)
            for name, us in self.latency_us.items()
            if us <= limit
        ]

    @property
    def timeout_s(self) -> float:
        """Deadline of one call: ten times the slowest, at least five seconds."""
        return max(CALL_S, 10 * max(self.latency_us.values()) * MAX_BATCH / 1e6)


class PeaksOf(Protocol):
    """Says what the device reaches that baselines run on; `anew`: measured in any case."""

    def __call__(self, process: BaselineProcess, *, anew: bool = False) -> Peaks | None: ...


class Baselines:
    """The baselines of a session, in a process of theirs. Raises its error where it is asked."""

    def __init__(
        self,
        session: Session,
        peaks: PeaksOf,
        place: BaselinePlace | None = None,
    ) -> None:
        """Begins to start them.

        Args:
            peaks: What the device reaches that they run on.
            place: The device; None: they run on the CPUs.
        """
        self._session = session
        self._peaks = peaks
        self._place = place
        self._starting: BaselineProcess | None = None
        self._is_closing = False
        self._pool = ThreadPoolExecutor(1)
        self._reference = self._pool.submit(self._start)

    @property
    def reference(self) -> Reference:
        """The running baselines; waits until they are ready."""
        return self._reference.result()

    @property
    def are_ready(self) -> bool:
        """Whether they run, and nothing more is measured in the background."""
        return self._reference.done() and not self._reference.exception()

    @property
    def pid(self) -> int | None:
        """Of their process, once they are ready."""
        return self.reference.process.pid if self.are_ready else None

    def wait(self) -> None:
        """Waits until nothing more is measured in the background."""
        self._reference.result()

    def wait_prepared(self) -> Preparation:
        """Which candidates are held against, and which are missing."""
        held, session = self.reference, self._session
        axes, many = session.stage.target.axes, session.pace.instances
        bounds = bounds_of(session.problem, axes, held.peaks, many) if held.peaks else None
        return Preparation(
            baselines=tuple(held.latency_us),
            missing=held.missing,
            baseline_us=held.latency_us,
            bounds=bounds,
        )

    def timeout_s(self) -> float:
        """Deadline of one call, as far as it is known by now."""
        return self.reference.timeout_s if self._reference.done() else CALL_S

    def close(self) -> None:
        """Ends their process. While they are prepared nobody waits for the rest: a compiler of one
        may take half a minute."""
        self._is_closing = True
        is_wanted = self._reference.done()
        if self._starting is not None and not is_wanted:
            self._starting.give_up()
        try:
            if not self._reference.cancel():
                self._reference.result().process.close()
        except SandboxError:
            if is_wanted:
                raise
        finally:
            self._pool.shutdown()

    def _start(self) -> Reference:
        """Those that are ready in time; one that is not, or ends them all, makes the others start
        again."""
        session, task = self._session, self._session.task
        device = self._place.device if self._place else ""
        fit = tuple(b.name for b in session.problem.baselines if b.runs_on(device))
        names, left_out = list(task.baselines or fit), dict[str, str]()
        while True:
            process = BaselineProcess(
                session.workshop,
                session.problem,
                session.stage.target,
                slots=session.slots,
                place=self._place,
                is_warm=session.pace.is_warm,
                instances=session.pace.instances,
            )
            self._starting = process
            if self._is_closing:
                process.give_up()
            try:
                return self._ready(process, tuple(names), left_out)
            except NotReady as left:
                process.close()
                if self._is_closing:
                    raise SandboxError("closed while baselines were prepared") from left
                names.remove(left.baseline)
                within = f"it was not ready within {task.preparation_s:g} s (--max-preparation)"
                left_out[left.baseline] = left.ended or within
            except BaseException:
                process.close()
                raise

    def _ready(
        self, process: BaselineProcess, names: tuple[str, ...], left_out: dict[str, str]
    ) -> Reference:
        session, rng = self._session, np.random.default_rng()
        usable, missing = process.prepare(names, rng, session.task.preparation_s)
        missing = left_out | missing
        if not usable:
            is_late = any("--max-preparation" in why for why in left_out.values())
            waited = "; give them more time: --max-preparation 30m" if is_late else ""
            raise PrerequisiteError(
                f"no baseline of {session.problem.name} runs here: {missing}",
                hint=f"check that torch and scipy are installed in this environment{waited}",
            )
        item = make_item(session.problem, session.stage.target, Family.NORMAL, rng)
        latency = {name: _calibrate(process, name, item, session.pace) for name in usable}
        again = partial(self._peaks, process, anew=True)
        device = self._place.device if self._place else ""
        moved = 0.0 if self._place else session.work[1]
        machine = MachineSide(process, moved) if moved >= LEAST_COPIED else None
        peaks = self._peaks(process)
        return Reference(
            process,
            latency,
            missing,
            peaks,
            again,
            session.pace,
            machine,
            () if self._place else session.workshop.cpus,
            Calm(_undisturbed_of(session, device)),
        )


def _undisturbed_of(session: Session, device: str) -> Path:
    """Where it stands what baselines take here: of all that it depends on."""
    task, problem = session.task, session.problem
    told = [
        *(versions(), device, session.workshop.cpus, problem.name, problem.version, problem.text),
        *(problem.precision.policy, task.workload.model_dump_json(), session.stage.target.axes),
    ]
    name = hashlib.sha256(json.dumps(told).encode()).hexdigest()
    return session.workshop.folder / UNDISTURBED / f"{name}.json"


def _calibrate(process: BaselineProcess, name: str, item: Item, pace: Pace) -> float:
    side, turn = BaselineSide(name, process, pace=pace), [item] * pace.turn(1)
    side.take(turn, 0)
    return first_time(lambda: side.take(turn, 0))


def first_time(take: Callable[[], float]) -> float:
    """A first idea of a time: the median of a few takes, in microseconds; of fewer where they take
    long."""
    took: list[float] = []
    while len(took) < CALIBRATION_CALLS:
        took.append(take())
        if len(took) >= LEAST_CALIBRATION_CALLS and sum(took) > 1e6 * CALIBRATION_S:
            break
    return stats.median(took)
