# SPDX-License-Identifier: Apache-2.0
"""Recorded spaces: what every tried point of a kernel's knobs took, in files that others write.

Two forms are read and written: Kernel Tuner's cache files (one object whose `cache` has an entry a
configuration; github.com/KernelTuner/kernel_tuner) and T4, the results format of the FAIR
Benchmark Hub for Auto-Tuning (a list `results` with `configuration`, `times`, `invalidity` and
`measurements`; github.com/odgaard/TuningSchema). Either may be compressed by gzip. Times are
milliseconds there and microseconds here.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UsageError
from .recipe import Knob, KnobValue
from .space import Space, space_of_points

CACHE, T4 = "cache", "t4"
RIGHT = "correct"
"""T4's word for a configuration that has a time."""
COMPILE, RUNTIME, WRONG = "compile", "runtime", "correctness"
"""T4's words for how one failed."""
_OF_CACHE = {"CompilationFailedConfig": COMPILE, "InvalidConfig": "constraints"}
_IN_CACHE = {name: word for word, name in _OF_CACHE.items()}
_OTHER = "RuntimeFailedConfig"
"""Kernel Tuner's names of the same."""
EMPTY = ""
"""In a cache file: what a point does not have, where another has it."""
MODELLED = "modelled_us"
"""Beside a time in a cache file of ours: what a model of the machine says of the point."""


@dataclass(frozen=True)
class RecordedSpace:
    """A space, and the time of each of its points."""

    name: str
    """Of the kernel."""
    device: str
    space: Space
    times_us: tuple[float | None, ...]
    """By point; None: it failed."""
    failures: tuple[str, ...]
    """By point: how it failed, in T4's words; empty where it did not."""

    @property
    def best_us(self) -> float:
        """The shortest time."""
        return min(time for time in self.times_us if time is not None)


def read_space(path: Path) -> RecordedSpace:
    """Reads a recorded space of either form. Raises UsageError, with the place in the file."""
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        found = json.loads(content)
    except (OSError, EOFError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read as a recorded space: {error}",
            hint="give a cache file of Kernel Tuner or a T4 file, as JSON, plain or gzipped",
        ) from error
    try:
        recorded = _of_cache(found) if "cache" in found else _of_t4(found)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(
            f"{path} is no recorded space: {type(error).__name__} at {error}",
            hint="a cache file has tune_params, tune_params_keys and cache; a T4 file has results",
        ) from error
    if all(time is None for time in recorded.times_us):
        raise UsageError(f"{path} has {len(recorded.times_us)} configurations and no time of any")
    return recorded


def write_space(recorded: RecordedSpace, path: Path, form: str) -> None:
    """Writes it whole or not at all, compressed where the name ends in .gz."""
    if form not in (CACHE, T4):
        raise UsageError(f"there is no form '{form}'", hint=f"choose {CACHE} or {T4}")
    content = json.dumps(_as_cache(recorded) if form == CACHE else _as_t4(recorded)).encode()
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(content)
    beside.replace(path)


def _of_cache(found: Mapping[str, Any]) -> RecordedSpace:
    names: list[str] = found["tune_params_keys"]
    knobs = [_make_knob(name, found["tune_params"][name]) for name in names]
    entries = list(found["cache"].values())
    # What a point does not have is empty there, unless that is one of the knob's values.
    absent = {name: () if EMPTY in found["tune_params"][name] else (EMPTY,) for name in names}
    points = [
        {name: entry[name] for name in names if entry[name] not in absent[name]}
        for entry in entries
    ]
    objective = found.get("objective", "time")
    times = [_time_us(entry[objective]) for entry in entries]
    failures = [
        "" if time is not None else _OF_CACHE.get(str(entry[objective]), RUNTIME)
        for time, entry in zip(times, entries, strict=True)
    ]
    space = space_of_points(knobs, points)
    if all(MODELLED in entry for entry in entries):
        space = replace(space, modelled=np.log([float(entry[MODELLED]) for entry in entries]))
    return RecordedSpace(
        str(found["kernel_name"]),
        str(found["device_name"]),
        space,
        tuple(times),
        tuple(failures),
    )


def _of_t4(found: Mapping[str, Any]) -> RecordedSpace:
    results = found["results"]
    points: list[dict[str, KnobValue]] = [dict(each["configuration"]) for each in results]
    names = dict.fromkeys(name for point in points for name in point)
    knobs = [
        _make_knob(name, _sort_values({point[name] for point in points if name in point}))
        for name in names
    ]
    times: list[float | None] = []
    for each in results:
        is_right = each["invalidity"] == RIGHT
        times.append(_time_us(_objective(each)) if is_right else None)
    failures = ["" if each["invalidity"] == RIGHT else str(each["invalidity"]) for each in results]
    metadata = found.get("metadata", {})
    return RecordedSpace(
        str(metadata.get("kernel_name", "")),
        str(metadata.get("device_name", "")),
        space_of_points(knobs, points),
        tuple(times),
        tuple(failures),
    )


def _objective(result: Mapping[str, Any]) -> object:
    """The measurement that is its objective: in milliseconds, `time` as a rule."""
    name = result.get("objectives", ["time"])[0]
    return next(each["value"] for each in result["measurements"] if each["name"] == name)


def _make_knob(name: str, values: list[KnobValue]) -> Knob:
    return Knob(name, tuple(values), "as recorded")


def _sort_values(values: set[KnobValue]) -> list[KnobValue]:
    return sorted(values, key=lambda value: (isinstance(value, str), value))


def _time_us(value: object) -> float | None:
    """None for the name of a failure, and for what is no time at all."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value * 1e3 if math.isfinite(value) and value > 0 else None


def _as_cache(recorded: RecordedSpace) -> dict[str, Any]:
    names = [knob.name for knob in recorded.space.knobs]
    cache: dict[str, Any] = {}
    for number, (time, failure) in enumerate(
        zip(recorded.times_us, recorded.failures, strict=True)
    ):
        point = recorded.space.at(number)
        entry: dict[str, Any] = {name: point.get(name, EMPTY) for name in names}
        key = ",".join(str(value) for value in entry.values())
        told = _IN_CACHE.get(failure, _OTHER) if time is None else time / 1e3
        cache[key] = {**entry, "time": told}
        if recorded.space.modelled is not None:
            cache[key][MODELLED] = round(float(np.exp(recorded.space.modelled[number])), 3)
    return {
        "device_name": recorded.device,
        "kernel_name": recorded.name,
        "problem_size": "",
        "tune_params_keys": names,
        "tune_params": {knob.name: list(knob.values) for knob in recorded.space.knobs},
        "objective": "time",
        "cache": cache,
    }


def _as_t4(recorded: RecordedSpace) -> dict[str, Any]:
    results = []
    for number, (time, failure) in enumerate(
        zip(recorded.times_us, recorded.failures, strict=True)
    ):
        measured = [] if time is None else [{"name": "time", "value": time / 1e3, "unit": "ms"}]
        results.append(
            {
                "configuration": recorded.space.at(number),
                "objectives": ["time"],
                "times": {},
                "invalidity": RIGHT if time is not None else failure,
                "correctness": float(time is not None),
                "measurements": measured,
            }
        )
    return {
        "schema_version": "1.0.0",
        "metadata": {"kernel_name": recorded.name, "device_name": recorded.device},
        "results": results,
    }
