# SPDX-License-Identifier: Apache-2.0
"""The closed catalogue of techniques (`techniques.toml`), and which of them apply where.

A technique is a name with words for a Coder; an applicability test rests on the problem's tags, the
target and, where there is one, the candidate's profile. It says what may be tried, never that it
helps: that is for the referee.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...kernelbench.problem import Problem
from ...kernelbench.targets import target_of

PACKAGED = Path(__file__).with_name("techniques.toml")
NONE, OTHER = "none", "other"
"""What is said where no technique is meant: a Coder that it used none, a Judge that nothing is left
to gain, or that its method is not in the catalogue."""
_DECLARED = re.compile(r"^[ \t>*_#-]*techniques?[ \t*_]*:[ \t*_]*(.+)$", re.I | re.M)
_KEYS = frozenset(
    {
        "title",
        "languages",
        "tags",
        "not",
        "capability",
        "policies",
        "hint",
        "where",
        "when",
    }
)


@dataclass(frozen=True)
class Condition:
    """A figure that speaks for a technique."""

    figure: str
    is_below: bool
    limit: float

    def holds(self, figures: Mapping[str, float]) -> bool | None:
        """None where the figure is not known."""
        value = figures.get(self.figure)
        if value is None:
            return None
        return value < self.limit if self.is_below else value > self.limit


@dataclass(frozen=True)
class Technique:
    """One entry of the catalogue."""

    name: str
    title: str
    hint: str
    languages: tuple[str, ...]
    tags: tuple[str, ...] = ()
    ruled_out_by: tuple[str, ...] = ()
    capability: int = 0
    policies: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    """Of the workload: each must hold that is known."""
    when: tuple[Condition, ...] = ()
    """Of a profile: one must hold, where one is known."""

    def applies(
        self,
        problem: Problem,
        language: str,
        target: str,
        facts: Mapping[str, float],
        figures: Mapping[str, float],
    ) -> bool:
        """Whether it can be tried on this problem and target, and no known figure speaks against.

        Args:
            facts: Of the workload; empty where none is chosen.
            figures: Of the candidate's profile; empty where there is none.
        """
        tags = set(problem.tags)
        fits = (
            language in self.languages
            and (not self.tags or bool(tags & set(self.tags)))
            and not tags & set(self.ruled_out_by)
            and (not self.policies or problem.precision.policy in self.policies)
            and target_of(target).has_capability(self.capability)
            and all(c.holds(facts) is not False for c in self.where)
        )
        known = [said for c in self.when if (said := c.holds(figures)) is not None]
        return fits and (not known or any(known))


@functools.cache
def catalogue() -> dict[str, Technique]:
    """Every technique by name, in the order of the file."""
    content = tomllib.loads(PACKAGED.read_text("utf-8"))
    return {name: _technique(name, table) for name, table in content["techniques"].items()}


def list_applicable(
    problem: Problem,
    language: str,
    target: str,
    figures: Mapping[str, float] | None = None,
    *,
    facts: Mapping[str, float] | None = None,
) -> tuple[Technique, ...]:
    """Those that can be tried, in the order of the catalogue; see Technique.applies."""
    known = (problem, language, target, facts or {}, figures or {})
    return tuple(each for each in catalogue().values() if each.applies(*known))


def word_techniques(techniques: Sequence[Technique]) -> str:
    """A list for a prompt."""
    return "\n".join(f"- `{t.name}` ({t.title}): {t.hint}" for t in techniques) or "- none"


def parse_declared(reply: str) -> tuple[str, ...]:
    """The techniques that a reply says it uses; names that the catalogue has not are dropped."""
    found = _DECLARED.search(reply.partition("```")[0])
    words = re.split(r"[,;]", found[1]) if found else []
    names = (word.strip(" \t`*_.\"'").lower().replace(" ", "-") for word in words)
    return tuple(dict.fromkeys(name for name in names if name in catalogue()))


def _technique(name: str, table: dict[str, Any]) -> Technique:
    if unknown := table.keys() - _KEYS:
        raise ValueError(f"technique {name} has the unknown key {min(unknown)}")
    return Technique(
        name=name,
        title=table["title"],
        hint=table["hint"],
        languages=tuple(table["languages"]),
        tags=tuple(table.get("tags", ())),
        ruled_out_by=tuple(table.get("not", ())),
        capability=table.get("capability", 0),
        policies=tuple(table.get("policies", ())),
        where=tuple(_condition(name, *each) for each in table.get("where", ())),
        when=tuple(_condition(name, *each) for each in table.get("when", ())),
    )


def _condition(name: str, figure: str, side: str, limit: float) -> Condition:
    if side not in ("below", "above"):
        raise ValueError(f"technique {name}: {side!r} is neither below nor above")
    return Condition(figure, side == "below", float(limit))
