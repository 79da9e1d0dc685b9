# SPDX-License-Identifier: Apache-2.0
"""Theoretical occupancy: how many blocks of a kernel one SM holds, what limits it, what helps.

    warps      = ceil(threads / 32), of AMD's CDNA / 64
    registers  : a warp takes them in units (NVIDIA's of 256); an SM has them in four parts
                 (NVIDIA's 65,536 in all), and a warp's all lie in one of them
    shared     : a block takes static + dynamic + reserved bytes, rounded up to the unit
    blocks     = min(max_blocks, max_warps // warps, by registers, by shared memory)
    occupancy  = blocks * warps / max_warps

The formula is that of NVIDIA's occupancy calculator with the carve-out at its maximum, which
it was compared with on 200,000 random cases. AMD's compiler tells the warps that registers allow,
which the tests compare; its compute units and SIMDs are SMs and parts here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ...kernelbench.targets import (
    MAX_THREADS_PER_BLOCK,
    WARP,
    Architecture,
)


class Term(StrEnum):
    """What may limit the blocks of an SM."""

    WARPS = "warps"
    BLOCKS = "blocks"
    REGISTERS = "registers"
    SHARED = "shared memory"


@dataclass(frozen=True)
class Demand:
    """What a block of a kernel takes."""

    threads: int
    registers: int
    """Per thread."""
    shared_bytes: int
    """Static and dynamic."""
    warp: int = WARP
    """Threads of a warp."""

    @property
    def warps(self) -> int:
        """Warps of a block, the last one perhaps not full."""
        return -(-self.threads // self.warp)


@dataclass(frozen=True)
class Occupancy:
    """What one SM holds of a kernel."""

    blocks: int
    """Resident blocks; 0 where not even one fits."""
    warps: int
    """Resident warps."""
    share: float
    """Of the warps that the SM could hold."""
    limits: dict[Term, int]
    """How many blocks each term would allow."""
    limiting: tuple[Term, ...]
    """The terms that allow no more than `blocks`."""
    next_step: str
    """What one more block would take, in words; empty where nothing would."""


def occupancy(demand: Demand, architecture: Architecture) -> Occupancy:
    """The occupancy of a kernel whose blocks take `demand`."""
    limits = _limits(demand, architecture)
    blocks = min(limits.values())
    warps = blocks * demand.warps
    return Occupancy(
        blocks=blocks,
        warps=warps,
        share=warps / architecture.max_warps,
        limits=limits,
        limiting=tuple(term for term, allowed in limits.items() if allowed == blocks),
        next_step=_next_step(demand, architecture, blocks),
    )


def _limits(demand: Demand, architecture: Architecture) -> dict[Term, int]:
    fits = 0 < demand.threads <= MAX_THREADS_PER_BLOCK
    return {
        Term.WARPS: architecture.max_warps // demand.warps if fits else 0,
        Term.BLOCKS: architecture.max_blocks,
        Term.REGISTERS: _by_registers(demand, architecture) if fits else 0,
        Term.SHARED: _by_shared(demand, architecture),
    }


def _by_registers(demand: Demand, architecture: Architecture) -> int:
    file = architecture.registers
    if demand.registers > file.most:
        return 0
    if demand.registers == 0:
        return architecture.max_blocks
    taken = _round_up(demand.registers * demand.warp, file.unit)
    if taken * _round_up(demand.warps, file.parts) > file.total:
        return 0
    return file.per_part // taken * file.parts // demand.warps


def _by_shared(demand: Demand, architecture: Architecture) -> int:
    if demand.shared_bytes > architecture.shared_per_block:
        return 0
    taken = _round_up(demand.shared_bytes + architecture.shared_reserved, architecture.shared_unit)
    return architecture.shared_per_sm // taken if taken else architecture.max_blocks


def _next_step(demand: Demand, architecture: Architecture, blocks: int) -> str:
    """The smallest change of each limiting term that gives more blocks, together."""
    limits = _limits(demand, architecture)
    if min(limits[Term.WARPS], limits[Term.BLOCKS]) <= blocks:
        return _of_shape(demand, architecture, blocks)
    changes = []
    if limits[Term.REGISTERS] <= blocks:
        fewer = _fewer_registers(demand, architecture, blocks)
        if not fewer:
            return ""
        changes.append(f"{fewer} instead of {demand.registers} registers")
    if limits[Term.SHARED] <= blocks:
        room = architecture.shared_per_sm // (blocks + 1)
        room -= room % architecture.shared_unit + architecture.shared_reserved
        room = min(room, architecture.shared_per_block)
        if room <= 0:
            return ""
        changes.append(f"{room} instead of {demand.shared_bytes} bytes of shared memory")
    return f"{' and '.join(changes)} would give {blocks + 1} blocks per SM" if changes else ""


def _of_shape(demand: Demand, architecture: Architecture, blocks: int) -> str:
    if blocks * demand.warps >= architecture.max_warps:
        return ""
    if blocks >= architecture.max_blocks:
        return f"larger blocks: an SM holds {architecture.max_blocks} blocks at most"
    left = architecture.max_warps - blocks * demand.warps
    return f"blocks of another size: {left} warps per SM are left over"


def _fewer_registers(demand: Demand, architecture: Architecture, blocks: int) -> int:
    """The most registers that would allow another block; 0 where none would."""
    step = architecture.registers.unit // architecture.warp
    start = (demand.registers - 1) // step * step
    for registers in range(start, 15, -step):
        fewer = Demand(demand.threads, registers, demand.shared_bytes, demand.warp)
        if _by_registers(fewer, architecture) > blocks:
            return registers
    return 0


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
