# SPDX-License-Identifier: Apache-2.0
"""What AMD's instructions are: classes, widths of accesses, arithmetic, products of matrices.

Mnemonics are those of the ISA documents of CDNA 3, CDNA 4 and RDNA 4, as LLVM writes them. It knows
single instructions and nothing of what they cost.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .classes import OpClass
from .sass import Instruction

MULTIPLYING = ("v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_")
DIRECT = ("global_load_lds", "buffer_load", "global_load_async", "cluster_load_async")
"""What copies from global into shared memory without registers begins so."""
_TO_SHARED = re.compile(r"_lds(?:_|\b)|_async(?:_|\b)|\blds\b")
_VECTOR_MEMORY = ("global", "buffer", "flat")
_EXCHANGE = ("ds_bpermute", "ds_permute", "ds_swizzle", "v_permlane", "v_readlane", "v_writelane")
_EXCHANGES = (*_EXCHANGE, "v_readfirstlane", "v_mov_b32_dpp", "v_mov_b64_dpp")
_WAITS = ("s_wait", "s_nop", "s_delay_alu", "s_clause", "s_setprio", "s_sleep", "s_sendmsg")
_CONTROL = (
    "s_barrier_wait",
    "s_barrier_leave",
    *_WAITS,
    "s_branch",
    "s_cbranch",
    "s_endpgm",
    "s_code_end",
    "s_sethalt",
    "s_setreg",
)
_FENCES = ("global_inv", "global_wb", "buffer_inv", "buffer_wb", "s_dcache", "s_icache")
_SPECIAL = re.compile(r"^v_(?:exp|log|rcp|rsq|sqrt|sin|cos|tanh)_")
_CONVERT = ("v_cvt_", "v_perm_", "v_pack_", "v_frexp_", "v_trunc_", "v_floor_", "v_rndne_")
_MOVES = ("v_mov_", "v_dual_mov", "v_accvgpr_", "v_nop", "v_swap")
_FLOATS = (
    ("_f64", OpClass.FP64),
    ("_f32", OpClass.FP32),
    ("_bf16", OpClass.FP16),
    ("_f16", OpClass.FP16),
)
_WIDTHS = {
    **dict.fromkeys(("ubyte", "sbyte", "byte", "u8", "i8", "b8"), 1),
    **dict.fromkeys(("ushort", "sshort", "short", "u16", "i16", "b16", "d16"), 2),
    **dict.fromkeys(("dword", "b32", "u32", "i32", "f32"), 4),
    **dict.fromkeys(("dwordx2", "b64", "u64", "i64", "f64"), 8),
    **dict.fromkeys(("dwordx3", "b96"), 12),
    **dict.fromkeys(("dwordx4", "b128"), 16),
}
_WORD = 4
_TWO = re.compile(r"^ds_(?:read2|write2)|_2addr_")
_FUSED = re.compile(r"_(?:fma|fmac|fmamk|fmaak|mad|mac)_")
_COUNTED = re.compile(r"_(?:add|sub|subrev|mul|max|min|maximum|minimum|max3|min3)_|^v_div_fmas")
_MATRIX = re.compile(r"_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?_([a-z]+\d+(?:f\d+)*)")
_ELEMENTS = {
    "f64": "fp64",
    "f32": "fp32",
    "xf32": "tf32",
    "f16": "fp16",
    "bf16": "bf16",
    "fp8": "fp8",
    "bf8": "fp8",
    "f8f6f4": "fp8",
    "i8": "int8",
    "iu8": "int8",
    "iu4": "int4",
}
"""By their names in an instruction. Of `f8f6f4` operands say the type; the widest is told."""
_REGISTER = re.compile(r"\b([va])(?:(\d+)\b|\[(\d+):(\d+)\])")
_ACCUMULATORS = 1 << 10
"""Added to the numbers of AGPRs, which tells them from VGPRs."""


class MatrixProduct(NamedTuple):
    """What one instruction of matrix cores does."""

    element: str
    """Of the factors, as `tensor_cores.ELEMENTS` has it."""
    tile: tuple[int, int, int] | None
    """M, N, and K times the number of blocks; None where its name does not say."""
    lanes: int
    """Of the wavefront that does it."""


def read_matrix(instruction: Instruction) -> MatrixProduct:
    """`v_mfma_f32_32x32x8_f16` is 32 x 32 x 8 of float16, by a wavefront of 64."""
    lanes = 64 if instruction.opcode.startswith(MULTIPLYING[:2]) else 32
    found = _MATRIX.search(instruction.opcode)
    if found is None:
        return MatrixProduct("fp16", None, lanes)
    blocks = int(found[4] or 1)
    tile = int(found[1]), int(found[2]), int(found[3]) * blocks
    return MatrixProduct(_ELEMENTS.get(found[5], "fp16"), tile, lanes)


def kind_of(instruction: Instruction) -> OpClass:
    """The class of an instruction."""
    name = instruction.opcode
    if name.startswith(MULTIPLYING):
        return OpClass.TENSOR
    if name.startswith(_EXCHANGES):
        return OpClass.WARP
    if name.startswith("s_"):
        return _kind_of_scalar(name)
    if name.startswith("v_"):
        return _kind_of_vector(name)
    return _kind_of_memory(instruction)


def _kind_of_scalar(name: str) -> OpClass:
    if name.startswith(_CONTROL):
        return OpClass.CONTROL
    if name.startswith("s_barrier"):
        return OpClass.BARRIER
    if name.startswith(_FENCES):
        return OpClass.SYNC
    return OpClass.OTHER if name.startswith(("s_load", "s_buffer_load")) else OpClass.SCALAR


def _kind_of_vector(name: str) -> OpClass:
    if name.startswith(_MOVES):
        return OpClass.OTHER
    if _SPECIAL.match(name):
        return OpClass.SPECIAL
    if name.startswith(_CONVERT):
        return OpClass.CONVERT
    return next((kind for end, kind in _FLOATS if end in name), OpClass.INTEGER)


def _kind_of_memory(instruction: Instruction) -> OpClass:
    name = instruction.opcode
    if name.startswith(_FENCES):
        return OpClass.SYNC
    if name.startswith("scratch_"):
        return OpClass.LOCAL
    if name.startswith("ds_"):
        return OpClass.SHARED
    if not name.startswith(_VECTOR_MEMORY):
        return OpClass.OTHER
    if "_atomic" in name:
        return OpClass.ATOMIC
    if "_store" in name:
        return OpClass.STORE
    if name.startswith(DIRECT) and _TO_SHARED.search(f"{name} {instruction.operands}"):
        return OpClass.ASYNC
    return OpClass.LOAD


def width_of(instruction: Instruction) -> int:
    """Bytes that each thread moves in an access to memory."""
    parts = instruction.opcode.split("_")
    width = next((_WIDTHS[part] for part in parts if part in _WIDTHS), _WORD)
    return width * (2 if _TWO.search(instruction.opcode) else 1)


def flops_of(instruction: Instruction) -> float:
    """Operations on floats of one thread; of a pair issued together (`::`) those of both."""
    _, _, other = instruction.operands.partition("::")
    return _count(instruction.opcode) + (_count(other.split()[0]) if other.strip() else 0.0)


def _count(name: str) -> float:
    if _SPECIAL.match(name):
        return 1.0
    if not name.startswith("v_") or name.startswith(("v_cmp", "v_cvt")):
        return 0.0
    if not any(end in name for end, _ in _FLOATS):
        return 0.0
    each = 2.0 if _FUSED.search(name) else 1.0 if _COUNTED.search(name) else 0.0
    return each * (2 if name.startswith("v_pk_") else 1)


def list_registers(instruction: Instruction) -> tuple[list[int], list[int]]:
    """Vector registers that an instruction writes, and those that it reads."""
    operands = instruction.operands.split(",")
    kind = kind_of(instruction)
    is_store = (
        kind is OpClass.STORE or "_store" in instruction.opcode or "_write" in (instruction.opcode)
    )
    named = [[n for found in _REGISTER.finditer(one) for n in _numbers(found)] for one in operands]
    if is_store or not named:
        return [], [n for one in named for n in one]
    return named[0], [n for one in named[1:] for n in one]


def _numbers(found: re.Match[str]) -> range:
    first = int(found[2] or found[3])
    last = int(found[4] or first)
    more = _ACCUMULATORS if found[1] == "a" else 0
    return range(first + more, last + more + 1)
