# SPDX-License-Identifier: Apache-2.0
"""PTX that computes in registers, as C++ (sandbox/cuda_on_cpu/ptx.h says what each call does)."""

from __future__ import annotations

import re

from .ptx_operands import TYPES, Scope, require, width
from .ptx_program import Instruction, NotTranslated

_FLOATS = ("f32", "f64", "f16", "f16x2", "bf16", "bf16x2", "f32x2")
FUNCTIONS = {
    "add": ("::kw::ptx::add", 2),
    "sub": ("::kw::ptx::sub", 2),
    "mul": ("::kw::ptx::mul", 2),
    "fma": ("::kw::ptx::fma", 3),
    "mad": ("::kw::ptx::fma", 3),
    "min": ("::kw::ptx::min", 2),
    "max": ("::kw::ptx::max", 2),
    "neg": ("::kw::ptx::neg", 1),
    "abs": ("::kw::ptx::abs", 1),
    "ex2": ("::kw::ptx::ex2", 1),
    "lg2": ("__log2f", 1),
    "rcp": ("::kw::ptx::rcp", 1),
    "sqrt": ("std::sqrt", 1),
    "rsqrt": ("rsqrtf", 1),
    "sin": ("__sinf", 1),
    "cos": ("__cosf", 1),
    "tanh": ("::kw::ptx::tanh", 1),
    "popc": ("::kw::ptx::popc", 1),
    "clz": ("::kw::ptx::clz", 1),
}
"""Functions of operands of one type, and how many they take."""
_APPROXIMATE = ("ex2", "lg2", "rcp", "sqrt", "rsqrt", "sin", "cos", "tanh")
_LOGIC = {"and": "{} & {}", "or": "{} | {}", "xor": "{} ^ {}"}
_COMPARED = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}


def translate_function(instruction: Instruction, scope: Scope) -> str:
    """Sums, products, minima, the approximate functions. Raises NotTranslated."""
    name, *modifiers, kind = instruction.words
    function, count = FUNCTIONS[name]
    result, *operands = require(instruction, count + 1)
    _require_type(kind, instruction)
    is_float = kind in _FLOATS
    known = {"rn", "ftz", "noftz", "approx", "sat", "relu"} if is_float else {"lo", "hi", "wide"}
    if not set(modifiers) <= known or (name in _APPROXIMATE and kind not in _FLOATS):
        raise NotTranslated(instruction.opcode)
    if name in ("lg2", "rsqrt", "sin", "cos", "rcp") and kind != "f32":
        raise NotTranslated(instruction.opcode)
    if name == "fma" and not is_float:
        raise NotTranslated(instruction.opcode)
    if ("sat" in modifiers and kind != "f32") or (
        kind == "f32x2" and name not in ("add", "mul", "fma")
    ):
        raise NotTranslated(instruction.opcode)
    given = [scope.get(one, kind) for one in operands]
    if "ftz" in modifiers:
        given = [f"::kw::ptx::flush({one})" for one in given]
    if "wide" in modifiers or "hi" in modifiers:
        value = _wide_product(name, modifiers, kind, instruction, scope)
    else:
        if "relu" in modifiers and name != "fma":
            raise NotTranslated(instruction.opcode)
        value = f"{function}{'_relu' if 'relu' in modifiers else ''}({', '.join(given)})"
    if "ftz" in modifiers:
        value = f"::kw::ptx::flush({value})"
    if "sat" in modifiers:
        value = f"::kw::ptx::saturate({value})"
    return scope.put(result, value)


def _wide_product(
    name: str, modifiers: list[str], kind: str, instruction: Instruction, scope: Scope
) -> str:
    if name not in ("mul", "mad") or kind[:1] not in "us":
        raise NotTranslated(instruction.opcode)
    operands = instruction.operands
    function = "mul_wide" if "wide" in modifiers else "mul_hi"
    product = (
        f"::kw::ptx::{function}({scope.get(operands[1], kind)}, {scope.get(operands[2], kind)})"
    )
    if name == "mul":
        return product
    of = f"{kind[0]}{width(kind) * 2}" if "wide" in modifiers else kind
    return f"::kw::ptx::add({product}, {scope.get(operands[3], of)})"


def translate_logic(instruction: Instruction, scope: Scope) -> str:
    """and, or, xor, not. Raises NotTranslated."""
    name, kind = _name_and_type(instruction)
    result, *operands = require(instruction, 2 if name == "not" else 3)
    given = [scope.get(one, kind) for one in operands]
    if name == "not":
        value = f"!{given[0]}" if kind == "pred" else f"~{given[0]}"
    else:
        value = _LOGIC[name].format(*given)
    return scope.put(result, f"{TYPES[kind]}({value})")


def translate_shift(instruction: Instruction, scope: Scope) -> str:
    """shl and shr. Raises NotTranslated."""
    name, kind = _name_and_type(instruction)
    result, what, by = require(instruction, 3)
    value = f"::kw::ptx::{name}({scope.get(what, kind)}, {scope.get(by, 'u32')})"
    return scope.put(result, value)


def translate_bits(instruction: Instruction, scope: Scope) -> str:
    """lop3, prmt, bfe, bfi, brev, shf, dp4a. Raises NotTranslated."""
    name, *modifiers, kind = instruction.words
    _require_type(kind, instruction)
    result, *operands = instruction.operands
    given = [scope.get(one, kind if name in ("bfe", "bfi") else "u32") for one in operands]
    calls = {
        "lop3": ("::kw::ptx::lop3", 4, "b32"),
        "prmt": ("__byte_perm", 3, "b32"),
        "brev": ("__brev", 1, "b32"),
        "bfe": ("::kw::ptx::bfe", 3, kind),
        "bfi": ("::kw::ptx::bfi", 4, kind),
    }
    if name == "shf" and modifiers in (
        ["l", "wrap"],
        ["r", "wrap"],
        ["l", "clamp"],
        ["r", "clamp"],
    ):
        function = f"__funnelshift_{modifiers[0]}{'c' if modifiers[1] == 'clamp' else ''}"
        if len(given) == 3:
            return scope.put(result, f"{function}({', '.join(given)})")
    if name not in calls or modifiers or calls[name][2] != kind or len(given) != calls[name][1]:
        raise NotTranslated(instruction.opcode)
    if name in ("bfe", "bfi"):
        given[-2:] = [scope.get(one, "u32") for one in operands[-2:]]
    return scope.put(result, f"{calls[name][0]}({', '.join(given)})")


def translate_dot(instruction: Instruction, scope: Scope) -> str:
    """dp4a of operands of one sign. Raises NotTranslated."""
    result, a, b, c = require(instruction, 4)
    kind = instruction.words[-1]
    if instruction.opcode not in ("dp4a.s32.s32", "dp4a.u32.u32"):
        raise NotTranslated(instruction.opcode)
    given = ", ".join(scope.get(one, kind) for one in (a, b, c))
    return scope.put(result, f"__dp4a({given})")


def translate_compare(instruction: Instruction, scope: Scope) -> str:
    """setp, without a second result. Raises NotTranslated."""
    _, *modifiers, kind = instruction.words
    _require_type(kind, instruction)
    result, one, other = require(instruction, 3)
    modifiers = [word for word in modifiers if word != "ftz"]
    if len(modifiers) != 1 or modifiers[0] not in _COMPARED or "x2" in kind:
        raise NotTranslated(instruction.opcode)
    value = f"{scope.get(one, kind)} {_COMPARED[modifiers[0]]} {scope.get(other, kind)}"
    return f"{scope.target(result.text)} = {value};"


def translate_select(instruction: Instruction, scope: Scope) -> str:
    """selp. Raises NotTranslated."""
    _, kind = _name_and_type(instruction)
    result, one, other, predicate = require(instruction, 4)
    value = f"{scope.get(predicate, 'pred')} ? {scope.get(one, kind)} : {scope.get(other, kind)}"
    return scope.put(result, value)


def translate_move(instruction: Instruction, scope: Scope) -> str:
    """mov, which also packs the parts of a register, and takes it apart. Raises NotTranslated."""
    _, kind = _name_and_type(instruction)
    result, given = require(instruction, 2)
    if not result.parts and not given.parts:
        return scope.put(result, scope.get(given, kind))
    parts = result.parts or given.parts
    bits = width(kind) // len(parts)
    if kind[0] != "b" or width(kind) % len(parts) or bits not in (8, 16, 32):
        raise NotTranslated(instruction.opcode)
    part, whole = f"std::uint{bits}_t", f"std::uint{width(kind)}_t"
    if given.parts:
        each = (
            f"{whole}({part}({scope.word(text)})) << {bits * i}" for i, text in enumerate(parts)
        )
        return scope.put(result, " | ".join(each))
    word = f"{whole}({scope.word(given.text)})"
    return " ".join(
        f"::kw::ptx::put({scope.target(text)}, {part}(kw_whole >> {bits * i}));"
        for i, text in enumerate(parts)
        if text != "_"
    ).join((f"const auto kw_whole = {word}; ", ""))


def _name_and_type(instruction: Instruction) -> tuple[str, str]:
    words = instruction.words
    if len(words) != 2:
        raise NotTranslated(instruction.opcode)
    _require_type(words[1], instruction)
    return words[0], words[1]


def _require_type(kind: str, instruction: Instruction) -> None:
    if kind not in TYPES:
        raise NotTranslated(instruction.opcode)


_MODES = {
    "rn": "NEAREST",
    "rni": "NEAREST",
    "rna": "AWAY",
    "rz": "ZERO",
    "rzi": "ZERO",
    "rm": "DOWN",
    "rmi": "DOWN",
    "rp": "UP",
    "rpi": "UP",
}
_CODES = {"e4m3x2": "E4M3", "e5m2x2": "E5M2", "e2m1x2": "E2M1"}
_PAIRS = {"f16x2": "__half", "bf16x2": "__nv_bfloat16"}


def translate_conversion(instruction: Instruction, scope: Scope) -> str:
    """cvt. Raises NotTranslated."""
    _, *modifiers, to, source = instruction.words
    flags = {word for word in modifiers if word not in _MODES}
    modes = [_MODES[word] for word in modifiers if word in _MODES]
    if len(modes) > 1 or not flags <= {"ftz", "sat", "satfinite", "relu"}:
        raise NotTranslated(instruction.opcode)
    mode = f"::kw::Round::{modes[0] if modes else 'NEAREST'}"
    relu = str("relu" in flags).lower()
    if to in _PAIRS and source == "f32" and modes in (["NEAREST"], ["ZERO"]) and flags <= {"relu"}:
        result, upper, lower = require(instruction, 3)
        both = f"{scope.get(upper, source)}, {scope.get(lower, source)}"
        return scope.put(result, f"::kw::ptx::pack<{_PAIRS[to]}>({both}, {mode}, {relu})")
    if to in _CODES and modes == ["NEAREST"] and {"satfinite"} <= flags <= {"satfinite", "relu"}:
        result, *given = require(instruction, 3 if source == "f32" else 2)
        if source not in ("f32", *_PAIRS):
            raise NotTranslated(instruction.opcode)
        both = ", ".join(scope.get(one, source) for one in given)
        value = f"::kw::ptx::pack_codes<::kw::{_CODES[to]}>({both}, {relu})"
        return scope.put(result, value)
    if to == "f16x2" and source in _CODES and modes == ["NEAREST"] and not flags:
        result, codes = require(instruction, 2)
        value = f"::kw::ptx::unpack_codes<::kw::{_CODES[source]}>({scope.word(codes.text)})"
        return scope.put(result, value)
    if to == "tf32" and source == "f32" and modes in (["NEAREST"], ["AWAY"]) and not flags:
        result, one = require(instruction, 2)
        return scope.put(result, f"::kw::rounded_tf32({scope.get(one, source)}, {mode})")
    return _convert_number(instruction, scope, to, source, flags, mode)


def _convert_number(
    instruction: Instruction, scope: Scope, to: str, source: str, flags: set[str], mode: str
) -> str:
    result, one = require(instruction, 2)
    is_known = all(
        re.fullmatch(r"[us](?:8|16|32|64)|f16|bf16|f32|f64", kind) for kind in (to, source)
    )
    if not is_known or flags - {"ftz", "sat"} or ("sat" in flags and to[0] not in "us"):
        raise NotTranslated(instruction.opcode)
    whole = str(any(word.endswith("i") for word in instruction.words[1:-2])).lower()
    value = scope.get(one, source)
    if "ftz" in flags:
        value = f"::kw::ptx::flush({value})"
    clamps = str("sat" in flags).lower()
    value = f"::kw::ptx::convert<{TYPES[to]}, {whole}, {clamps}>({value}, {mode})"
    return scope.put(result, f"::kw::ptx::flush({value})" if "ftz" in flags else value)
