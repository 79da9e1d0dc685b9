# SPDX-License-Identifier: Apache-2.0
"""What an architecture of NVIDIA's or AMD's allows.

NVIDIA's limits are those of the CUDA C++ Programming Guide's table of technical specifications per
compute capability, AMD's have their source beside them. What devices reach is in `products`.

Words are NVIDIA's for both: a warp is AMD's wavefront, an SM is its compute unit (of RDNA the
workgroup processor of two, in whose mode Triton builds), shared memory its LDS, a tensor core its
matrix core.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

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


class Vendor(StrEnum):
    """Whose compilers, code and numbering an architecture has."""

    NVIDIA = "NVIDIA"
    AMD = "AMD"


@dataclass(frozen=True)
class RegisterFile:
    """The 32-bit registers of an SM; those of a warp all lie in one of its parts."""

    parts: int = 4
    """AMD's SIMDs."""
    per_part: int = REGISTERS_PER_SM // 4
    unit: int = 256
    """Registers that a warp takes at a time."""
    most: int = MAX_REGISTERS_PER_THREAD
    """Per thread; AMD's with those of accumulators."""

    @property
    def total(self) -> int:
        """Of the SM."""
        return self.parts * self.per_part


@dataclass(frozen=True)
class Architecture:
    """The limits of one compute capability, or of one of AMD's `gfx` targets."""

    name: str
    """`sm_90`, `gfx942`."""
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
    vendor: Vendor = Vendor.NVIDIA
    warp: int = WARP
    """Threads of a warp."""
    registers: RegisterFile = RegisterFile()
    matrix_kinds: frozenset[str] = frozenset()
    """Of AMD's: the kinds of ARITHMETIC that its matrix cores multiply; see `multiplies`."""
    family: str = ""
    """Of AMD's: `CDNA 3`."""

    @property
    def capability(self) -> int:
        """90 for sm_90; 0 for what has no compute capability, and so nothing that one brings."""
        return int(self.name.removeprefix("sm_")) if self.vendor is Vendor.NVIDIA else 0

    @property
    def version(self) -> tuple[int, int]:
        """What torch calls the device's capability: (9, 0) for sm_90, (9, 4) for gfx942."""
        if self.vendor is Vendor.NVIDIA:
            major, minor = divmod(self.capability, 10)
            return major, minor
        digits = self.name.removeprefix("gfx")
        return int(digits[:-2]), int(digits[-2])

    def multiplies(self, kind: str) -> bool:
        """Whether its tensor cores take this kind of ARITHMETIC."""
        if self.vendor is Vendor.NVIDIA:
            return self.capability >= ARITHMETIC[kind]
        return kind in self.matrix_kinds

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


_CDNA = RegisterFile(parts=4, per_part=512 * 64, unit=8 * 64, most=512)
"""Of a SIMD 512 registers for each of 64 lanes, handed out by eight (CDNA 3 and CDNA 4 ISA, "VGPRs
and AccVGPRs"; LLVM's AMDGPU back end, FeatureGFX90AInsts)."""
_RDNA4 = RegisterFile(parts=4, per_part=1536 * 32, unit=24 * 32, most=256)
"""Of a SIMD 1,536 for each of 32 lanes: 192 KiB (ROCm, "AMD GPU specifications"), handed out by 24
(LLVM's AMDGPU back end, Feature1_5xVGPRs)."""
_AMD = (
    Architecture(
        "gfx942",
        max_warps=32,
        max_blocks=16,
        shared_per_sm=64 << 10,
        shared_per_block=64 << 10,
        shared_reserved=0,
        shared_unit=512,
        vendor=Vendor.AMD,
        warp=64,
        registers=_CDNA,
        matrix_kinds=frozenset({"fp64", "tf32", "fp16", "bf16", "fp8", "int8"}),
        family="CDNA 3",
    ),
    Architecture(
        "gfx950",
        max_warps=32,
        max_blocks=16,
        shared_per_sm=160 << 10,
        shared_per_block=160 << 10,
        shared_reserved=0,
        shared_unit=1280,
        vendor=Vendor.AMD,
        warp=64,
        registers=_CDNA,
        matrix_kinds=frozenset({"fp64", "fp16", "bf16", "fp8", "fp4", "int8"}),
        family="CDNA 4",
    ),
    Architecture(
        "gfx1201",
        max_warps=64,
        max_blocks=32,
        shared_per_sm=128 << 10,
        shared_per_block=64 << 10,
        shared_reserved=0,
        shared_unit=1024,
        vendor=Vendor.AMD,
        warp=32,
        registers=_RDNA4,
        matrix_kinds=frozenset({"fp16", "bf16", "fp8", "int8"}),
        family="RDNA 4",
    ),
)
"""Wavefronts a SIMD (8 of CDNA, 16 of RDNA), workgroups by their barriers (16 of a compute unit, 32
of a workgroup processor) and units of LDS: LLVM's AMDGPU back end (AMDGPUBaseInfo.cpp) and
the ISA documents of CDNA 3, CDNA 4 and RDNA 4; LDS: ROCm, "AMD GPU specifications"; what matrix
cores multiply: the ISA documents' V_MFMA and V_WMMA. Blocks of one wavefront need no barrier and
may be more than `max_blocks`, which is not taken into account."""

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
        *_AMD,
    )
}
"""By name."""


def architecture(name: str) -> Architecture:
    """The architecture `sm_90`, `sm_90a` or `gfx942`; UnknownNameError with the nearest names."""
    plain = name.rstrip("af") if name.startswith("sm_") else name
    if plain not in ARCHITECTURES:
        raise UnknownNameError.for_name("target", name, [CPU, AUTO, *ARCHITECTURES])
    return ARCHITECTURES[plain]


def target_of(name: str) -> Target:
    """The target `cpu`, `sm_90`, `sm_90a` or `gfx942`; UnknownNameError with the nearest names."""
    if name == CPU:
        return Target(CPU)
    found = architecture(name)
    return Target(found.name, found)
