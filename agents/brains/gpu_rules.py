# SPDX-License-Identifier: Apache-2.0
"""The offline Judge's rules for candidates on GPUs, over static and emulated metrics.

They stand in the order in which a cause hides the next: a product that leaves tensor cores unused
is written anew; then comes what spills, what the memory system wastes, and what leaves the device
idle. Figures are those of `verifier/profile`; a rule whose figures are missing does not speak.
"""

from __future__ import annotations

from ..prompting.evidence import Evidence, Rule, RuleFinding

WASTED = 0.6
"""Share of the bytes moved that were asked for, below which accesses are uncoalesced."""
CONFLICTED = 0.8
"""Share of the wavefronts of shared memory that could not be saved (those of wide accesses are
many without a conflict), below which bank conflicts are what is waited for."""
IDLE_WARPS = 0.3
"""Occupancy below which latency is not hidden by other warps."""
AT_ROOF = 0.85
WAVE_SHARE = 1.0
"""Blocks per multiprocessor below which some have nothing to do."""
SMS = 100
"""Multiprocessors of a large device, where the profile does not say."""
NARROW_BYTES = 4.0
PER_THREAD = ("thread_m", "thread_n", "items")
"""Knobs of recipes that say how much a thread holds in registers."""
LIMITS = ("limit_registers", "limit_shared", "limit_warps", "limit_blocks")


def _leave_tensor_cores_unused(evidence: Evidence) -> RuleFinding | None:
    if not evidence.is_above("unused_tensor_peak", 1.0):
        return None
    better = evidence.family_with("mma")
    return RuleFinding(
        "tensor cores unused",
        "Multiply on tensor cores in the type that the precision allows, with float32 or int32 "
        "sums: fragments of nvcuda::wmma or mma.sync, tl.dot in Triton.",
        evidence.cite("unused_tensor_peak", "tensor_share", "modelled_us", "roofline_share"),
        {"family": better} if better else {},
    )


def _spills(evidence: Evidence) -> RuleFinding | None:
    if not evidence.is_above("spill_stores", 0) and not evidence.is_above("spill_loads", 0):
        return None
    return RuleFinding(
        "register spills",
        "Keep fewer values alive per thread: a smaller register tile, less unrolling, or more "
        "registers per thread by __launch_bounds__.",
        evidence.cite("spill_stores", "spill_loads", "registers"),
        evidence.list_smaller("unroll", "tile_m", "tile_n", *PER_THREAD, "vector", "coarsen"),
    )


def _bank_conflicts(evidence: Evidence) -> RuleFinding | None:
    names = ("shared_load_efficiency", "shared_store_efficiency")
    if not any(evidence.is_below(name, CONFLICTED) for name in names):
        return None
    return RuleFinding(
        "shared-memory bank conflicts",
        "Pad each row of the shared tile by one word, or swizzle it, so that the threads of a warp "
        "fall on different banks." + _worst_line(evidence, "wavefronts per shared"),
        evidence.cite(*names, "shared_load_bank_conflicts", "shared_store_bank_conflicts"),
        evidence.list_others("pad", "padding", "swizzle"),
    )


def _find_uncoalesced(evidence: Evidence) -> RuleFinding | None:
    for kind in ("load", "store"):
        if evidence.is_below(f"global_{kind}_efficiency", WASTED):
            hints = evidence.list_larger("vector", "width")
            better = evidence.family_with("crc")
            if better and kind == "load":
                hints["family"] = better
            return RuleFinding(
                f"uncoalesced global {kind}s",
                f"Let neighbouring threads of a warp {kind} neighbouring addresses; where that "
                "cannot be, stage a tile through shared memory."
                + _worst_line(evidence, "sectors per request"),
                evidence.cite(f"global_{kind}_efficiency", f"global_{kind}_sectors_per_request"),
                hints,
            )
    return None


def _too_few_blocks(evidence: Evidence) -> RuleFinding | None:
    if not evidence.is_below("grid_blocks", SMS * WAVE_SHARE):
        return None
    return RuleFinding(
        "too few blocks",
        "Split the work further: smaller tiles, or split the reduction over several blocks.",
        evidence.cite("grid_blocks", "blocks_per_sm"),
        evidence.list_smaller("rows", "rows_per_block", "tile_m", "tile_n", "block"),
    )


def _low_occupancy(evidence: Evidence) -> RuleFinding | None:
    if not evidence.is_below("occupancy", IDLE_WARPS) or evidence.is_below("waves", 1):
        return None  # where all blocks are resident at once, room for more of them is of no use
    limits = {name: evidence.figures[name] for name in LIMITS if name in evidence.figures}
    tightest = min(limits, key=lambda name: limits[name], default="").removeprefix("limit_")
    by = f", which {tightest} limit" if tightest else ""
    return RuleFinding(
        "low occupancy",
        f"Have more warps resident{by}: fewer registers or less shared memory per block.",
        evidence.cite("occupancy", "registers", "shared_bytes", *LIMITS),
        evidence.list_smaller("unroll", "tile_m", "tile_n", *PER_THREAD, "stages", "num_stages"),
    )


def _at_roof(evidence: Evidence) -> RuleFinding | None:
    if not evidence.is_above("roofline_share", AT_ROOF):
        return None
    return RuleFinding(
        "at the modelled roofline",
        "By the model only fewer bytes can help: fuse, or keep reused data on chip.",
        evidence.cite("roofline_share", "modelled_us"),
        {},
    )


def _narrow_loads(evidence: Evidence) -> RuleFinding | None:
    if "load_bytes" not in evidence.figures or evidence.is_above("load_bytes", NARROW_BYTES):
        return None
    return RuleFinding(
        "narrow loads",
        "Load two or four values at once (float4) where addresses are aligned, with a scalar tail.",
        evidence.cite("load_bytes", "modelled_us"),
        evidence.list_larger("vector", "width", "columns"),
    )


def _neighbours(evidence: Evidence) -> RuleFinding:
    return RuleFinding(
        "no single cause by the model",
        "Move one knob to a neighbouring value.",
        evidence.cite("modelled_us", "roofline_share", "occupancy"),
        evidence.list_neighbours(),
    )


def _worst_line(evidence: Evidence, words: str) -> str:
    """The worst line that the emulation saw, if there is one."""
    profile = evidence.member.verdict.profile
    lines = [r for r in profile.remarks if words in r] if profile else []
    return f" Worst: {lines[0]}." if lines else ""


RULES: tuple[Rule, ...] = (
    _leave_tensor_cores_unused,
    _spills,
    _bank_conflicts,
    _find_uncoalesced,
    _too_few_blocks,
    _low_occupancy,
    _at_roof,
    _narrow_loads,
    _neighbours,
)
