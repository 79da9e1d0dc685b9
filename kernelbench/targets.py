# SPDX-License-Identifier: Apache-2.0
"""What a CUDA architecture allows, and what the devices built on it reach at most.

Limits are those of the CUDA C++ Programming Guide's table of technical specifications per compute
capability; peaks are the vendor's data sheets, dense (without sparsity), the sheet's name beside
them. A peak measured on a device goes before one of these: what is computed from them is
`modelled`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..errors import UnknownNameError

CPU = "cpu"
"""The name of the target that is this machine."""
AUTO = "auto"
"""Stands for the first device of this machine, else the CPU."""

REGISTERS_PER_SM = 65536
MAX_REGISTERS_PER_THREAD = 255
MAX_THREADS_PER_BLOCK = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
SHARED_WITHOUT_OPT_IN = 48 << 10
"""Bytes of shared memory that a block may declare statically."""
MAX_PARAMETER_BYTES = 4096
WARP = 32
ARITHMETIC = {
    "fp64": 80,
    "fp32": 0,
    "tf32": 80,
    "fp16": 70,
    "bf16": 80,
    "fp8": 89,
    "fp4": 100,
    "int8": 72,
}
"""What a product may have a peak of: fp32 by its ordinary units, all others by tensor cores; and
since which compute capability those do it (CUDA C++ Programming Guide)."""


@dataclass(frozen=True)
class Architecture:
    """The limits of one compute capability."""

    name: str
    """`sm_90`."""
    max_warps: int
    """Resident warps per SM."""
    max_blocks: int
    """Resident blocks per SM."""
    shared_per_sm: int
    """Bytes."""
    shared_per_block: int
    """Bytes that a block may have with opt-in, static and dynamic together."""
    shared_reserved: int
    """Bytes per block that the system takes."""
    shared_unit: int
    """Bytes in which shared memory is handed out."""
    max_cluster: int = 1
    """Blocks in a cluster, without the non-portable sizes; 1 where there are none."""
    suffixed: str = ""
    """The architecture-specific name that kernels are built for by default, e.g. `sm_90a`."""

    @property
    def capability(self) -> int:
        """90 for sm_90."""
        return int(self.name.removeprefix("sm_"))

    @property
    def build_name(self) -> str:
        """What a compiler is told: the suffixed name where there is one."""
        return self.suffixed or self.name


@dataclass(frozen=True)
class Target:
    """Where candidates run: this machine's CPU, or a GPU of one architecture."""

    name: str
    gpu: Architecture | None = None
    """None: the CPU."""

    def __str__(self) -> str:
        return self.name

    @property
    def is_cpu(self) -> bool:
        """Whether candidates run on this machine's CPU, where everything can be timed."""
        return self.gpu is None

    @property
    def torch_device(self) -> str:
        """In torch's naming; empty for the CPUs."""
        return "" if self.is_cpu else "cuda"

    @property
    def flushes_denormals(self) -> bool:
        """Whether atomic sums on global memory take denormals for zero."""
        return not self.is_cpu

    def has_capability(self, least: int) -> bool:
        """Whether it has what GPUs have from this compute capability on, as far as it is one."""
        return self.gpu is None or self.gpu.capability >= least

    @property
    def architecture(self) -> Architecture:
        """The limits of a GPU; to be asked of no other target."""
        if self.gpu is None:
            raise TypeError(f"target {self.name} has no architecture")
        return self.gpu


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
    """Size of the L2 cache; 0 where it is not known."""


def _architecture(
    capability: int,
    warps: int,
    blocks: int,
    per_sm: int,
    per_block: int,
    *,
    reserved: int = 1,
    unit: int = 128,
    cluster: int = 1,
    suffix: str = "",
) -> Architecture:
    name = f"sm_{capability}"
    return Architecture(
        name,
        warps,
        blocks,
        per_sm << 10,
        per_block << 10,
        reserved << 10,
        unit,
        cluster,
        name + suffix if suffix else "",
    )


ARCHITECTURES = {
    a.name: a
    for a in (
        _architecture(75, 32, 16, 64, 64, reserved=0, unit=256),
        _architecture(80, 64, 32, 164, 163),
        _architecture(86, 48, 16, 100, 99),
        _architecture(87, 48, 16, 164, 163),
        _architecture(89, 48, 24, 100, 99),
        _architecture(90, 64, 32, 228, 227, cluster=8, suffix="a"),
        _architecture(100, 64, 32, 228, 227, cluster=8, suffix="a"),
        _architecture(103, 64, 32, 228, 227, cluster=8, suffix="a"),
        _architecture(110, 48, 24, 228, 227, cluster=8, suffix="a"),
        _architecture(120, 48, 24, 100, 99, cluster=8, suffix="a"),
        _architecture(121, 48, 24, 100, 99, cluster=8, suffix="a"),
    )
}
"""By name."""


def _device(
    name: str,
    capability: int,
    sms: int,
    memory: float,
    sheet: str,
    peaks: Mapping[str, float],
    *,
    l2: float = 0.0,
) -> Product:
    assert peaks.keys() <= set(ARITHMETIC)
    source = f"vendor's data sheet ({sheet}), dense"
    return Product(name, f"sm_{capability}", sms, memory, dict(peaks), source, l2)


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
)
"""The first of an architecture stands for it where no device is named."""


def architecture(name: str) -> Architecture:
    """The architecture `sm_90` (or `sm_90a`); UnknownNameError with the nearest names."""
    plain = name.rstrip("af") if name.startswith("sm_") else name
    if plain not in ARCHITECTURES:
        raise UnknownNameError.for_name("target", name, [CPU, AUTO, *ARCHITECTURES])
    return ARCHITECTURES[plain]


def target_of(name: str) -> Target:
    """The target `cpu` or `sm_90` (or `sm_90a`); UnknownNameError with the nearest names."""
    if name == CPU:
        return Target(CPU)
    found = architecture(name)
    return Target(found.name, found)


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
