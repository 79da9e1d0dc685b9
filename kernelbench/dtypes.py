# SPDX-License-Identifier: Apache-2.0
"""Element types: how wide they are, how they round, and what each language calls them.

A type that stands here can be named, passed and sized. Tensors of problems that are judged have one
of TENSORS: what really computes with elements (runners, poison, noise on inputs, gates) takes no
others.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..errors import UnknownNameError


class Kind(StrEnum):
    """What the bits of an element mean."""

    FLOAT = "float"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    BOOL = "bool"


@dataclass(frozen=True)
class DType:
    """One element type."""

    name: str
    """torch's, and numpy's where it has the type: `float32`."""
    bytes: int
    kind: Kind
    c: str = ""
    """Of standard C++; empty where it has none."""
    spellings: tuple[str, ...] = ()
    """Single words for it in CUDA C++, beside the built-in integers of several words."""
    vectors: tuple[str, ...] = ()
    """CUDA's vector types without their number of lanes: `float` of `float4`."""
    pairs: tuple[str, ...] = ()
    """CUDA's types of two lanes that have names of their own."""
    triton: str = ""
    """Triton's name where it is another."""
    in_numpy: bool = True
    digits: int = 0
    """Binary digits of a float's significand, the leading one counted."""
    least_exponent: int = 0
    """Of the smallest normal float, as a power of two."""

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        """Whether it has fractions."""
        return self.kind is Kind.FLOAT

    @property
    def is_integral(self) -> bool:
        """Whether its values are whole; a truth value is."""
        return not self.is_float

    @property
    def roundoff(self) -> float:
        """The unit roundoff of a float; 0 of what does not round."""
        return 2.0**-self.digits if self.is_float else 0.0

    @property
    def smallest_normal(self) -> float:
        """Of a float."""
        return 2.0**self.least_exponent

    @property
    def smallest(self) -> float:
        """The smallest positive float, a denormal."""
        return 2.0 ** (self.least_exponent - self.digits + 1)

    @property
    def largest(self) -> float:
        """The largest finite float."""
        return (2.0 - 2.0 ** (1 - self.digits)) * 2.0 ** (1 - self.least_exponent)


FLOAT64 = DType(
    "float64",
    8,
    Kind.FLOAT,
    "double",
    ("double",),
    ("double",),
    triton="fp64",
    digits=53,
    least_exponent=-1022,
)
FLOAT32 = DType(
    "float32",
    4,
    Kind.FLOAT,
    "float",
    ("float",),
    ("float",),
    triton="fp32",
    digits=24,
    least_exponent=-126,
)
FLOAT16 = DType(
    "float16",
    2,
    Kind.FLOAT,
    spellings=("half", "__half"),
    pairs=("half2", "__half2"),
    triton="fp16",
    digits=11,
    least_exponent=-14,
)
BFLOAT16 = DType(
    "bfloat16",
    2,
    Kind.FLOAT,
    spellings=("__nv_bfloat16", "nv_bfloat16"),
    pairs=("__nv_bfloat162", "nv_bfloat162"),
    triton="bf16",
    in_numpy=False,
    digits=8,
    least_exponent=-126,
)
INT64 = DType(
    "int64",
    8,
    Kind.SIGNED,
    "long long",
    ("int64_t", "ptrdiff_t", "ssize_t", "intptr_t"),
    ("long", "longlong"),
)
INT32 = DType("int32", 4, Kind.SIGNED, "int", ("int32_t",), ("int",))
INT16 = DType("int16", 2, Kind.SIGNED, "short", ("int16_t",), ("short",))
INT8 = DType("int8", 1, Kind.SIGNED, "signed char", ("int8_t",), ("char",))
UINT64 = DType(
    "uint64",
    8,
    Kind.UNSIGNED,
    "unsigned long long",
    ("uint64_t", "ulong", "size_t", "uintptr_t"),
    ("ulong", "ulonglong"),
)
UINT32 = DType("uint32", 4, Kind.UNSIGNED, "unsigned int", ("uint32_t", "uint"), ("uint",))
UINT16 = DType("uint16", 2, Kind.UNSIGNED, "unsigned short", ("uint16_t", "ushort"), ("ushort",))
UINT8 = DType("uint8", 1, Kind.UNSIGNED, "unsigned char", ("uint8_t", "uchar", "byte"), ("uchar",))
BOOL = DType("bool", 1, Kind.BOOL, "bool", ("bool",))

DTYPES = {
    each.name: each
    for each in (
        FLOAT64,
        FLOAT32,
        FLOAT16,
        BFLOAT16,
        INT64,
        INT32,
        INT16,
        INT8,
        UINT64,
        UINT32,
        UINT16,
        UINT8,
        BOOL,
    )
}
"""By name."""

TENSORS = (FLOAT32, INT32)
"""What tensors of problems that are judged may hold."""


def dtype_of(name: str) -> DType:
    """The element type with the name; UnknownNameError with what there is."""
    if name not in DTYPES:
        raise UnknownNameError.for_name("element type", name, DTYPES)
    return DTYPES[name]
