# SPDX-License-Identifier: Apache-2.0
"""Element types that a C++ compiler may not have, as text that stands before what uses them."""

from __future__ import annotations

from .dtypes import BFLOAT16

_BFLOAT16 = """\
#ifndef KERNELWRIGHT_BFLOAT16
#define KERNELWRIGHT_BFLOAT16
// The upper half of a float; it becomes one by itself, and is made of one rounded to nearest even.
struct bfloat16 {
  unsigned short bits;
  bfloat16() = default;
  bfloat16(float value) {
    unsigned raw;
    __builtin_memcpy(&raw, &value, 4);
    const unsigned rounded = (raw + 0x7fffu + (raw >> 16 & 1u)) >> 16;
    bits = (unsigned short)(value == value ? rounded : raw >> 16 | 0x40u);
  }
  operator float() const {
    const unsigned raw = (unsigned)bits << 16;
    float value;
    __builtin_memcpy(&value, &raw, 4);
    return value;
  }
};
#endif
"""
_TEXTS = {BFLOAT16.c: _BFLOAT16}


def define_types(prototypes: str) -> str:
    """What stands before these prototypes, of the types that they name; "" where nothing must."""
    return "".join(text for name, text in _TEXTS.items() if name in prototypes)
