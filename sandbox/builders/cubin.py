# SPDX-License-Identifier: Apache-2.0
"""Reads what a cubin says of its kernels: registers, memory, parameters, bounds.

A cubin is an ELF file. Each kernel has a function symbol that is marked as an entry, a section
`.nv.info.NAME` of attributes and, where it has static shared memory, `.nv.shared.NAME`. Only what
is needed is read. The file comes out of a compiler that a candidate was fed to: every offset in it
is checked, and what does not add up is a CubinError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_ENTRY = 0x10
"""In a symbol's st_other: a kernel (STO_CUDA_ENTRY)."""
_FUNCTION = 2
_SYMBOLS, _NO_BITS = 2, 8

_REGISTERS, _FRAME, _STACK = 0x2F, 0x11, 0x12
_PARAMETER, _PARAMETER_V2 = 0x17, 0x45
_MAX_THREADS, _EXACT_THREADS, _CLUSTER = 0x05, 0x10, 0x3D
_MAX_REGISTERS, _NO_CAP = 0x1B, 255
_SIZED = 4
"""The attribute format with a payload; the other formats fit in the four bytes of the head."""

_RESERVED_SYMBOL = b"\0.nv.reservedSmem.offset0\0"
"""Where it is there, the size of static shared memory includes what the system takes."""
RESERVED = 1024


class CubinError(ValueError):
    """The bytes are not a cubin that can be understood."""


@dataclass(frozen=True)
class CubinKernel:
    """One kernel as its cubin, or its code object, describes it. Sizes in bytes."""

    symbol: str
    registers: int
    shared_bytes: int
    """Static, without what the system reserves."""
    stack_bytes: int
    """Local memory per thread, with that of the functions it calls."""
    parameters: tuple[int, ...]
    max_threads: int | None
    """Threads in a block at most, where the source says so."""
    cluster: tuple[int, ...] | None
    """Blocks in a cluster, where the source fixes them."""
    register_cap: int | None = None
    """Registers that the launch bounds left the compiler, where they cap them."""
    accumulators: int = 0
    scalars: int = 0
    """See KernelFacts; of AMD's code objects, as what follows."""
    spilled: int | None = None
    """Bytes of a thread's registers that are kept in memory; None: the file does not say."""


class Section(NamedTuple):
    """One section of an ELF file."""

    name: bytes
    kind: int
    offset: int
    size: int
    link: int


class _Attribute(NamedTuple):
    code: int
    payload: bytes


def entries(cubin: bytes) -> dict[str, CubinKernel]:
    """The kernels of a cubin by symbol, in the order of its symbol table.

    Raises:
        CubinError: it is damaged or no cubin.
    """
    try:
        return _entries(cubin)
    except (struct.error, IndexError, OverflowError, UnicodeDecodeError) as error:
        raise CubinError(f"the cubin is damaged: {error}") from error


def _entries(cubin: bytes) -> dict[str, CubinKernel]:
    known = list(sections(cubin))
    table = next((s for s in known if s.kind == _SYMBOLS), None)
    if table is None or table.link >= len(known):
        raise CubinError("the cubin has no symbol table")
    strings = content(cubin, known[table.link])
    by_name = {section.name: section for section in known}
    shared = _attributes_of(cubin, by_name, b".nv.info")
    found = {}
    for index, (name, kind, other) in enumerate(_symbols(content(cubin, table), strings)):
        if kind == _FUNCTION and other & _ENTRY:
            symbol = name.decode()
            found[symbol] = _entry(cubin, by_name, symbol, _facts(shared, index), strings)
    return found


def _entry(
    cubin: bytes,
    by_name: dict[bytes, Section],
    symbol: str,
    facts: dict[int, int],
    strings: bytes,
) -> CubinKernel:
    own = _attributes_of(cubin, by_name, b".nv.info." + symbol.encode())
    memory = by_name.get(b".nv.shared." + symbol.encode())
    size = memory.size if memory else 0
    if size and _RESERVED_SYMBOL in strings:
        size = max(0, size - RESERVED)
    threads = [_product(a.payload) for a in own if a.code in (_MAX_THREADS, _EXACT_THREADS)]
    clusters = [_words(a.payload) for a in own if a.code == _CLUSTER]
    caps = [int.from_bytes(a.payload[:2], "little") for a in own if a.code == _MAX_REGISTERS]
    return CubinKernel(
        symbol=symbol,
        registers=facts.get(_REGISTERS, 0),
        shared_bytes=size,
        stack_bytes=max(_known_depth(facts.get(_FRAME, 0)), _known_depth(facts.get(_STACK, 0))),
        parameters=_parameters(own),
        max_threads=min(threads, default=None),
        cluster=clusters[0] if clusters else None,
        register_cap=next((cap for cap in caps if 0 < cap < _NO_CAP), None),
    )


def sections(cubin: bytes) -> Iterator[Section]:
    """The sections of a 64-bit ELF file. Raises CubinError, struct.error and IndexError."""
    if cubin[:5] != b"\x7fELF\x02":
        raise CubinError("the compiler's output is not a 64-bit ELF file")
    (table,) = struct.unpack_from("<Q", cubin, 40)
    entry, count, names = struct.unpack_from("<HHH", cubin, 58)
    heads = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + i * entry) for i in range(count)]
    strings = cubin[heads[names][4] : heads[names][4] + heads[names][5]]
    for name, kind, _, _, offset, size, link, _, _, _ in heads:
        yield Section(_string(strings, name), kind, offset, size, link)


def _symbols(table: bytes, strings: bytes) -> Iterator[tuple[bytes, int, int]]:
    for offset in range(0, len(table) - 23, 24):
        name, info, other = struct.unpack_from("<IBB", table, offset)
        yield _string(strings, name), info & 0xF, other


def _attributes_of(
    cubin: bytes, by_name: dict[bytes, Section], name: bytes
) -> tuple[_Attribute, ...]:
    section = by_name.get(name)
    return tuple(_attributes(content(cubin, section))) if section else ()


def _attributes(content: bytes) -> Iterator[_Attribute]:
    at = 0
    while at + 4 <= len(content):
        form, code, value = struct.unpack_from("<BBH", content, at)
        size = value if form == _SIZED else 0
        payload = content[at + 4 : at + 4 + size] if size else content[at + 2 : at + 4]
        if len(payload) < size:
            raise CubinError("an attribute runs past the end of its section")
        yield _Attribute(code, payload)
        at += 4 + size


def _facts(attributes: tuple[_Attribute, ...], symbol: int) -> dict[int, int]:
    """Of the attributes that name a function and one number: those of this function."""
    found = {}
    for attribute in attributes:
        if attribute.code in (_REGISTERS, _FRAME, _STACK) and len(attribute.payload) == 8:
            owner, value = struct.unpack("<II", attribute.payload)
            if owner == symbol:
                found[attribute.code] = value
    return found


def _parameters(attributes: tuple[_Attribute, ...]) -> tuple[int, ...]:
    sizes = {}
    for attribute in attributes:
        if attribute.code == _PARAMETER:
            _, ordinal, _, packed = struct.unpack("<IHHI", attribute.payload)
            sizes[ordinal] = packed >> 18
        elif attribute.code == _PARAMETER_V2:
            _, ordinal, _, size, _ = struct.unpack("<IHHHH", attribute.payload)
            sizes[ordinal] = size
    return tuple(sizes[ordinal] for ordinal in sorted(sizes))


def _known_depth(size: int) -> int:
    """0 for a stack whose depth the compiler cannot tell, as with recursion."""
    return 0 if size >= 1 << 31 else size


def _words(payload: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(payload) // 4}I", payload[: len(payload) // 4 * 4])


def _product(payload: bytes) -> int:
    product = 1
    for word in _words(payload):
        product *= word
    return product


def content(cubin: bytes, section: Section) -> bytes:
    """The bytes of a section; none of one that takes no room. Raises CubinError."""
    if section.kind == _NO_BITS:
        return b""
    content = cubin[section.offset : section.offset + section.size]
    if len(content) != section.size:
        raise CubinError("a section runs past the end of the cubin")
    return content


def _string(strings: bytes, at: int) -> bytes:
    end = strings.find(b"\0", at)
    if at >= len(strings) or end < 0:
        raise CubinError("a name lies outside the table of names")
    return strings[at:end]
