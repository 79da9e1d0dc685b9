# SPDX-License-Identifier: Apache-2.0
"""What a target allows a launch to ask for, and what to change where it asks for more."""

from __future__ import annotations

from collections.abc import Sequence

from ...kernelbench.dtypes import DTYPES, Kind
from ...kernelbench.targets import (
    MAX_BLOCK,
    MAX_GRID,
    MAX_PARAMETER_BYTES,
    MAX_THREADS_PER_BLOCK,
    Architecture,
    Vendor,
)
from ..builders.model import KernelFacts
from .faults import PlanFaultKind
from .model import ArgumentKind, Extent, Launch

MAX_SCRATCH = 16
"""Work buffers of a candidate."""
MAX_SCRATCH_BYTES = 512 << 20
"""All of them together: the partial sums of 8 parts of a product of 4096 x 4096. Each slot of a
call has its own, on the host and on a device."""

_AXES = "xyz"
_WIDTHS = (1, 2, 4, 8)
_KIND_BYTES = {
    ArgumentKind.FLOAT32: (4,),
    ArgumentKind.FLOAT64: (8,),
    ArgumentKind.INTEGER: _WIDTHS,
    ArgumentKind.TENSOR: (8,),
    ArgumentKind.SCRATCH: (8,),
}
_KIND_WORDS = {
    ArgumentKind.FLOAT32: "a float",
    ArgumentKind.FLOAT64: "a double",
    ArgumentKind.INTEGER: "an integer",
    ArgumentKind.TENSOR: "a pointer",
    ArgumentKind.SCRATCH: "a pointer",
}


def grid_wrong(grid: Extent) -> tuple[int, str] | None:
    """Which dimension is out of range, and the sentence for it."""
    for at, (size, most) in enumerate(zip(grid, MAX_GRID, strict=True)):
        if size < 1:
            return at, (
                f"grid {_AXES[at]} is {size}, and a grid needs at least 1 block; round up with "
                "cdiv(), keep it positive with max(1, …), or leave the launch out with `when`"
            )
        if size > most:
            return at, (
                f"grid {_AXES[at]} is {size}, at most {most} is allowed; put the larger count in x "
                "or give each block more work"
            )
    return None


def block_wrong(block: Extent) -> tuple[int, str] | None:
    """Which dimension is out of range, and the sentence for it."""
    for at, (size, most) in enumerate(zip(block, MAX_BLOCK, strict=True)):
        if size < 1:
            return at, f"block {_AXES[at]} is {size}, and a block needs at least 1 thread"
        if size > most:
            return at, (
                f"block {_AXES[at]} is {size}, at most {most} is allowed; use a smaller block and "
                "a larger grid, or let each thread do more"
            )
    threads = block[0] * block[1] * block[2]
    if threads > MAX_THREADS_PER_BLOCK:
        return 0, (
            f"the block has {threads} threads ({block[0]} x {block[1]} x {block[2]}), at most "
            f"{MAX_THREADS_PER_BLOCK} are allowed; use a smaller block and a larger grid"
        )
    return None


def cluster_wrong(
    cluster: Extent, grid: Extent, architecture: Architecture
) -> tuple[str, PlanFaultKind] | None:
    """What is wrong with a cluster of blocks."""
    for at, size in enumerate(cluster):
        if size < 1:
            return f"cluster {_AXES[at]} is {size}; it must be at least 1", PlanFaultKind.MISTAKE
    blocks = cluster[0] * cluster[1] * cluster[2]
    if blocks == 1:
        return None
    if architecture.max_cluster == 1:
        came = " (they came with sm_90)" if architecture.vendor is Vendor.NVIDIA else ""
        return (
            f"{architecture.name} has no clusters{came}; leave `cluster` out",
            PlanFaultKind.UNSUPPORTED,
        )
    if blocks > architecture.max_cluster:
        return (
            f"the cluster has {blocks} blocks, {architecture.name} takes at most "
            f"{architecture.max_cluster}",
            PlanFaultKind.LIMIT,
        )
    for at, (size, whole) in enumerate(zip(cluster, grid, strict=True)):
        if whole % size:
            return (
                f"grid {_AXES[at]} is {whole}, which is not a multiple of the cluster's {size}; "
                f"round it up: cdiv(…, {size}) * {size}",
                PlanFaultKind.MISTAKE,
            )
    return None


def shared_wrong(
    dynamic: int, architecture: Architecture, static: int = 0
) -> tuple[str, PlanFaultKind] | None:
    """What is wrong with a block's shared memory; `static` where the build has told it."""
    if dynamic < 0:
        return f"shared_bytes is {dynamic}; it must not be negative", PlanFaultKind.MISTAKE
    most = architecture.shared_per_block
    if dynamic + static <= most:
        return None
    parts = f"{dynamic} dynamic + {static} static = {dynamic + static}" if static else f"{dynamic}"
    return (
        f"a block asks for {parts} bytes of shared memory, {architecture.name} has at most {most}; "
        "use smaller tiles or fewer stages",
        PlanFaultKind.LIMIT,
    )


def registers_wrong(registers: int, threads: int, architecture: Architecture) -> str | None:
    """Whether a block's registers fit a multiprocessor, where the build has told their number."""
    file, warp = architecture.registers, architecture.warp
    if registers > file.most:
        return f"a thread has {registers} registers, at most {file.most} exist"
    if _registers_of_block(registers, threads, architecture) <= file.total:
        return None
    fitting = max(
        (
            warps
            for warps in range(1, MAX_THREADS_PER_BLOCK // warp + 1)
            if _registers_of_block(registers, warps * warp, architecture) <= file.total
        ),
        default=0,
    )
    remedy = f"use at most {fitting * warp} threads"
    if architecture.vendor is Vendor.NVIDIA:
        remedy += f", or cap the registers with __launch_bounds__({threads})"
    return (
        f"{threads} threads with {registers} registers each need more than the {file.total} "
        f"that there are; {remedy}"
    )


def _registers_of_block(registers: int, threads: int, architecture: Architecture) -> int:
    """Registers are handed out per warp in units, to warps in groups of one for each part."""
    file, warp = architecture.registers, architecture.warp
    warps = -(-threads // warp)
    return -(-registers * warp // file.unit) * file.unit * (-(-warps // file.parts) * file.parts)


def parameters_wrong(sizes: Sequence[int]) -> str | None:
    """Whether the parameters, laid out with their alignment, fit what a launch can carry."""
    total = 0
    for size in sizes:
        total = -(-total // max(1, size)) * max(1, size) + size
    if total <= MAX_PARAMETER_BYTES:
        return None
    return f"the arguments take {total} bytes, a launch carries at most {MAX_PARAMETER_BYTES}"


def built_wrong(
    launch: Launch, facts: KernelFacts, architecture: Architecture
) -> tuple[str, str, PlanFaultKind] | None:
    """What is wrong with a launch of a built kernel: the plan's key, the sentence, its kind."""
    if wrong := shared_wrong(launch.shared_bytes, architecture, facts.shared_bytes):
        return "shared_bytes", *wrong
    if reason := registers_wrong(facts.registers, launch.threads, architecture):
        return "block", reason, PlanFaultKind.LIMIT
    sizes = facts.parameters
    if len(sizes) != len(launch.arguments):
        return (
            "args",
            (
                f"the kernel has {len(sizes)} parameters, and the launch gives "
                f"{len(launch.arguments)} arguments"
            ),
            PlanFaultKind.MISTAKE,
        )
    for at, (argument, size) in enumerate(zip(launch.arguments, sizes, strict=True)):
        if size not in _KIND_BYTES[argument.kind]:
            return (
                "args",
                (
                    f"argument {at + 1} is {_KIND_WORDS[argument.kind]}, and the kernel's "
                    f"parameter has {size} bytes"
                ),
                PlanFaultKind.MISTAKE,
            )
        if argument.kind is ArgumentKind.INTEGER and not fits(argument.value, size):
            return (
                "args",
                (
                    f"argument {at + 1} is {argument.value}, which the kernel's parameter of "
                    f"{size} bytes cannot hold; declare it as long long"
                ),
                PlanFaultKind.MISTAKE,
            )
    if reason := parameters_wrong(sizes):
        return "args", reason, PlanFaultKind.LIMIT
    return None


def fits(value: int, size: int, *, is_signed: bool | None = None) -> bool:
    """Whether an integer of `size` bytes can be this value; signed, unsigned or either."""
    bits = 8 * size
    low = 0 if is_signed is False else -(1 << (bits - 1))
    high = 1 << (bits - 1 if is_signed else bits)
    return low <= value < high


def holds(dtype: str, value: int) -> bool:
    """Whether a parameter of this type can be this value; True where nothing is known of it."""
    known = DTYPES.get(dtype)
    if known is None or known.kind not in (Kind.SIGNED, Kind.UNSIGNED):
        return True
    # Integers of a plan are signed words of 64 bits: the upper half of uint64 cannot be written.
    return fits(value, known.bytes, is_signed=known.kind is Kind.SIGNED)
