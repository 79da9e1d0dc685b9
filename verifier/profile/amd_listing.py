# SPDX-License-Identifier: Apache-2.0
"""Reads the assembly that AMD's compiler writes: the instructions of each kernel, loops and lines.

LLVM's syntax (User Guide for AMDGPU Backend). Assembly has no addresses: instructions are numbered,
which orders them as addresses do. Loops are found as in SASS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...kernelbench.targets import Vendor
from .sass import Instruction, Listing, make_loops

_KERNEL = re.compile(r"^\s*\.type\s+([\w$.]+),\s*@function")
_LABEL = re.compile(r"^(\.?[\w$.]+):")
_LOC = re.compile(r"^\s*\.loc\s")
_OURS = re.compile(r"\bcandidate\.\w+:(\d+)")
"""Where a comment names the candidate's own line, called from which another file's was inlined."""
_END = re.compile(r"^\.Lfunc_end\d+:")
_INSTRUCTION = re.compile(r"^\s+((?:v|s|ds|global|buffer|flat|scratch|cluster|tensor)_\w+)\s*(.*)")
_BRANCH = ("s_branch", "s_cbranch")


def listings(text: str) -> dict[str, Listing]:
    """The kernels and functions of an assembly by symbol."""
    return {name: _read(rows) for name, rows in _functions(text.splitlines())}


def _functions(rows: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    name, inside = "", list[str]()
    for row in rows:
        if found := _KERNEL.match(row):
            name, inside = found[1], []
        elif name and _END.match(row):
            yield name, inside
            name = ""
        elif name:
            inside.append(row)


def _read(rows: Iterable[str]) -> Listing:
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    line = 0
    for row in rows:
        if label := _LABEL.match(row):
            labels[label[1]] = len(instructions)
        elif _LOC.match(row):
            ours = _OURS.search(row)
            line = int(ours[1]) if ours else 0
        elif found := _INSTRUCTION.match(row):
            operands = found[2].partition(";")[0].strip()
            at = len(instructions)
            instructions.append(Instruction(at, found[1], operands, line, vendor=Vendor.AMD))
    spans: dict[int, int] = {}
    for each in instructions:
        target = labels.get(each.operands) if each.opcode.startswith(_BRANCH) else None
        if target is not None and target <= each.address:
            spans[target] = max(spans.get(target, 0), each.address)
    return Listing(tuple(instructions), make_loops(spans, instructions), frozenset(labels.values()))
