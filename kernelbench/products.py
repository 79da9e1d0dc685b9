# SPDX-License-Identifier: Apache-2.0
"""What the devices built on an architecture reach at most, by their vendors' data sheets.

Peaks are dense (without sparsity), the sheet's name beside them. A peak measured on a device goes
before one of these: what is computed from them is `modelled`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .targets import ARITHMETIC


@dataclass(frozen=True)
class Product:
    """One product: its peaks from the data sheet."""

    name: str
    architecture: str
    sms: int
    memory_gbs: float
    """GB/s."""
    tflops: dict[str, float] = field(default_factory=dict)
    """Peak by arithmetic (ARITHMETIC; int8 in TOP/s): dense, narrow types summed in float32 or
    int32. One that the product's tensor cores do not have is missing."""
    source: str = "vendor's data sheet, dense"
    """Which one."""
    l2_mb: float = 0.0
    """Size of the L2 cache, of chiplets each one's own; 0 where it is not known."""
    clock_ghz: float = 0.0
    """The peak clock; 0: the fp32 peak implies it."""


def _device(
    name: str,
    architecture: int | str,
    sms: int,
    memory: float,
    sheet: str,
    peaks: Mapping[str, float],
    *,
    l2: float = 0.0,
    clock: float = 0.0,
) -> Product:
    assert peaks.keys() <= set(ARITHMETIC)
    source = f"vendor's data sheet ({sheet}), dense"
    built_on = f"sm_{architecture}" if isinstance(architecture, int) else architecture
    return Product(name, built_on, sms, memory, dict(peaks), source, l2, clock)


_T4 = {"fp32": 8.1, "fp16": 65.0, "int8": 130.0}
"""NVIDIA T4 data sheet: 65 of mixed precision; Turing has neither bfloat16 nor TF32."""
_A10 = {"fp32": 31.2, "tf32": 62.5, "fp16": 125, "bf16": 125, "int8": 250}
"""NVIDIA A10 data sheet."""
_A100 = {"fp64": 19.5, "fp32": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624}
"""NVIDIA A100 data sheet, and the A100 architecture's whitepaper."""
_L40S = {"fp32": 91.6, "tf32": 183, "fp16": 362, "bf16": 362, "fp8": 733, "int8": 733}
"""NVIDIA L40S data sheet."""
_L4 = {"fp32": 30.3, "tf32": 60, "fp16": 121, "bf16": 121, "fp8": 242, "int8": 242}
"""NVIDIA L4 data sheet, which has them with sparsity alone: 120, 242, 485."""
_RTX_3090 = {"fp32": 35.6, "tf32": 35.6, "fp16": 71, "bf16": 71, "int8": 284}
"""GA102 architecture's whitepaper. GeForce sums in float32 at half the rate of float16's sums."""
_RTX_4090 = {"fp32": 82.6, "tf32": 82.6, "fp16": 165, "bf16": 165, "fp8": 330, "int8": 661}
"""Ada architecture's whitepaper."""
_RTX_5090 = {
    "fp32": 104.8,
    "tf32": 104.8,
    "fp16": 209.5,
    "bf16": 209.5,
    "fp8": 419,
    "fp4": 1676,
    "int8": 838,
}
"""RTX Blackwell architecture's whitepaper."""
_H100 = {"fp64": 67, "fp32": 67, "tf32": 495, "fp16": 989, "bf16": 989, "fp8": 1979, "int8": 1979}
"""NVIDIA H100 and H200 data sheets: half of 989, 1,979 and 3,958 with sparsity."""
_H100_PCIE = {
    "fp64": 51,
    "fp32": 51,
    "tf32": 378,
    "fp16": 756,
    "bf16": 756,
    "fp8": 1513,
    "int8": 1513,
}
"""NVIDIA H100 data sheet: half of 756, 1,513 and 3,026 with sparsity."""
_B200 = {
    "fp64": 40,
    "fp32": 80,
    "tf32": 1100,
    "fp16": 2250,
    "bf16": 2250,
    "fp8": 4500,
    "fp4": 9000,
    "int8": 4500,
}
"""Blackwell architecture technical brief, HGX B200 at 1000 W: half of what is there with
sparsity."""
_MI300X = {
    "fp64": 163.4,
    "fp32": 163.4,
    "tf32": 653.7,
    "fp16": 1307.4,
    "bf16": 1307.4,
    "fp8": 2614.9,
    "int8": 2614.9,
}
"""AMD Instinct MI300X data sheet: fp32 of the vector units, all others of matrix cores."""
_MI355X = {
    "fp64": 78.6,
    "fp32": 157.3,
    "fp16": 2516.6,
    "bf16": 2516.6,
    "fp8": 5033.2,
    "fp4": 10066.3,
    "int8": 5033.2,
}
"""AMD Instinct MI355X data sheet; CDNA 4 has no TF32."""
_RX_9070_XT = {"fp32": 48.7, "fp16": 195, "bf16": 195, "fp8": 389, "int8": 389}
"""AMD's product page of the Radeon RX 9070 XT, matrix without sparsity."""

DEVICES = (
    _device("T4", 75, 40, 320, "T4", _T4, l2=4),
    _device("A10", 86, 72, 600, "A10", _A10, l2=6),
    _device("A100 80GB SXM", 80, 108, 2039, "A100", _A100, l2=40),
    _device("A100 80GB PCIe", 80, 108, 1935, "A100", _A100, l2=40),
    _device("A100 40GB", 80, 108, 1555, "A100", _A100, l2=40),
    _device("L40S", 89, 142, 864, "L40S", _L40S),
    _device("L4", 89, 58, 300, "L4", _L4),
    _device("RTX 3090", 86, 82, 936, "GA102 whitepaper", _RTX_3090),
    _device("RTX 4090", 89, 128, 1008, "Ada whitepaper", _RTX_4090),
    _device("RTX 5090", 120, 170, 1792, "RTX Blackwell whitepaper", _RTX_5090, l2=96),
    _device("H200 SXM", 90, 132, 4800, "H200", _H100, l2=50),
    _device("H100 SXM", 90, 132, 3350, "H100", _H100, l2=50),
    _device("H100 PCIe", 90, 114, 2000, "H100", _H100_PCIE, l2=50),
    _device("B200", 100, 148, 8000, "Blackwell technical brief", _B200),
    _device("MI300X", "gfx942", 304, 5300, "Instinct MI300X", _MI300X, l2=4, clock=2.1),
    _device("MI355X", "gfx950", 256, 8000, "Instinct MI355X", _MI355X, l2=4, clock=2.4),
    _device("RX 9070 XT", "gfx1201", 32, 640, "Radeon RX 9070 XT", _RX_9070_XT, l2=8, clock=2.97),
)
"""The first of an architecture stands for it where no device is named."""


def device_of(architecture_name: str) -> Product | None:
    """The device whose data sheet models this architecture; None where the table has none."""
    return next((d for d in DEVICES if d.architecture == architecture_name), None)


_BRAND = frozenset({"NVIDIA", "GEFORCE", "TESLA", "GPU", "TENSOR", "CORE"})
_BUSES = frozenset({"SXM", "PCIE"})
_SIZE = re.compile(r"\d+GB|HBM\d?E?")


def product(driver_name: str, sms: int | None = None) -> Product | None:
    """The product that a driver means by this name; None where the table does not have it.

    A relative is no answer (an H100 NVL is not an H100 SXM): every word must be the product's,
    buses and memory sizes must not disagree, and neither must the number of SMs, where it is known.
    """
    words = _words(driver_name)
    found = [
        one
        for one in DEVICES
        if _drop_qualifiers(words) == _drop_qualifiers(_words(one.name))
        and all(_agree(words, _words(one.name), kind) for kind in (_is_bus, _is_size))
        and sms in (None, one.sms)
    ]
    return found[0] if len(found) == 1 else None


def _words(name: str) -> frozenset[str]:
    upper = re.sub(r"SXM\d", "SXM", name.upper()).replace("-", " ")
    return frozenset(upper.split()) - _BRAND


def _is_bus(word: str) -> bool:
    return word in _BUSES


def _is_size(word: str) -> bool:
    return _SIZE.fullmatch(word) is not None and not word.startswith("HBM")


def _drop_qualifiers(words: frozenset[str]) -> frozenset[str]:
    return frozenset(w for w in words if not _is_bus(w) and _SIZE.fullmatch(w) is None)


def _agree(first: frozenset[str], second: frozenset[str], kind: Callable[[str], bool]) -> bool:
    """Whether both say the same of a kind, or one says nothing."""
    told = [{word for word in words if kind(word)} for words in (first, second)]
    return not all(told) or told[0] == told[1]
