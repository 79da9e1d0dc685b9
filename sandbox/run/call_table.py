# SPDX-License-Identifier: Apache-2.0
"""The table of calls at the start of a runner's inputs: what each argument is, and where it lies.

`wire.hpp` and `runner.py` read what is written here, and hold the same numbers. Nothing here knows
memory or tensors.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntFlag
from typing import NamedTuple

from ...errors import SandboxError

MAX_ARGUMENTS = 176
"""Half of them are sizes: of axes, tensors, a table of launches and 64 work buffers."""
MAX_SLOTS = 64
ENTRY_BYTES = 8 + 16 * MAX_ARGUMENTS
_PAGE = 4096
TABLE_BYTES = -(-ENTRY_BYTES * MAX_SLOTS // _PAGE) * _PAGE
"""Of the whole table; inputs begin behind it."""
ONE_ENTRY_BYTES = -(-ENTRY_BYTES // _PAGE) * _PAGE
"""The same where there is one call only."""


class Role(IntFlag):
    """What an argument is."""

    INTEGER = 0
    INPUT = 1
    OUTPUT = 2
    SCRATCH = 3
    """A work buffer, which lies among the outputs."""
    FENCED = 4
    """Of a tensor: memory beside it that cannot be accessed."""


class Passed(NamedTuple):
    """One argument of a call."""

    role: Role
    value: int
    """An integer itself; of a tensor, where it begins in its memory."""
    size: int
    """Bytes."""


def integer(value: int) -> Passed:
    """An axis."""
    return Passed(Role.INTEGER, value, 4)


def pack_entry(arguments: Sequence[Passed]) -> bytes:
    """One entry of the table: role and value of each argument; behind them all, their sizes.

    Raises:
        SandboxError: there are more than an entry holds.
    """
    if 2 * len(arguments) > MAX_ARGUMENTS:
        most = MAX_ARGUMENTS // 2
        raise SandboxError(f"{len(arguments)} arguments; a call has at most {most}")
    pairs = [(one.role, one.value) for one in arguments]
    pairs += [(Role.INTEGER, one.size) for one in arguments]
    flat = [number for pair in pairs for number in pair]
    return struct.pack(f"<{1 + len(flat)}Q", len(arguments), *flat)
