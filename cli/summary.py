# SPDX-License-Identifier: Apache-2.0
"""What a person reads at the end: a verdict in full, a campaign's winner and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..config import DEFAULT_MAX_TIME_S, format_duration
from ..kernelbench.targets import target_of
from ..traces.history import History
from ..traces.outcome import how_fast, how_sure, what_decides, why_no_winner
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
    history: History, unconfirmed: str | None = None, *, is_running: bool = False
) -> Iterator[str]:
    """The champion against every baseline, or why there is none, and how weak the sandbox was.

    Args:
        unconfirmed: A candidate that screened better, for whose confirmation no time was left.
    """
    yield from _winner(history, is_running=is_running)
    if unconfirmed:
        number = history.entries[unconfirmed].number
        yield f"  not confirmed before the end, and maybe faster: {unconfirmed[:10]} (#{number})"
    if knobs := what_decides(history):
        yield f"  knobs: {knobs}"
    if pace := how_fast(history):
        yield f"  {pace}"
    if history.is_weakly_isolated:
        yield f"  in a sandbox that does not enforce {', '.join(history.not_enforced)}"
    if history.tokens:
        yield f"  {tokens(history.tokens)} tokens of models, {price(history.usd)}"
    if history.booked.attempts:
        yield f"  {booked_words(history.booked)}"
    if history.preparation_s:
        yield f"  {preparation(history.prepared[-1])}"
    if history.prepared and (expected := expectation(history.prepared[0])):
        yield f"  {expected}"


def booked_words(booked: Booked) -> str:
    """What of the spending nobody knows to have been spent."""
    attempts = f"{booked.attempts} attempt{'s' if booked.attempts > 1 else ''}"
    return (
        f"of these {tokens(booked.tokens)} tokens, {price(booked.usd)}, are only booked: for "
        f"{attempts} without an answer, of which nobody knows whether it was charged"
    )


def _winner(history: History, *, is_running: bool) -> Iterator[str]:
    entry = history.best
    verdict = entry.verdict if entry else None
    if entry is None or verdict is None:
        yield from _leader(history)
        yield "no winner yet" if is_running else f"no verified winner: {why_no_winner(history)}"
        return
    knobs = " ".join(f"{name}={value}" for name, value in entry.knobs.items())
    yield f"winner: {entry.candidate[:10]} (#{entry.number})  {entry.family}  {knobs}".rstrip()
    yield f"  {verdict.status}, {_how_judged(history, verdict)}"
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
    if sure := how_sure(history):
        yield f"  {sure}"


def _how_judged(history: History, verdict: Verdict) -> str:
    if history.started.is_evaluation:
        return f"by the protocol {verdict.protocol} in a fresh process"
    if verdict.protocol is Depth.CONFIRM:
        return "confirmed in a fresh process"
    return f"not confirmed ({verdict.protocol} only)"


def _leader(history: History) -> Iterator[str]:
    """Who leads a ranking by modelled times, with what that is not."""
    entry = history.leader
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


def more_limits(history: History) -> str:
    """Flags that double what the campaign may spend: on resuming, what was spent counts."""
    seconds = history.limits.get("seconds")
    evaluations = history.limits.get("evaluations")
    flags = []
    if evaluations is not None:
        flags.append(f"--max-evals {max(1, int(evaluations * 2))}")
    if "tokens" in history.limits:
        flags.append(f"--max-tokens {int(history.limits['tokens'] * 2)}")
    if "usd" in history.limits:
        flags.append(f"--max-usd {history.limits['usd'] * 2:g}")
    if seconds is not None or not flags:
        flags.append(f"--max-time {format_duration(2 * (seconds or DEFAULT_MAX_TIME_S))}")
    return " ".join(flags)


def next_steps(history: History, home: str) -> Iterator[str]:
    """The commands a reader would want now; `home` is `--home …` where it is not the default."""
    tail = f" {home}" if home else ""
    campaign = history.campaign
    yield f"resume   kernelwright run --resume {campaign} {more_limits(history)}{tail}"
    yield f"report   kernelwright report {campaign} -o report.html{tail}"
    if history.champion is not None:
        yield f"export   kernelwright export {campaign}@best -o winner{tail}"
    elif history.leader is not None:
        yield f"export   kernelwright export {campaign}@best --unverified -o leader{tail}"
