"""What is known of mutants that survived: arguments that are stated, each in a row of a table.

A row of `explained.toml` never lets a mutant off that is refused. It speaks of those that survived,
by what was changed and on which line: `equal` are right, `missed` are wrong and were not seen.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

_FILE = Path(__file__).with_name("explained.toml")
KINDS = ("equal", "missed")


class Told(Protocol):
    """What a row looks at: a mutant, or what was found of one."""

    @property
    def operator(self) -> str: ...
    @property
    def problem(self) -> str: ...
    @property
    def kernel(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def before(self) -> str: ...
    @property
    def after(self) -> str: ...


@dataclass(frozen=True)
class Because:
    """Why one survived."""

    kind: str
    why: str
    is_bounded: bool = False
    """It is right only on tensors of fewer than 2³¹ elements and on axes as long as the problem
    declares, and none larger are tried."""


@cache
def rows(table: str) -> list[dict[str, Any]]:
    """`unmutated`: lines that nothing is changed on; `equal` and `missed`."""
    return list(tomllib.loads(_FILE.read_text("utf-8")).get(table, []))


def unmutated_because(line: str) -> str:
    """Why nothing is changed on a line; empty: it is."""
    found = (row["why"] for row in rows("unmutated") if re.search(row["line"], line))
    return str(next(found, ""))


def explain(told: Told) -> Because | None:
    """Why it survived; None: nobody knows."""
    for kind in KINDS:
        for row in rows(kind):
            if fits(row, told):
                return Because(kind, row["why"], row.get("bounded", False))
    return None


def is_right(told: Told) -> bool:
    """Whether an argument says so."""
    because = explain(told)
    return because is not None and because.kind == "equal"


def fits(row: dict[str, Any], told: Told) -> bool:
    """Whether a row speaks of it: all that the row says must be so."""
    return (
        told.operator in row.get("operators", [told.operator])
        and told.problem in row.get("problems", [told.problem])
        and told.line in row.get("lines", [told.line])
        and bool(re.search(row.get("originals", ""), told.kernel))
        and bool(re.search(row.get("line", ""), told.before))
        and bool(re.search(row.get("becomes", ""), told.after))
    )
