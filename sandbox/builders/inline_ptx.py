# SPDX-License-Identifier: Apache-2.0
"""`asm` statements of CUDA C++ as C++ that does what their PTX does.

    asm volatile("add.s32 %0, %1, 1;" : "=r"(y) : "r"(x));

becomes an expression with a word for each operand, the instruction on these words, and the result
back in `y`; as many lines as before. What is not translated becomes an assertion that fails where
the compiler meets it: code that a preprocessor leaves out, or a macro that nothing uses, does not
stand in the way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .ptx_instructions import translate
from .ptx_operands import Scope, word_type
from .ptx_program import NotTranslated, parse_program

PREFIX = "inline PTX: "
"""What the assertion's words begin with."""

_KEYWORD = re.compile(r"\b(?:asm|__asm__|__asm)\b(?:\s|\\\n)*(?P<more>(?:\w+(?:\s|\\\n)*)*)\(")
_OPERAND = re.compile(r'\s*"(?P<constraint>[^"]*)"\s*\((?P<what>.*)\)\s*', re.S)
_WORDS = {"h": "b16", "r": "b32", "l": "b64", "f": "f32", "d": "f64", "n": "b64"}
"""The register of each constraint (Inline PTX Assembly in CUDA, "Constraints")."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_MESSAGE_CHARACTERS = 120


@dataclass(frozen=True)
class _Operand:
    constraint: str
    what: str
    is_output: bool


def rewrite_statements(source: str, code: str, bare: str) -> str:
    """The source with each `asm` statement as C++.

    Args:
        source: CUDA C++.
        code: The same with spaces for comments and for what is quoted.
        bare: The same with spaces for comments.
    """
    pieces, done = [], 0
    for found in _KEYWORD.finditer(code):
        end = _closing(code, found.end() - 1)
        if found.start() < done or end < 0:
            continue
        span = slice(found.end(), end)
        try:
            if set(found["more"].replace("\\\n", " ").split()) - {
                "volatile",
                "__volatile__",
                "inline",
            }:
                raise NotTranslated("asm goto")
            text = _expression(bare[span], code[span])
        except NotTranslated as error:
            words = re.sub(r'["\\\n]', " ", str(error))[:_MESSAGE_CHARACTERS]
            text = f'static_assert(::kw::ptx::NEVER<>, "{PREFIX}{words}")'
        pieces += [source[done : found.start()], text, _breaks(source[found.start() : end + 1])]
        done = end + 1
    return "".join([*pieces, source[done:]])


def _breaks(text: str) -> str:
    """The ends of its lines, as they are in a macro where they are."""
    return "".join(re.findall(r"\\?\n", text))


def _closing(code: str, place: int) -> int:
    depth = 0
    for at in range(place, len(code)):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth == 0:
            return at
    return -1


def _cut(code: str, marks: set[str]) -> list[slice]:
    """The pieces between marks outside brackets and quotes."""
    pieces, start, depth = [], 0, 0
    for at, c in enumerate(code):
        depth += (c in "([{") - (c in ")]}")
        if depth == 0 and c in marks:
            pieces.append(slice(start, at))
            start = at + 1
    return [*pieces, slice(start, len(code))]


def _expression(text: str, code: str) -> str:
    sections = _cut(code, {":"})
    template = _unquote(text[sections[0]].replace("\\\n", " "))
    operands = []
    for number, section in enumerate(sections[1:3]):
        inner = text[section].replace("\\\n", "  ")
        own = code[section]
        parts = [inner[part] for part in _cut(own, {","})]
        operands += [_parse_operand(part, number == 0) for part in parts if part.strip()]
    return _translate_block(template, operands)


def _unquote(text: str) -> str:
    """What adjacent strings say. Raises NotTranslated where there is anything else."""
    out, at = "", 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text.startswith('R"', at) and (
            raw := re.compile(r'R"(\w*)\((.*?)\)\1"', re.S).match(text, at)
        ):
            out, at = out + raw[2], raw.end()
        elif plain := re.compile(r'"((?:[^"\\]|\\.)*)"', re.S).match(text, at):
            out += re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], " "), plain[1])
            at = plain.end()
        else:
            raise NotTranslated("a text that macros make")
    return out


def _parse_operand(text: str, is_output: bool) -> _Operand:
    found = _OPERAND.fullmatch(text)
    if found is None:
        raise NotTranslated(f"the operand {' '.join(text.split())[:40]}")
    return _Operand(found["constraint"], " ".join(found["what"].split("\n")), is_output)


def _translate_block(template: str, operands: list[_Operand]) -> str:
    program = parse_program(template)
    registers, before, after = {}, [], []
    for number, operand in enumerate(operands):
        name = f"kw_{number}"
        letter = operand.constraint.strip("=+&")
        if letter not in _WORDS:
            raise NotTranslated(f"the constraint {operand.constraint}")
        registers[f"%{number}"] = name
        kind = word_type(_WORDS[letter])
        if operand.is_output:
            before.append(f"auto&& kw_at_{number} = ({operand.what}); {kind} {name} = {kind}(-1);")
            after.append(f"::kw::ptx::give(kw_at_{number}, {name});")
            if "+" in operand.constraint:
                before.append(f"{name} = {_read_given(letter, kind, f'kw_at_{number}')};")
        else:
            before.append(f"const {kind} {name} = {_read_given(letter, kind, operand.what)};")
    for kind, name in program.registers:
        registers[name] = f"kw_r_{name.lstrip('%')}"
        word = word_type(kind)
        before.append(f"[[maybe_unused]] {word} {registers[name]} = {word}(-1);")
    predicates = frozenset(name for kind, name in program.registers if kind == "pred")
    scope = Scope(registers, predicates)
    body = [translate(instruction, scope) for instruction in program.instructions]
    return " ".join(["({", *before, *body, *after, "(void)0; })"])


def _read_given(letter: str, kind: str, what: str) -> str:
    if letter in "fd":
        number = "float" if letter == "f" else "double"
        return f"::kw::bits_as<{kind}>(static_cast<{number}>({what}))"
    return f"::kw::ptx::given<{kind}>({what})"
