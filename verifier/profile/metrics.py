# SPDX-License-Identifier: Apache-2.0
"""Which hardware metrics there are to collect, and which of them a Judge is fed: `metrics.toml`.

It knows names and where they hold, no values. A user's own file, as `kernelwright metrics derive`
writes it, adds [judge] tables that go before the packaged ones.
"""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import ConfigError, UnknownNameError
from ...kernelbench.targets import target_of
from ...traces.records import Counting

PACKAGED = Path(__file__).with_name("metrics.toml")
OWN = "metrics.toml"
"""The name of the user's file, in the home of the store."""
STALLS = "stalls"
"""In a list of names: the whole breakdown of stalls."""
SCHEMA = 1

Choice = Mapping[str, tuple[str, ...]]
"""Names of metrics by tag of problems; `any` for the rest."""


@dataclass(frozen=True)
class Catalogue:
    """The content of the metrics' files."""

    sets: Mapping[str, tuple[str, ...]]
    stall_reasons: Mapping[str, tuple[str, ...]]
    """By set."""
    stall_metric: str
    """With `{reason}`."""
    renamed: Mapping[str, Mapping[str, str]]
    absent: Mapping[str, tuple[str, ...]]
    static: tuple[str, ...]
    """What a static profile tells of tensor cores; no counters."""
    judge: Choice
    judge_on: Mapping[str, Choice]
    """By target (`sm_90`, `cpu`); goes before `judge`."""
    scales: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Of modelled times, by target; see fit.py."""

    def names(self, architecture: str, which: str = "full") -> tuple[str, ...]:
        """What ncu is asked for on this architecture, stalls included.

        Raises:
            UnknownNameError: there is no such set.
        """
        if which not in self.sets:
            raise UnknownNameError.for_name("set of metrics", which, self.sets)
        plain = target_of(architecture).name
        renamed, absent = self.renamed.get(plain, {}), self.absent.get(plain, ())
        names = [renamed.get(name, name) for name in self.sets[which] if name not in absent]
        return (*names, *self.stalls(architecture, which))

    def stalls(self, architecture: str, which: str = "full") -> dict[str, str]:
        """Metric → reason of the stalls that this architecture tells."""
        absent = self.absent.get(target_of(architecture).name, ())
        return {
            self.stall_metric.format(reason=reason): reason
            for reason in self.stall_reasons.get(which, ())
            if reason not in absent
        }

    def list_collected(self, architecture: str, counting: Counting) -> tuple[str, ...]:
        """What ncu is asked for: the set, and what the Judge is fed beside it.

        Raises:
            UnknownNameError: there is no such set.
        """
        absent = self.absent.get(target_of(architecture).name, ())
        judged = [
            found
            for name in counting.judged
            for found in (self.stalls(architecture) if name == STALLS else (name,))
            if found not in absent and found not in self.static
        ]
        return tuple(dict.fromkeys([*self.names(architecture, counting.which), *judged]))

    def judge_metrics(self, target: str, tags: Sequence[str]) -> tuple[str, ...]:
        """What a Judge is fed of a problem with these tags; `stalls` stands for the breakdown."""
        renamed = self.renamed.get(target_of(target).name, {})
        for choice in (self.judge_on.get(target_of(target).name, {}), self.judge):
            for tag in (*tags, "any"):
                if tag in choice:
                    return tuple(renamed.get(name, name) for name in choice[tag])
        return ()


@functools.lru_cache(maxsize=1)
def load_packaged() -> Catalogue:
    """What ships with kernelwright."""
    content = tomllib.loads(PACKAGED.read_text("utf-8"))
    sets, stalls = content["sets"], content["stalls"]
    judge, judge_on = _choices(content["judge"])
    return Catalogue(
        sets={name: tuple(_expand_set(sets, name)) for name in sets},
        stall_reasons={name: tuple(one.get("stalls", ())) for name, one in sets.items()},
        stall_metric=stalls["metric"],
        renamed=content["renamed"],
        absent={name: tuple(names) for name, names in content["absent"].items()},
        static=tuple(content["static"]["names"]),
        judge=judge,
        judge_on=judge_on,
    )


def catalogue(home: Path | None = None) -> Catalogue:
    """The packaged catalogue, with what the user's file in `home` says of the Judge.

    Raises:
        ConfigError: that file cannot be read or does not have its form.
    """
    own = home / OWN if home else None
    if own is None or not own.exists():
        return load_packaged()
    try:
        content = tomllib.loads(own.read_text("utf-8"))
        if content.get("schema") != SCHEMA:
            raise ValueError(f"its schema is {content.get('schema')}, not {SCHEMA}")
        if unknown := content.keys() - {"schema", "judge", "derived", "model", "fitted"}:
            raise ValueError(f"it has the unknown table {min(unknown)}")
        judge, judge_on = _choices(content.get("judge", {}))
        scales = _scales(content.get("model", {}))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the metrics' file {own} cannot be used: {error}",
            hint="delete it, or write it anew with `kernelwright metrics derive --write`",
        ) from error
    found = load_packaged()
    targets = {*found.judge_on, *judge_on}
    merged = {t: {**found.judge_on.get(t, {}), **judge_on.get(t, {})} for t in targets}
    return replace(found, judge={**found.judge, **judge}, judge_on=merged, scales=scales)


def _expand_set(sets: Mapping[str, Any], name: str) -> Iterable[str]:
    """The names of a set, those that it includes first, each once."""
    names = [n for other in sets[name].get("includes", ()) for n in _expand_set(sets, other)]
    return dict.fromkeys([*names, *sets[name]["names"]])


def _choices(tables: object) -> tuple[dict[str, tuple[str, ...]], dict[str, Choice]]:
    """[judge.TAG] and [judge.TARGET.TAG]. Raises ValueError."""
    if not isinstance(tables, dict):
        raise ValueError("judge is no table")
    everywhere: dict[str, tuple[str, ...]] = {}
    on_target: dict[str, Choice] = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(f"judge.{name} is no table")
        if "names" in table:
            everywhere[name] = _names(f"judge.{name}", table)
        else:
            on_target[name] = {
                tag: _names(f"judge.{name}.{tag}", inner) for tag, inner in table.items()
            }
    return everywhere, on_target


def _scales(tables: object) -> dict[str, dict[str, float]]:
    """[model.TARGET] of factors above 0. Raises ValueError."""
    if not isinstance(tables, dict):
        raise ValueError("model is no table")
    for target, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(f"model.{target} is no table")
        for term, scale in table.items():
            if not isinstance(scale, int | float) or not 0 < scale < math.inf:
                raise ValueError(f"model.{target}.{term} is {scale!r}, no factor above 0")
    return {t: {term: float(s) for term, s in table.items()} for t, table in tables.items()}


def _names(place: str, table: object) -> tuple[str, ...]:
    names = table.get("names") if isinstance(table, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{place} has no list of names")
    return tuple(names)
