# SPDX-License-Identifier: Apache-2.0
"""Which loads of a stretch of code wait for the answers of others: first an index, then a value.

Registers are followed from where they are written to where they are read, and values through shared
memory as a whole. It knows how operands are written in listings and nothing of what waiting costs.
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
    """How many loads each load waits for in a row, itself included, by address."""
    levels: dict[int, int] = {}
    shared = 0
    found = {}
    for instruction in instructions:
        written, read = _operands(instruction)
        level = max((levels.get(register, 0) for register in read), default=0)
        kind = kind_of(instruction)
        if kind in (OpClass.LOAD, OpClass.ATOMIC):
            level += 1
            found[instruction.address] = level
        elif kind is OpClass.SHARED and not written:
            shared = max(shared, level)
        elif kind is OpClass.SHARED:
            level = max(level, shared)
        levels.update(dict.fromkeys(written, level))
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
