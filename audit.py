# SPDX-License-Identifier: Apache-2.0
"""Verifies a stored champion again and says whether its record still stands.

It decides what an audit's findings mean and what a record lacks. It opens no referee and prints
nothing: the caller brings a Bench. What is found is recorded as an event and changes nothing else
of the campaign.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from pydantic import ValidationError

from .agents.books.request import add_recorded_problem
from .errors import StorageError, UsageError
from .kernelbench.machine import machine_facts
from .kernelbench.problem import Workload
from .traces.events import (
    AuditOutcome,
    CampaignAudited,
    CampaignStarted,
    Difference,
    Event,
    Payload,
)
from .traces.fold import Entry
from .traces.records import (
    CAPABILITIES,
    UNATTENDED_MINIMUM,
    Check,
    Depth,
    Enforcement,
    Measurement,
    Speedup,
    Status,
    Verdict,
)
from .traces.sheet import Sheet
from .traces.wording import interval
from .verifier.request import Order, Referee
from .verifier.stands.contests import BLOCKS, ROUNDS
from .verifier.truth.trials import LEAST_TRIALS

LEAST_PAIRS = BLOCKS[Depth.CONFIRM] * ROUNDS[Depth.CONFIRM].least
"""Pairs that the interval of a confirmation rests on at least, however slow the kernel is."""

VERSIONS = (
    "kernelwright",
    "python",
    "kernel",
    "cpu",
    "compiler",
    "torch",
    "numpy",
    "scipy",
)
"""What the figures of a verdict depend on."""

MOODS = (Status.SUSPECT, Status.TIMED_OUT)
"""A machine that is busy with something else can cause these: a second look tells."""

UNJUDGED = (Status.UNSUPPORTED, Status.NOT_DISCRIMINATING, Status.HARNESS_ERROR)
"""These say nothing of the candidate."""

_NOT_RUN = ("not run", "skipped")


class OpenReferee(Protocol):
    """Opens a referee for a problem, a workload and a target."""

    def __call__(
        self, problem: str, workload: Workload, target: str
    ) -> AbstractContextManager[Referee]:
        """A running referee, closed at the end of the block. Raises the errors of errors.py."""


class AuditStore(Protocol):
    """What an audit needs of a store; `traces.store.Store` is one."""

    def append(self, campaign: str, payload: Payload) -> Event:
        """Adds one event to the campaign."""

    def sheet(self, campaign: str) -> AbstractContextManager[Sheet]:
        """The campaign, to be read."""

    def get_blob(self, sha: str) -> bytes:
        """What is kept under that hash, after checking that it still is."""

    def lease(self, campaign: str) -> AbstractContextManager[object]:
        """Keeps every other process off the campaign."""


def audit_campaign(campaign: str, store: AuditStore, bench: OpenReferee) -> CampaignAudited:
    """Verifies the campaign's champion again on this machine and records what was found.

    A champion that cannot be verified again, because its source, its problem or its workload is
    not what it was, is a finding and not an error.

    Raises:
        UsageError: there is no champion, or another process works on the campaign.
        PrerequisiteError: this machine lacks what every evaluation needs.
        SandboxError, StorageError: the harness failed; nothing was recorded.
    """
    with store.lease(campaign):
        with store.sheet(campaign) as sheet:
            started, champion = sheet.head.started, sheet.head.champion
            if champion is None:
                raise _no_winner_error(campaign, started)
            entry = sheet.read_whole([champion])[champion]
        try:
            looks = _looks(started, entry, store, bench)
        except UsageError as error:
            found = _finding(started, entry, (), str(error))
        else:
            found = _finding(started, entry, looks)
        store.append(campaign, found)
    return found


def _no_winner_error(campaign: str, started: CampaignStarted) -> UsageError:
    hint = f"`kernelwright run --resume {campaign}` goes on searching for one"
    if started.is_evaluation:
        hint = f"`kernelwright show {campaign}/1` says why its candidate is none"
    return UsageError(f"campaign {campaign} has no verified winner to look at again", hint=hint)


def _looks(
    started: CampaignStarted, entry: Entry, store: AuditStore, bench: OpenReferee
) -> tuple[Verdict, ...]:
    """One verdict, or two where the first may be the machine's mood; the last one counts."""
    add_recorded_problem(started)
    _require_same_problem(started)
    order = Order(source=_source(entry, store), language=entry.language, protocol=Depth.CONFIRM)
    with bench(started.problem, _workload(started), started.target) as referee:
        first = referee.evaluate(order)
        if first.status not in MOODS and not is_slower(first, entry.verdict):
            return (first,)
        return _order_verdicts(first, referee.evaluate(order))


def _order_verdicts(first: Verdict, second: Verdict) -> tuple[Verdict, Verdict]:
    """The one that counts last: a fault found is a fault, and of two passes the faster."""
    if second.status is not Status.VERIFIED and second.status not in MOODS:
        return first, second
    return (second, first) if _reach(first) > _reach(second) else (first, second)


def _reach(verdict: Verdict) -> float:
    """The upper end of what it may be faster by; 0 where it was not timed."""
    headline = _headline(verdict)
    return headline.high if headline else 0.0


def _require_same_problem(started: CampaignStarted) -> None:
    from .kernelbench.registry import get

    version = get(started.problem).version
    if version != started.problem_version:
        raise UsageError(
            f"the record is on version {started.problem_version} of {started.problem}, and this "
            f"is version {version}: they cannot be compared"
        )


def _workload(started: CampaignStarted) -> Workload:
    try:
        return Workload.model_validate(started.workload_spec)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"the record does not describe its workload: {place}: {first['msg']}"
        ) from error


def _source(entry: Entry, store: AuditStore) -> str:
    try:
        return store.get_blob(entry.candidate).decode()
    except (StorageError, UnicodeDecodeError) as error:
        raise UsageError(f"the source is not what was verified: {error}") from error


def is_slower(now: Verdict, then: Verdict | None) -> bool:
    """Whether both were timed and the interval of now lies wholly below that of then."""
    recorded = _headline(then)
    found = _headline(now)
    return bool(recorded and found and found.high < recorded.low)


def _headline(verdict: Verdict | None) -> Speedup | None:
    measurement = verdict.measurement if verdict else None
    return measurement.headline if measurement else None


def _finding(
    started: CampaignStarted, entry: Entry, looks: tuple[Verdict, ...], obstacle: str = ""
) -> CampaignAudited:
    then, now = entry.verdict, looks[-1] if looks else None
    outcome, reason = _outcome(then, now, obstacle)
    measurement = then.measurement if then else None
    return CampaignAudited(
        candidate=entry.candidate,
        outcome=outcome,
        reason=f"{reason} (on a second look, too)" if reason and len(looks) > 1 else reason,
        verdicts=looks,
        recorded=_headline(then),
        recorded_against=measurement.best_baseline if measurement else "",
        lacking=tuple(list_lacks(then, now, is_evaluation=started.is_evaluation)),
        differences=tuple(differences(started, then, now)),
    )


def _outcome(then: Verdict | None, now: Verdict | None, obstacle: str) -> tuple[AuditOutcome, str]:
    if now is None:
        return AuditOutcome.UNREPEATABLE, obstacle
    if now.status is not Status.VERIFIED:
        is_told = now.status not in UNJUDGED
        outcome = AuditOutcome.FAILED if is_told else AuditOutcome.UNREPEATABLE
        return outcome, f"{now.status}: {now.reasons[0] if now.reasons else 'no reason given'}"
    recorded, found = _headline(then), _headline(now)
    if recorded and found and is_slower(now, then):
        return AuditOutcome.SLOWER, (
            f"{interval(found)} lies below the recorded {interval(recorded)}"
        )
    return AuditOutcome.HOLDS, ""


def list_lacks(
    then: Verdict | None, now: Verdict | None = None, *, is_evaluation: bool = False
) -> Iterator[str]:
    """What a record should say and does not, a sentence each.

    Args:
        then: the recorded verdict.
        now: what the same candidate gets today; what is checked only since then is told by it.
        is_evaluation: it is of a campaign of one, whose process was fresh as such.
    """
    if then is None:
        yield "there is no verdict on it"
        return
    is_late = then.protocol.is_quick or (then.protocol is Depth.FULL and not is_evaluation)
    if then.status is not Status.VERIFIED or is_late:
        yield f"it was not confirmed in a fresh process: {then.status} by '{then.protocol}'"
    current = Verdict.model_fields["schema_version"].default
    if then.schema_version != current:
        yield f"its schema is version {then.schema_version}, today's is {current}"
    yield from _lacks_of_isolation(then)
    missing = [name for name in VERSIONS if not then.versions.get(name)]
    if missing:
        yield f"no version of {', '.join(missing)}"
    for name, value in (("seed", then.seed), ("hash of the artefact", then.artefact)):
        if not value:
            yield f"no {name}"
    yield from _lacks_of_checks(then, now)
    yield from _lacks_of_timing(then.measurement)


def _lacks_of_isolation(then: Verdict) -> Iterator[str]:
    if then.isolation is None:
        yield "no isolation matrix"
        return
    rows = then.isolation.capabilities
    for name in CAPABILITIES:
        if name not in rows:
            yield f"isolation: no row '{name}'"
        elif rows[name].state is Enforcement.ABSENT:
            yield f"isolation: '{name}' was not enforced: {rows[name].how}"
        elif rows[name].state is Enforcement.PARTIAL and name in UNATTENDED_MINIMUM:
            yield f"isolation: '{name}' was enforced in part only: {rows[name].how}"


def _lacks_of_checks(then: Verdict, now: Verdict | None) -> Iterator[str]:
    trials = sum(1 for check in then.checks if check.name.startswith("correct on "))
    if trials < LEAST_TRIALS:
        yield f"{trials} trials, and a VERIFIED verdict rests on at least {LEAST_TRIALS}"
    # Records of before have no such list.
    for missing in getattr(then, "unchecked", ()):
        yield f"unchecked: {missing}"
    for check in then.checks:
        if any(word in check.detail for word in _NOT_RUN):
            yield f"unchecked: {check.name}: {check.detail}"
    if now is not None and now.status is Status.VERIFIED:
        known = {_kind(check) for check in then.checks}
        new = dict.fromkeys(_kind(check) for check in now.checks)
        for kind in new:
            if kind not in known:
                yield f"unchecked: '{kind}', which is checked today"


def _kind(check: Check) -> str:
    """The name without the trial that it was on."""
    return check.name.partition(" on ")[0]


def _lacks_of_timing(measurement: Measurement | None) -> Iterator[str]:
    if measurement is None:
        return
    if measurement.pairs < LEAST_PAIRS:
        yield f"{measurement.pairs} timed pairs; an interval rests on at least {LEAST_PAIRS}"
    for name, reason in measurement.missing.items():
        yield f"not held against {name}, which did not run: {reason}"


def differences(
    started: CampaignStarted, then: Verdict | None, now: Verdict | None
) -> Iterator[Difference]:
    """What is known of the machine both then and now, and is not the same."""
    before = {**started.machine, **(_facts(then) if then else {})}
    today = {**machine_facts(), **(_facts(now) if now else {})}
    for name, value in before.items():
        if today.get(name, value) != value:
            yield Difference(name=name, then=value, now=today[name])


def _facts(verdict: Verdict) -> Mapping[str, str]:
    facts = dict(verdict.versions)
    if verdict.isolation:
        facts["sandbox"] = verdict.isolation.mechanism
    if verdict.measurement:
        facts["threads"] = str(verdict.measurement.threads)
        facts["best baseline"] = verdict.measurement.best_baseline
    return facts
