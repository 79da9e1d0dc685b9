"""Loads in a row, on stretches of code whose answer is plain."""

from __future__ import annotations

import pytest

from kernelwright.verifier.profile.chains import count_chained
from kernelwright.verifier.profile.sass import Instruction


def levels(*rows: str) -> list[int]:
    code = []
    for address, row in enumerate(rows):
        opcode, _, operands = row.partition(" ")
        code.append(Instruction(address, opcode, operands))
    return list(count_chained(code).values())


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (("LDG.E R2, desc[UR4][R4.64]", "LDG.E R3, desc[UR4][R4.64+0x4]"), [1, 1]),
        (("LDG.E R2, [R4.64]", "IMAD.WIDE R6, R2, 0x4, R8", "LDG.E R3, [R6.64]"), [1, 2]),
        # The upper half of an address counts too, and so does the last word of a vector.
        (("LDG.E R7, [R4.64]", "LDG.E R3, [R6.64]"), [1, 2]),
        (("LDG.E.128 R8, [R4.64]", "LDG.E R3, [R11]"), [1, 2]),
        (("LDG.E.64 R8, [R4.64]", "LDG.E R3, [R11]"), [1, 1]),
        (("LDG.E R2, [R4.64]", "SHFL.IDX PT, R6, R2, R1, 0x1f", "LDG.E R3, [R6.64]"), [1, 2]),
        # What is under way must have come before its register is written again, or compared.
        (("LDG.E R2, [R4.64]", "MOV R2, RZ", "LDG.E R3, [R2.64]"), [1, 2]),
        (("LDG.E R2, [R4.64]", "ISETP.GE.AND P0, PT, R2, R6, PT", "LDG.E R3, [R6.64]"), [1, 2]),
        # Few registers, few loads at once: the first answer is waited for with all before it.
        (
            (
                "LDG.E R2, [R10.64]",
                "LDG.E R3, [R12.64]",
                "FFMA R4, R2, R8, R4",
                "LDG.E R2, [R10.64+0x4]",
                "FFMA R5, R3, R8, R5",
                "LDG.E R6, [R12.64+0x4]",
                "FFMA R4, R2, R8, R4",
                "LDG.E R7, [R10.64+0x8]",
            ),
            [1, 1, 2, 2, 3],
        ),
        (("LDG.E R2, [R4.64]", "STS [R1], R2", "LDS R6, [R0]", "LDG.E R3, [R6.64]"), [1, 2]),
        (("LDS R6, [R0]", "LDG.E R3, [R6.64]"), [1]),
        (("LDG.E R2, [R4.64]", "STG.E [R4.64], R2", "EXIT "), [1]),
    ],
)
def test_loads_that_wait_for_others(rows: tuple[str, ...], found: list[int]) -> None:
    assert levels(*rows) == found
