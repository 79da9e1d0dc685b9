# SPDX-License-Identifier: Apache-2.0
"""The sequence of an evaluation: admit, build, try, look closer, time, conclude, on any stand.

The verdict is this module's own variable; no message of the candidate's process means "pass".
Every way in which a candidate can fail ends here as a status with its reason.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..errors import SandboxError
from ..kernelbench.languages import LANGUAGES
from ..kernelbench.targets import target_of
from ..sandbox.plan.pattern_plan import explain_unprepared
from ..sandbox.run.process import RunFault
from ..traces.records import Status, Verdict
from .failure import ChampionFailed, Failed
from .request import Counted, Order
from .stands import rivalry
from .stands.stand import Mounted, Stand
from .stands.verdict_draft import Draft
from .truth import gates

LOOKS = 3
"""Evaluations before a candidate stays SUSPECT."""
PAUSE_S = 1.0
"""Before the second look; twice that before the third."""
_BROKE = (Status.CRASHED, Status.TIMED_OUT, Status.HARNESS_ERROR, Status.PROTOCOL_ERROR)
"""Failures that may be the stand's own."""


def evaluate(stand: Stand, order: Order) -> Verdict:
    """The verdict on one order. Raises SandboxError only where the harness itself failed."""

    def close_unknown(reason: str) -> Verdict:
        return _draft(stand, order).close(Status.HARNESS_ERROR, reason)

    return rivalry.judge_order(order, lambda asked: _look_again(stand, asked), close_unknown)


def count(stand: Stand, order: Order) -> Counted:
    """The hardware's counters of a candidate that was found right; see `Referee.count`.

    A candidate that breaks while it is counted has none, with the reason. Raises SandboxError.
    """
    if stand.counting is None:
        raise SandboxError(
            f"no hardware counters are read for {stand.session.task.target} here",
            hint="look at `counting` before asking for them",
        )
    begun, draft = time.monotonic(), _draft(stand, order)
    rng = np.random.default_rng(int.from_bytes(draft.seed, "little"))
    try:
        if ill := stand.illness():
            raise Failed(Status.HARNESS_ERROR, ill)
        with _blame(stand, draft):
            found = stand.count(draft, rng)
    except Failed as failed:
        found = f"{failed.status}: {failed.reason}"
    took_s = time.monotonic() - begun
    if isinstance(found, str):
        return Counted(reason=found, took_s=took_s)
    return Counted(profile=found, took_s=took_s)


def _look_again(stand: Stand, order: Order) -> Verdict:
    """The verdict on one order. Raises ChampionFailed.

    What is SUSPECT is looked at again, in fresh processes and with another seed: a machine that is
    busy with something else can cause it once, a candidate that hides work causes it each time.
    """
    verdict = look(stand, _draft(stand, order))
    for again in range(1, LOOKS):
        if verdict.status is not Status.SUSPECT:
            break
        time.sleep(again * PAUSE_S)
        verdict = look(stand, _draft(stand, order))
    return verdict


def _draft(stand: Stand, order: Order) -> Draft:
    # Drawn now, after the source is fixed, and never sent to the candidate's process (A6).
    return Draft(order, stand.session, secrets.token_bytes(16))


def look(stand: Stand, draft: Draft) -> Verdict:
    """One look at the candidate of a draft. Raises ChampionFailed, and SandboxError."""
    target = target_of(draft.session.task.target)
    taken = [each for each in stand.languages if each.runs_on(target)]
    if LANGUAGES.get(draft.order.language) not in taken:
        every = len(taken) == len(stand.languages)
        takes = stand.takes if every else f"it takes {' and '.join(map(str, taken))}"
        return draft.close(
            Status.UNSUPPORTED,
            f"language '{draft.order.language}' does not run on target '{target}': {takes}",
        )
    language = LANGUAGES[draft.order.language]
    if reason := explain_unprepared(draft.order.source, language, draft.session.problem):
        return draft.close(Status.UNSUPPORTED, reason)
    if ill := stand.illness():
        return draft.close(Status.HARNESS_ERROR, ill)
    draft.session.ensure_admitted()
    rng = np.random.default_rng(int.from_bytes(draft.seed, "little"))
    try:
        with _blame(stand, draft):
            mounted = stand.mount(draft, rng)
    except Failed as failed:
        return draft.fail(failed)
    try:
        with _blame(stand, draft):
            return _judge(stand, mounted, draft)
    except Failed as failed:
        return draft.fail(failed, mounted.cause(failed), mounted.known_profile())


@contextmanager
def _blame(stand: Stand, draft: Draft) -> Iterator[None]:
    """Raises what fails inside as Failed, whoever found it, and as the stand's where it is ill."""
    try:
        yield
    except ChampionFailed as failed:
        # Whoever broke the stand, it is no judge of the champion.
        if failed.status in _BROKE:
            _ensure_well(stand, draft, f"the champion {failed}")
        raise
    except (RunFault, Failed) as fault:
        if fault.status in _BROKE:
            said = f"a candidate {fault.status}: {fault.reason}"
            _ensure_well(stand, draft, said, fault.log)
        if isinstance(fault, Failed):
            raise
        raise Failed.of_run(fault) from fault
    except SandboxError as error:
        # A process of ours that does not start may mean that the device is gone.
        _ensure_well(stand, draft, str(error))
        raise


def _ensure_well(stand: Stand, draft: Draft, failure: str, log: str = "") -> None:
    """Raises Failed where the stand itself does not work any more."""
    if ill := stand.illness_after(draft, failure):
        raise Failed(Status.HARNESS_ERROR, ill, log)


def _judge(stand: Stand, mounted: Mounted, draft: Draft) -> Verdict:
    """From the first process of a built candidate to its verdict."""
    with mounted.ready():
        with mounted.process() as side:
            mounted.try_on(side)
            if draft.is_right:
                mounted.look_closer(side)
            if draft.is_right and mounted.is_timed_as_tried:
                mounted.time(side)
        if draft.is_right:
            mounted.look_apart()
        draft.ensure_right()
        while mounted.goes_on():
            with mounted.timed_process() as side:
                mounted.time(side)
    return _conclude(stand, mounted, draft)


def _conclude(stand: Stand, mounted: Mounted, draft: Draft) -> Verdict:
    measured = mounted.conclude_times()
    if doubt := gates.first_failure(draft.timed):
        reason = f"{doubt.name}: {doubt.detail}"
        return draft.close(Status.SUSPECT, reason, known=mounted.known_profile())
    screened = stand.is_emulated or draft.order.protocol.is_quick
    status = Status.SCREENED if screened else Status.VERIFIED
    return draft.close(status, "", measured, mounted.profile())
