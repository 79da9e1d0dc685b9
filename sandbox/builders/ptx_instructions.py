# SPDX-License-Identifier: Apache-2.0
"""Which PTX instructions the emulation knows, and the C++ that does what they do.

Names of instructions and the meaning of their operands are those of the PTX ISA.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from . import ptx_arithmetic, ptx_movement
from .ptx_movement import LINE
from .ptx_operands import Scope, require
from .ptx_program import Instruction, NotTranslated, Operand

Translate = Callable[[Instruction, Scope], str]

_MMA = re.compile(
    r"mma\.sync\.aligned\.m(?P<m>16|8)n8k(?P<k>\d+)\.row\.col(?P<clamps>\.satfinite)?"
    r"\.(?P<d>\w+)\.(?P<a>\w+)\.(?P<b>\w+)\.(?P<c>\w+)"
)
_DEPTHS = {
    **dict.fromkeys(("f16", "bf16"), (8, 16)),
    "tf32": (4, 8),
    **dict.fromkeys(("e4m3", "e5m2"), (32,)),
    **dict.fromkeys(("s8", "u8"), (16, 32)),
    **dict.fromkeys(("s4", "u4"), (32, 64)),
}
"""The k of each type of A; m8n8 has the first one."""
_ALIKE = ({"e4m3", "e5m2"}, {"s8", "u8"}, {"s4", "u4"})
"""Types that A and B may have side by side."""


def _translate_product(instruction: Instruction, scope: Scope) -> str:
    found = _MMA.fullmatch(instruction.opcode)
    if found is None:
        raise NotTranslated(instruction.opcode)
    m, k, a, b, d = int(found["m"]), int(found["k"]), found["a"], found["b"], found["d"]
    is_alike = a == b or any({a, b} <= kinds for kinds in _ALIKE)
    is_whole = a[0] in "su"
    sums = ("s32",) if is_whole else ("f32", "f16") if a not in ("bf16", "tf32") else ("f32",)
    depths = _DEPTHS.get(a, ())[: 1 if m == 8 else None]
    if not is_alike or k not in depths or found["c"] != d or d not in sums:
        raise NotTranslated(instruction.opcode)
    if (m == 8 or found["clamps"]) and not is_whole:
        raise NotTranslated(instruction.opcode)
    return _product(instruction, scope, m, k, (a, b), d, bool(found["clamps"]))


def _product(
    instruction: Instruction,
    scope: Scope,
    m: int,
    k: int,
    kinds: tuple[str, str],
    sums: str,
    clamps: bool,
) -> str:
    bits = {"f16": 16, "bf16": 16, "tf32": 32}.get(kinds[0]) or (4 if kinds[0][1:] == "4" else 8)
    depth = k * bits // 128
    values = m // 4 // (2 if sums == "f16" else 1)
    counts = (values, depth * m // 8, depth, values)
    operands = require(instruction, 4)
    groups = [operand.parts or (operand.text,) for operand in operands]
    if [len(group) for group in groups] != list(counts):
        raise NotTranslated(f"{instruction.opcode} with other fragments than it has")
    given = [
        f"const std::uint32_t kw_{name}[] = {{{', '.join(_word(scope, text) for text in group)}}};"
        for name, group in zip("abc", groups[1:], strict=True)
    ]
    types = ", ".join(f"::kw::tensor::{kind}" for kind in kinds)
    call = (
        f"multiply_halves<{types}, {m}, {k}>"
        if sums == "f16"
        else (f"multiply<{types}, {m}, {k}, false, {str(clamps).lower()}>")
    )
    puts = [scope.put(Operand(text), f"kw_d[{i}]") for i, text in enumerate(groups[0])]
    return " ".join(
        [
            f"std::uint32_t kw_d[{values}];",
            *given,
            f"::kw::tensor::{call}(kw_d, kw_a, kw_b, kw_c, {LINE});",
            *puts,
        ]
    )


def _word(scope: Scope, text: str) -> str:
    return f"std::uint32_t({scope.word(text)})"


def _translate_barrier(instruction: Instruction, scope: Scope) -> str:
    if instruction.opcode == "bar.warp.sync":
        (mask,) = require(instruction, 1)
        return f"__syncwarp({scope.get(mask, 'u32')}, {LINE});"
    words = set(instruction.words[1:])
    if not {"sync"} <= words <= {"sync", "cta", "aligned"}:
        raise NotTranslated(instruction.opcode)
    if [operand.text for operand in instruction.operands] != ["0"]:
        raise NotTranslated(f"{instruction.opcode} of another barrier than 0, or of some threads")
    return f"__syncthreads({LINE});"


def _translate_fence(instruction: Instruction, _scope: Scope) -> str:
    require(instruction, 0)
    if re.fullmatch(r"membar\.cta|fence(?:\.sc|\.acq_rel)?\.cta", instruction.opcode):
        return "__threadfence_block();"
    if re.fullmatch(
        r"membar\.(?:gl|sys)|fence(?:\.sc|\.acq_rel)?\.(?:gpu|sys)", instruction.opcode
    ):
        return "__threadfence();"
    raise NotTranslated(instruction.opcode)


_SHUFFLES = ("idx", "up", "down", "bfly")


def _translate_shuffle(instruction: Instruction, scope: Scope) -> str:
    found = re.fullmatch(r"shfl\.sync\.(\w+)\.b32", instruction.opcode)
    if found is None or found[1] not in _SHUFFLES:
        raise NotTranslated(instruction.opcode)
    result, *operands = require(instruction, 5)
    value, _, predicate = result.text.partition("|")
    given = ", ".join(scope.get(one, "u32") for one in operands)
    mode = _SHUFFLES.index(found[1])
    put = scope.put(
        Operand(value.strip()), f"::kw::ptx::shuffle<{mode}>({given}, kw_is_in, {LINE})"
    )
    more = f" {scope.target(predicate.strip())} = kw_is_in;" if predicate else ""
    return f"bool kw_is_in; {put}{more}"


def _translate_vote(instruction: Instruction, scope: Scope) -> str:
    result, predicate, mask = require(instruction, 3)
    calls = {
        "vote.sync.ballot.b32": "__ballot_sync",
        "vote.sync.any.pred": "__any_sync",
        "vote.sync.all.pred": "__all_sync",
    }
    if instruction.opcode not in calls:
        raise NotTranslated(instruction.opcode)
    given = f"{scope.get(mask, 'u32')}, {scope.get(predicate, 'pred')}, {LINE}"
    return f"{scope.target(result.text)} = {calls[instruction.opcode]}({given});"


def _translate_reduction(instruction: Instruction, scope: Scope) -> str:
    found = re.fullmatch(r"redux\.sync\.(add|min|max|and|or|xor)\.([usb]32)", instruction.opcode)
    if found is None:
        raise NotTranslated(instruction.opcode)
    result, value, mask = require(instruction, 3)
    given = f"{scope.get(mask, 'u32')}, {scope.get(value, found[2])}, {LINE}"
    return scope.put(result, f"__reduce_{found[1]}_sync({given})")


def _translate_active(instruction: Instruction, scope: Scope) -> str:
    (result,) = require(instruction, 1)
    if instruction.opcode != "activemask.b32":
        raise NotTranslated(instruction.opcode)
    return scope.put(result, f"__activemask({LINE})")


def _translate_policy(instruction: Instruction, scope: Scope) -> str:
    """Policies of the caches, which change no value."""
    return scope.put(instruction.operands[0], "std::uint64_t(0)")


def _translate_prefetch(_instruction: Instruction, _scope: Scope) -> str:
    return "(void)0;"


def _translate_sleep(instruction: Instruction, scope: Scope) -> str:
    (nanoseconds,) = require(instruction, 1)
    return f"__nanosleep({scope.get(nanoseconds, 'u32')});"


def _translate_trap(instruction: Instruction, _scope: Scope) -> str:
    require(instruction, 0)
    return f"__trap({LINE});"


_OF_PAIRS: dict[str, Translate] = {
    "cp.async": ptx_movement.translate_copy,
}
"""By the first two words."""
_KNOWN: dict[str, Translate] = {
    **dict.fromkeys(ptx_arithmetic.FUNCTIONS, ptx_arithmetic.translate_function),
    **dict.fromkeys(("and", "or", "xor", "not"), ptx_arithmetic.translate_logic),
    **dict.fromkeys(("shl", "shr"), ptx_arithmetic.translate_shift),
    **dict.fromkeys(("lop3", "prmt", "bfe", "bfi", "brev", "shf"), ptx_arithmetic.translate_bits),
    "dp4a": ptx_arithmetic.translate_dot,
    "setp": ptx_arithmetic.translate_compare,
    "selp": ptx_arithmetic.translate_select,
    "mov": ptx_arithmetic.translate_move,
    "cvt": ptx_arithmetic.translate_conversion,
    **dict.fromkeys(("ld", "st"), ptx_movement.translate_access),
    **dict.fromkeys(("atom", "red"), ptx_movement.translate_atomic),
    **dict.fromkeys(("ldmatrix", "stmatrix"), ptx_movement.translate_matrix_move),
    "cvta": ptx_movement.translate_address,
    "mma": _translate_product,
    **dict.fromkeys(("bar", "barrier"), _translate_barrier),
    **dict.fromkeys(("membar", "fence"), _translate_fence),
    "shfl": _translate_shuffle,
    "vote": _translate_vote,
    "redux": _translate_reduction,
    "activemask": _translate_active,
    "createpolicy": _translate_policy,
    **dict.fromkeys(("prefetch", "prefetchu"), _translate_prefetch),
    "nanosleep": _translate_sleep,
    "trap": _translate_trap,
}
"""By the first word."""


def translate(instruction: Instruction, scope: Scope) -> str:
    """The instruction as C++ statements. Raises NotTranslated, with its name."""
    words = instruction.words
    known = _OF_PAIRS.get(".".join(words[:2])) or _KNOWN.get(words[0])
    if known is None or (words[:2] == ["cp", "async"] and "bulk" in words):
        raise NotTranslated(instruction.opcode)
    try:
        text = known(instruction, scope)
        condition = scope.word(instruction.predicate) if instruction.predicate else ""
    except NotTranslated as error:
        named = str(error).startswith(instruction.opcode)
        raise NotTranslated(f"{'' if named else instruction.opcode + ': '}{error}") from error
    if not condition:
        return f"{{ {text} }}"
    return f"if ({'!' if instruction.is_negated else ''}{condition}) {{ {text} }}"
