"""What is known of mutants that survived: arguments that are stated, each in a row of a table.

A row of `explained.toml` never lets a mutant off that is refused. It speaks of those that survived,
by what was changed and on which line: `equal` are right, `missed` are wrong and were not seen.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.sizes import Range

_FILE = Path(__file__).with_name("explained.toml")
KINDS = ("equal", "missed")
_AXIS, _REST = r"\((?:c\.)?(?P<axis>\w+)\)", r"% (?P<modulus>\d+) == (?P<rest>\d+)\)"
_SHORTENED = rf"if \((?P<axis>\w+) > (?P<size>\d+) && \1 {_REST}"
_CONDITIONS = {
    "axis at a residue": _SHORTENED,
    "axis at a residue beyond a size": _SHORTENED,
    "tail at a residue": rf"{_AXIS} {_REST}",
    "tail beyond a size": rf"{_AXIS} > (?P<size>\d+)\)",
    "stops at a size": rf"{_AXIS} > (?P<size>\d+) \?",
}
"""What operators write that go wrong where an axis has one of some lengths. Kernels call nothing
else by an axis' name."""


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
    """It is right only on tensors of fewer than 2³¹ elements, on axes as long as the problem
    declares and with as many threads as this machine has, and nothing larger is tried."""


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
    by_row = (_explain_by_row(kind, told) for kind in KINDS)
    return next(by_row) or _explain_by_lengths(told) or next(by_row)


def _explain_by_row(kind: str, told: Told) -> Because | None:
    for row in rows(kind):
        if fits(row, told):
            return Because(kind, row["why"], row.get("bounded", False))
    return None


def _explain_by_lengths(told: Told) -> Because | None:
    """Why it never goes wrong at some lengths of an axis, where the axis has none of them."""
    found = re.search(_CONDITIONS.get(told.operator, "$^"), told.after)
    problem = registry.get(told.problem)
    if not found or found["axis"] not in problem.ranges:
        return None
    given = {name: int(text) for name, text in found.groupdict().items() if name != "axis"}
    size, modulus, rest = given.get("size", 0), given.get("modulus", 1), given.get("rest", 0)
    axis, declared = found["axis"], problem.ranges[found["axis"]]
    lengths = {*_lengths(declared), *(w.axes.get(axis, 0) for w in problem.workloads)}
    if any(length > size and length % modulus == rest for length in lengths):
        return None
    is_bounded = not declared.choices and not declared.is_power
    return Because("equal", "the problem declares no such length of the axis", is_bounded)


def _lengths(declared: Range) -> Iterable[int]:
    """All that an axis may have."""
    if declared.is_power:
        return (1 << power for power in range(declared.most.bit_length()))
    return declared.choices or range(1, declared.most + 1)


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
