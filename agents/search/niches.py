# SPDX-License-Identifier: Apache-2.0
"""Where a candidate stands among all that could be: its niche, from its source and its profile.

Three axes of four levels each (KernelFoundry): how it uses memory, how far its algorithm was
reshaped, and how its workers act together; then what bounds it and, for sparse problems, how rows
are given to workers. A pure, versioned function: a niche is recorded with the version that found
it. It is told by patterns in the text, execution plays no part; it orders a search and nothing
rests on its being right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from ...kernelbench.languages import language_of

VERSION = 1

LEVELS = 4


class Bottleneck(StrEnum):
    """What a candidate seems to wait for."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"
    UNKNOWN = "unknown"


class Niche(NamedTuple):
    """One cell."""

    memory: int
    """0 plain, 1 vectorised or aligned, 2 tiles kept close, 3 tiles and copies started ahead."""
    algorithm: int
    """0 plain passes, 1 fused, 2 one pass or packed reductions, 3 restructured in blocks."""
    coordination: int
    """0 workers alone, 1 barriers or a parallel loop, 2 warps or scheduling, 3 several levels."""
    bound: Bottleneck
    work: str = ""
    """Of sparse problems: `thread`, `warp`, `block`, `nnz` or `rows`."""

    @property
    def name(self) -> str:
        """One word for records: `m2 a1 c0 memory nnz`."""
        head = f"m{self.memory} a{self.algorithm} c{self.coordination} {self.bound}"
        return f"{head} {self.work}".rstrip()


_DEVICE = {
    "memory": (
        r"float4|float2|int4|__ldg|__align__|reinterpret_cast<[^>]*4",
        r"__shared__|\btl\.dot\b|tl\.static_range|tl\.make_block_ptr",
        r"cp\.async|__pipeline|memcpy_async|cuda::pipeline|num_stages\s*=\s*[2-9]",
    ),
    "algorithm": (
        r"__expf|__fdividef|\bfma\w*\(|tl\.fma",
        r"__shfl|tl\.(sum|max|reduce|associative_scan)|online|welford",
        r"wmma|mma\.sync|tl\.dot|for\s*\([^;]*\btile|BLOCK_K",
    ),
    "coordination": (
        r"__syncthreads|tl\.debug_barrier|tl\.program_id",
        r"__shfl|__syncwarp|__ballot|warp|num_warps",
        r"cooperative_groups|cluster|atomic|tl\.atomic",
    ),
}
_HOST = {
    "memory": (
        r"#pragma omp simd|vector_size|_mm\d*_|__restrict|aligned|vectori[sz]",
        r"\b(tile|block|pack|panel)\w*\b|alignas|local\w*\[",
        r"prefetch|stream_",
    ),
    "algorithm": (
        r"\bfma\w*\(|fused?|unroll",
        r"acc\w*\[|accumulat|online|welford|reduction\(",
        r"for\s*\([^;]*\b(tile|block|kk|jj|ii)\w*\s*=",
    ),
    "coordination": (
        r"omp parallel|std::thread",
        r"schedule\(|omp for|chunk",
        r"omp task|atomic|lower_bound|upper_bound|omp_get_thread_num",
    ),
}
_WORK = (
    ("nnz", r"nnz|lower_bound|upper_bound|merge.?path|balanced"),
    ("warp", r"warp.{0,24}row|row.{0,24}warp|lane"),
    ("block", r"row\s*=\s*(blockIdx|tl\.program_id)|block.{0,16}per.{0,4}row"),
    ("thread", r"row\s*=\s*blockIdx\.x\s*\*\s*blockDim"),
)
_SPARSE = re.compile(r"\bindptr\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|(?<!\w)#(?!\s*pragma)[^\n]*", re.S)

BUSY = 0.6
"""Share of a peak from which it is what a kernel waits for (KernelAgent)."""


def niche(source: str, language: str, figures: Mapping[str, float]) -> Niche:
    """The cell of a source with these figures of its profile; none: what bounds it is unknown."""
    code = _COMMENT.sub("", source)
    axes = _DEVICE if language_of(language).is_for_gpu else _HOST
    memory, algorithm, coordination = (_level(code, patterns) for patterns in axes.values())
    work = ""
    if _SPARSE.search(code):
        work = next((name for name, pattern in _WORK if re.search(pattern, code)), "rows")
    return Niche(memory, algorithm, coordination, bound_of(figures), work)


def bound_of(figures: Mapping[str, float]) -> Bottleneck:
    """What the figures say that a candidate waits for, by whichever of them are known."""
    memory = figures.get("dram__throughput.avg.pct_of_peak_sustained_elapsed")
    compute = figures.get("sm__throughput.avg.pct_of_peak_sustained_elapsed")
    if memory is not None and compute is not None:
        if max(memory, compute) < 100 * BUSY:
            return Bottleneck.LATENCY
        return Bottleneck.MEMORY if memory >= compute else Bottleneck.COMPUTE
    terms = {name: us for name in figures if (us := figures[name]) and _TERM.fullmatch(name)}
    if terms:
        # What is not memory and not waiting is a unit that computes.
        largest = max(terms, key=lambda name: terms[name])
        return _TERMS.get(largest, Bottleneck.COMPUTE)
    return _on_host(figures)


_TERM = re.compile(r"model_\w+_us")
_TERMS = {
    "model_memory_us": Bottleneck.MEMORY,
    "model_l2_us": Bottleneck.MEMORY,
    "model_latency_us": Bottleneck.LATENCY,
}
"""The terms of a modelled time (`verifier/profile/model.py`)."""


def _on_host(figures: Mapping[str, float]) -> Bottleneck:
    """Idle cores and poor balance wait; scalar loops compute; vector loops wait for memory."""
    if "latency_us" not in figures:
        return Bottleneck.UNKNOWN
    if figures.get("cpu_utilisation", 1.0) < BUSY:
        return Bottleneck.LATENCY
    if figures.get("vectorised_loops", 1.0) < 1:
        return Bottleneck.COMPUTE
    return Bottleneck.MEMORY


def _level(code: str, patterns: tuple[str, ...]) -> int:
    """The highest level whose pattern stands in the code."""
    found = [n for n, pattern in enumerate(patterns, 1) if re.search(pattern, code, re.I)]
    return max(found, default=0)


def neighbours(cell: Niche) -> tuple[Niche, ...]:
    """The cells one level away on one of the three axes."""
    memory, algorithm, coordination, bound, work = cell
    steps = ((-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1))
    levels = [(memory + m, algorithm + a, coordination + c) for m, a, c in steps]
    inside = [each for each in levels if all(0 <= level < LEVELS for level in each)]
    return tuple(Niche(*each, bound, work) for each in inside)


def parse(name: str) -> Niche:
    """The cell of a recorded name."""
    memory, algorithm, coordination, bound, *work = name.split()
    return Niche(
        int(memory[1:]),
        int(algorithm[1:]),
        int(coordination[1:]),
        Bottleneck(bound),
        work[0] if work else "",
    )
