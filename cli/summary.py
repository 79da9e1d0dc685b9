# SPDX-License-Identifier: Apache-2.0
"""What a person reads at the end: a verdict in full, a campaign's winner and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..config import DEFAULT_MAX_TIME_S, format_duration
from ..kernelbench.targets import target_of
from ..traces.fold import Entry
from ..traces.head import Head
from ..traces.records import CHAMPION, Depth, Verdict
from ..traces.spending import Booked
from ..traces.wording import micros, price, speedup, tokens
from . import verdicts
from .progress import expectation, preparation

if TYPE_CHECKING:
    from rich.console import Console


def print_verdict(console: Console, verdict: Verdict, *, is_full: bool = False) -> None:
    """Status and reasons, checks (every single one if `is_full`), every measurement."""
    for line in verdicts.explain(verdict):
        console.print(line, style=verdicts.style_of(verdict.status), markup=False)
    if verdict.checks:
        console.print(verdicts.checks_table(verdict, is_full=is_full))
    for measurement in verdict.measurements:
        console.print(f"on {measurement.workload}", markup=False)
        console.print(verdicts.measurement_table(measurement))
        for note in verdicts.measurement_notes(measurement):
            console.print(f"  {note}", markup=False)
    if verdict.profile and not target_of(verdict.target).is_cpu:
        console.print(verdicts.profile_table(verdict.profile))
        for remark in verdict.profile.remarks:
            console.print(f"  {remark}", markup=False)
    if verdict.log:
        console.print(verdict.log.rstrip(), style="dim", markup=False)


def winner_lines(
    head: Head, best: Entry | None, unconfirmed: Entry | None = None, *, is_running: bool = False
) -> Iterator[str]:
    """The champion against every baseline, or why there is none, and how weak the sandbox was.

    Args:
        best: The champion with all that was recorded of it.
        unconfirmed: A candidate that screened better, for whose confirmation no time was left.
    """
    yield from _winner(head, best, is_running=is_running)
    if unconfirmed:
        name = f"{unconfirmed.candidate[:10]} (#{unconfirmed.number})"
        yield f"  not confirmed before the end, and maybe faster: {name}"
    if head.what_decides:
        yield f"  knobs: {head.what_decides}"
    if head.how_fast:
        yield f"  {head.how_fast}"
    if head.is_weakly_isolated:
        yield f"  in a sandbox that does not enforce {', '.join(head.not_enforced)}"
    spent = head.spent
    if spent.tokens:
        yield f"  {tokens(spent.tokens)} tokens of models, {price(spent.usd)}"
    if spent.booked.attempts:
        yield f"  {booked_words(spent.booked)}"
    if head.last_preparation and head.preparation_s:
        yield f"  {preparation(head.last_preparation)}"
    if head.first_preparation and (expected := expectation(head.first_preparation)):
        yield f"  {expected}"


def booked_words(booked: Booked) -> str:
    """What of the spending nobody knows to have been spent."""
    attempts = f"{booked.attempts} attempt{'s' if booked.attempts > 1 else ''}"
    return (
        f"of these {tokens(booked.tokens)} tokens, {price(booked.usd)}, are only booked: for "
        f"{attempts} without an answer, of which nobody knows whether it was charged"
    )


def _winner(head: Head, entry: Entry | None, *, is_running: bool) -> Iterator[str]:
    verdict = entry.verdict if entry else None
    if entry is None or verdict is None:
        yield from _leader(head)
        why = f"no verified winner: {head.why_no_winner}"
        yield "no winner yet" if is_running else head.why_no_winner if head.leader else why
        return
    knobs = " ".join(f"{name}={value}" for name, value in entry.knobs.items())
    yield f"winner: {entry.candidate[:10]} (#{entry.number})  {entry.family}  {knobs}".rstrip()
    yield f"  {verdict.status}, {_how_judged(head, verdict)}"
    for missing in verdict.unchecked:
        yield f"  not checked: {missing}"
    measurement = verdict.measurement
    if measurement is None:
        return
    yield f"  {micros(measurement.candidate.median_us)} on {measurement.workload}"
    for name, gain in measurement.speedup.items():
        mark = "  (the best baseline)" if name == measurement.best_baseline else ""
        rival = "the champion before it" if name == CHAMPION else name
        yield f"  {speedup(gain)} vs {rival}{mark}"
    if head.how_sure:
        yield f"  {head.how_sure}"


def _how_judged(head: Head, verdict: Verdict) -> str:
    if head.started.is_evaluation:
        return f"by the protocol {verdict.protocol} in a fresh process"
    if verdict.protocol is Depth.CONFIRM:
        return "confirmed in a fresh process"
    return f"not confirmed ({verdict.protocol} only)"


def _leader(head: Head) -> Iterator[str]:
    """Who leads a ranking by modelled times, with what that is not."""
    entry = head.leader
    verdict = entry.verdict if entry else None
    if entry is None or verdict is None or verdict.modelled_us is None:
        return
    knobs = " ".join(f"{name}={value}" for name, value in entry.knobs.items())
    lead = f"leads by modelled time: {entry.candidate[:10]} (#{entry.number})"
    yield f"{lead}  {entry.family}  {knobs}".rstrip()
    from ..verifier.profile.remarks import known_error

    yield (
        f"  {verdict.label}, {micros(verdict.modelled_us)} modelled on {verdict.workload}"
        f"{known_error(verdict.target)}; nothing ran on {verdict.target}: no speed-up is claimed"
    )


def more_limits(head: Head) -> str:
    """Flags that double what the campaign may spend: on resuming, what was spent counts."""
    seconds = head.limits.get("seconds")
    evaluations = head.limits.get("evaluations")
    flags = []
    if evaluations is not None:
        flags.append(f"--max-evals {max(1, int(evaluations * 2))}")
    if "tokens" in head.limits:
        flags.append(f"--max-tokens {int(head.limits['tokens'] * 2)}")
    if "usd" in head.limits:
        flags.append(f"--max-usd {head.limits['usd'] * 2:g}")
    if seconds is not None or not flags:
        flags.append(f"--max-time {format_duration(2 * (seconds or DEFAULT_MAX_TIME_S))}")
    return " ".join(flags)


def next_steps(head: Head, home: str) -> Iterator[str]:
    """The commands a reader would want now; `home` is `--home …` where it is not the default."""
    tail = f" {home}" if home else ""
    campaign = head.campaign
    yield f"resume   kernelwright run --resume {campaign} {more_limits(head)}{tail}"
    yield f"report   kernelwright report {campaign} -o report.html{tail}"
    if head.champion is not None:
        yield f"export   kernelwright export {campaign}@best -o winner{tail}"
    elif head.leader is not None:
        yield f"export   kernelwright export {campaign}@best --unverified -o leader{tail}"
