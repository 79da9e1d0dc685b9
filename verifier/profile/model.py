# SPDX-License-Identifier: Apache-2.0
"""A modelled time: what a launch would take, from its code and its shape. Never a measurement.

How often instructions execute, and what their accesses touch, an emulation counted (`executed`).
Where none did, one trip count T is taken for all of a candidate's loops, the least at which its
instructions do the problem's flops and move its compulsory bytes; of nested loops each gets its
part (depth d of D: T^(d/D)), and every branch counts as taken. For each launch then

    memory   compulsory bytes / min(0.92 · bandwidth, 64 B a cycle for each busy SM)
    l2       sectors that L1 does not answer · 32 B / (32 B a cycle and SM)
    issue    warp instructions / (4 a cycle and SM), by the fullest SM
    pipes    the same for each unit: fp32, integer, special functions, load/store, fp64, tensor
    latency  waves · (fixed + passes · what one pass of each loop waits for barriers and memory,
             once for all loads but for those that wait for others), or the same for the warp with
             the most work, whichever is longer
    time     (Σ term⁴)^¼ + 2.5 µs a launch

where waves = ⌈blocks / (SMs · resident blocks)⌉, so that low occupancy, few blocks and narrow loads
show as latency, spills and bank conflicts as load/store time. The fourth power lets the largest
term decide, and the others break ties. An access counts as coalesced unless an emulation counted
its sectors (`Access`, `Work`). Of caches only this is modelled: what is read again is free in
`memory`; in `l2` it is where the same block read it, and an emulation saw that.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...kernelbench.targets import WARP
from . import amd_code
from .chains import count_chained
from .classes import OpClass
from .executed import Work
from .mix import flops_of, kind_of, width_of
from .occupancy import Occupancy
from .rates import DeviceRates
from .sass import Instruction, Listing, SassLoop
from .tensor_cores import element_of, is_wide

LAUNCH_US = 2.5
"""From one launch to the next in a stream; 2 to 3 µs are usual."""
BANDWIDTH_SHARE = 0.92
"""Of the data sheet's bandwidth, what a large copy reaches."""
SECTOR = 32
_SM_BYTES, L2_BYTES, _SHARED_BYTES = 64.0, 32.0, 128.0
"""Bytes that an SM takes in a cycle from memory, from L2, from shared memory or L1."""
FIXED_CYCLES = 1000.0
"""To start a block, read its parameters and finish its last store."""
LOAD_CYCLES, L2_CYCLES, L1_CYCLES, _ASYNC_CYCLES = 600.0, 270.0, 40.0, 200.0
"""Waiting in one pass of a loop for memory, or for the cache that answers; copies that are started
ahead wait less."""
_ONCE = {OpClass.SHARED: 30.0, OpClass.LOCAL: 40.0}
_EACH = {
    OpClass.BARRIER: 20.0,
    OpClass.SYNC: 20.0,
    OpClass.WARP_SYNC: 2.0,
    OpClass.WARP: 25.0,
}
"""Once in a pass of a loop that has any, and for each one."""
_ISSUE = 4.0
_MOST_TRIPS = 1e9


class LineAccess(NamedTuple):
    """What an emulation counted on one source line, over what the same bytes would take at best.

    1 is side by side; below 1 lanes share sectors, as where all of them read one word.
    """

    loads: float = 1.0
    """Sectors of global memory that reads touch."""
    stores: float = 1.0
    """The same for writes and atomics."""
    shared_loads: float = 1.0
    """Wavefronts of shared memory."""
    shared_stores: float = 1.0


class UntoldProducts(NamedTuple):
    """What instructions of tensor cores do whose shape a descriptor has, and not the code."""

    element: str
    flops: float
    """Of all blocks; guessed of the problem."""


@dataclass(frozen=True)
class LaunchShape:
    """One launch as the model sees it."""

    blocks: int
    warps: int
    """In a block."""
    resident: Occupancy
    code: Listing | None
    """None: the code is not known, and only bytes count."""
    work: Work | None = None
    """What an emulation counted; None: nothing did, and the trip count tells how often loops go."""
    untold: UntoldProducts | None = None
    """Where it has instructions whose shape is not in the code."""
    warp: int = WARP
    """Threads of a warp."""

    @property
    def all_warps(self) -> int:
        """Of all blocks."""
        return self.blocks * self.warps

    @property
    def threads(self) -> float:
        """Of all blocks."""
        return float(self.all_warps * self.warp)


@dataclass(frozen=True)
class Estimate:
    """The modelled time of one launch and what it is made of, in µs."""

    terms: Mapping[str, float]
    launch_us: float = LAUNCH_US
    is_by_longest: bool = False
    """Whether the warp with the most work, not the waves of blocks, makes the latency."""

    def scale(self, scales: Mapping[str, float]) -> Estimate:
        """By factors that were fitted on a device (fit.py), by the names that metrics have."""
        terms = {term: us * scales.get(name_metric(term), 1.0) for term, us in self.terms.items()}
        launch_us = self.launch_us * scales.get("launching", 1.0)
        return replace(self, terms=terms, launch_us=launch_us)

    @property
    def work_us(self) -> float:
        """What the terms come to together."""
        return math.pow(sum(t**4 for t in self.terms.values()), 0.25)

    @property
    def total_us(self) -> float:
        """The whole time."""
        return self.work_us + self.launch_us

    @property
    def bound(self) -> str:
        """The largest term; `launch` where launching takes more."""
        name = max(self.terms, key=lambda term: self.terms[term], default="launch")
        return name if self.terms and self.terms[name] >= self.launch_us else "launch"


def name_metric(term: str) -> str:
    """What a term is called within the name of its metric: `load_store`."""
    return term.replace(" ", "_").replace("/", "_")


def trips(shapes: Sequence[LaunchShape], flops: float, moved: float) -> float:
    """The trip count at which the launches together do `flops` and move `moved` bytes."""
    return max(_solve(shapes, flops_of, flops), _solve(shapes, bytes_of, moved))


def requested_bytes(shape: LaunchShape, trip_count: float) -> float:
    """Bytes that all threads of a launch ask global memory for."""
    if shape.work is not None:
        return shape.work.requested
    return _Series.from_shapes([shape], bytes_of).at(trip_count)


def bytes_of(instruction: Instruction) -> float:
    """Bytes that a thread moves from or to global memory."""
    return float(width_of(instruction)) if _is_global(instruction) else 0.0


def estimate(
    shape: LaunchShape,
    machine: DeviceRates,
    *,
    trip_count: float,
    moved: float,
    accesses: Mapping[int, LineAccess],
) -> Estimate:
    """The modelled time of one launch.

    Args:
        moved: Bytes that it must exchange with memory.
        accesses: What an emulation counted, by source line.
    """
    device, hertz = machine.device, machine.hertz
    busy = min(shape.blocks, device.sms)
    bandwidth = min(device.memory_gbs * 1e9 * BANDWIDTH_SHARE, busy * _SM_BYTES * hertz)
    terms = {"memory": moved / bandwidth * 1e6}
    is_by_longest = False
    if shape.code is not None:
        # The SM that gets the most blocks decides.
        warps = math.ceil(shape.blocks / device.sms) * shape.warps
        for unit, cycles in _cycles(shape, machine, trip_count, accesses).items():
            terms[unit] = warps * cycles / hertz * 1e6
        if shape.untold is not None:
            rate = machine.tensor_flops(shape.untold.element, is_wide=True)
            spread = warps * device.sms / shape.all_warps
            theirs = shape.untold.flops * spread / rate * 1e6
            terms[OpClass.TENSOR] = terms.get(OpClass.TENSOR, 0.0) + theirs
        waiting = _waiting_cycles(shape, trip_count, _load_cycles(shape, moved))
        longest = waiting * (shape.work.longest if shape.work else 1.0)
        by_waves = waves(shape, device.sms) * (FIXED_CYCLES + waiting)
        is_by_longest = FIXED_CYCLES + longest > by_waves
        terms["latency"] = max(by_waves, FIXED_CYCLES + longest) / hertz * 1e6
    return Estimate(terms, is_by_longest=is_by_longest)


def waves(shape: LaunchShape, sms: int) -> int:
    """How often the grid fills the device, the last time perhaps in part."""
    return math.ceil(shape.blocks / (sms * max(shape.resident.blocks, 1)))


def turn_us(shape: LaunchShape, machine: DeviceRates) -> float:
    """What one turn of the load/store units costs, on the SM with the most blocks."""
    blocks = math.ceil(shape.blocks / machine.device.sms)
    return blocks / shape.blocks / machine.hertz * 1e6


def count_executed(shape: LaunchShape) -> Mapping[OpClass, float]:
    """Warp instructions of a launch by class; none where nothing counted them."""
    found: dict[OpClass, float] = defaultdict(float)
    if shape.work is not None and shape.code is not None:
        for instruction, _ in shape.code.counted:
            near = instruction.address in shape.work.near
            kind = OpClass.SHARED if near else kind_of(instruction)
            found[kind] += shape.work.executed[instruction.address]
    return found


def _cycles(
    shape: LaunchShape, machine: DeviceRates, trip_count: float, accesses: Mapping[int, LineAccess]
) -> dict[str, float]:
    """Cycles that one warp keeps each unit of its SM busy, in the mean of all warps."""
    code, work = shape.code, shape.work
    assert code is not None
    rates = machine.rates
    cycles: dict[str, float] = defaultdict(float)
    if work is not None:
        cycles["l2"] = work.from_l2 * SECTOR / L2_BYTES / shape.all_warps
        cycles["load/store"] = work.wavefronts / shape.all_warps
    for instruction, loop in code.counted:
        times = _executions(shape, instruction, loop, trip_count)
        kind = kind_of(instruction)
        cycles["issue"] += times / _ISSUE
        if kind in rates:
            cycles[kind] += times / rates[kind]
        elif kind is OpClass.TENSOR:
            rate = machine.tensor_flops(element_of(instruction), is_wide=is_wide(instruction))
            per_sm = rate / machine.device.sms / machine.hertz
            cycles[kind] += times * flops_of(instruction) * shape.warp / per_sm
        elif work is None or kind is OpClass.LOCAL:
            access = accesses.get(instruction.line, LineAccess())
            for unit, each in _access_cycles(instruction, kind, access, shape.warp).items():
                cycles[unit] += times * each
    return cycles


def _access_cycles(
    instruction: Instruction, kind: OpClass, access: LineAccess, warp: int
) -> dict[str, float]:
    whole = width_of(instruction) * warp
    if kind in (OpClass.SHARED, OpClass.LOCAL):
        wavefronts = max(1.0, whole / _SHARED_BYTES)
        if kind is OpClass.SHARED:
            is_store = instruction.opcode.startswith("ST")
            wavefronts *= access.shared_stores if is_store else access.shared_loads
        return {"load/store": max(1.0, wavefronts)}
    if not _is_global(instruction):
        return {}
    is_load = kind in (OpClass.LOAD, OpClass.ASYNC)
    touched = max(float(SECTOR), whole * (access.loads if is_load else access.stores))
    return {"l2": touched / L2_BYTES, "load/store": max(1.0, touched / _SHARED_BYTES)}


def _load_cycles(shape: LaunchShape, moved: float) -> Callable[[int], float]:
    """What a load waits in the mean, by its address: as often as sectors are new, for memory."""
    work = shape.work
    if work is None or not work.from_l2:
        return lambda _: LOAD_CYCLES
    new = min(1.0, moved / (work.from_l2 * SECTOR))
    beyond_l1 = new * LOAD_CYCLES + (1 - new) * L2_CYCLES

    def cycles(address: int) -> float:
        share = 0.0 if address in work.near else work.beyond_l1.get(address, 1.0)
        return share * beyond_l1 + (1 - share) * L1_CYCLES

    return cycles


def _waiting_cycles(
    shape: LaunchShape, trip_count: float, load_cycles: Callable[[int], float]
) -> float:
    """Cycles that one warp waits in its loops if nothing else holds it up, in the mean."""
    code = shape.code
    assert code is not None
    inside: dict[SassLoop, list[tuple[Instruction, float]]] = {loop: [] for loop in code.loops}
    for instruction, loop in code.counted:
        if loop is not None:
            times = _executions(shape, instruction, loop, trip_count)
            inside[loop].append((instruction, times))
    return sum(_wait(executed, load_cycles) for executed in inside.values() if executed)


def _wait(
    executed: Sequence[tuple[Instruction, float]], load_cycles: Callable[[int], float]
) -> float:
    """Cycles that all passes of a loop wait.

    Loads are under way together up to the first instruction that needs one of their registers.

    Args:
        executed: Its instructions, and how often a warp executes each.
    """
    times: dict[OpClass, list[float]] = defaultdict(list)
    for instruction, often in executed:
        kind = kind_of(instruction)
        times[OpClass.SHARED if _is_near(instruction) else kind].append(often)
    wait = sum(max(waits) for waits in _by_level(executed, load_cycles).values())
    if not wait and times[OpClass.ASYNC]:
        wait = _ASYNC_CYCLES * max(times[OpClass.ASYNC])
    wait += sum(cycles * max(times[kind], default=0.0) for kind, cycles in _ONCE.items())
    return wait + sum(cycles * sum(times[kind]) for kind, cycles in _EACH.items())


def _by_level(
    executed: Sequence[tuple[Instruction, float]], load_cycles: Callable[[int], float]
) -> dict[int, list[float]]:
    """What the loads wait, by how many waits there were until each answered."""
    often = {instruction.address: times for instruction, times in executed}
    found: dict[int, list[float]] = defaultdict(list)
    for address, level in count_chained(i for i, _ in executed if not _is_near(i)).items():
        found[level].append(often[address] * load_cycles(address))
    return found


def _is_near(instruction: Instruction) -> bool:
    """Of atomics that never leave the SM: they wait as shared memory does."""
    return kind_of(instruction) is OpClass.ATOMIC and not _is_global(instruction)


def _is_global(instruction: Instruction) -> bool:
    kind = kind_of(instruction)
    if kind is OpClass.ATOMIC:
        return not instruction.opcode.startswith(("ATOMS", "REDS"))
    if kind is OpClass.ASYNC:
        return instruction.opcode.startswith(("LDGSTS", *amd_code.DIRECT))
    return kind in (OpClass.LOAD, OpClass.STORE)


def _executions(
    shape: LaunchShape, instruction: Instruction, loop: SassLoop | None, trip_count: float
) -> float:
    """How often a warp executes an instruction, in the mean."""
    if shape.work is not None:
        return shape.work.executed[instruction.address] / shape.all_warps
    return _passes(shape, loop, trip_count) if loop else 1.0


def _passes(shape: LaunchShape, loop: SassLoop, trip_count: float) -> float:
    """How often a warp passes a loop, in the mean."""
    if shape.work is not None:
        return shape.work.passes[loop] / shape.all_warps
    assert shape.code is not None
    return math.pow(trip_count, loop.depth / shape.code.depth)


@dataclass(frozen=True)
class _Series:
    """What launches do as a function of the trip count T: the sum of amount · T^power."""

    amounts: Mapping[float, float]

    @classmethod
    def from_shapes(
        cls, shapes: Iterable[LaunchShape], amount: Callable[[Instruction], float]
    ) -> _Series:
        amounts: dict[float, float] = defaultdict(float)
        for shape in shapes:
            for instruction, loop in shape.code.counted if shape.code else ():
                assert shape.code is not None
                power = loop.depth / shape.code.depth if loop else 0.0
                amounts[power] += amount(instruction) * shape.threads
        return cls(amounts)

    def at(self, trip_count: float) -> float:
        return sum(a * math.pow(trip_count, power) for power, a in self.amounts.items())


def _solve(
    shapes: Sequence[LaunchShape], amount: Callable[[Instruction], float], wanted: float
) -> float:
    """The least trip count of at least 1 at which the launches do what is wanted."""
    series = _Series.from_shapes(shapes, amount)
    low, high = 1.0, _MOST_TRIPS
    if series.at(low) >= wanted or series.at(high) < wanted:
        return low
    for _ in range(48):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if series.at(middle) < wanted else (low, middle)
    return high
