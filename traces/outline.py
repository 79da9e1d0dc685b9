# SPDX-License-Identifier: Apache-2.0
"""A candidate without its bulk: what lists, charts and trees show of it, small enough to be read by
the thousand.

An outline is an `Entry` whose one verdict is the one that counts, without checks, samples, profile
and logs. `fill` makes it whole again from the events that it names, but for what only a search
asks: by which verdict a champion fell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pydantic import TypeAdapter

from .events import AdviceGiven, CandidateCounted, EvaluationFinished, Event
from .fold import Entry, with_counters
from .records import CHAMPION, MODELLED_US, Measurement, Profile, Verdict

_ADAPTER = TypeAdapter(Entry)


def outline(entry: Entry) -> Entry:
    """The candidate without its bulk."""
    verdict = entry.verdict
    return replace(
        entry,
        verdicts=(outline_verdict(verdict),) if verdict else (),
        relied_on=(),
        fallen=None,
        advice=None,
        counted=None,
    )


def outline_verdict(verdict: Verdict) -> Verdict:
    """Status, reasons and the figures on the workload asked for."""
    return verdict.model_copy(
        update={
            "checks": (),
            "unchecked": (),
            "measurements": tuple(map(_outline_measurement, verdict.measurements[:1])),
            "profile": _outline_profile(verdict.profile),
            "isolation": None,
            "seed": "",
            "tried": "",
            "seconds": {},
            "versions": {},
            "artefact": "",
            "log": "",
            "champion": None,
        }
    )


def _outline_measurement(measurement: Measurement) -> Measurement:
    """The candidate's time, and what it is held against by name."""
    kept = (measurement.best_baseline, CHAMPION)
    return measurement.model_copy(
        update={
            "candidate": measurement.candidate.model_copy(update={"samples_us": ()}),
            "baselines": {},
            "missing": {},
            "speedup": {k: v for k, v in measurement.speedup.items() if k in kept},
        }
    )


def _outline_profile(profile: Profile | None) -> Profile | None:
    """What ranks a candidate that nobody timed."""
    kept = [m for m in profile.metrics if m.name == MODELLED_US] if profile else []
    return Profile(metrics=tuple(kept)) if kept else None


def write_outline(entry: Entry) -> str:
    """An outline as JSON."""
    return _ADAPTER.dump_json(entry, exclude_defaults=True).decode()


def read_outline(text: str) -> Entry:
    """What `write_outline` wrote. ValueError where it is none."""
    return _ADAPTER.validate_json(text)


def fill(entry: Entry, events: Iterable[Event]) -> Entry:
    """The candidate with all that was recorded of it.

    Args:
        events: those that it names, in order.
    """
    entry = replace(entry, verdicts=(), relied_on=())
    for event in events:
        match event.payload:
            case EvaluationFinished(verdict=verdict, decided_on=decided_on):
                entry = _judge(entry, verdict, decided_on or verdict)
            case CandidateCounted() as counted:
                entry = with_counters(entry, counted)
            case AdviceGiven(advice=advice):
                entry = replace(entry, advice=advice)
    return entry


def _judge(entry: Entry, verdict: Verdict, decided: Verdict) -> Entry:
    """With what an evaluation found of it: its own, or one of a challenger beside it."""
    seen = [each for each in (verdict, verdict.champion) if _is_of(each, entry)]
    entry = replace(entry, verdicts=(*entry.verdicts, *(each for each in seen if each)))
    if _is_of(verdict, entry):
        entry = replace(entry, relied_on=(*entry.relied_on, decided))
    return entry


def _is_of(verdict: Verdict | None, entry: Entry) -> bool:
    return verdict is not None and verdict.candidate == entry.candidate
