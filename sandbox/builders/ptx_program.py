# SPDX-License-Identifier: Apache-2.0
"""Reads the text of an `asm` statement: PTX instructions with their operands (PTX ISA, "Syntax").

It knows the form alone; what an instruction does is in `ptx_instructions`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_PREDICATE = re.compile(r"@(!?)\s*(%?\w+)\s+")
_REGISTERS = re.compile(r"\.reg\s+(?:\.v[24]\s+)?\.(\w+)\s+(.+)", re.S)
_OPCODE = re.compile(r"[a-z]\w*(?:(?:\.|::)\w+)*")


class NotTranslated(Exception):
    """An instruction, or a way to write it, that the emulation does not know."""


@dataclass(frozen=True)
class Operand:
    """One operand: its text, or those of its parts."""

    text: str
    parts: tuple[str, ...] = ()
    """Of a vector in braces."""
    is_address: bool = False
    """In brackets, which `text` leaves out."""


@dataclass(frozen=True)
class Instruction:
    """`@p opcode operands;`"""

    opcode: str
    operands: tuple[Operand, ...]
    predicate: str = ""
    is_negated: bool = False

    @property
    def words(self) -> list[str]:
        """The opcode between its dots."""
        return self.opcode.split(".")


@dataclass(frozen=True)
class Program:
    """What one `asm` statement says."""

    instructions: tuple[Instruction, ...]
    registers: tuple[tuple[str, str], ...]
    """Those that it declares: type and name."""


def parse_program(text: str) -> Program:
    """The instructions of a text; NotTranslated for labels, directives and other forms."""
    instructions: list[Instruction] = []
    registers: list[tuple[str, str]] = []
    for statement in _statements(_COMMENT.sub(" ", text)):
        if found := _REGISTERS.fullmatch(statement):
            names = [name.strip() for name in found[2].split(",")]
            if not all(re.fullmatch(r"%?\w+", name) for name in names):
                raise NotTranslated(f"the declaration `{_short(statement)}`")
            registers += [(found[1], name) for name in names]
        else:
            instructions.append(_parse(statement))
    if len({name for _, name in registers}) < len(registers):
        raise NotTranslated("two registers of one name")
    return Program(tuple(instructions), tuple(registers))


def _statements(text: str) -> list[str]:
    """What stands between semicolons; braces around statements are left out."""
    found, current, depth = [], "", 0
    for c in text:
        if c in "{}" and not current.strip():
            continue
        depth += (c == "{") - (c == "}")
        if c == ";" or depth < 0:
            found.append(current.strip())
            current, depth = "", 0
        else:
            current += c
    return [one for one in [*found, current.strip()] if one]


def _parse(statement: str) -> Instruction:
    predicate = _PREDICATE.match(statement)
    rest = statement[predicate.end() :] if predicate else statement
    opcode = _OPCODE.match(rest)
    if opcode is None or rest[opcode.end() :].startswith(":"):
        raise NotTranslated(f"`{_short(statement)}`")
    return Instruction(
        opcode[0],
        tuple(_operand(one) for one in _split(rest[opcode.end() :])),
        predicate[2] if predicate else "",
        bool(predicate and predicate[1]),
    )


def _operand(text: str) -> Operand:
    if text[:1] == "{" and text[-1:] == "}":
        return Operand(text, tuple(_split(text[1:-1])))
    if text[:1] == "[" and text[-1:] == "]":
        return Operand(text[1:-1].strip(), is_address=True)
    return Operand(text)


def _split(text: str) -> list[str]:
    """What stands between the commas outside braces and brackets."""
    parts, current, depth = [], "", 0
    for c in text:
        depth += (c in "{[") - (c in "}]")
        if c == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    return [part for part in [*parts, current.strip()] if part]


def _short(text: str) -> str:
    return " ".join(text.split())[:60]
