"""A modelled time: what a launch would take, from its code and its shape. Never a measurement.

How often loops run is not in the code. One trip count T is taken for all of a candidate's loops,
the least at which its instructions do the problem's flops and move its compulsory bytes; of nested
loops each gets its part (depth d of D: T^(d/D)). For each launch then

    memory   compulsory bytes / min(0.92 · bandwidth, 64 B a cycle for each busy SM)
    l2       sectors requested · 32 B / (32 B a cycle and SM), shared-memory copies included
    issue    warp instructions / (4 a cycle and SM), by the fullest SM
    pipes    the same for each unit: fp32, integer, special functions, load/store, fp64, tensor
    latency  waves · (fixed + T · what one pass of each loop waits for memory and barriers)
    time     (Σ term⁴)^¼ + 2.5 µs a launch

where waves = ⌈blocks / (SMs · resident blocks)⌉, so that low occupancy, few blocks and narrow loads
show as latency, spills and bank conflicts as load/store time. The fourth power lets the largest
term decide, and the others break ties. An access counts as coalesced unless an emulation counted
its sectors (`Access`). Caches are not modelled: reuse is free in `memory`, costs all in `l2`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...kernelbench.targets import WARP, Architecture, Device
from .mix import Kind, flops_of, kind_of, width_of
from .occupancy import Occupancy
from .sass import Instruction, Listing, Loop

LAUNCH_US = 2.5
"""From one launch to the next in a stream; 2 to 3 µs are usual."""
BANDWIDTH_SHARE = 0.92
"""Of the data sheet's bandwidth, what a large copy reaches."""
TENSOR_SHARE = 0.8
"""Of the data sheet's tensor peak, what a large product reaches."""
WARP_TENSOR_SHARE = {90: 0.6, 100: 0.5, 103: 0.5}
"""Of the peak, what warp-wide tensor instructions reach where wider ones exist."""
SECTOR = 32
_SM_BYTES, _L2_BYTES, _SHARED_BYTES = 64.0, 32.0, 128.0
"""Bytes that an SM takes in a cycle from memory, from L2, from shared memory or L1."""
_FIXED_CYCLES = 1000.0
"""To start a block, read its parameters and finish its last store."""
_LOAD_CYCLES, _ASYNC_CYCLES = 600.0, 200.0
"""Waiting for memory in one pass of a loop; copies that are started ahead wait less."""
_ONCE = {Kind.SHARED: 30.0, Kind.LOCAL: 40.0}
_EACH = {Kind.SYNC: 20.0, Kind.WARP: 25.0}
"""Once in a pass of a loop that has any, and for each one."""
_ISSUE = 4.0
_MOST_TRIPS = 1e9


class Access(NamedTuple):
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


@dataclass(frozen=True)
class Shape:
    """One launch as the model sees it."""

    blocks: int
    warps: int
    """In a block."""
    resident: Occupancy
    code: Listing | None
    """None: the code is not known, and only bytes count."""

    @property
    def threads(self) -> float:
        """Of all blocks."""
        return float(self.blocks * self.warps * WARP)


@dataclass(frozen=True)
class Estimate:
    """The modelled time of one launch and what it is made of, in µs."""

    terms: Mapping[str, float]
    launch_us: float = LAUNCH_US

    @property
    def total_us(self) -> float:
        """The whole time."""
        return math.pow(sum(t**4 for t in self.terms.values()), 0.25) + self.launch_us

    @property
    def bound(self) -> str:
        """The largest term; `launch` where launching takes more."""
        name = max(self.terms, key=lambda term: self.terms[term], default="launch")
        return name if self.terms and self.terms[name] >= self.launch_us else "launch"


@dataclass(frozen=True)
class Machine:
    """The rates of a device that follow from its data sheet."""

    architecture: Architecture
    device: Device

    @property
    def fp32_rate(self) -> float:
        """Warp instructions a cycle and SM."""
        return 2.0 if self.architecture.capability in (75, 80) else 4.0

    @property
    def hertz(self) -> float:
        """The clock that the fp32 peak implies."""
        lanes = self.fp32_rate * WARP
        return self.device.tflops["fp32"] * 1e12 / (self.device.sms * lanes * 2)

    @property
    def rates(self) -> dict[Kind, float]:
        """Warp instructions a cycle and SM, by class; other classes are only issued."""
        has_fp64 = self.architecture.capability in (80, 90, 100)
        return {
            Kind.FP32: self.fp32_rate, Kind.FP16: self.fp32_rate, Kind.INTEGER: 2.0,
            Kind.CONVERT: 0.5, Kind.SPECIAL: 0.5, Kind.WARP: 1.0,
            Kind.FP64: self.fp32_rate / 2 if has_fp64 else 1 / 16,
        }  # fmt: skip

    def tensor_flops(self, opcode: str) -> float:
        """Tensor operations a second, as far as such instructions reach."""
        name = opcode.partition(".")[0]
        kind = "fp16"
        if name.startswith(("Q", "UTCQ")):
            kind = "fp8"
        elif name.startswith(("I", "UTCI")):
            kind = "int8"
        elif "TF32" in opcode:
            kind = "tf32"
        peak = self.device.tflops.get(kind) or self.device.tflops.get("fp16", 0.0)
        is_wide = "G" in name or name.startswith("UTC")
        share = TENSOR_SHARE if is_wide else min(
            TENSOR_SHARE, WARP_TENSOR_SHARE.get(self.architecture.capability, 1.0)
        )  # fmt: skip
        return (peak or self.device.tflops["fp32"]) * 1e12 * share


def trips(shapes: Sequence[Shape], flops: float, moved: float) -> float:
    """The trip count at which the launches together do `flops` and move `moved` bytes."""
    return max(_solve(shapes, flops_of, flops), _solve(shapes, bytes_of, moved))


def requested(shape: Shape, trip_count: float) -> float:
    """Bytes that all threads of a launch ask global memory for."""
    return _Series.of([shape], bytes_of).at(trip_count)


def bytes_of(instruction: Instruction) -> float:
    """Bytes that a thread moves from or to global memory."""
    return float(width_of(instruction)) if _is_global(instruction) else 0.0


def estimate(
    shape: Shape, machine: Machine, *, trip_count: float, moved: float,
    accesses: Mapping[int, Access],
) -> Estimate:  # fmt: skip
    """The modelled time of one launch.

    Args:
        moved: Bytes that it must exchange with memory.
        accesses: What an emulation counted, by source line.
    """
    device, hertz = machine.device, machine.hertz
    busy = min(shape.blocks, device.sms)
    bandwidth = min(device.memory_gbs * 1e9 * BANDWIDTH_SHARE, busy * _SM_BYTES * hertz)
    terms = {"memory": moved / bandwidth * 1e6}
    if shape.code is not None:
        # The SM that gets the most blocks decides.
        warps = math.ceil(shape.blocks / device.sms) * shape.warps
        for unit, cycles in _cycles(shape.code, machine, trip_count, accesses).items():
            terms[unit] = warps * cycles / hertz * 1e6
        waves = math.ceil(shape.blocks / (device.sms * max(shape.resident.blocks, 1)))
        terms["latency"] = waves * _latency(shape.code, trip_count) / hertz * 1e6
    return Estimate(terms)


def _cycles(
    code: Listing, machine: Machine, trip_count: float, accesses: Mapping[int, Access]
) -> dict[str, float]:
    """Cycles that one warp keeps each unit of its SM busy."""
    rates = machine.rates
    cycles: dict[str, float] = defaultdict(float)
    for instruction, loop in code.counted:
        times = _times(loop, code, trip_count)
        kind = kind_of(instruction)
        cycles["issue"] += times / _ISSUE
        if kind in rates:
            cycles[kind] += times / rates[kind]
        elif kind is Kind.TENSOR:
            per_sm = machine.tensor_flops(instruction.opcode) / machine.device.sms / machine.hertz
            cycles[kind] += times * flops_of(instruction) * WARP / per_sm
        else:
            access = accesses.get(instruction.line, Access())
            for unit, each in _access_cycles(instruction, kind, access).items():
                cycles[unit] += times * each
    return cycles


def _access_cycles(instruction: Instruction, kind: Kind, access: Access) -> dict[str, float]:
    whole = width_of(instruction) * WARP
    if kind in (Kind.SHARED, Kind.LOCAL):
        wavefronts = max(1.0, whole / _SHARED_BYTES)
        if kind is Kind.SHARED:
            is_store = instruction.opcode.startswith("ST")
            wavefronts *= access.shared_stores if is_store else access.shared_loads
        return {"load/store": max(1.0, wavefronts)}
    if not _is_global(instruction):
        return {}
    is_load = kind in (Kind.LOAD, Kind.ASYNC)
    touched = max(float(SECTOR), whole * (access.loads if is_load else access.stores))
    return {"l2": touched / _L2_BYTES, "load/store": max(1.0, touched / _SHARED_BYTES)}


def _latency(code: Listing, trip_count: float) -> float:
    """Cycles that one warp takes from its start to its end if nothing else holds it up."""
    inside: dict[Loop, Counter[Kind]] = {loop: Counter() for loop in code.loops}
    for instruction, loop in code.counted:
        if loop is not None and (kind := kind_of(instruction)) is not Kind.STORE:
            # Atomics that never leave the SM wait as shared memory does.
            is_near = kind is Kind.ATOMIC and not _is_global(instruction)
            inside[loop][Kind.SHARED if is_near else kind] += 1
    return _FIXED_CYCLES + sum(
        _wait(kinds) * _times(loop, code, trip_count) for loop, kinds in inside.items()
    )


def _wait(kinds: Counter[Kind]) -> float:
    """Cycles that one pass of a loop waits; its loads are under way together."""
    wait = 0.0
    if kinds[Kind.LOAD] or kinds[Kind.ATOMIC]:
        wait = _LOAD_CYCLES
    elif kinds[Kind.ASYNC]:
        wait = _ASYNC_CYCLES
    wait += sum(cycles for kind, cycles in _ONCE.items() if kinds[kind])
    return wait + sum(cycles * kinds[kind] for kind, cycles in _EACH.items())


def _is_global(instruction: Instruction) -> bool:
    kind = kind_of(instruction)
    if kind is Kind.ATOMIC:
        return not instruction.opcode.startswith(("ATOMS", "REDS"))
    if kind is Kind.ASYNC:
        return instruction.opcode.startswith("LDGSTS")
    return kind in (Kind.LOAD, Kind.STORE)


def _times(loop: Loop | None, code: Listing, trip_count: float) -> float:
    """How often an instruction in this loop executes."""
    return math.pow(trip_count, loop.depth / code.depth) if loop else 1.0


@dataclass(frozen=True)
class _Series:
    """What launches do as a function of the trip count T: the sum of amount · T^power."""

    amounts: Mapping[float, float]

    @classmethod
    def of(cls, shapes: Iterable[Shape], amount: Callable[[Instruction], float]) -> _Series:
        amounts: dict[float, float] = defaultdict(float)
        for shape in shapes:
            for instruction, loop in shape.code.counted if shape.code else ():
                assert shape.code is not None
                power = loop.depth / shape.code.depth if loop else 0.0
                amounts[power] += amount(instruction) * shape.threads
        return cls(amounts)

    def at(self, trip_count: float) -> float:
        return sum(a * math.pow(trip_count, power) for power, a in self.amounts.items())


def _solve(shapes: Sequence[Shape], amount: Callable[[Instruction], float], wanted: float) -> float:
    """The least trip count of at least 1 at which the launches do what is wanted."""
    series = _Series.of(shapes, amount)
    low, high = 1.0, _MOST_TRIPS
    if series.at(low) >= wanted or series.at(high) < wanted:
        return low
    for _ in range(48):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if series.at(middle) < wanted else (low, middle)
    return high
