# SPDX-License-Identifier: Apache-2.0
"""What a builder gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class BuildVariant(StrEnum):
    """Which flags a source is built with."""

    RELEASE = "release"
    SANITIZED = "sanitized"
    """ASan + UBSan, for promotion."""


class EmulatedVariant(StrEnum):
    """How a CUDA source is built for the CPU."""

    PLAIN = "plain"
    ASAN = "asan"
    """With the address and the undefined-behaviour sanitizer: out of bounds, overflow."""
    ACCESS = "access"
    """Every access to memory is told: races on shared memory, sectors, bank conflicts."""


@dataclass(frozen=True)
class Built:
    """An artefact as bytes, immutable, named by its hash."""

    artefact: bytes
    sha256: str
    seconds: float
    log: str = ""
    remarks: tuple[str, ...] = ()
    """Vectorisation remarks on the candidate's own lines, e.g. `12: loop vectorized using 64 byte
    vectors`. Parsed from the compiler's own channel, not from text a candidate can print."""
    command: tuple[str, ...] = ()
    compiler: str = ""
    is_cached: bool = False
    listing: str = ""
    """The assembly that the artefact was made of, where the compiler tells it; a candidate had a
    hand in it. Empty: a disassembler tells."""


@dataclass(frozen=True)
class BuildFailed:
    """The source did not build; this is a result, not an error."""

    reason: str
    """One sentence: `error at line 3: 'foo' was not declared`, `stopped after 60 s`."""
    log: str = ""
    is_resource: bool = False
    """True where a limit ended the compiler: RESOURCE rather than BUILD_FAILED."""
    seconds: float = 0.0
    command: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Unsupported:
    """A source may be right and cannot be built here: neither a pass nor a failure."""

    reasons: tuple[str, ...]
    """One sentence each: `line 12: inline PTX (asm)`."""
    log: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class KernelFacts:
    """What the compiler says of one kernel in a cubin or code object. All sizes in bytes."""

    name: str
    """As the launch plan writes it: `spmm_row`, `reduce<float, 4>`."""
    symbol: str
    """The name in the cubin, mangled where it is C++."""
    registers: int
    """Per thread; AMD's VGPRs with its AGPRs."""
    shared_bytes: int
    """Static, without what the system reserves."""
    stack_bytes: int
    """Local memory per thread, spills included."""
    spill_stores: int
    """Bytes per thread, counted once for each store instruction."""
    spill_loads: int
    parameters: tuple[int, ...]
    """Size of each parameter, in order."""
    cubin: int = 0
    """Which of DeviceBuilt.cubins it is in."""
    max_threads: int | None = None
    """The most threads that a block of it may have, where the source bounds them."""
    register_cap: int | None = None
    """The most registers per thread that its launch bounds left, where they cap them."""
    accumulators: int = 0
    """Of AMD's registers per thread those for sums of matrix cores (AGPRs)."""
    scalars: int = 0
    """AMD's scalar registers (SGPRs) of a warp."""


@dataclass(frozen=True)
class DeviceBuilt:
    """Device code for one architecture: cubins with what is known of their kernels."""

    architecture: str
    """What it was built for, with the suffix: `sm_90a`."""
    cubins: tuple[Built, ...]
    """One for CUDA C++; for Triton one for each specialisation. AMD's are code objects (hsaco)."""
    kernels: tuple[KernelFacts, ...]
    """In the order of Launches.kernels."""
    is_cached: bool = False
