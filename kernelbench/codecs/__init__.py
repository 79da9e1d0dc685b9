# SPDX-License-Identifier: Apache-2.0
"""Number formats that numpy lacks: elements, packed codes, scaled codes, block formats."""

from .blocks import (
    MX,
    MX_BLOCK,
    MX_ELEMENTS,
    NVFP4,
    NVFP4_BLOCK,
    decode_mx,
    decode_nvfp4,
    encode_mx,
    encode_nvfp4,
)
from .elements import (
    Overflow,
    codes_of,
    elements_of,
    encode,
    encode_by_streams,
    host_dtype,
    neighbours,
)
from .packing import INT4, UINT4, Integers, Layout, Order, pack, unpack
from .scaled import Scaled, Scheme, Scope, decode_scaled, encode_scaled

__all__ = [
    "INT4",
    "MX",
    "MX_BLOCK",
    "MX_ELEMENTS",
    "NVFP4",
    "NVFP4_BLOCK",
    "UINT4",
    "Integers",
    "Layout",
    "Order",
    "Overflow",
    "Scaled",
    "Scheme",
    "Scope",
    "codes_of",
    "decode_mx",
    "decode_nvfp4",
    "decode_scaled",
    "elements_of",
    "encode",
    "encode_by_streams",
    "encode_mx",
    "encode_nvfp4",
    "encode_scaled",
    "host_dtype",
    "neighbours",
    "pack",
    "unpack",
]
