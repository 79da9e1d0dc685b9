# SPDX-License-Identifier: Apache-2.0
"""The offline Judge's decision table for candidates on GPUs: one bottleneck and one change each.

The rules stand in the order in which a cause hides the next: a launch whose warps are not even full
is mended first, a product that leaves tensor cores unused is written anew, then comes what spills,
what the memory system wastes, and what leaves the device idle. Each names the page it is from; by
which figures it knows its bottleneck stands in `gpu_signs.py`. A rule whose figures are missing
does not speak.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..prompting.evidence import Evidence, Hints, Rule, RuleFinding
from . import gpu_signs as signs
from .gpu_signs import Sign, above, below

SMS = 100
"""Multiprocessors of a large device, where the profile does not say."""
NARROW_BYTES = 4.0
PER_THREAD = ("thread_m", "thread_n", "items")
"""Knobs of recipes that say how much a thread holds in registers."""
LIMITS = ("limit_registers", "limit_shared", "limit_warps", "limit_blocks")
_SIZES = ("block", "threads", "rows", "rows_per_block", "tile_m", "tile_n")

NCU = "Nsight Compute, Kernel Profiling Guide"
BEST = "CUDA C++ Best Practices Guide"
PROGRAMMING = "CUDA C++ Programming Guide"


def _no_hints(_evidence: Evidence) -> Hints:
    return {}


@dataclass(frozen=True)
class HardwareRule:
    """A row of the table: how a bottleneck shows, and the one change that it asks for."""

    bottleneck: str
    change: str
    source: str
    """The page that the rule is from."""
    signs: tuple[Sign, ...]
    """Nearest to the hardware first; see `gpu_signs.find`."""
    cites: tuple[str, ...] = ()
    """What is told besides, where it is known."""
    hints: Callable[[Evidence], Hints] = _no_hints
    worst: str = ""
    """Words of the emulation's remark on the worst line."""

    def __call__(self, evidence: Evidence) -> RuleFinding | None:
        """What it finds, with the figures it rests on; None: it does not apply."""
        sign = signs.find(self.signs, evidence.figures)
        if sign is None:
            return None
        change = self.change + _causes(self, evidence) + _worst_line(evidence, self.worst)
        rests_on = evidence.cite(*dict.fromkeys((*sign.needs, *self.cites)))
        return RuleFinding(self.bottleneck, change, rests_on, self.hints(evidence))


def _smaller_tiles(evidence: Evidence) -> Hints:
    return evidence.list_smaller("unroll", "tile_m", "tile_n", *PER_THREAD, "vector", "coarsen")


def _wider_or_staged(evidence: Evidence) -> Hints:
    better = evidence.family_with("crc")
    return evidence.list_larger("vector", "width") | ({"family": better} if better else {})


def _on_tensor_cores(evidence: Evidence) -> Hints:
    better = evidence.family_with("mma")
    return {"family": better} if better else {}


def _smaller_blocks(evidence: Evidence) -> Hints:
    return evidence.list_smaller("unroll", "tile_m", "tile_n", *PER_THREAD, "stages", "num_stages")


def _by_non_zeros(evidence: Evidence) -> Hints:
    better = evidence.family_with("nnz")
    return {"family": better} if better else evidence.list_smaller("rows", "rows_per_block")


def _causes(rule: HardwareRule, evidence: Evidence) -> str:
    """Of few resident warps, which resource keeps more blocks out."""
    if rule.bottleneck != LOW_OCCUPANCY:
        return ""
    limits = {name: evidence.figures[name] for name in LIMITS if name in evidence.figures}
    tightest = min(limits, key=lambda name: limits[name], default="").removeprefix("limit_")
    return f" What binds: {tightest} limit it." if tightest else ""


def _worst_line(evidence: Evidence, words: str) -> str:
    """The worst line that the emulation saw, if there is one."""
    profile = evidence.member.verdict.profile
    lines = [r for r in profile.remarks if words in r] if profile and words else []
    return f" Worst: {lines[0]}." if lines else ""


def _neighbours(evidence: Evidence) -> RuleFinding:
    return RuleFinding(
        "no single cause by the model",
        "Move one knob to a neighbouring value.",
        evidence.cite("modelled_us", "roofline_share", "occupancy", signs.DRAM, signs.SM),
        evidence.list_neighbours(),
    )


LOW_OCCUPANCY = "low occupancy"

TABLE: tuple[HardwareRule, ...] = (
    HardwareRule(
        "blocks smaller than a warp",
        "Give each block whole warps, 128 to 256 threads: a block of fewer than 32 threads leaves "
        "the other lanes of its warp idle.",
        f"{BEST}, Thread and Block Heuristics",
        (below("block_threads", signs.WARP),),
        ("grid_blocks", signs.ACTIVE_LANES, "modelled_us"),
        lambda evidence: evidence.list_larger("block", "threads"),
    ),
    HardwareRule(
        "tensor cores unused",
        "Multiply on tensor cores in the type that the precision allows, with float32 or int32 "
        "sums: fragments of nvcuda::wmma or mma.sync, tl.dot in Triton.",
        f"{PROGRAMMING}, Warp Matrix Functions",
        (
            Sign(
                (signs.TENSOR_PIPE, "unused_tensor_peak"),
                lambda figures: (
                    figures[signs.TENSOR_PIPE] < 100 * signs.IDLE_TENSOR
                    and figures["unused_tensor_peak"] > 1.0
                ),
            ),
            above("unused_tensor_peak", 1.0),
        ),
        ("tensor_share", "modelled_us", "roofline_share"),
        _on_tensor_cores,
    ),
    HardwareRule(
        "register spills",
        "Keep fewer values alive per thread: a smaller register tile, less unrolling, or more "
        "registers per thread by __launch_bounds__.",
        f"{BEST}, Register Pressure",
        (
            signs.over(signs.LOCAL, signs.EXECUTED, signs.SPILLED),
            Sign(
                ("spill_stores", "spill_loads"),
                lambda figures: max(figures["spill_stores"], figures["spill_loads"]) > 0,
            ),
            above("spill_stores", 0),
        ),
        ("spill_stores", "spill_loads", "registers"),
        _smaller_tiles,
    ),
    *(
        HardwareRule(
            "shared-memory bank conflicts",
            "Pad each row of the shared tile by one word, or swizzle it, so that the threads of a "
            "warp fall on different banks.",
            f"{BEST}, Shared Memory and Memory Banks",
            (
                signs.is_conflicted(conflicts, turns),
                below(f"shared_{kind}_efficiency", signs.CONFLICTED),
            ),
            (f"shared_{kind}_bank_conflicts",),
            lambda evidence: evidence.list_others("pad", "padding", "swizzle"),
            "wavefronts per shared",
        )
        for kind, conflicts, turns in (
            ("load", signs.LOAD_CONFLICTS, signs.LOAD_TURNS),
            ("store", signs.STORE_CONFLICTS, signs.STORE_TURNS),
        )
    ),
    *(
        HardwareRule(
            f"uncoalesced global {kind}s",
            f"Let neighbouring threads of a warp {kind} neighbouring addresses; where that cannot "
            "be, stage a tile through shared memory.",
            f"{BEST}, Coalesced Access to Global Memory",
            (
                below(counted, 100 * signs.WASTED),
                below(f"global_{kind}_efficiency", signs.WASTED),
            ),
            (f"global_{kind}_sectors_per_request",),
            hints,
            "sectors per request",
        )
        for kind, counted, hints in (
            ("load", signs.LOAD_BYTES, _wider_or_staged),
            (
                "store",
                signs.STORE_BYTES,
                lambda evidence: evidence.list_larger("vector", "width"),
            ),
        )
    ),
    HardwareRule(
        "contended atomics",
        "Sum within the warp or the block first (shuffles, shared memory), and let one thread add "
        "the sum: atomics on one address are done one after the other.",
        f"{PROGRAMMING}, Atomic Functions; {NCU}, L2 Cache",
        (
            above(signs.ATOMIC_UNIT, 100 * signs.ATOMIC_BUSY),
            Sign(
                ("atomic_lanes_per_sector", "atomic_share"),
                lambda figures: (
                    figures["atomic_lanes_per_sector"] > signs.SAME_ADDRESS
                    and figures["atomic_share"] > signs.ATOMICS_MATTER
                ),
            ),
        ),
        ("atomics",),
        lambda evidence: evidence.list_others("reduce", "atomic", "pieces"),
    ),
    HardwareRule(
        "launches, not kernels",
        "Most of a call goes into launching: fuse its kernels into one, or do more work in each "
        "launch.",
        f"{PROGRAMMING}, CUDA Graphs",
        (
            Sign(
                (signs.TIME_NS, "latency_us"),
                lambda figures: (
                    figures[signs.TIME_NS] / 1e3 < (1 - signs.LAUNCHING) * figures["latency_us"]
                ),
            ),
            Sign(
                ("launching_us", "modelled_us", "launches"),
                lambda figures: (
                    figures["launches"] > 1
                    and figures["launching_us"] > signs.LAUNCHING * figures["modelled_us"]
                ),
            ),
        ),
        ("launches", "modelled_us"),
    ),
    HardwareRule(
        "too few blocks",
        "Split the work further: smaller tiles, or split the reduction over several blocks.",
        f"{BEST}, Thread and Block Heuristics",
        (below("grid_blocks", SMS),),
        ("grid_blocks", "blocks_per_sm"),
        lambda evidence: evidence.list_smaller(*_SIZES[2:], "block"),
    ),
    HardwareRule(
        "load imbalance",
        "Some finish long before others: share the work out by its amount (equal numbers of "
        "non-zeros), or in smaller pieces that are taken as multiprocessors become free.",
        f"{NCU}, GPU and Memory Workload Distribution; Merrill and Garland 2016 (merge-based SpMV)",
        (
            signs.over(signs.BUSIEST_SM, signs.MEAN_SM, signs.UNEVEN),
            above("warp_imbalance", 2 * signs.UNEVEN),
        ),
        ("grid_blocks",),
        _by_non_zeros,
    ),
    HardwareRule(
        LOW_OCCUPANCY,
        "Have more warps resident: fewer registers or less shared memory per block.",
        f"{NCU}, Occupancy; {BEST}, Calculating Occupancy",
        (
            signs.is_idle(signs.WARPS_ACTIVE, signs.WAVES, 100.0),
            signs.is_idle("occupancy", "waves", 1.0),
        ),
        ("registers", "shared_bytes", *LIMITS),
        _smaller_blocks,
    ),
    HardwareRule(
        "a last wave that is mostly empty",
        "Choose the size of blocks so that the grid fills the device a whole number of times, or "
        "start as many blocks as are resident at once and let each take several pieces.",
        f"{NCU}, Launch Statistics (waves)",
        (signs.has_tail(signs.WAVES), signs.has_tail("waves")),
        ("grid_blocks", "blocks_per_sm"),
        lambda evidence: evidence.list_others(*_SIZES),
    ),
    HardwareRule(
        "at the roofline of memory",
        "Only fewer bytes can help: fuse, or keep reused data on chip.",
        f"{NCU}, GPU Speed Of Light",
        (above(signs.DRAM, 100 * signs.AT_ROOF),),
        (signs.SM, "roofline_share"),
    ),
    HardwareRule(
        "at the modelled roofline",
        "By the model only fewer bytes can help: fuse, or keep reused data on chip.",
        "Roofline (Williams, Waterman and Patterson 2009)",
        (above("roofline_share", signs.AT_ROOF),),
        ("modelled_us",),
    ),
    HardwareRule(
        "instructions issued",
        "The schedulers issue in most cycles: do the same with fewer instructions. Load two or "
        "four values at once, take addresses out of loops, use fused multiply-adds.",
        f"{NCU}, Scheduler Statistics",
        (
            above(signs.ISSUE, 100 * signs.ISSUING),
            signs.over("model_issue_us", "modelled_us", signs.ISSUING),
        ),
        ("load_bytes", "integer_share"),
        lambda evidence: evidence.list_larger("vector", "width", "unroll"),
    ),
    HardwareRule(
        "narrow loads",
        "Load two or four values at once (float4) where addresses are aligned, with a scalar tail.",
        "CUDA Pro Tip: Increase Performance with Vectorized Memory Access (NVIDIA 2013)",
        (Sign(("load_bytes",), lambda figures: figures["load_bytes"] <= NARROW_BYTES),),
        ("modelled_us",),
        lambda evidence: evidence.list_larger("vector", "width", "columns"),
    ),
    HardwareRule(
        "waiting for memory",
        "Have more loads in flight: several independent ones in each thread before the first is "
        "used, prefetched or copied asynchronously ahead of the loop's turn.",
        f"{NCU}, Warp State Statistics (long scoreboard)",
        (
            Sign((signs.DRAM, signs.SM, signs.WAITS_FOR_MEMORY), signs.waits_for_memory),
            signs.over("model_latency_us", "modelled_us", signs.LAUNCHING),
        ),
        ("occupancy",),
        lambda evidence: (
            evidence.list_others("prefetch", "stages", "num_stages")
            | evidence.list_larger("unroll", "items")
        ),
    ),
)

RULES: tuple[Rule, ...] = (*TABLE, _neighbours)
