"""Standard headers that NVRTC does not have, as far as device code has a use for them.

NVRTC knows printf, assert, size_t and the mathematical functions by itself; what models include out
of habit is mostly empty here. Headers that would be more than a few lines come from CCCL, at the
price of about a second of compilation.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

# long long and not long: CCCL's own <cuda/std/cstdint> says the same, and both may be included.
_STDINT = """\
#pragma once
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int64_t intptr_t; typedef uint64_t uintptr_t;
typedef int64_t intmax_t; typedef uint64_t uintmax_t;
typedef int8_t int_fast8_t; typedef int16_t int_fast16_t; typedef int32_t int_fast32_t;
typedef int64_t int_fast64_t;
typedef uint8_t uint_fast8_t; typedef uint16_t uint_fast16_t; typedef uint32_t uint_fast32_t;
typedef uint64_t uint_fast64_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#define SIZE_MAX UINT64_MAX
"""
_CSTDINT = """\
#pragma once
#include <stdint.h>
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t;
}
"""
_LIMITS_H = """\
#pragma once
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-9223372036854775807L - 1)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
"""
_FLOAT_H = """\
#pragma once
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MANT_DIG 53
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
"""
_MATH_H = """\
#pragma once
#define INFINITY (__builtin_bit_cast(float, 0x7f800000U))
#define NAN (__builtin_bit_cast(float, 0x7fc00000U))
#define HUGE_VALF INFINITY
#define HUGE_VAL (__builtin_bit_cast(double, 0x7ff0000000000000ULL))
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
"""
_ONE = "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh"
_MORE = "asinh acosh atanh erf erfc tgamma lgamma ceil floor trunc round rint nearbyint fabs"
_TWO = "pow fmod fmin fmax atan2 hypot copysign fdim"
_CMATH = "#pragma once\n#include <math.h>\nnamespace std {\n" + "\n".join(
    [
        *(f"using ::{name};" for name in f"{_ONE} {_MORE} {_TWO} fma abs".split()),
        "using ::isnan; using ::isinf; using ::isfinite;",
        "}",
        "",
    ]
)
_ALGORITHM = """\
#pragma once
namespace std {
template <typename T> __host__ __device__ constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <typename T> __host__ __device__ constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
template <typename T> __host__ __device__ constexpr const T& clamp(
    const T& x, const T& low, const T& high) {
  return x < low ? low : high < x ? high : x;
}
template <typename T> __host__ __device__ constexpr void swap(T& a, T& b) {
  T kept = a; a = b; b = kept;
}
}
"""
_OWN = {
    "stdint.h": _STDINT,
    "cstdint": _CSTDINT,
    "limits.h": _LIMITS_H,
    "climits": "#pragma once\n#include <limits.h>\n",
    "float.h": _FLOAT_H,
    "cfloat": "#pragma once\n#include <float.h>\n",
    "math.h": _MATH_H,
    "cmath": _CMATH,
    "algorithm": _ALGORITHM,
    "stddef.h": "#pragma once\n#ifndef NULL\n#define NULL 0\n#endif\n",
    "cstddef": "#pragma once\n#include <stddef.h>\nnamespace std { using ::size_t; }\n",
}
_EMPTY = (
    "stdio.h", "cstdio", "stdlib.h", "cstdlib", "string.h", "cstring", "assert.h", "cassert",
    "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h",
)  # fmt: skip
_FROM_CCCL = (
    "array", "bit", "complex", "concepts", "functional", "initializer_list", "iterator", "limits",
    "numeric", "optional", "ratio", "span", "tuple", "type_traits", "utility", "variant",
)  # fmt: skip


def headers(includes: Iterable[Path]) -> dict[bytes, bytes]:
    """The headers to add, by name; those that the folders of a toolkit have are left to them."""
    texts = {**dict.fromkeys(_EMPTY, "#pragma once\n"), **_OWN}
    for name in _FROM_CCCL:
        texts[name] = (
            f"#pragma once\n#include <cuda/std/{name}>\n"
            "namespace std { using namespace ::cuda::std; }\n"
        )
    folders = tuple(includes)
    return {
        name.encode(): text.encode()
        for name, text in texts.items()
        if not any((folder / name).exists() for folder in folders)
    }
