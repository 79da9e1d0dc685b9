# SPDX-License-Identifier: Apache-2.0
"""What an instruction of tensor cores multiplies, as far as its name in SASS says (or AMD's).

Names and shapes are those that ptxas writes for `mma.sync`, `wgmma` and `tcgen05.mma` (PTX ISA,
"Warp Level Matrix Instructions", "Asynchronous Warpgroup Level Matrix Instructions", "TensorCore
5th Generation Family"), read with nvdisasm: `HMMA.16816.F32.BF16` is m16n8k16 in bfloat16 with sums
in float32, `HGMMA.64x256x16.F32` a warp group's m64n256k16. Of `UTC*MMA` a descriptor in a register
has the shape, and of UTCHMMA the type, too: neither is in the code.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from ...kernelbench.targets import WARP, Vendor
from . import amd_code
from .sass import Instruction

UNTOLD = "untold"
"""The type of what has it in a descriptor: float16, bfloat16 or TF32."""
ELEMENTS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8", "int4", "binary", UNTOLD)
"""What tensor cores multiply, by the names of `targets.ARITHMETIC` where that has them."""
_WARP, _GROUP, _BLOCK = "HMMA IMMA DMMA QMMA OMMA BMMA", "HGMMA IGMMA QGMMA BGMMA", "UTC"
MULTIPLYING = f"{_WARP} {_GROUP} UTCHMMA UTCQMMA UTCIMMA UTCOMMA"
_LETTERS = {"Q": "fp8", "O": "fp4", "D": "fp64", "B": "binary"}
"""Of an opcode, without `UTC`: the type, where it is one alone."""
_TILES = {
    "884": (8, 8, 4),
    "1684": (16, 8, 4),
    "1688": (16, 8, 8),
    "16816": (16, 8, 16),
    "16832": (16, 8, 32),
    "16864": (16, 8, 64),
    "8816": (8, 8, 16),
    "8832": (8, 8, 32),
    "88128": (8, 8, 128),
    "168128": (16, 8, 128),
    "168256": (16, 8, 256),
}
_WHOLE_TILE = re.compile(r"\.(\d+)x(\d+)x(\d+)")


def element_of(instruction: Instruction) -> str:
    """The type of the factors, one of ELEMENTS."""
    if instruction.vendor is Vendor.AMD:
        return amd_code.read_matrix(instruction).element
    name, *parts = instruction.opcode.split(".")
    letter = name.removeprefix(_BLOCK)[0]
    if letter == "I":
        return "int4" if {"S4", "U4"} & set(parts) else "int8"
    if letter != "H":
        return _LETTERS[letter]
    if name.startswith(_BLOCK):
        return UNTOLD
    return "tf32" if "TF32" in parts else "bf16" if "BF16" in parts else "fp16"


def is_wide(instruction: Instruction) -> bool:
    """Whether more than a warp does it together: only so is the peak of sm_90 and later reached."""
    name = instruction.opcode.partition(".")[0]
    return name in _GROUP.split() or name.startswith(_BLOCK)


def tile_of(instruction: Instruction) -> tuple[int, int, int] | None:
    """M, N and K, of AMD's with all of its blocks as K; None where the code does not say."""
    if instruction.vendor is Vendor.AMD:
        return amd_code.read_matrix(instruction).tile
    if found := _WHOLE_TILE.search(instruction.opcode):
        return int(found[1]), int(found[2]), int(found[3])
    parts = instruction.opcode.split(".")[1:]
    return next((_TILES[part] for part in parts if part in _TILES), None)


def multiply_adds(instruction: Instruction) -> float:
    """All that one instruction does: M·N·K, and half of it where half of a factor is left out as
    zeros (`.SP`); 0 where the code does not say."""
    tile = tile_of(instruction)
    if tile is None:
        return 0.0
    m, n, k = tile
    return m * n * k / (2 if "SP" in instruction.opcode.split(".") else 1)


def lane_flops(instruction: Instruction) -> float:
    """Its operations, two for each multiply-add, for each lane of the warps that do it."""
    lanes = 4 * WARP if is_wide(instruction) else WARP
    if instruction.vendor is Vendor.AMD:
        lanes = amd_code.read_matrix(instruction).lanes
    return 2 * multiply_adds(instruction) / lanes


def word_instruction(instruction: Instruction) -> str:
    """`HMMA.16816.F32 (fp16, 2048 multiply-adds)`."""
    done = multiply_adds(instruction)
    told = f"{done:g} multiply-adds" if done else "how many, its code does not say"
    return f"{instruction.opcode} ({element_of(instruction)}, {told})"


@dataclass(frozen=True)
class TensorUse:
    """What a kernel's code has for tensor cores."""

    counts: Counter[str]
    """Instructions by what they multiply."""
    work: float
    """Of the operations in the code's loops, else in all of it, as far as the code says them."""
    words: tuple[str, ...]
    """Each instruction with what it does, the most frequent first."""
    untold: str = ""
    """The type of instructions whose shape is not in the code; empty: there are none."""
