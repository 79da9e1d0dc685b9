# SPDX-License-Identifier: Apache-2.0
"""How often a warp waits for loads in a stretch of code: for an index, then for what it points at,
and as often as registers are too few to have all of its loads under way at once.

Registers are followed from where a load will write them to where they are needed. It knows how
operands are written in listings and nothing of what waiting costs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...kernelbench.targets import Vendor
from . import amd_code
from .classes import OpClass
from .mix import kind_of, width_of
from .sass import Instruction

_REGISTER = re.compile(r"\bR(\d+)((?:\.\w+)*)")
_WRITES_SECOND = ("SHFL",)
"""Opcodes whose first operand is a predicate, and whose second one is written."""
_WORD = 4


def count_chained(instructions: Iterable[Instruction]) -> dict[int, int]:
    """How many times a warp has waited for loads once each load has answered, by its address.

    A warp issues in order: at the first instruction that needs a register whose load is under way,
    to read it or to write it again, it waits for that and for all loads issued before.
    """
    waits, pending = 0, set[int]()
    found = {}
    for instruction in instructions:
        written, read = _operands(instruction)
        if pending.intersection(written) or pending.intersection(read):
            waits += 1
            pending.clear()
        if kind_of(instruction) in (OpClass.LOAD, OpClass.ATOMIC):
            found[instruction.address] = waits + 1
            pending.update(written)
    return found


def _operands(instruction: Instruction) -> tuple[list[int], list[int]]:
    """Registers that an instruction writes, and those that it reads."""
    if instruction.vendor is Vendor.AMD:
        return amd_code.list_registers(instruction)
    operands = instruction.operands.split(",")
    place = 1 if instruction.opcode.startswith(_WRITES_SECOND) else 0
    first = operands[place].strip() if len(operands) > place else ""
    target = _REGISTER.fullmatch(first)
    read = [
        register
        for index, operand in enumerate(operands)
        if target is None or index != place
        for found in _REGISTER.finditer(operand)
        for register in _range(int(found[1]), 2 if ".64" in found[2] else 1)
    ]
    if target is None:
        return [], read
    words = 1
    if kind_of(instruction) in (
        OpClass.LOAD,
        OpClass.ATOMIC,
        OpClass.SHARED,
        OpClass.LOCAL,
    ):
        words = max(1, width_of(instruction) // _WORD)
    elif ".WIDE" in instruction.opcode:
        words = 2
    return _range(int(target[1]), words), read


def _range(first: int, count: int) -> list[int]:
    return list(range(first, first + count))
