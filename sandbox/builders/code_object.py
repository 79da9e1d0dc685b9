# SPDX-License-Identifier: Apache-2.0
"""Reads what one of AMD's code objects (hsaco) says of its kernels: registers, memory, parameters.

A code object is an ELF file with a note `AMDGPU` that holds a map in MessagePack (LLVM, "User Guide
for AMDGPU Backend", Code Object V3 Metadata and later). The file comes out of a compiler that a
candidate was fed to: what does not add up is a CubinError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from .cubin import CubinError, CubinKernel, content, sections

_NOTES = 7
_OWNER, _METADATA = b"AMDGPU", 32
_HIDDEN = "hidden_"
"""Arguments beyond the kernel's own, which the runtime fills in."""
_WORD = 4
_DEPTH = 16
"""Maps and lists in each other at most; the metadata's have four."""
_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_LENGTHS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_COUNTS = {0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}
_PLAIN = {0xC0: None, 0xC2: False, 0xC3: True}


def entries(code: bytes) -> dict[str, CubinKernel]:
    """The kernels of a code object by symbol.

    Raises:
        CubinError: it is damaged or no code object.
    """
    try:
        return {each.symbol: each for each in _kernels(code)}
    except (struct.error, IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CubinError(f"the code object is damaged: {error}") from error


def _kernels(code: bytes) -> Iterator[CubinKernel]:
    for section in sections(code):
        for owner, kind, told in _notes(content(code, section)) if section.kind == _NOTES else ():
            if owner == _OWNER and kind == _METADATA:
                for kernel in _Reader(told).value()["amdhsa.kernels"]:
                    yield _kernel(kernel)


def _kernel(told: Mapping[str, Any]) -> CubinKernel:
    own = [a for a in told.get(".args", ()) if not a[".value_kind"].startswith(_HIDDEN)]
    return CubinKernel(
        symbol=str(told[".name"]),
        registers=int(told[".vgpr_count"]),
        shared_bytes=int(told[".group_segment_fixed_size"]),
        stack_bytes=int(told[".private_segment_fixed_size"]),
        parameters=tuple(int(a[".size"]) for a in own),
        max_threads=int(told[".max_flat_workgroup_size"]),
        cluster=None,
        accumulators=int(told.get(".agpr_count", 0)),
        scalars=int(told[".sgpr_count"]),
        spilled=_WORD * int(told.get(".vgpr_spill_count", 0)),
    )


def _notes(section: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    at = 0
    while at + 12 <= len(section):
        name, size, kind = struct.unpack_from("<III", section, at)
        start = at + 12 + _pad(name)
        yield section[at + 12 : at + 12 + name].rstrip(b"\0"), kind, section[start : start + size]
        at = start + _pad(size)


def _pad(size: int) -> int:
    return -(-size // 4) * 4


class _Reader:
    """MessagePack, as far as the metadata uses it: no extensions, keys and texts in UTF-8."""

    def __init__(self, raw: bytes) -> None:
        self._raw, self._at = raw, 0

    def value(self, depth: int = 0) -> Any:
        """The next value."""
        if depth > _DEPTH:
            raise ValueError("its metadata is nested too deeply")
        head = self._unpack(">B")
        if head < 0x80 or head >= 0xE0:
            return head if head < 0x80 else head - 0x100
        if head in _PLAIN:
            return _PLAIN[head]
        if head in _NUMBERS:
            return self._unpack(_NUMBERS[head])
        if 0xA0 <= head < 0xC0 or head in _LENGTHS:
            return self._text(head & 0x1F if head < 0xC0 else self._unpack(_LENGTHS[head]))
        if head < 0xA0:
            return self._many(head & 0xF, depth, is_map=head < 0x90)
        return self._many(self._unpack(_COUNTS[head]), depth, is_map=head >= 0xDE)

    def _many(self, count: int, depth: int, *, is_map: bool) -> Any:
        if count > len(self._raw):
            raise ValueError("its metadata is cut off")
        if not is_map:
            return [self.value(depth + 1) for _ in range(count)]
        return {self.value(depth + 1): self.value(depth + 1) for _ in range(count)}

    def _text(self, size: int) -> str:
        raw = self._raw[self._at : self._at + size]
        if len(raw) != size:
            raise ValueError("its metadata is cut off")
        self._at += size
        return raw.decode()

    def _unpack(self, form: str) -> Any:
        (found,) = struct.unpack_from(form, self._raw, self._at)
        self._at += struct.calcsize(form)
        return found
