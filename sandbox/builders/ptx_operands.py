# SPDX-License-Identifier: Apache-2.0
"""Operands of PTX as C++: registers are words, which their instruction gives a type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .ptx_program import Instruction, NotTranslated, Operand

TYPES = {
    **{
        f"{kind}{bits}": f"std::{u}int{bits}_t"
        for bits in (8, 16, 32, 64)
        for kind, u in (("u", "u"), ("s", ""), ("b", "u"))
    },
    "f32": "float",
    "f64": "double",
    "f16": "__half",
    "f16x2": "__half2",
    "bf16": "__nv_bfloat16",
    "bf16x2": "__nv_bfloat162",
    "f32x2": "float2",
    "pred": "bool",
}
"""C++'s types for those of PTX."""
_WIDTHS = {"pred": 1, "f16x2": 32, "bf16x2": 32, "f32x2": 64, "bf16": 16}
_SPECIAL = {
    "laneid": "::kw::lane()",
    "warpid": "(::kw::here.rank / 32)",
    "clock": "std::uint32_t(clock64())",
    "clock64": "std::uint64_t(clock64())",
    "globaltimer": "std::uint64_t(clock64())",
    "lanemask_eq": "(1u << ::kw::lane())",
    "lanemask_lt": "((1u << ::kw::lane()) - 1)",
    "lanemask_le": "((2u << ::kw::lane()) - 1)",
    "lanemask_gt": "~((2u << ::kw::lane()) - 1)",
    "lanemask_ge": "~((1u << ::kw::lane()) - 1)",
    **{
        f"{ptx}.{axis}": f"{name}.{axis}"
        for ptx, name in (
            ("tid", "threadIdx"),
            ("ntid", "blockDim"),
            ("ctaid", "blockIdx"),
            ("nctaid", "gridDim"),
        )
        for axis in "xyz"
    },
}
_ADDRESS = re.compile(r"(%?\w+)\s*(?:\+\s*(-?\w+))?")


def width(kind: str) -> int:
    """The bits of a register of a type; a predicate has 1."""
    return _WIDTHS.get(kind) or max(16, int(re.sub(r"\D", "", kind) or 0))


def word_type(kind: str) -> str:
    """What a register of this type is in C++."""
    return "bool" if kind == "pred" else f"std::uint{width(kind)}_t"


@dataclass(frozen=True)
class Scope:
    """The registers that an `asm` statement's text may name, as C++."""

    registers: Mapping[str, str]
    predicates: frozenset[str] = frozenset()
    """Those that are no words."""

    def word(self, text: str) -> str:
        """A register or a number. Raises NotTranslated."""
        text = text.strip()
        if text in self.registers:
            return self.registers[text]
        # An asm text has special registers with two percent signs, for one of PTX.
        if text.startswith("%%") and text[2:] in _SPECIAL:
            return _SPECIAL[text[2:]]
        if re.fullmatch(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?", text):
            digits = text.rstrip("U")
            suffix = "ull" if digits.lower().startswith("0x") else "ll"
            return f"({digits}{suffix})"
        if found := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
            return f"std::uint32_t(0x{found[1]}u)"
        if found := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", text):
            return f"std::uint64_t(0x{found[1]}ull)"
        if re.fullmatch(r"-?\d+\.\d*(?:[eE][-+]?\d+)?", text):
            return f"({text})"
        raise NotTranslated(f"the operand `{text[:40]}`")

    def get(self, operand: Operand, kind: str) -> str:
        """The operand's value as of a type. Raises NotTranslated."""
        if operand.parts or operand.is_address:
            raise NotTranslated(f"the operand `{operand.text[:40]}` in this place")
        text = operand.text
        if kind == "pred" and text.startswith("!"):
            return f"!{self.word(text[1:])}"
        return f"::kw::ptx::get<{TYPES[kind]}>({self.word(text)})"

    def put(self, operand: Operand, value: str) -> str:
        """A statement that sets the operand's register. Raises NotTranslated."""
        if operand.text == "_":
            return f"(void)({value});"
        return f"::kw::ptx::put({self.target(operand.text)}, {value});"

    def target(self, text: str) -> str:
        """A register that is set. Raises NotTranslated."""
        if text not in self.registers:
            raise NotTranslated(f"a result in `{text[:40]}`")
        return self.registers[text]

    def words(self, operand: Operand) -> list[str]:
        """Those of a vector, or one. Raises NotTranslated."""
        return [self.word(part) for part in operand.parts or (operand.text,)]

    def address(self, operand: Operand, is_shared: bool) -> str:
        """Where an address in brackets points to. Raises NotTranslated."""
        found = _ADDRESS.fullmatch(operand.text) if operand.is_address else None
        if found is None:
            raise NotTranslated(f"the address `{operand.text[:40]}`")
        space = "Shared" if is_shared else "Generic"
        offset = self.word(found[2]) if found[2] else "0"
        return f"::kw::ptx::{space}::at({self.word(found[1])}, {offset})"


def require(instruction: Instruction, count: int) -> tuple[Operand, ...]:
    """The operands, of which there must be so many. Raises NotTranslated."""
    if len(instruction.operands) != count:
        raise NotTranslated(f"{instruction.opcode} with {len(instruction.operands)} operands")
    return instruction.operands
