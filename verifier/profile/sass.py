# SPDX-License-Identifier: Apache-2.0
"""Reads a disassembler's listing: the instructions of each kernel, its loops and source lines.

A loop is what lies between a label and a branch back to it. The compiler makes several versions of
one loop (unrolled, and for the rest); they share their source lines, and the largest stands for
all. Copies out of line for warps whose lanes went apart before a shuffle are left out: they seldom
run, and branch back into loops. It knows the shape of listings and nothing of what instructions
cost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...kernelbench.targets import Vendor

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^\s,\"]+|\"[^\"]+\")")
_LABEL = re.compile(r"^(\.L[\w$.]*):")
_LINE = re.compile(r'^\s*//## File "(?:[^"]*/)?([^"/]*)", line (\d+)')
_SOURCE = "candidate."
"""How the names of candidates' files begin; lines of other files are not told."""
_INSTRUCTION = re.compile(
    r"^\s*(?:\{\s*)?/\*([0-9a-f]{4,})\*/\s+(@!?U?P[T\d]+\s+)?([A-Z][\w.]*)\s*([^;]*)"
)
_TARGET = re.compile(r"`\((\.L[\w$.]*)\)")
_JUMPS = ("BRA", "BRX", "JMP", "EXIT", "RET", "BREAK", "UBRA")
_APART = ("BRA.DIV", "WARPSYNC")
"""They branch to what diverged warps run."""
_ANYWHERE = ("BRX", "JMX", "JMP", "CALL")
_SHARED_LINES = 0.5
"""Two loops are versions of one where so much of the smaller one's lines are also the other's."""


@dataclass(frozen=True)
class Instruction:
    """One instruction of a listing."""

    address: int
    opcode: str
    """With its suffixes: `LDG.E.128`."""
    operands: str
    line: int = 0
    """Of the source; 0 where it is not known."""
    is_predicated: bool = False
    vendor: Vendor = Vendor.NVIDIA
    """Whose instruction it is."""


@dataclass(frozen=True)
class SassLoop:
    """One loop, by the addresses of its first and last instruction."""

    first: int
    last: int
    depth: int
    """1 for an outermost loop."""
    is_repeated: bool = False
    """A smaller version of another loop: both never do the same work."""

    def __contains__(self, address: int) -> bool:
        return self.first <= address <= self.last


@dataclass(frozen=True)
class Listing:
    """One kernel's code."""

    instructions: tuple[Instruction, ...]
    loops: tuple[SassLoop, ...] = field(default=())
    labelled: frozenset[int] = frozenset()
    """Addresses that branches may go to."""

    def loop_of(self, instruction: Instruction) -> SassLoop | None:
        """The innermost loop around an instruction."""
        around = [loop for loop in self.loops if instruction.address in loop]
        return max(around, key=lambda loop: loop.depth, default=None)

    @cached_property
    def counted(self) -> tuple[tuple[Instruction, SassLoop | None], ...]:
        """The instructions with their innermost loop, without repeated versions of loops."""
        repeated = [loop for loop in self.loops if loop.is_repeated]
        return tuple(
            (instruction, self.loop_of(instruction))
            for instruction in self.instructions
            if not any(instruction.address in loop for loop in repeated)
        )

    @cached_property
    def blocks(self) -> tuple[tuple[tuple[Instruction, SassLoop | None], ...], ...]:
        """The same in pieces of which all instructions execute, or none of them."""
        found: list[list[tuple[Instruction, SassLoop | None]]] = [[]]
        for instruction, loop in self.counted:
            if instruction.address in self.labelled:
                found.append([])
            found[-1].append((instruction, loop))
            if instruction.opcode.startswith(_JUMPS):
                found.append([])
        return tuple(tuple(block) for block in found if block)

    @property
    def depth(self) -> int:
        """How deeply loops are nested."""
        return max((loop.depth for loop in self.loops), default=0)


@dataclass
class _Function:
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    """The address of the instruction after each label."""


def listings(text: str) -> dict[str, Listing]:
    """The kernels and functions of a listing by symbol."""
    found = {}
    for symbol, function in _functions(text).items():
        function.instructions = _list_reached(function)
        found[symbol] = Listing(
            tuple(function.instructions), _loops(function), frozenset(function.labels.values())
        )
    return found


def _functions(text: str) -> dict[str, _Function]:
    found: dict[str, _Function] = {}
    current = _Function()
    waiting: list[str] = []
    line, is_new = 0, True
    for row in text.splitlines():
        if section := _SECTION.match(row):
            current = found.setdefault(section[1].strip('"'), _Function())
            waiting, line = [], 0
        elif source := _LINE.match(row):
            # Of a chain of inlined calls the innermost comes first.
            line = 0 if is_new else line
            is_new = False
            if not line and source[1].startswith(_SOURCE):
                line = int(source[2])
        elif label := _LABEL.match(row):
            waiting.append(label[1])
        elif said := _INSTRUCTION.match(row):
            address = int(said[1], 16)
            current.labels.update(dict.fromkeys(waiting, address))
            waiting, is_new = [], True
            current.instructions.append(
                Instruction(address, said[3], said[4].strip(), line, bool(said[2]))
            )
    return found


def _list_reached(function: _Function) -> list[Instruction]:
    """What runs as long as the lanes of a warp stay together."""
    code = function.instructions
    if any(i.opcode.startswith(_ANYWHERE) for i in code):
        return code
    places = {instruction.address: place for place, instruction in enumerate(code)}
    reached: set[int] = set()
    waiting = [0]
    while waiting:
        place = waiting.pop()
        if place in reached or place >= len(code):
            continue
        reached.add(place)
        instruction = code[place]
        if not instruction.opcode.startswith(_APART):
            targets = (function.labels.get(name) for name in _TARGET.findall(instruction.operands))
            waiting += [places[target] for target in targets if target in places]
        if not _ends(instruction):
            waiting.append(place + 1)
    return [instruction for place, instruction in enumerate(code) if place in reached]


def _ends(instruction: Instruction) -> bool:
    """Whether what comes next in the listing is never run next."""
    if instruction.is_predicated or instruction.opcode.startswith(_APART):
        return False
    is_jump = instruction.opcode.startswith("BRA") and instruction.operands.startswith("`")
    return is_jump or instruction.opcode.startswith(("EXIT", "RET"))


def _loops(function: _Function) -> tuple[SassLoop, ...]:
    spans: dict[int, int] = {}
    for instruction in function.instructions:
        if not instruction.opcode.startswith("BRA"):
            continue
        target = _TARGET.search(instruction.operands)
        first = function.labels.get(target[1]) if target else None
        # A branch to itself ends every function; it is never reached.
        if first is not None and first < instruction.address:
            spans[first] = max(spans.get(first, 0), instruction.address)
    return make_loops(spans, function.instructions)


def make_loops(
    spans: Mapping[int, int], instructions: Sequence[Instruction]
) -> tuple[SassLoop, ...]:
    """The loops that begin and end at these addresses, nested and told from their versions."""
    ordered = sorted(spans.items(), key=lambda span: (span[0], -span[1]))
    found = [
        SassLoop(first, last, 1 + sum(a < first and last <= b for a, b in ordered))
        for first, last in ordered
    ]
    return _with_versions(found, instructions)


def _with_versions(
    loops: Sequence[SassLoop], instructions: Sequence[Instruction]
) -> tuple[SassLoop, ...]:
    lines = {loop.first: _lines_of(loop, instructions) for loop in loops}
    repeated: set[int] = set()
    by_size = sorted(loops, key=lambda loop: loop.last - loop.first, reverse=True)
    for index, large in enumerate(by_size):
        for small in by_size[index + 1 :]:
            is_apart = small.last < large.first or large.last < small.first
            shared = lines[large.first] & lines[small.first]
            is_same = len(shared) > _SHARED_LINES * len(lines[small.first])
            if is_apart and large.depth == small.depth and shared and is_same:
                repeated.add(small.first)
    return tuple(
        SassLoop(loop.first, loop.last, loop.depth, loop.first in repeated) for loop in loops
    )


def _lines_of(loop: SassLoop, instructions: Sequence[Instruction]) -> set[int]:
    return {i.line for i in instructions if i.address in loop and i.line}
