# SPDX-License-Identifier: Apache-2.0
"""x86-64 code as objdump lists it: functions, loops, and what kind each instruction is.

Loops are told by their jumps back; what calls do inside of them is not seen. Other processors' code
is not read, and a profile then says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from . import flow

_FUNCTION = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_PLACE = re.compile(r"(?:^|/)candidate\.cpp:(\d+)(?: \(discriminator \d+\))?$")
_ELSEWHERE = re.compile(r"^\S.*:\d+(?: \(discriminator \d+\))?$")
_PREFIXES = "lock|rep[nz]*|bnd|notrack|data16"
_INSTRUCTION = re.compile(rf"^\s+([0-9a-f]+):\t(?:(?:{_PREFIXES}) )*(\S+)\s*(.*)$")
_TARGET = re.compile(r"^([0-9a-f]+)")
_REGISTER = re.compile(r"%([xyz])mm\d+")
_STACK = re.compile(r"\(%r[sb]p(?:,|\))|\(%r[sb]p\)")
_MOST_LOOP = 2_000
"""Instructions of a loop that is looked at: longer ones hold no pass of anything hot."""


class Kind(StrEnum):
    """What an instruction is for."""

    FMA = "fused multiply-adds"
    ARITHMETIC = "other arithmetic"
    DIVIDE = "divisions and roots"
    PRODUCT = "integer products"
    LOAD = "loads"
    STORE = "stores"
    GATHER = "gathers"
    SHUFFLE = "shuffles"
    CONVERT = "conversions"
    LOGIC = "vector moves and logic"
    SCALAR = "addresses and counters"
    BRANCH = "branches"
    CALL = "calls"
    IDLE = "idle"


_VECTOR = (
    (Kind.GATHER, re.compile(r"^vp?gather")),
    (Kind.FMA, re.compile(r"^vfn?m(add|sub)")),
    (Kind.PRODUCT, re.compile(r"^v?(pmadd|pdpbu|pmul|dpbf16|pdpw)")),
    (Kind.DIVIDE, re.compile(r"^v?(div|sqrt)[ps][sdh]$")),
    (Kind.CONVERT, re.compile(r"^v?p?(cvt|movsx|movzx)")),
    (Kind.SHUFFLE, re.compile(r"^v?p?(perm|shuf|unpck|insert|extract|align|pack|bro?adcast)")),
    (Kind.ARITHMETIC, re.compile(r"^v?(add|sub|mul|max|min|rcp|rsqrt|cmp|round|haddp|rndscale)")),
)
_FLOATS = {"s": 4, "d": 8, "h": 2}
_BYTES = {"x": 16, "y": 32, "z": 64}


class Instruction(NamedTuple):
    """One instruction."""

    address: int
    name: str
    operands: str
    line: int
    """Of the candidate; 0: of a header, or unknown."""

    @property
    def target(self) -> int | None:
        """Where it jumps; None: it is no jump, or one to a computed place."""
        found = _TARGET.match(self.operands) if self.name.startswith("j") else None
        return int(found[1], 16) if found else None

    @property
    def vector_bytes(self) -> int:
        """Of its widest register; 0: it has none of vectors."""
        return max((_BYTES[each] for each in _REGISTER.findall(self.operands)), default=0)

    @property
    def is_packed(self) -> bool:
        """Whether it works on all lanes of its registers."""
        return not self.name.endswith(("ss", "sd", "sh"))

    @property
    def has_memory(self) -> bool:
        """Whether an operand is in memory."""
        return "(" in self.operands and not self.name.startswith(("lea", "nop", "prefetch"))

    @property
    def writes_memory(self) -> bool:
        """Whether that is where its answer goes."""
        if not self.has_memory or self.name.startswith(("cmp", "test", "vucomi", "ucomi", "vcomi")):
            return False
        return self.operands.rstrip().endswith(")") and "," in self.operands

    @property
    def is_spill(self) -> bool:
        """Whether it moves what did not fit into registers."""
        return self.has_memory and bool(_STACK.search(self.operands))

    @property
    def kind(self) -> Kind:
        """By its name; a plain move to or from memory is an access."""
        if self.name.startswith("j"):
            return Kind.BRANCH
        if self.name.startswith("call"):
            return Kind.CALL
        if self.name.startswith(("nop", "endbr", "vzeroupper", "prefetch", "xchg")):
            return Kind.IDLE
        if not self.vector_bytes:
            if self.has_memory and self.name.startswith(("mov", "cvt")):
                return Kind.STORE if self.writes_memory else Kind.LOAD
            return Kind.SCALAR
        found = next((kind for kind, name in _VECTOR if name.match(self.name)), None)
        if found is Kind.SHUFFLE and self.has_memory and "broadcast" in self.name:
            return Kind.LOAD
        if found is not None:
            return found
        if self.has_memory and "mov" in self.name:
            return Kind.STORE if self.writes_memory else Kind.LOAD
        return Kind.LOGIC

    @property
    def flops(self) -> int:
        """Operations on floats that it does."""
        each = {Kind.FMA: 2, Kind.ARITHMETIC: 1, Kind.DIVIDE: 1}.get(self.kind, 0)
        width = _FLOATS.get(self.name[-1])
        if not each or width is None:
            return 0
        return each * (self.vector_bytes // width if self.is_packed else 1)


@dataclass(frozen=True)
class Loop:
    """A loop without another inside of it."""

    function: str
    depth: int
    """1: it stands in no other."""
    body: tuple[Instruction, ...]

    @cached_property
    def flops(self) -> int:
        """Of one pass."""
        return sum(each.flops for each in self.body)

    @cached_property
    def vector_bytes(self) -> int:
        """Of the widest vectors that it computes with; 0: none."""
        return max((i.vector_bytes for i in self.body if i.is_packed), default=0)

    def count(self, *kinds: Kind) -> int:
        """Instructions of these kinds."""
        return sum(each.kind in kinds for each in self.body)

    @cached_property
    def loads(self) -> int:
        """Accesses that read, also those of arithmetic on memory; gathers are others."""
        return sum(
            i.has_memory and not i.writes_memory and i.kind is not Kind.GATHER for i in self.body
        )

    @cached_property
    def stores(self) -> int:
        """Accesses that write."""
        return sum(each.writes_memory for each in self.body)

    @cached_property
    def spills(self) -> int:
        """Accesses to the stack."""
        return sum(each.is_spill for each in self.body)

    @cached_property
    def work(self) -> int:
        """Instructions that do something."""
        return sum(each.kind is not Kind.IDLE for each in self.body)


def find_loops(listing: str) -> list[Loop]:
    """The innermost loops of the candidate's own functions."""
    return [
        loop
        for name, code in _functions(listing)
        if any(each.line for each in code)
        for loop in _innermost(name, code)
    ]


def _functions(listing: str) -> Iterator[tuple[str, list[Instruction]]]:
    name, code, line = "", list[Instruction](), 0
    for text in listing.splitlines():
        if found := _FUNCTION.match(text):
            if code:
                yield name, code
            name, code, line = found[2], [], 0
        elif place := _PLACE.search(text):
            line = int(place[1])
        elif told := _INSTRUCTION.match(text):
            operands = told[3].partition("#")[0].strip()
            code.append(Instruction(int(told[1], 16), told[2], operands, line))
        elif _ELSEWHERE.match(text):
            line = 0
    if code:
        yield name, code


def _innermost(name: str, code: Sequence[Instruction]) -> Iterator[Loop]:
    blocks = _split(code)
    starts = {block[0].address: number for number, block in enumerate(blocks)}
    edges = [_successors(number, blocks, starts) for number in range(len(blocks))]
    loops = flow.find_loops(edges)
    for head, inside in loops.items():
        if any(other in inside for other in loops if other != head):
            continue
        body = tuple(each for number in sorted(inside) for each in blocks[number])
        if len(body) <= _MOST_LOOP:
            yield Loop(name, sum(head in each for each in loops.values()), body)


def _split(code: Sequence[Instruction]) -> list[list[Instruction]]:
    """Basic blocks, in the order of their addresses."""
    heads = {each.target for each in code}
    blocks: list[list[Instruction]] = [[]]
    for each in code:
        if each.address in heads and blocks[-1]:
            blocks.append([])
        blocks[-1].append(each)
        if each.name.startswith(("j", "ret")):
            blocks.append([])
    return [block for block in blocks if block]


def _successors(
    number: int, blocks: Sequence[Sequence[Instruction]], starts: Mapping[int, int]
) -> tuple[int, ...]:
    last = blocks[number][-1]
    found = [starts[to] for to in (last.target,) if to in starts and to is not None]
    if not last.name.startswith(("jmp", "ret")) and number + 1 < len(blocks):
        found.append(number + 1)
    return tuple(found)
