# SPDX-License-Identifier: Apache-2.0
"""By which figures a rule for GPUs knows its bottleneck: counted, emulated, or read off the code.

A bottleneck shows in several figures, of which one is nearer to the hardware than the next: what
Nsight Compute counted, what an emulation counted by the hardware's rules, what the built code and
the model of time say. Of a bottleneck's signs the first one that is known decides alone, so that a
guess from the code does not outvote a counter that says no.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Figures = Mapping[str, float]

LOAD_BYTES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
STORE_BYTES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct"
LOAD_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
STORE_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
LOAD_TURNS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
STORE_TURNS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
LOCAL = "smsp__sass_inst_executed_op_local.sum"
EXECUTED = "smsp__inst_executed.sum"
ACTIVE_LANES = "smsp__thread_inst_executed_per_inst_executed.ratio"
ATOMIC_UNIT = "lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed"
BUSIEST_SM, MEAN_SM = "sm__cycles_active.max", "sm__cycles_active.avg"
WARPS_ACTIVE = "sm__warps_active.avg.pct_of_peak_sustained_active"
WAVES = "launch__waves_per_multiprocessor"
DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
ISSUE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
TENSOR_PIPE = "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active"
TIME_NS = "gpu__time_duration.sum"
WAITS_FOR_MEMORY = "stall:long_scoreboard"

WASTED = 0.6
"""Share of the bytes moved that were asked for, below which accesses are uncoalesced."""
CONFLICTED = 0.8
"""Share of the wavefronts of shared memory that could not be saved (those of wide accesses are
many without a conflict), below which bank conflicts are what is waited for."""
IDLE_WARPS = 0.3
"""Occupancy below which latency is not hidden by other warps."""
AT_ROOF = 0.85
BUSY = 0.6
"""Share of a peak below which neither memory nor arithmetic bounds a kernel (the guide's words for
its "Speed of Light" section)."""
ISSUING = 0.8
"""Share of the cycles in which a scheduler issues, from which fewer instructions are what helps."""
WARP = 32
SPILLED = 0.01
"""Of all instructions, those on local memory."""
UNEVEN = 1.5
"""Busiest multiprocessor, or warp, over the mean."""
PARTLY_FULL = 0.75
"""Of the waves' room, the blocks that there are: a last wave that is mostly empty."""
MANY_WAVES = 4.0
"""From here on a tail is small beside the rest."""
SAME_ADDRESS = 8.0
"""Lanes for each sector that their atomics touch: as many as it has words of 4 bytes."""
ATOMICS_MATTER = 0.05
"""Of all requests to global memory."""
ATOMIC_BUSY = 0.4
IDLE_TENSOR = 0.05
"""Of the tensor pipe's peak. Kernels without such an instruction are counted at up to 2 % of it on
an H200 (tests/verifier/profile/ncu)."""
LAUNCHING = 0.5
"""Of the time of a call, what is neither a kernel nor anything that one could make faster."""
WAITING = 0.3
"""Of the stalled warps, those that wait for one reason."""


class Sign(NamedTuple):
    """One way to know a bottleneck."""

    needs: tuple[str, ...]
    """Figures that must be known; they are what the advice rests on."""
    shows: Callable[[Figures], bool]


def find(signs: Sequence[Sign], figures: Figures) -> Sign | None:
    """The first sign whose figures are known, if it shows the bottleneck."""
    known = (sign for sign in signs if all(name in figures for name in sign.needs))
    first = next(known, None)
    return first if first is not None and first.shows(figures) else None


def below(name: str, limit: float) -> Sign:
    """That a figure is below a limit."""
    return Sign((name,), lambda figures: figures[name] < limit)


def above(name: str, limit: float) -> Sign:
    """That a figure is above a limit."""
    return Sign((name,), lambda figures: figures[name] > limit)


def over(name: str, of: str, limit: float) -> Sign:
    """That a figure is more than so much of another one, which is not zero."""
    return Sign((name, of), lambda figures: figures[name] > limit * figures[of] > 0)


def is_conflicted(conflicts: str, turns: str) -> Sign:
    """That conflicts took more than their share of the turns of shared memory."""
    return over(conflicts, turns, 1.0 - CONFLICTED)


def has_tail(name: str) -> Sign:
    """That the last of few waves is mostly empty."""

    def shows(figures: Figures) -> bool:
        waves = figures[name]
        whole = -(-waves // 1)
        return 1.0 < waves < MANY_WAVES and waves / whole < PARTLY_FULL

    return Sign((name,), shows)


def waits_for_memory(figures: Figures) -> bool:
    """Counted: nothing is busy, and warps stand before their loads."""
    busiest = max(figures[DRAM], figures[SM])
    return busiest < 100 * BUSY and figures[WAITS_FOR_MEMORY] > WAITING


def is_idle(warps: str, waves: str, full: float) -> Sign:
    """That few warps are resident, though more blocks wait for their turn."""

    def shows(figures: Figures) -> bool:
        # Where all blocks are resident at once, room for more of them is of no use.
        return figures[warps] < IDLE_WARPS * full and figures.get(waves, 1.0) >= 1.0

    return Sign((warps,), shows)
