# SPDX-License-Identifier: Apache-2.0
"""Knobs and constraints that several recipes share.

A constraint that asks for a fact nobody knows does not bind: the space is then larger, never wrong.
"""

from __future__ import annotations

import math

from ..recipe import Constraint, Facts, Knob, Knobs, KnobValue

VECTOR = Knob("vector", ("native", "half"), "width of a vector: the build's widest, or half of it")
SCHEDULE = Knob("schedule", ("static", "dynamic", "guided"), "how rows are dealt to threads")
CHUNK = Knob("chunk", (16, 64, 256), "rows dealt at a time by a dynamic or guided schedule")
THREADS = Knob("threads", (0, 1, 2, 4), "threads; 0: all")
STREAM = Knob("stream", (0, 1), "1: the output is written past the caches, if it is aligned")
WIDE_VECTOR_BYTES = 64


def make_knob(name: str, *values: KnobValue, meaning: str) -> Knob:
    """A knob of one recipe."""
    return Knob(name, values, meaning)


def integer(knobs: Knobs, name: str) -> int:
    """The value of a knob that is an integer."""
    value = knobs[name]
    if not isinstance(value, int):
        raise TypeError(f"knob {name} = {value!r} is no integer")
    return value


def register_budget(facts: Facts) -> int:
    """Accumulators that fit beside operands: AVX-512 has 32 vector registers, older units 16."""
    return 26 if facts.get("vector_bytes", WIDE_VECTOR_BYTES) >= WIDE_VECTOR_BYTES else 13


def _fewer_threads_than_cpus(knobs: Knobs, facts: Facts) -> bool:
    threads = integer(knobs, "threads")
    return threads == 0 or threads < facts.get("cpus", math.inf)


def _half_is_different(knobs: Knobs, facts: Facts) -> bool:
    wide = facts.get("vector_bytes", WIDE_VECTOR_BYTES) >= WIDE_VECTOR_BYTES
    return knobs["vector"] == "native" or wide


USEFUL_THREADS = Constraint("0 already means one thread per CPU", _fewer_threads_than_cpus)
USEFUL_VECTOR = Constraint(
    "half-width vectors are worth a try only where the widest have 64 bytes", _half_is_different
)
USEFUL_CHUNK = Constraint(
    "a static schedule deals equal shares and has no chunk",
    lambda knobs, _: knobs["schedule"] != "static" or knobs["chunk"] == CHUNK.values[0],
)
