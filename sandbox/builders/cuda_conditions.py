# SPDX-License-Identifier: Apache-2.0
"""Conditions of a CUDA source that g++ and NVRTC may answer differently.

What is checked in emulation would then be another program than what is built for the device. It
knows preprocessor lines and a few names. Whoever wants to can tell an emulation from a device by
other means, by addresses or by how exact an intrinsic is: this finds what happens by mistake, and
what costs no effort.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import shims

_CONDITION = re.compile(
    r"^[ \t]*\#[ \t]*(?P<kind>if|ifdef|ifndef|elif|elifdef|elifndef)\b"
    r"(?P<what>(?:[^\n\\]|\\.|\\\n)*)",
    re.M | re.S,
)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
_FALLBACK = re.compile(r"[ \t]*\n\s*#[ \t]*define[ \t]+(\w+)")
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")

_SAME = frozenset(
    (
        "__CUDA_ARCH__",
        "__CUDACC__",
        "__CUDACC_RTC__",
        "__cplusplus",
        # Neither defines these.
        "__NVCC__",
        "__HIPCC__",
        "__HIP_DEVICE_COMPILE__",
        "__HIP_PLATFORM_AMD__",
        "__INTELLISENSE__",
        "__clang__",
        "__APPLE__",
        "_MSC_VER",
        "_WIN32",
        "_WIN64",
    )
)
"""Reserved names that both answer alike."""
_RESERVED = re.compile(r"_[A-Z_]")
_OF_HEADERS = re.compile(
    r"(?:FLT|DBL|LDBL)_\w+|U?INT\w*_(?:MAX|MIN|C)|M_[A-Z0-9_]+|CUDART_\w+|CUDA_VERSION|HUGE_VALL"
    r"|RAND_MAX|EOF|BUFSIZ|assert"
)
"""Macros of headers that one of them may have and the other not."""


def find_differing(code: str) -> Iterator[tuple[int, str]]:
    """Place and name of what the two may answer differently; `code` is blanked."""
    own = set(_DEFINED.findall(code))
    for found in _CONDITION.finditer(code):
        for name in _NAME.findall(found["what"].replace("\\\n", "")):
            fallback = _FALLBACK.match(code, found.end())
            if found["kind"] == "ifndef" and fallback and fallback[1] == name:
                continue
            if name in shims.macros():
                continue
            is_reserved = _RESERVED.match(name) and name not in _SAME | own
            if is_reserved or _OF_HEADERS.fullmatch(name):
                yield found.start(), name
