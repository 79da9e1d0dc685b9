# SPDX-License-Identifier: Apache-2.0
"""One problem in other precisions: the text of its file with other types in its declaration.

`gemm` in bfloat16 is the problem `gemm_bf16`, whose kernels have that name; what its functions
compute stays as it is, since an oracle is given float32 whatever tensors hold (stored.py).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple

from ..errors import UnknownNameError
from .declaration import find_declaration
from .dtypes import BFLOAT16, FLOAT16, FLOAT32, INT8, INT32, DType
from .precision import TF32, TF32X3


class Policy(NamedTuple):
    """In what a problem that is written for float32 is computed instead."""

    name: str
    """`--policy NAME`, and what is put behind the problem's name."""
    inputs: DType = FLOAT32
    outputs: DType = FLOAT32
    arithmetic: str = ""
    """What its declaration has to ask for; empty: it follows from the types."""
    meaning: str = ""


POLICIES = {
    each.name: each
    for each in (
        Policy("f16", FLOAT16, FLOAT16, meaning="float16 tensors, sums in float32"),
        Policy("bf16", BFLOAT16, BFLOAT16, meaning="bfloat16 tensors, sums in float32"),
        Policy("tf32", arithmetic=TF32, meaning="float32 tensors, factors cut to TF32"),
        Policy("tf32x3", arithmetic=TF32X3, meaning="float32 tensors, three products in TF32"),
        Policy("int8", INT8, INT32, "int8", meaning="int8 tensors, exact sums in int32"),
    )
}
"""By name."""
HALVES = ("f16", "bf16")
_TENSORS: dict[str, Callable[[Policy], DType]] = {
    "inputs": lambda policy: policy.inputs,
    "outputs": lambda policy: policy.outputs,
}


def split_name(name: str) -> tuple[str, Policy | None]:
    """What a problem in a policy is called without it: `gemm_bf16` → `gemm` and that policy."""
    base, _, last = name.rpartition("_")
    return (base, POLICIES[last]) if base and last in POLICIES else (name, None)


def name_in(name: str, policy: str) -> str:
    """What a problem is called in a policy.

    Raises:
        UnknownNameError: there is no such policy.
    """
    if policy not in POLICIES:
        raise UnknownNameError.for_name("precision policy", policy, POLICIES)
    return f"{name}_{policy}"


def declare_in(policy: Policy, text: str, place: str) -> str:
    """The text of a problem's file with the types and the arithmetic of a policy.

    float32 tensors of its declaration get other types; index arrays and functions stay.

    Raises:
        UsageError: it declares no problem.
    """
    declared = find_declaration(text, place)
    starts = [0, *accumulate(map(len, text.encode().splitlines(keepends=True)))]
    raw = text.encode()
    changes = []
    for key, value in zip(declared.keys, declared.values, strict=True):
        wanted = isinstance(key, ast.Constant) and _TENSORS.get(str(key.value))
        if wanted and isinstance(value, ast.Dict):
            changes += [
                (starts[each.lineno - 1] + each.col_offset, wanted(policy).name)
                for each in value.values
                if isinstance(each, ast.Constant) and str(each.value).startswith(f"{FLOAT32}[")
            ]
    for at, name in sorted(changes, reverse=True):
        at = raw.index(FLOAT32.name.encode(), at)
        raw = raw[:at] + name.encode() + raw[at + len(FLOAT32.name) :]
    if policy.arithmetic:
        at = starts[declared.lineno - 1] + declared.col_offset + 1
        raw = raw[:at] + f'"policy": "{policy.arithmetic}", '.encode() + raw[at:]
    return raw.decode()
