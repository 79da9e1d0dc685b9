# SPDX-License-Identifier: Apache-2.0
"""Why an interpreted Triton kernel is wrong: the line, found by running the failing call again.

The interpreter tells which store wrote which answer, and runs the call with one thing changed:
other values in masked-off elements, products in full precision, memory that begins as zeros. What
turns a wrong answer into a right one is the cause; else the store of the first wrong answer is
named. All of it is a hint beside a verdict that stands already.
"""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...kernelbench.dtypes import DTYPES
from ...kernelbench.problem import Structure
from ...sandbox.builders import diagnostics
from ...sandbox.run.arena import Extra
from ...sandbox.run.process import RunFault
from ...syntax import parse_python
from ...traces.records import Depth
from ..clock.timed_sides import CandidateSide
from ..failure import Failed
from ..truth import gates
from ..truth.trials import Item
from . import sides
from .session import EMULATED_CALL_S, Session
from .triton_candidate import TritonCandidate

BUDGET_S = 15.0
"""For everything that is tried; a hint is worth no more. Mostly it is one to three seconds."""
ROOM = 4 << 20
"""Bytes for the interpreter's story; longer ones are not told."""
_NAMES = {np.inf: 'float("inf")', -np.inf: '-float("inf")', 0.0: "0", 1.0: "1"}
_INSTEAD = (0.0, -np.inf, np.inf, 1.0)
"""Sums and products want zero, and there are most of them; then what a maximum wants."""


@dataclass(frozen=True)
class Told:
    """What the interpreter said of one call, read as a claim."""

    sites: tuple[Mapping[str, Any], ...]
    loads: Mapping[int, Mapping[str, Any]]
    products: Mapping[int, str]
    unwritten: Mapping[int, Mapping[str, Any]]
    stores: Mapping[str, np.ndarray]
    """For each element of an output the number of the store that wrote it; 0: none."""

    @classmethod
    def read(cls, raw: np.ndarray, outputs: Mapping[str, np.ndarray]) -> Told | None:
        """None where it is nothing that our interpreter writes."""
        size = int(raw[:4].view("<u4")[0])
        total = sum(array.size for array in outputs.values()) * 4
        if 4 + size + total > raw.size:
            return None
        try:
            told = json.loads(raw[4 : 4 + size].tobytes())
            places = np.frombuffer(raw[4 + size : 4 + size + total].tobytes(), np.int32)
            stores, at = {}, 0
            for name, array in outputs.items():
                stores[name] = places[at : at + array.size].reshape(array.shape)
                at += array.size
            numbered = {
                key: {int(line): facts for line, facts in told[key].items()}
                for key in ("loads", "products", "unwritten")
            }
            return cls(tuple(told["sites"]), stores=stores, **numbered)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


@dataclass(frozen=True)
class Probe:
    """One thing to run a call with."""

    request: Mapping[str, Any]
    sentence: str
    """What is wrong, if the call is right with it."""


def explain(session: Session, made: TritonCandidate, item: Item, rng: np.random.Generator) -> str:
    """One sentence with a line; empty where nothing is found."""
    request: dict[str, Any] = {}

    def extra(structure: Structure) -> Extra:
        known = made.extra(structure).table
        table = {**(json.loads(known) if known else {}), "story": request}
        return Extra(json.dumps(table).encode(), (ROOM,))

    with sides.arena_for(session, 2 * ROOM) as arena:
        try:
            with sides.start_side(
                session,
                Depth.FULL,
                "candidate",
                made.patient_program(),
                arena,
                rng,
                extra,
                timeout_s=EMULATED_CALL_S,
            ) as side:
                return diagnostics.clean(_find_cause(side, item, request, made.source))
        except (RunFault, Failed) as fault:
            # Now it ended otherwise, e.g. in another order of its programs.
            return fault.reason if "line" in fault.reason else ""


def _find_cause(side: CandidateSide, item: Item, request: dict[str, Any], source: str) -> str:
    until = time.monotonic() + BUDGET_S
    is_right, outputs, told = _run(side, item)
    if is_right or told is None:
        return ""
    for change in _changes(told):
        if time.monotonic() > until:
            break
        request.clear()
        request.update(change.request)
        if _run(side, item)[0]:
            return change.sentence
    return _word_storer(item, outputs, told, source)


def _run(side: CandidateSide, item: Item) -> tuple[bool, dict[str, np.ndarray], Told | None]:
    slot = side.place(item.structure, 1)[0]
    checks = side.answer(item, slot)
    outputs = {name: array.copy() for name, array in slot.outputs.items()}
    told = Told.read(slot.scratch[0], outputs)
    return gates.first_failure(checks) is None, outputs, told


def _changes(told: Told) -> Iterator[Probe]:
    """What is tried, the likely first."""
    rounded = [line for line, precision in told.products.items() if precision]
    if rounded:
        yield Probe(
            {"exact": True},
            f"line {rounded[0]}: tl.dot rounds float32 to {told.products[rounded[0]]}, and is "
            'right with input_precision="ieee"',
        )
    if told.unwritten:
        line, facts = next(iter(told.unwritten.items()))
        yield Probe(
            {"zeroed": True},
            f"line {line}: kernel {facts['kernel']} {facts['doing']} {facts['name']} where nobody "
            "has written it; it is right where memory begins as zeros: set it to zero before",
        )
    masked = {line: facts for line, facts in told.loads.items() if facts["off"]}
    lacking = [line for line, facts in masked.items() if facts["other"] is None]
    if len(lacking) > 1:
        lines = " and ".join(map(str, lacking))
        yield Probe(
            {"other": dict.fromkeys(lacking, 0.0)},
            f"line {lacking[0]}: loads without other= (lines {lines}) leave masked-off elements "
            "undefined, and these reach the answer; it is right with other=0",
        )
    for line in (*lacking, *(line for line in masked if line not in lacking)):
        yield from _other_fills(line, masked[line])


def _other_fills(line: int, facts: Mapping[str, Any]) -> Iterator[Probe]:
    """Other values for the masked-off elements of one load."""
    given = facts["other"]
    for value in _INSTEAD if facts["kind"] == "f" else (0.0,):
        if given is not None and float(given) == value:
            continue
        held = "are undefined without other=" if given is None else f"hold {float(given):g}"
        yield Probe(
            {"other": {line: value}},
            f"line {line}: masked-off elements of this load {held} and reach the answer, which is "
            f"right with other={_NAMES[value]}",
        )


def _word_storer(item: Item, outputs: Mapping[str, np.ndarray], told: Told, source: str) -> str:
    """Who stored the first wrong answer, or that nobody has."""
    for name in item.expected:
        place = _first_wrong(item, name, outputs[name])
        if place is None:
            continue
        element = f"{name}[{', '.join(map(str, place))}]"
        number = int(told.stores[name][place])
        if not 0 <= number <= len(told.sites):
            return ""
        if number:
            site = told.sites[number - 1]
            return (
                f"line {site['line']}: program {tuple(site['program'])} of kernel "
                f"{site['kernel']} stores {element}, the first wrong answer"
            )
        lines = sorted({told.sites[n - 1]["line"] for n in np.unique(told.stores[name]) if n > 0})
        if not lines:
            return _word_unreached(source, element)
        where = " and ".join(map(str, lines))
        return f"line {lines[0]}: no program stores {element}; what is stored is by line {where}"
    return ""


def _word_unreached(source: str, element: str) -> str:
    """No store was made at all: the lines that hold one."""
    lines = sorted(
        node.lineno
        for node in ast.walk(parse_python(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr == "store" or node.func.attr.startswith("atomic_"))
    )
    if not lines:
        return ""
    where = " and ".join(map(str, lines))
    return f"line {lines[0]}: no program stores {element}; the store at line {where} is not reached"


def _first_wrong(item: Item, name: str, got: np.ndarray) -> tuple[int, ...] | None:
    """The first element that is further off than gate G1 forgives, else the worst."""
    expected = item.expected[name]
    value = np.broadcast_to(np.asarray(expected.value, dtype=np.float64), got.shape)
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(np.float64) - value)
        if expected.is_held_exact(item.family, DTYPES[got.dtype.name]):
            forgiven = np.zeros(got.shape)
        else:
            forgiven = np.broadcast_to(
                gates.allowed_error(expected, item.problem.precision_of(name)), got.shape
            )
        is_same = (got == value) | (np.isnan(got) & np.isnan(value))
        wrong = ~is_same & ~(error <= forgiven)
    if not wrong.any():
        return None
    return tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), got.shape))
