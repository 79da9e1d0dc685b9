# SPDX-License-Identifier: Apache-2.0
"""Several workloads that a kernel is to be fast on together, each with its weight.

They are written as sizes (`M=4096,N=64:3`, `M=1..4096`), named (`pubmed-128,cora:2`), counted from
a trace of calls (.jsonl or .csv), or are a pack: data of this package (`packs/*.toml`) or a file of
the same form. What they make is one Workload that has the others as its parts; the score on it is
their weighted geometric mean (verifier/process/several.py).
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import UnknownNameError, UsageError
from ..traces.wording import word_shares
from .manner import USUAL, Manner
from .problem import Part, Problem, Workload
from .registry import workload_for

PACK = "pack:"
KIND = "several"
USUAL_PARTS, MOST_PARTS = 8, 32
"""Workloads that stand for all where there are more, unless told otherwise; and at most."""
RANGE_SIZES = 4
"""Sizes that stand for a range, its ends among them."""
_COUNT = ("count", "weight")


class Call(NamedTuple):
    """One size, with how much it counts."""

    axes: dict[str, int]
    weight: float = 1.0
    name: str = ""
    """Of a workload or pattern that the axes go with; empty: the one that was chosen."""


Axes = Mapping[str, int] | str
"""Sizes: a mapping, or words as `M=4096,N=64`, a weight behind a colon, ranges as `M=1..4096`."""


def workload_of(
    problem: Problem,
    name: str = "",
    *,
    matrix: str = "",
    axes: Axes | Sequence[Axes] = (),
    several: str = "",
) -> Workload:
    """The workload that a user means: one, or several as the parts of one.

    Args:
        name: As `registry.workload_for` takes it.
        matrix: The path of a matrix file.
        axes: Sizes in place of the workload's own; several make as many workloads.
        several: Workloads with weights, a trace or a pack (`read_calls`); `/8` behind it says how
            many are to stand for all, and `@server`, `@offline` or `@x2` how all of them are timed.

    Raises:
        UsageError: it cannot be, or is asked for twice.
    """
    if several and (name or matrix or axes):
        raise UsageError(
            f"--workloads {several} names all workloads by itself",
            hint="leave out --workload, --matrix and --axes",
        )
    given = [axes] if isinstance(axes, str | Mapping) else list(axes)
    calls = [call for one in given for call in _read_axes(one)]
    if not calls and not several:
        return workload_for(problem, name, matrix=matrix)
    if several:
        named, manner = Manner.split(several) if _is_one(several) else (several, USUAL)
        calls, most = read_calls(problem, *_split_count(named))
        return join_calls(problem, calls, named, most=most).called_in(manner)

    def resize(call: Call) -> Workload:
        return workload_for(problem, name, matrix=matrix, **call.axes)

    return join_calls(problem, calls, f"{len(calls)} sizes", base=resize)


def _read_axes(given: Axes) -> list[Call]:
    """Raises UsageError: an axis has no size, stands there twice, or the weight is none."""
    if isinstance(given, Mapping):
        return [Call(dict(given))]
    text = given
    sizes, _, share = text.partition(":")
    weight = _weigh(share, f"--axes '{text}'") if share else 1.0
    found: dict[str, tuple[int, ...]] = {}
    for part in sizes.split(","):
        name, _, value = (word.strip() for word in part.partition("="))
        ends = value.split("..")
        are_sizes = all(end.isdecimal() for end in ends) and len(ends) <= 2
        if not name.isidentifier() or not are_sizes or name in found:
            raise UsageError(
                f"--axes '{text}': '{part.strip()}' is no size of an axis of its own",
                hint="write AXIS=SIZE, several with commas: --axes M=4096,N=64; a range as "
                "M=1..4096, a weight behind a colon: --axes M=1,N=64:3",
            )
        found[name] = _spread(*map(int, ends))
    combined = [
        dict(zip(found, values, strict=True)) for values in itertools.product(*found.values())
    ]
    return [Call(axes, weight / len(combined)) for axes in combined]


def _spread(low: int, high: int | None = None) -> tuple[int, ...]:
    """Sizes of a range, evenly by their logarithm."""
    if high is None or high <= low:
        return (low,)
    steps = range(RANGE_SIZES)
    ratio = math.log(high / max(low, 1)) / (RANGE_SIZES - 1)
    return tuple(sorted({low, high, *(round(max(low, 1) * math.exp(i * ratio)) for i in steps)}))


def _weigh(word: str, place: str) -> float:
    try:
        weight = float(word)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise UsageError(
            f"{place}: the weight '{word.strip()}' is no number above zero",
            hint="a weight says how much a size counts beside the others, such as 3 or 0.25",
        )
    return weight


def name_packs() -> list[str]:
    """The packs of this package."""
    found = (entry.name for entry in _find_packs().iterdir())
    return sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml"))


def _is_one(several: str) -> bool:
    """Whether `--workloads` names one thing that holds all, and no list of workloads."""
    return several.startswith(PACK) or Path(Manner.split(several)[0]).suffix in _READERS


def _split_count(asked: str) -> tuple[str, int]:
    """`pack:llm/4`: what is named, and how many are to stand for it."""
    found = re.fullmatch(r"(.+)/(\d+)", asked)
    return (found[1], int(found[2])) if found else (asked, USUAL_PARTS)


def read_calls(problem: Problem, asked: str, most: int = USUAL_PARTS) -> tuple[list[Call], int]:
    """The calls that `--workloads` names, and how many are to stand for them.

    Args:
        asked: `pack:NAME`, a file (.toml as a pack, .jsonl or .csv as a trace), or names of
            workloads with commas, each with its weight behind a colon.

    Raises:
        UsageError: it cannot be read, or has nothing for the problem.
    """
    if asked.startswith(PACK):
        name = asked.removeprefix(PACK)
        if name not in name_packs():
            raise UnknownNameError.for_name("pack", name, name_packs())
        return _of_pack(problem, (_find_packs() / f"{name}.toml").read_text("utf-8"), asked), most
    if (read := _READERS.get(Path(asked).suffix)) is not None:
        try:
            return read(problem, Path(asked).read_text("utf-8"), asked), most
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"--workloads {asked} cannot be read: {error}", hint="give the path of a file"
            ) from error
    names = [part.partition(":") for part in asked.split(",")]
    where = f"--workloads '{asked}'"
    return [Call({}, _weigh(w, where) if w else 1.0, name.strip()) for name, _, w in names], most


def _find_packs() -> Any:
    return resources.files(__package__) / "packs"


def _of_pack(problem: Problem, text: str, place: str) -> list[Call]:
    """The first table of a pack whose axes are those that the problem leaves open."""
    try:
        tables = tomllib.loads(text)["sizes"]
        fits = [t for t in tables if _is_for(problem, t["of"], sparse=bool(t.get("patterns")))]
        return [call for table in fits[:1] for call in _of_table(table)] or _refuse(problem, place)
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"--workloads {place}: {type(error).__name__}: {error}",
            hint="a pack is TOML of [[sizes]] with `of` (axes) and `calls`, `grid` or `patterns`",
        ) from error


def _refuse(problem: Problem, place: str) -> list[Call]:
    raise UsageError(
        f"--workloads {place} has no sizes for {problem.name}",
        hint=f"its axes are {', '.join(problem.axes)}; give sizes with --axes, once for each",
    )


def _is_for(problem: Problem, axes: list[str], *, sparse: bool) -> bool:
    is_sparse = "sparse" in problem.tags
    return sparse == is_sparse and set(axes) == set(problem.default_workload.axes)


def _of_table(table: Mapping[str, Any]) -> Iterable[Call]:
    axes = table["of"]
    for *sizes, weight in table.get("calls", ()):
        yield Call(dict(zip(axes, map(int, sizes), strict=True)), float(weight))
    grid = table.get("grid", {})
    combined = itertools.product(*(grid[axis] for axis in axes)) if grid else ()
    patterns = table.get("patterns", [""])
    for name, values in itertools.product(patterns, list(combined)):
        yield Call(dict(zip(axes, map(int, values), strict=True)), 1.0, name)


def _of_lines(problem: Problem, text: str, place: str) -> list[Call]:
    """A trace of one JSON object a line; the same sizes count together."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                rows.append((number, dict(json.loads(line))))
            except (ValueError, TypeError) as error:
                raise UsageError(
                    f"{place}:{number}: {error}",
                    hint='a line is one call: {"M": 1, "N": 4096}, with "count" where it stands '
                    "for several",
                ) from error
    return _count_calls(problem, rows, place)


def _of_table_text(problem: Problem, text: str, place: str) -> list[Call]:
    """A trace with a header of axes."""
    rows = csv.DictReader(io.StringIO(text))
    return _count_calls(problem, [(number, dict(row)) for number, row in enumerate(rows, 2)], place)


def _count_calls(
    problem: Problem, rows: list[tuple[int, dict[str, Any]]], place: str
) -> list[Call]:
    open_axes = [axis for axis in problem.axes if axis in problem.default_workload.axes]
    counts: Counter[tuple[int, ...]] = Counter()
    for number, row in rows:
        where = f"{place}:{number}"
        count = next((row.pop(word) for word in _COUNT if word in row), 1)
        if set(row) != set(open_axes):
            raise UsageError(
                f"{where}: the axes are {', '.join(map(str, row)) or 'none'}",
                hint=f"a call of {problem.name} has {', '.join(open_axes)}, and count if you like",
            )
        try:
            sizes = tuple(int(row[axis]) for axis in open_axes)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{where}: {error}", hint="sizes are integers") from error
        counts[sizes] += _weigh(str(count), where)  # type: ignore[assignment]
    if not counts:
        raise UsageError(f"{place} holds no call", hint="one call a line")
    return [Call(dict(zip(open_axes, sizes, strict=True)), n) for sizes, n in counts.items()]


Reader = Callable[[Problem, str, str], list[Call]]
_READERS: dict[str, Reader] = {".toml": _of_pack, ".jsonl": _of_lines, ".csv": _of_table_text}


def join_calls(
    problem: Problem,
    calls: list[Call],
    name: str,
    *,
    most: int = USUAL_PARTS,
    base: Callable[[Call], Workload] | None = None,
) -> Workload:
    """One workload of these: a part for each, the weightiest first; plain where it is only one.

    Args:
        most: Where there are more calls, so many stand for all of them: one for each share of equal
            weight of the calls in the order of their bytes, and it counts as much as its share.
        base: The workload of a call; None: the one it names, or the problem's usual one.

    Raises:
        UsageError: the sizes do not fit the problem, or `most` is beyond MOST_PARTS.
    """
    if not 1 <= most <= MOST_PARTS:
        raise UsageError(
            f"{most} workloads cannot stand for {name}", hint=f"from 1 to {MOST_PARTS}"
        )
    make = base or (lambda call: workload_for(problem, call.name, matrix="", **call.axes))
    parts = [Part(workload=make(call), weight=call.weight) for call in calls]
    if len(parts) > most:
        parts = _represent(problem, parts, most)
    parts.sort(key=lambda part: -part.weight)
    if len(parts) == 1:
        return parts[0].workload
    note = f"{len(parts)} of {len(calls)} sizes stand for all" if len(calls) > len(parts) else ""
    return Workload(name=name, kind=KIND, parts=tuple(parts), note=note)


def tell_parts(workload: Workload) -> str:
    """Each of several workloads with its share, in words; of a single one its note."""
    shares = word_shares([(part.workload.name, part.weight) for part in workload.parts])
    return "; ".join(filter(None, (shares, workload.note)))


def _represent(problem: Problem, parts: list[Part], most: int) -> list[Part]:
    """One part for each share of equal weight: the one in the share's middle."""
    ordered = sorted(parts, key=lambda part: _bytes_of(problem, part.workload))
    whole = sum(part.weight for part in parts)
    chosen: dict[str, Part] = {}
    for number in range(most):
        middle, passed = (number + 0.5) * whole / most, 0.0
        for part in ordered:
            passed += part.weight
            if passed >= middle:
                break
        held = chosen.get(part.workload.name)
        weight = whole / most + (held.weight if held else 0.0)
        chosen[part.workload.name] = Part(workload=part.workload, weight=weight)
    return list(chosen.values())


def _bytes_of(problem: Problem, workload: Workload) -> float:
    """What decides the order; of a sparse problem its entries times the open axes, about."""
    if "sparse" not in problem.tags:
        return float(problem.bytes_moved(workload.axes))
    entries = workload.generator.get("nnz", 0)
    return math.prod(workload.axes.values()) * max(float(entries), 1.0)
