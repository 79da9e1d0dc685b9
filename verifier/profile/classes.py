# SPDX-License-Identifier: Apache-2.0
"""The classes of instructions that profiles count, the same for every vendor's code."""

from __future__ import annotations

from enum import StrEnum


class OpClass(StrEnum):
    """Classes of instructions (gpu.md §3.3)."""

    LOAD = "global loads"
    STORE = "global stores"
    ASYNC = "asynchronous copies"
    SHARED = "shared memory"
    LOCAL = "local memory"
    ATOMIC = "atomics"
    TENSOR = "tensor cores"
    TENSOR_MEMORY = "tensor memory"
    FP32 = "fp32"
    FP16 = "fp16"
    FP64 = "fp64"
    SPECIAL = "special functions"
    INTEGER = "integer"
    CONVERT = "conversions"
    WARP = "warp communication"
    BARRIER = "barriers of a block"
    WARP_SYNC = "synchronisation of a warp"
    SYNC = "synchronisation"
    SCALAR = "scalar unit"
    """AMD's, once for a warp."""
    CONTROL = "control"
    OTHER = "other"
