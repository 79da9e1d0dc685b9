# SPDX-License-Identifier: Apache-2.0
"""What binds a C++ kernel where it computes: its hot loop, by ports and by its chain of answers.

No run tells which loop is hot: it is the innermost one with the most arithmetic a pass, deeper
ones before others. Its cycles are those of the busiest of a few ports of a usual x86-64 core; where
llvm-mca is installed, what it says of this processor if that is less (LLVM 14 lets Zen 3 do one
fused multiply-add a cycle, which does two). It alone follows dependences from pass to pass. Memory
is taken to answer from L1: a loop that waits for it takes longer than this. Gathers are always the
table's: LLVM lets several processors answer one as if it were a single load.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...sandbox.builders.model import Built
from ...sandbox.builders.native_listing import list_code, simulate_loops
from ...sandbox.builders.workshop import Workshop
from ...traces.records import Level, Metric
from .x86 import Kind, Loop, find_loops

TOLD = 3
"""Loops that are simulated and told at most."""
CHAINED = 1.3
"""Cycles of a pass over those of its ports from which its chain of answers is what binds."""
LINES = 4
GATHERS = str(Kind.GATHER)
_DEEP, _A_LEVEL = 3, 4.0
"""Levels of depth that count, and how often each is taken to run."""
_ISSUE, _LOADS, _STORES, _VECTOR, _SHUFFLES = 5.0, 2.0, 1.0, 2.0, 1.0
"""A cycle of a usual core with AVX2 (Agner Fog, Instruction tables; uops.info): Skylake issues four
and Zen 3 six, both load two and store one vector and do two vector operations, one of them a
shuffle."""
_DIVIDE, _GATHERED_LANE = 5.0, 0.625
"""Cycles of a vector of divisions, and of one lane of a gather (Skylake; Zen takes longer)."""
_PEAK_PIPES = 2
"""Fused multiply-adds of whole vectors in a cycle, to which the measured peak belongs."""
_REGION = re.compile(r"^\[\d+\] Code Region - (\d+)$", re.M)
_TOTAL = re.compile(r"^Iterations:\s+(\d+)\n(?:.*\n)*?Total Cycles:\s+(\d+)", re.M)
_PORTS = re.compile(r"^Block RThroughput:\s+([\d.]+)", re.M)


@dataclass(frozen=True)
class Timed:
    """A loop and the cycles of one pass."""

    loop: Loop
    ports: float
    """What its busiest port takes."""
    chain: float | None
    """A pass with its dependences, no less than the ports; None: nobody followed them."""
    busiest: str
    """The kind of instruction that keeps that port busy, by the table."""

    @property
    def cycles(self) -> float:
        """Of a pass whose data is in L1."""
        return max(self.ports, self.chain or 0.0)

    @property
    def is_chained(self) -> bool:
        """Whether answers are waited for, and not ports."""
        return self.chain is not None and self.chain >= CHAINED * self.ports

    @property
    def bound(self) -> str:
        """In words."""
        return "the chain of its answers" if self.is_chained else self.busiest


def look(workshop: Workshop, built: Built) -> list[Timed]:
    """The loops of a candidate that matter, the hottest first; none where nothing can be read.

    Raises:
        PrerequisiteError: there is no objdump here.
        SandboxError, StorageError: the jail or the cache failed.
    """
    loops = sorted(find_loops(list_code(workshop, built)), key=_weigh, reverse=True)
    loops = [loop for loop in _drop_copies(loops) if _weigh(loop) > 0][:TOLD]
    words = tuple(_word_body(loop, f"kw_{number}") for number, loop in enumerate(loops))
    simulated = simulate_loops(workshop, words) or ""
    told = _parse(simulated)
    return [
        _time(loop, told[number] if number < len(told) else None)
        for number, loop in enumerate(loops)
    ]


def metrics_of(timed: Timed, *, flops: float, peak_gflops: float | None) -> list[Metric]:
    """The figures of the hottest loop.

    Args:
        flops: Of a call.
        peak_gflops: What the CPUs were measured to do in float32; None: unknown.
    """
    loop = timed.loop
    counted = {
        "hot_instructions": loop.work,
        "hot_flops": loop.flops,
        "hot_vector_bytes": loop.vector_bytes,
        "hot_loads": loop.loads,
        "hot_stores": loop.stores,
        "hot_gathers": loop.count(Kind.GATHER),
        "hot_shuffles": loop.count(Kind.SHUFFLE),
        "hot_divisions": loop.count(Kind.DIVIDE),
        "hot_spills": loop.spills,
    }
    found = [Metric(name=name, value=float(value)) for name, value in counted.items()]
    cycles = {"hot_port_cycles": timed.ports, "hot_chain_cycles": timed.chain}
    found += [
        Metric(name=name, value=value, unit="cycles", level=Level.MODELLED)
        for name, value in cycles.items()
        if value is not None
    ]
    if loop.flops and flops and peak_gflops and loop.vector_bytes:
        # The peak is that of two pipes of whole vectors: a cycle of it is worth so many flops.
        share = loop.flops / timed.cycles / (2 * _PEAK_PIPES * loop.vector_bytes / 4)
        bound_us = flops / (peak_gflops * share) / 1e3
        found.append(Metric(name="hot_loop_us", value=bound_us, unit="µs", level=Level.MODELLED))
    return found


def remarks_of(every: Sequence[Timed]) -> list[str]:
    """A sentence for each loop."""
    return [_sentence(timed, is_first=number == 0) for number, timed in enumerate(every)]


def _sentence(timed: Timed, *, is_first: bool) -> str:
    loop = timed.loop
    kinds = Counter(each.kind for each in loop.body)
    mix = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common() if kind is not Kind.IDLE)
    lines = Counter(each.line for each in loop.body if each.line)
    places = ", ".join(str(line) for line, _ in sorted(lines.most_common(LINES)))
    where = f"lines {places}" if places else loop.function
    width = f", vectors of {loop.vector_bytes} bytes" if loop.vector_bytes else ", no vectors"
    chain = "" if timed.chain is None else f", {timed.chain:.3g} with its dependences (llvm-mca)"
    by = " by a table of usual ports" if timed.chain is None else ""
    spills = f"; {loop.spills} of its accesses go to the stack" if loop.spills else ""
    what = "hot loop" if is_first else "another loop"
    cycles = f"{timed.ports:.3g} cycles by its ports{by}{chain}"
    return f"{what} at {where}: {mix} a pass{width}; {cycles}: bound by {timed.bound}{spills}"


def _weigh(loop: Loop) -> float:
    products = loop.count(Kind.PRODUCT) * max(loop.vector_bytes, 4)
    work = loop.flops + products or (loop.vector_bytes and loop.loads + loop.stores)
    return float(work) * _A_LEVEL ** min(loop.depth, _DEEP)


def _drop_copies(loops: Sequence[Loop]) -> list[Loop]:
    """Without those whose lines and kinds a hotter one has: compilers write a loop for whole
    vectors, then for what is left, and for each combination of flags."""
    found: dict[frozenset[int], Loop] = {}
    for loop in loops:
        lines = frozenset(each.line for each in loop.body if each.flops or each.has_memory)
        found.setdefault(lines - {0} or frozenset({loop.body[0].address}), loop)
    return list(found.values())


def _time(loop: Loop, simulated: tuple[float, float] | None) -> Timed:
    by_kind = _busy(loop)
    busiest = max(by_kind, key=lambda kind: by_kind[kind])
    if simulated is None:
        return Timed(loop, by_kind[busiest], None, busiest)
    by_mca, whole = simulated
    ports = max(min(by_mca, by_kind[busiest]), by_kind[GATHERS])
    return Timed(loop, ports, max(ports, whole) if whole >= CHAINED * by_mca else ports, busiest)


def _busy(loop: Loop) -> dict[str, float]:
    """Cycles of a pass that each part of a usual core takes."""
    lanes = sum(i.vector_bytes // 4 for i in loop.body if i.kind is Kind.GATHER)
    vector = (Kind.FMA, Kind.ARITHMETIC, Kind.PRODUCT, Kind.CONVERT, Kind.LOGIC, Kind.SHUFFLE)
    return {
        "issuing instructions": loop.work / _ISSUE,
        "loads": (loop.loads + lanes) / _LOADS,
        GATHERS: lanes * _GATHERED_LANE,
        "stores": loop.stores / _STORES,
        "vector arithmetic": loop.count(*vector) / _VECTOR,
        "shuffles": loop.count(Kind.SHUFFLE) / _SHUFFLES,
        "divisions and roots": loop.count(Kind.DIVIDE) * _DIVIDE,
    }


def _word_body(loop: Loop, label: str) -> str:
    """The loop for an assembler: jumps lead to one label, and calls are left out."""
    lines = [f"{label}:"]
    for each in loop.body:
        if each.kind is Kind.CALL or each.name.startswith(("nop", "data16", "cs", "endbr")):
            continue
        lines.append(f"{each.name} {each.operands if each.target is None else label}")
    return "\n".join(lines)


def _parse(text: str) -> list[tuple[float, float]]:
    """Of each region: cycles by ports, and of a whole pass."""
    parts = _REGION.split(text)[2::2]
    found = []
    for part in parts:
        total, ports = _TOTAL.search(part), _PORTS.search(part)
        if total is None or ports is None:
            return []
        found.append((float(ports[1]), int(total[2]) / int(total[1])))
    return found
