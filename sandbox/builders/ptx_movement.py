# SPDX-License-Identifier: Apache-2.0
"""PTX that moves data between memory and registers, as C++ (sandbox/cuda_on_cpu/ptx_memory.h,
copies.h, matrix_moves.h)."""

from __future__ import annotations

import re

from .ptx_operands import TYPES, Scope, require, width
from .ptx_program import Instruction, NotTranslated, Operand

LINE = "__builtin_LINE()"
_HINTS = re.compile(
    r"ca|cg|cs|lu|cv|wb|wt|nc|weak|cta|gpu|sys|cluster|L1::\w+|L2::(?:\w+)|noftz|sync|aligned|m8n8"
)
"""Caches, scopes, and what changes nothing here."""
_ORDERS = ("volatile", "relaxed", "acquire", "release", "acq_rel")
_FENCES = {"acquire": 2, "release": 1, "acq_rel": 3}
_SHARED = ("shared", "shared::cta")
_ATOMICS = {
    **{name: name.capitalize() for name in ("add", "min", "max", "and", "or", "xor", "exch")},
    "cas": "",
}


def _without_policy(instruction: Instruction) -> tuple[Operand, ...]:
    has_policy = "L2::cache_hint" in instruction.words
    return instruction.operands[:-1] if has_policy else instruction.operands


def _parts(instruction: Instruction, known: tuple[str, ...]) -> tuple[set[str], bool, str]:
    """The words that matter, whether memory is shared, and the type. Raises NotTranslated."""
    words = {word for word in instruction.words[1:-1] if not _HINTS.fullmatch(word)}
    is_shared = bool(words & set(_SHARED))
    words -= {*_SHARED, "global"}
    if not words <= set(known):
        raise NotTranslated(instruction.opcode)
    return words, is_shared, instruction.words[-1]


def translate_access(instruction: Instruction, scope: Scope) -> str:
    """ld and st, of one register or a vector. Raises NotTranslated."""
    words, is_shared, kind = _parts(instruction, ("v2", "v4", *_ORDERS))
    operands = _without_policy(instruction)
    if kind not in TYPES or kind == "pred" or len(operands) != 2:
        raise NotTranslated(instruction.opcode)
    is_load = instruction.words[0] == "ld"
    value, place = operands if is_load else operands[::-1]
    at = scope.address(place, is_shared)
    each = [Operand(text) for text in value.parts or (value.text,)]
    count = int(next((word[1:] for word in words if word in ("v2", "v4")), "1"))
    if count != len(each):
        raise NotTranslated(f"{instruction.opcode} of {len(each)} registers")
    if order := words & set(_ORDERS):
        if count > 1:
            raise NotTranslated(instruction.opcode)
        is_ordered = str(bool(order & {"acquire", "release"})).lower()
        if is_load:
            call = f"::kw::ptx::load_word<{TYPES[kind]}>({at}, {is_ordered}, {LINE})"
            return scope.put(each[0], call)
        return f"::kw::ptx::store_word({at}, {scope.get(each[0], kind)}, {is_ordered}, {LINE});"
    if is_load:
        puts = " ".join(scope.put(one, f"kw_v[{i}]") for i, one in enumerate(each))
        return f"{TYPES[kind]} kw_v[{count}]; ::kw::ptx::load(kw_v, {at}, {LINE}); {puts}"
    given = ", ".join(scope.get(one, kind) for one in each)
    return f"const {TYPES[kind]} kw_v[] = {{{given}}}; ::kw::ptx::store({at}, kw_v, {LINE});"


def translate_atomic(instruction: Instruction, scope: Scope) -> str:
    """atom and red. Raises NotTranslated."""
    words, is_shared, kind = _parts(instruction, (*_ATOMICS, *_ORDERS))
    operations = words & set(_ATOMICS)
    if len(operations) != 1 or kind not in TYPES or width(kind) < 16:
        raise NotTranslated(instruction.opcode)
    operation = operations.pop()
    operands = _without_policy(instruction)
    result = operands[0] if instruction.words[0] == "atom" else Operand("_")
    place, *values = operands[1:] if instruction.words[0] == "atom" else operands
    fences = next((_FENCES[word] for word in words if word in _FENCES), 0)
    given = [scope.get(one, kind) for one in values]
    at = scope.address(place, is_shared)
    if len(given) != (2 if operation == "cas" else 1):
        raise NotTranslated(f"{instruction.opcode} with {len(operands)} operands")
    if operation == "cas":
        call = f"::kw::ptx::exchange_if<{TYPES[kind]}, {fences}>"
    else:
        if TYPES[kind].startswith(("_", "f", "d")) and operation != "add":
            raise NotTranslated(instruction.opcode)
        call = f"::kw::ptx::change<::kw::ptx::{_ATOMICS[operation]}, {TYPES[kind]}, {fences}>"
    return scope.put(result, f"{call}({at}, {', '.join(given)}, {LINE})")


def translate_copy(instruction: Instruction, scope: Scope) -> str:
    """cp.async between global and shared memory, and what waits for it. Raises NotTranslated."""
    words = instruction.words[2:]
    if words[:1] in (["commit_group"], ["wait_all"]) and len(words) == 1:
        require(instruction, 0)
        return {"commit_group": "::kw::commit_copies();", "wait_all": "::kw::await_all_copies();"}[
            words[0]
        ]
    if words == ["wait_group"]:
        (left,) = require(instruction, 1)
        return f"::kw::await_copies({scope.get(left, 'u32')});"
    hints = {word for word in words if not _HINTS.fullmatch(word)}
    if words[:1] not in (["ca"], ["cg"]) or not hints <= {*_SHARED, "global"}:
        raise NotTranslated(instruction.opcode)
    operands = _without_policy(instruction)
    if len(operands) not in (3, 4) or (len(operands) == 4 and operands[3].text in scope.predicates):
        raise NotTranslated(f"{instruction.opcode} with {len(operands)} operands")
    to, source = scope.address(operands[0], True), scope.address(operands[1], False)
    size = scope.get(operands[2], "u32")
    taken = scope.get(operands[3], "u32") if len(operands) == 4 else size
    return f"::kw::copy_async({to}, {source}, {size}, {taken}, {LINE});"


def translate_matrix_move(instruction: Instruction, scope: Scope) -> str:
    """ldmatrix and stmatrix of 16-bit elements. Raises NotTranslated."""
    name = instruction.words[0]
    words, is_shared, kind = _parts(instruction, ("x1", "x2", "x4", "trans"))
    count = int(next((word[1:] for word in words if word[0] == "x"), "0"))
    one, other = require(instruction, 2)
    value, place = (one, other) if name == "ldmatrix" else (other, one)
    registers = value.parts or (value.text,)
    if kind != "b16" or "m8n8" not in instruction.words or count != len(registers):
        raise NotTranslated(instruction.opcode)
    shape = f"{count}, {str('trans' in words).lower()}"
    at = scope.address(place, is_shared)
    if name == "stmatrix":
        given = ", ".join(f"std::uint32_t({scope.word(text)})" for text in registers)
        return (
            f"const std::uint32_t kw_v[] = {{{given}}}; "
            f"::kw::tensor::store_matrices<{shape}>({at}, kw_v, {LINE});"
        )
    puts = " ".join(scope.put(Operand(text), f"kw_v[{i}]") for i, text in enumerate(registers))
    return (
        f"std::uint32_t kw_v[{count}]; "
        f"::kw::tensor::load_matrices<{shape}>(kw_v, {at}, {LINE}); {puts}"
    )


def translate_address(instruction: Instruction, scope: Scope) -> str:
    """cvta: between generic addresses and those of a state space. Raises NotTranslated."""
    words = instruction.words[1:]
    result, given = require(instruction, 2)
    if words[-1] not in ("u64", "u32"):
        raise NotTranslated(instruction.opcode)
    address = scope.get(given, "u64")
    if words[:-1] in (["to", "global"], ["global"]):
        return scope.put(result, address)
    if words[:-1] == ["to", "shared"]:
        pointer = f"reinterpret_cast<const void*>({address})"
        return scope.put(result, f"std::uint64_t(::kw::shared_address({pointer}, {LINE}))")
    if words[:-1] == ["shared"]:
        pointer = f"::kw::at_shared(std::uint32_t({address}))"
        return scope.put(result, f"reinterpret_cast<std::uint64_t>({pointer})")
    raise NotTranslated(instruction.opcode)
