# SPDX-License-Identifier: Apache-2.0
"""The figures of a bundle as people read them: one place for every README and benchmark line."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import JsonValue

from ...kernelbench.languages import language_of
from ..records import Check, Isolation
from ..wording import figure, interval, micros, ratio
from .bundle import Bundle

# An absolute path of two or more parts; units such as GB/s have no leading slash.
_HOST_PATH = re.compile(r"(?<![\w./])(?:/[\w.+@~-]+){2,}/?|(?<!\w)[A-Za-z]:\\[^\s'\"]+")

# The referee times the campaign's champion of that moment beside the libraries.
_BASELINE_NAMES = {"champion": "the campaign's earlier champion"}


class SpeedupRow(NamedTuple):
    """One line of the table of speed-ups."""

    workload: str
    baseline: str
    median: str
    interval: str
    kernel: str
    pairs: int


class CheckRow(NamedTuple):
    """One line of the table of checks."""

    name: str
    times: int
    figure: str
    """The largest of the group."""
    limit: str
    passed: str


@dataclass(frozen=True)
class Facts:
    """Everything the templates say of the evidence, in words."""

    machine: str
    date: str
    isolation: str
    build: str
    versions: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]
    rows: tuple[SpeedupRow, ...]
    checks: tuple[CheckRow, ...]
    unchecked: tuple[str, ...] = ()
    modelled: str = ""
    """The modelled time, where nothing was timed."""
    mark: str = ""
    """What stands behind a speed-up that is not credited."""

    @property
    def speedup_lines(self) -> tuple[str, ...]:
        """The speed-ups as plain sentences, for a terminal."""
        return tuple(
            f"{row.median} against {row.baseline} on workload {row.workload} "
            f"(95 % interval {row.interval}, kernel median {row.kernel}){self.mark}"
            for row in self.rows
        ) or ("no speed-up was recorded",)


def facts_of(bundle: Bundle) -> Facts:
    """The facts of a bundle, without paths of the machine they were found on."""
    verdict, is_native = bundle.verdict, language_of(bundle.language).is_native
    versions = dict(verdict.versions)
    machine = versions.pop("cpu", "") or bundle.machine.get("cpu", "")
    system = versions.pop("kernel", "") or bundle.machine.get("kernel", "")
    return Facts(
        machine=without_paths(", ".join(part for part in (machine, system) if part))
        or "not recorded",
        date=_date(bundle.verified_at),
        isolation=_isolation(verdict.isolation),
        build=" ".join(bundle.flags) if is_native else "",
        versions=tuple((k, without_paths(v)) for k, v in sorted(versions.items())),
        reasons=tuple(without_paths(reason) for reason in verdict.reasons),
        rows=_speedups(bundle),
        checks=_checks(verdict.checks),
        unchecked=tuple(without_paths(missing) for missing in verdict.unchecked),
        modelled=micros(verdict.modelled_us) if verdict.modelled_us else "",
        mark=", a screen estimate: not credited" if verdict.screen_estimate else "",
    )


def without_paths(text: str) -> str:
    """The text with absolute paths replaced: they say nothing elsewhere and tell of a home."""
    return _HOST_PATH.sub("<path>", text)


def scrub_paths(value: Any) -> Any:
    """A JSON value with `without_paths` applied to every string, keys included."""
    if isinstance(value, str):
        return without_paths(value)
    if isinstance(value, Mapping):
        return {without_paths(str(key)): scrub_paths(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrub_paths(item) for item in value]
    return value


def record_json(bundle: Bundle) -> str:
    """The verdict as JSON, without its log (a compiler's words are no evidence) and paths."""
    verdict = bundle.verdict.model_copy(update={"log": ""})
    return json.dumps(scrub_paths(json.loads(verdict.model_dump_json())), indent=2) + "\n"


def provenance(bundle: Bundle) -> dict[str, JsonValue]:
    """Where the kernel comes from and how it is called."""
    is_native = language_of(bundle.language).is_native
    found: dict[str, JsonValue] = scrub_paths(
        {
            "schema_version": 1,
            "problem": bundle.problem,
            "title": bundle.title,
            "definition": bundle.definition,
            "axes": bundle.axes,
            "inputs": [_tensor(t) for t in bundle.inputs],
            "outputs": [_tensor(t) for t in bundle.outputs],
            "entry": bundle.entry if is_native else None,
            "language": bundle.language,
            "flags": bundle.flags if is_native else None,
            "candidate": bundle.candidate,
            "campaign": bundle.campaign,
            "lineage": [step._asdict() for step in bundle.lineage],
            "verified_at": bundle.verified_at,
            "machine": bundle.machine,
        }
    )
    return found


def _tensor(tensor: Any) -> dict[str, JsonValue]:
    return {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "is_index": tensor.is_index,
        "meaning": tensor.meaning,
    }


def _date(at: float | None) -> str:
    if at is None:
        return "not recorded"
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _isolation(isolation: Isolation | None) -> str:
    if isolation is None:
        return "not recorded"
    lacking = isolation.lacking
    return isolation.mechanism + (f", not enforced: {', '.join(lacking)}" if lacking else "")


def _speedups(bundle: Bundle) -> tuple[SpeedupRow, ...]:
    return tuple(
        SpeedupRow(
            workload=measurement.workload,
            baseline=_BASELINE_NAMES.get(baseline, baseline),
            median=ratio(speedup.median),
            interval=interval(speedup),
            kernel=micros(measurement.candidate.median_us),
            pairs=measurement.pairs,
        )
        for measurement in bundle.verdict.measurements
        for baseline, speedup in sorted(measurement.speedup.items())
    )


def _checks(checks: Sequence[Check]) -> tuple[CheckRow, ...]:
    """One row for checks that differ in the workload only: a verdict may hold a hundred."""
    groups: dict[tuple[str, float | None], list[Check]] = {}
    for check in checks:
        kind = check.name.replace(check.workload, "…") if check.workload else check.name
        groups.setdefault((kind, check.limit), []).append(check)
    return tuple(_row(kind, limit, group) for (kind, limit), group in groups.items())


def _row(kind: str, limit: float | None, group: Sequence[Check]) -> CheckRow:
    figures = [check.figure for check in group if check.figure is not None]
    failed = sum(not check.passed for check in group)
    return CheckRow(
        name=kind,
        times=len(group),
        figure=figure(max(figures, default=None)),
        limit=figure(limit),
        passed=f"no, {failed} failed" if failed else "yes",
    )
