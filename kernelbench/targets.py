# SPDX-License-Identifier: Apache-2.0
"""What a CUDA architecture allows, and what the devices built on it reach at most.

Limits are those of the CUDA C++ Programming Guide's table of technical specifications per compute
capability; peaks are the vendor's data sheets, dense (without sparsity). A peak measured on a
device goes before one of these: what is computed from them is `modelled`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
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
    """Peak by arithmetic: fp32, tf32, fp16, fp8, int8 (TOP/s); dense."""
    source: str = "vendor's data sheet, dense"
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
    fp32: float,
    tf32: float,
    fp16: float,
    fp8: float,
    int8: float,
    *,
    l2: float = 0.0,
) -> Product:
    peaks = {"fp32": fp32, "tf32": tf32, "fp16": fp16, "fp8": fp8, "int8": int8}
    known = {kind: peak for kind, peak in peaks.items() if peak}
    return Product(name, f"sm_{capability}", sms, memory, known, l2_mb=l2)


DEVICES = (
    _device("T4", 75, 40, 320, 8.1, 0, 65, 0, 130, l2=4),
    _device("A10", 86, 72, 600, 31.2, 62.5, 125, 0, 250, l2=6),
    _device("A100 80GB SXM", 80, 108, 2039, 19.5, 156, 312, 0, 624, l2=40),
    _device("A100 80GB PCIe", 80, 108, 1935, 19.5, 156, 312, 0, 624, l2=40),
    _device("A100 40GB", 80, 108, 1555, 19.5, 156, 312, 0, 624, l2=40),
    _device("L40S", 89, 142, 864, 91.6, 183, 362, 733, 733),
    _device("L4", 89, 58, 300, 30.3, 60, 121, 242, 242),
    _device("RTX 3090", 86, 82, 936, 35.6, 35.6, 71, 0, 284),
    _device("RTX 4090", 89, 128, 1008, 82.6, 82.6, 165, 330, 661),
    _device("RTX 5090", 120, 170, 1792, 104.8, 104.8, 209.5, 419, 838, l2=96),
    _device("H200 SXM", 90, 132, 4800, 67, 495, 989, 1979, 1979, l2=50),
    _device("H100 SXM", 90, 132, 3350, 67, 495, 989, 1979, 1979, l2=50),
    _device("H100 PCIe", 90, 114, 2000, 51, 378, 756, 1513, 1513, l2=50),
    _device("B200", 100, 148, 8000, 80, 1100, 2250, 4500, 4500),
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
