# SPDX-License-Identifier: Apache-2.0
"""Element types: how wide they are, how they round, and what each language calls them.

A type that stands here can be named, passed and sized. Tensors of problems that are judged have one
of TENSORS: what really computes with elements (runners, poison, noise on inputs, gates) takes no
others. Arrays of the types that numpy lacks are made in `codecs/`.
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


class NonFinite(StrEnum):
    """Which codes of a type stand for no number."""

    NONE = "none"
    NAN = "nan"
    """The code above the largest number alone."""
    IEEE = "ieee"
    """The largest exponent: infinities, and NaNs of every payload."""


@dataclass(frozen=True)
class DType:
    """One element type."""

    name: str
    """torch's, and that of numpy or of ml_dtypes: `float32`. Of types that torch has in pairs only
    (`float4_e2m1fn_x2`) it is that of the element."""
    bytes: int
    """Of an element that stands alone."""
    kind: Kind
    c: str = ""
    """In C++: of the language, or of c_types.py; empty where there is none."""
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
    nonfinite: NonFinite = NonFinite.NONE
    last_finite: float = 0.0
    """The largest finite float where numbers have codes of the largest exponent, too."""
    packed_bits: int = 0
    """Of an element in memory, where several share a byte."""
    is_scale: bool = False
    """Whether there are powers of two alone: no sign, no zero. It scales blocks of others."""

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
    def bits(self) -> int:
        """Of one element in memory, of which others may share its byte."""
        return self.packed_bits or 8 * self.bytes

    @property
    def has_nan(self) -> bool:
        """Whether some code is NaN."""
        return self.nonfinite is not NonFinite.NONE

    @property
    def has_infinity(self) -> bool:
        """Whether two codes are infinities."""
        return self.nonfinite is NonFinite.IEEE

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
        """The smallest positive float: a denormal, where there are any."""
        return 2.0 ** (self.least_exponent - self.digits + 1)

    @property
    def largest(self) -> float:
        """The largest finite float."""
        if self.last_finite:
            return self.last_finite
        return (2.0 - 2.0 ** (1 - self.digits)) * 2.0 ** (1 - self.least_exponent)

    @property
    def is_wide(self) -> bool:
        """Whether a float holds about what float32 holds, as bfloat16 does."""
        return self.largest > 2.0**118


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
    nonfinite=NonFinite.IEEE,
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
    nonfinite=NonFinite.IEEE,
)
FLOAT16 = DType(
    "float16",
    2,
    Kind.FLOAT,
    "_Float16",
    ("half", "__half", "nv_half", "__nv_half"),
    pairs=("half2", "__half2"),
    triton="fp16",
    digits=11,
    least_exponent=-14,
    nonfinite=NonFinite.IEEE,
)
BFLOAT16 = DType(
    "bfloat16",
    2,
    Kind.FLOAT,
    "bfloat16",
    ("__nv_bfloat16", "nv_bfloat16"),
    pairs=("__nv_bfloat162", "nv_bfloat162"),
    triton="bf16",
    in_numpy=False,
    digits=8,
    least_exponent=-126,
    nonfinite=NonFinite.IEEE,
)
# Triton's names for these stand in `sandbox/plan/fields.py`: torch's name is none of them.
FLOAT8_E4M3FN = DType(
    "float8_e4m3fn",
    1,
    Kind.FLOAT,
    spellings=("__nv_fp8_e4m3",),
    pairs=("__nv_fp8x2_e4m3",),
    in_numpy=False,
    digits=4,
    least_exponent=-6,
    nonfinite=NonFinite.NAN,
    last_finite=448.0,
)
FLOAT8_E5M2 = DType(
    "float8_e5m2",
    1,
    Kind.FLOAT,
    spellings=("__nv_fp8_e5m2",),
    pairs=("__nv_fp8x2_e5m2",),
    in_numpy=False,
    digits=3,
    least_exponent=-14,
    nonfinite=NonFinite.IEEE,
)
FLOAT8_E8M0FNU = DType(
    "float8_e8m0fnu",
    1,
    Kind.FLOAT,
    spellings=("__nv_fp8_e8m0",),
    pairs=("__nv_fp8x2_e8m0",),
    in_numpy=False,
    digits=1,
    least_exponent=-127,
    nonfinite=NonFinite.NAN,
    last_finite=2.0**127,
    is_scale=True,
)
# CUDA's pair of it, __nv_fp4x2_e2m1, is one byte: no wider than a single one.
FLOAT4_E2M1FN = DType(
    "float4_e2m1fn",
    1,
    Kind.FLOAT,
    spellings=("__nv_fp4_e2m1",),
    in_numpy=False,
    digits=2,
    least_exponent=0,
    last_finite=6.0,
    packed_bits=4,
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
        FLOAT8_E4M3FN,
        FLOAT8_E5M2,
        FLOAT8_E8M0FNU,
        FLOAT4_E2M1FN,
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

TENSORS = (FLOAT32, FLOAT16, BFLOAT16, INT32, INT8, UINT8)
"""What tensors of problems that are judged may hold."""


def in_c(dtype: DType) -> str:
    """What C++ calls it."""
    return dtype.c


def in_cuda(dtype: DType) -> str:
    """What CUDA C++ calls it."""
    is_narrow = dtype.is_float and dtype.bytes < FLOAT32.bytes
    return next(w for w in dtype.spellings if w.startswith("__")) if is_narrow else dtype.c


def dtype_of(name: str) -> DType:
    """The element type with the name; UnknownNameError with what there is."""
    if name not in DTYPES:
        raise UnknownNameError.for_name("element type", name, DTYPES)
    return DTYPES[name]
