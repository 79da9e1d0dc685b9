# SPDX-License-Identifier: Apache-2.0
"""What kinds of instructions a kernel is made of: classes, widths of accesses, arithmetic.

Counts are of instructions in the code, once each; those in loops are counted apart. How often they
execute is for `model` to estimate.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from ...kernelbench.targets import Vendor
from . import amd_code
from .classes import OpClass
from .sass import Instruction, Listing
from .tensor_cores import MULTIPLYING, TensorUse, element_of, lane_flops, word_instruction

_OF = {
    OpClass.LOAD: "LDG LD",
    OpClass.STORE: "STG ST",
    OpClass.ASYNC: """LDGSTS UTMALDG UTMASTG UTMAREDG UTMAPF UBLKCP UBLKRED SYNCS LDGDEPBAR DEPBAR
        ARRIVES""",
    OpClass.SHARED: "LDS STS LDSM STSM",
    OpClass.LOCAL: "LDL STL",
    OpClass.ATOMIC: "ATOM ATOMG ATOMS RED REDG REDS",
    OpClass.TENSOR: MULTIPLYING,
    OpClass.TENSOR_MEMORY: "LDTM STTM UTCCP",
    OpClass.FP32: "FFMA FADD FMUL FMNMX FMNMX3 FSEL FSETP FSET FCHK FSWZADD FFMA2 FADD2 FMUL2",
    OpClass.FP16: "HFMA2 HADD2 HMUL2 HMNMX2 HSETP2 HSET2 HADD HFMA HMUL",
    OpClass.FP64: "DFMA DADD DMUL DSETP DMNMX",
    OpClass.SPECIAL: "MUFU",
    OpClass.INTEGER: """IMAD IADD3 IADD LEA SHF SHL SHR LOP3 LOP LOP32I ISETP IMNMX VIADD VIADDMNMX
        VIMNMX IABS ISCADD XMAD POPC FLO BREV BFE BFI SGXT LEPC ICMP UIADD3 UIADD UIMAD ULEA USHF
        USHL USHR ULOP3 ULOP UISETP UMNMX UVIADD UVIMNMX UPOPC UFLO UBREV UIABS USGXT IDP IDP4A
        ISET BMSK UBMSK""",
    OpClass.CONVERT: "F2F F2I I2F F2FP I2I I2IP FRND I2FP F2IP PRMT UPRMT UF2F UI2F UF2I UF2FP",
    OpClass.WARP: "SHFL VOTE VOTEU MATCH REDUX CREDUX",
    OpClass.BARRIER: "BAR",
    OpClass.WARP_SYNC: "WARPSYNC",
    OpClass.SYNC: """WARPGROUP WARPGROUPSET MEMBAR ERRBAR CCTL UCGABAR_ARV UCGABAR_WAIT
        FENCE UFENCE ACQBULK B2R""",
    OpClass.CONTROL: """BRA BRX JMP EXIT RET CALL BSSY BSYNC BREAK BMOV NOP KILL YIELD NANOSLEEP
        WARPEXIT PREEXIT UBRA""",
}
_KINDS = {name: kind for kind, names in _OF.items() for name in names.split()}

_WIDTHS = {"8": 1, "U8": 1, "S8": 1, "16": 2, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_WORD = 4
"""Bytes of an access whose opcode does not say."""
_OF_MATRICES = ("LDSM", "STSM")
"""ldmatrix and stmatrix."""
_NARROW = 8
"""Bytes of a thread's access below which its line is named."""
_FLOPS = {
    "FFMA": 2,
    "FADD": 1,
    "FMUL": 1,
    "FMNMX": 1,
    "FMNMX3": 2,
    "FFMA2": 4,
    "FADD2": 2,
    "FMUL2": 2,
    "HFMA2": 4,
    "HADD2": 2,
    "HMUL2": 2,
    "HMNMX2": 2,
    "DFMA": 2,
    "DADD": 1,
    "DMUL": 1,
    "MUFU": 1,
    "IDP": 8,
    "IDP.2A": 4,
}
_ZERO = re.compile(r"^\w+, -?RZ, -?RZ, ")
"""Operands of arithmetic that only puts a constant into a register."""


def kind_of(instruction: Instruction) -> OpClass:
    """The class of an instruction."""
    if instruction.vendor is Vendor.AMD:
        return amd_code.kind_of(instruction)
    kind = _KINDS.get(instruction.opcode.partition(".")[0], OpClass.OTHER)
    if kind is OpClass.FP16 and _ZERO.match(instruction.operands):
        return OpClass.OTHER
    return kind


def width_of(instruction: Instruction) -> int:
    """Bytes that each thread moves in an access to memory."""
    if instruction.vendor is Vendor.AMD:
        return amd_code.width_of(instruction)
    name, *parts = instruction.opcode.split(".")
    if name in _OF_MATRICES:
        # Of 16 bits: each lane has a word of every matrix.
        return _WORD * next((int(part) for part in parts if part in ("2", "4")), 1)
    return next((_WIDTHS[part] for part in parts if part in _WIDTHS), _WORD)


def flops_of(instruction: Instruction) -> float:
    """Operations of one thread, as operators are counted: of floats, of all that tensor cores do,
    and of bytes that are multiplied four at once."""
    name = instruction.opcode.partition(".")[0]
    if kind_of(instruction) is OpClass.TENSOR:
        return lane_flops(instruction)
    if instruction.vendor is Vendor.AMD:
        return amd_code.flops_of(instruction)
    if _ZERO.match(instruction.operands):
        return 0.0
    if ".2A" in instruction.opcode:
        name += ".2A"
    return float(_FLOPS.get(name, 0))


@dataclass(frozen=True)
class Mix:
    """The instructions of one kernel by class."""

    everywhere: Counter[OpClass]
    in_loops: Counter[OpClass]
    load_bytes: float
    """Mean width of global loads, of those in loops where there are any; 0 where there are none."""
    store_bytes: float
    scalar_lines: tuple[int, ...]
    """Source lines with a load or store in a loop of less than eight bytes a thread."""
    spill_lines: tuple[int, ...]
    """Source lines with accesses to local memory in a loop, those with the most of them first."""
    tensor: TensorUse

    @property
    def total(self) -> int:
        """All instructions that are not padding or control."""
        return sum(n for kind, n in self.everywhere.items() if kind is not OpClass.CONTROL)

    @property
    def total_in_loops(self) -> int:
        """The same of those in loops."""
        return sum(n for kind, n in self.in_loops.items() if kind is not OpClass.CONTROL)

    def share(self, kind: OpClass) -> float:
        """The part of a class among the instructions in loops, else among all."""
        counts, total = self.in_loops, self.total_in_loops
        if not total:
            counts, total = self.everywhere, self.total
        return counts[kind] / total if total else 0.0


def mix_of(listing: Listing) -> Mix:
    """Counts the instructions of a kernel."""
    everywhere: Counter[OpClass] = Counter()
    in_loops: Counter[OpClass] = Counter()
    for instruction, loop in listing.counted:
        kind = kind_of(instruction)
        everywhere[kind] += 1
        in_loops[kind] += loop is not None
    return Mix(
        everywhere=everywhere,
        in_loops=+in_loops,
        load_bytes=_mean_width(listing, OpClass.LOAD),
        store_bytes=_mean_width(listing, OpClass.STORE),
        scalar_lines=_scalar_lines(listing),
        spill_lines=_spill_lines(listing),
        tensor=_use_tensor_cores(listing),
    )


def _use_tensor_cores(listing: Listing) -> TensorUse:
    everywhere = [i for i, _ in listing.counted]
    inside = [i for i, loop in listing.counted if loop is not None]
    looked_at = inside if any(flops_of(i) for i in inside) else everywhere
    tensor = [i for i in everywhere if kind_of(i) is OpClass.TENSOR]
    done = sum(flops_of(i) for i in looked_at)
    theirs = sum(flops_of(i) for i in looked_at if kind_of(i) is OpClass.TENSOR)
    named = Counter(word_instruction(i) for i in tensor)
    return TensorUse(
        Counter(element_of(i) for i in tensor),
        work=theirs / done if done else 0.0,
        words=tuple(name for name, _ in named.most_common()),
        untold=next((element_of(i) for i in tensor if not flops_of(i)), ""),
    )


def _mean_width(listing: Listing, kind: OpClass) -> float:
    found = [(width_of(i), loop) for i, loop in listing.counted if kind_of(i) is kind]
    inside = [width for width, loop in found if loop is not None]
    widths = inside or [width for width, _ in found]
    return sum(widths) / len(widths) if widths else 0.0


def _scalar_lines(listing: Listing) -> tuple[int, ...]:
    lines = {
        instruction.line
        for instruction, loop in listing.counted
        if loop
        and instruction.line
        and kind_of(instruction) in (OpClass.LOAD, OpClass.STORE)
        and width_of(instruction) < _NARROW
    }
    return tuple(sorted(lines))


def _spill_lines(listing: Listing) -> tuple[int, ...]:
    counts = Counter(
        instruction.line
        for instruction, loop in listing.counted
        if loop and instruction.line and kind_of(instruction) is OpClass.LOCAL
    )
    return tuple(sorted(counts, key=lambda line: (-counts[line], line)))
