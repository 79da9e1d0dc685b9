# SPDX-License-Identifier: Apache-2.0
"""Pieces of a system-call filter as classic BPF: `struct sock_filter` arrays, 8 bytes each.

Every piece that begins at a call needs its number in the register, and ends in a return where the
number is its own.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable

_LD_ABS, _JEQ, _JGE, _JGT, _JSET, _RET = 0x20, 0x15, 0x35, 0x25, 0x45, 0x06
_NR, _ARCH = 0, 4
ARG0, ARG1, ARG2 = 16, 24, 32
"""The low halves of a call's arguments."""
_ALLOW, _KILL_PROCESS, _TRAP, _ERRNO = 0x7FFF0000, 0x80000000, 0x00030000, 0x00050000
_X32_BIT = 0x40000000


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


ALLOW = _op(_RET, _ALLOW)
TRAP = _op(_RET, _TRAP)
"""SIGSYS; who handles it finds the call's number there."""


def answer(number: int = errno.EPERM) -> bytes:
    """The call is not made and fails with this error; 0: it says that it was made."""
    return _op(_RET, _ERRNO | number)


def begin(audit_arch: int, *, has_x32: bool) -> bytes:
    """Ends who calls as another machine would; leaves the call's number in the register."""
    rules = _op(_LD_ABS, _ARCH) + _op(_JEQ, audit_arch, 1, 0) + _op(_RET, _KILL_PROCESS)
    rules += _op(_LD_ABS, _NR)
    return rules + (_op(_JGE, _X32_BIT, 0, 1) + answer(errno.ENOSYS) if has_x32 else b"")


def on_call(nr: int, body: bytes) -> bytes:
    """`body`, which ends in a return, where the call is this one."""
    return _op(_JEQ, nr, 0, len(body) // 8) + body


def on_calls_beyond(nr: int, body: bytes) -> bytes:
    """`body`, which ends in a return, where the call's number is higher."""
    return _op(_JGT, nr, 0, len(body) // 8) + body


def none_of(argument: int, values: Iterable[int], refused: bytes) -> bytes:
    """`refused`, a single return, where the argument is one of the values."""
    rules = b"".join(_op(_JEQ, value, 0, 1) + refused for value in values)
    return _op(_LD_ABS, argument) + rules + ALLOW


def one_of(argument: int, values: Iterable[int], refused: bytes) -> bytes:
    """`refused` where the argument is none of the values."""
    rules = b"".join(_op(_JEQ, value, 0, 1) + ALLOW for value in values)
    return _op(_LD_ABS, argument) + rules + refused


def flags(argument: int, *, none: int, all_of: int, refused: bytes) -> bytes:
    """`refused` where a bit of `none` is set, or the bit `all_of`, if it is one, is not."""
    rules = _op(_LD_ABS, argument) + _op(_JSET, none, 0, 1) + refused
    return rules + (_op(_JSET, all_of, 1, 0) + refused if all_of else b"") + ALLOW


def both_zero(first: int, second: int, refused: bytes) -> bytes:
    """`refused` unless both arguments are zero."""
    rules = _op(_LD_ABS, first) + _op(_JEQ, 0, 1, 0) + refused
    return rules + _op(_LD_ABS, second) + _op(_JEQ, 0, 1, 0) + refused + ALLOW
