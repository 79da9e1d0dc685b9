# SPDX-License-Identifier: Apache-2.0
"""Inputs and right answers of a trial in memory that two processes see, and in words where."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ...kernelbench.dtypes import DTYPES
from ...kernelbench.problem import Arrays, Expected, Problem, Structure

ALIGNED = 64

Found = tuple[Arrays, dict[str, Expected] | None]
"""The inputs, and the truth where the whole answer is judged."""


def arrays_of(found: Found) -> Iterator[np.ndarray]:
    """All that is to be placed."""
    inputs, truths = found
    yield from inputs.values()
    for expected in (truths or {}).values():
        parts = (getattr(expected, part.name) for part in fields(expected))
        yield from (part for part in parts if isinstance(part, np.ndarray))


def room_of(array: np.ndarray) -> int:
    """Bytes that it takes where it is placed."""
    return -(-array.nbytes // ALIGNED) * ALIGNED


def size_of(problem: Problem, structure: Structure) -> int:
    """At least as many as the inputs of one call take."""
    extents = [(DTYPES[each.dtype].bytes, each.extent(structure.axes)) for each in problem.inputs]
    return sum(math.prod(extent) * size + ALIGNED for size, extent in extents)


def tell_found(memory: mmap.mmap, first: int, found: Found) -> dict[str, Any]:
    """Copies the arrays there, one behind the other, and says where they lie, in JSON's types."""
    at = first

    def tell(value: object) -> object:
        nonlocal at
        if isinstance(value, np.ndarray):
            place, at = at, at + room_of(value)
            np.copyto(np.ndarray(value.shape, value.dtype, memory, place), value)
            return {"type": value.dtype.name, "shape": value.shape, "at": place}
        return value.item() if isinstance(value, np.generic) else value

    inputs, truths = found
    told: dict[str, Any] = {"inputs": {name: tell(array) for name, array in inputs.items()}}
    told["truths"] = truths and {
        name: {part.name: tell(getattr(expected, part.name)) for part in fields(expected)}
        for name, expected in truths.items()
    }
    return told


def read_found(memory: mmap.mmap, told: Mapping[str, Any]) -> Found:
    """What was told of; its arrays are views of the memory."""

    def read(value: Any) -> Any:
        if isinstance(value, dict):
            return np.ndarray(value["shape"], np.dtype(value["type"]), memory, value["at"])
        return value

    inputs = {name: read(value) for name, value in told["inputs"].items()}
    truths = told["truths"] and {
        name: Expected(**{part: read(value) for part, value in parts.items()})
        for name, parts in told["truths"].items()
    }
    return inputs, truths
