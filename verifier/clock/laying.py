# SPDX-License-Identifier: Apache-2.0
"""What is written into the memory of a call before it is made: inputs, patterns, and zeros."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...kernelbench.problem import Arrays, Structure
from ...sandbox.run.arena import Slot
from ..truth.trials import Item


def write_inputs(item: Item, slot: Slot) -> None:
    """An item's inputs, as the slot's structure has their pattern."""
    for name, array in item.inputs.items():
        slot.inputs[name][...] = array


def wipe_slots(slots: list[Slot]) -> None:
    """Zeros in place of values and answers; patterns stay."""
    for slot in slots:
        values = [a for name, a in slot.inputs.items() if name not in slot.structure.arrays]
        for array in (*values, *slot.outputs.values()):
            array.fill(0)


def lay_items(calls: Iterable[tuple[Item, Slot]]) -> None:
    """Inputs of calls, and zeros for their answers."""
    for item, slot in calls:
        for output in slot.outputs.values():
            output.fill(0)
        write_inputs(item, slot)


def rewrite_pattern(slot: Slot, old: Structure, new: Structure) -> None:
    """Puts one structure in another's place, which has the same sizes.

    Only what differs is written: the rest of the arrays stays as far from the CPU as it was.
    """
    if old is new:
        return
    kept: tuple[Structure, Arrays] | None = new.cache.get("differs")
    if kept is None or kept[0] is not old:
        kept = (
            old,
            {name: np.flatnonzero(old.arrays[name] != a) for name, a in new.arrays.items()},
        )
        new.cache["differs"] = kept
    for name, places in kept[1].items():
        slot.inputs[name][places] = new.arrays[name][places]
