"""What the code and the launches of a candidate say without running it: the static profile.

Everywhere the same: registers, spills, memory, occupancy and what limits it, the mix of
instructions, and a modelled time whose formula stands in `model`. The figures are those of the
launch that the model gives the most time; every launch has its remark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import PrerequisiteError
from ...kernelbench.targets import Architecture, Device, architecture
from ...sandbox.build.disassembler import disassemble
from ...sandbox.build.model import DeviceBuilt, KernelFacts
from ...sandbox.isolation.model import Jail
from ...sandbox.plan.model import ZERO_FILL, Launch, Launches
from ...traces.records import MODELLED_US, Level, Metric, Profile
from . import model
from .mix import Kind, Mix, mix_of
from .model import Access, Estimate, Machine, Shape
from .occupancy import Demand, Occupancy, occupancy
from .sass import Listing, listings

REMARKS = 60
_LOW_OCCUPANCY = 0.5
"""Below this a remark says what the next step would take."""


@dataclass(frozen=True)
class _Seen:
    """One launch of a kernel with what is known of it."""

    launch: Launch
    facts: KernelFacts
    occupancy: Occupancy
    mix: Mix | None
    shape: Shape
    estimate: Estimate | None = None


def static_profile(
    built: DeviceBuilt,
    launches: Launches,
    *,
    flops: float,
    moved: float,
    device: Device | None,
    cache_dir: Path,
    jail: Jail | None,
    accesses: Mapping[int, Access] | None = None,
    home: Path | None = None,
) -> Profile:
    """The profile of one candidate on one workload.

    Args:
        flops: Floating-point operations of one call, by the problem's cost model.
        moved: Compulsory bytes of one call.
        device: Whose data sheet the time is modelled with; None: no time is modelled.
        accesses: What an emulation counted, by source line.
        home: The folder of a CUDA toolkit to use instead of the one that is found.

    Raises:
        SandboxError, StorageError: the disassembler's jail or the cache failed.
    """
    chip = architecture(built.architecture)
    code, lack = _code(built, cache_dir, jail, home)
    seen = [
        _look(launch, built.kernels[launch.kernel], code, chip)
        for launch in launches.launches
        if launch.kernel != ZERO_FILL
    ]
    remarks = [f"no instructions are known: {lack}"] if lack else []
    filled = sum(one.arguments[1].value for one in launches.launches if one.kernel == ZERO_FILL)
    fills = len(launches.launches) - len(seen)
    metrics: list[Metric] = []
    if device is not None and all(one.occupancy.blocks for one in seen):
        machine = Machine(chip, device)
        seen, trip_count = _modelled(seen, machine, flops, moved + _scratch_bytes(launches),
                                     accesses or {})  # fmt: skip
        filling = _filling_us(filled, fills, device)
        metrics += _times(seen, filling, flops=flops, moved=moved, device=device)
        remarks.append(_assumptions(device, trip_count, bool(accesses)))
    else:
        why = (
            f"no data sheet is known for {chip.name}" if device is None else "a block does not fit"
        )
        remarks.append(f"no time is modelled: {why}")
    main = max(seen, key=lambda one: one.estimate.total_us if one.estimate else 0.0, default=None)
    if main is not None:
        metrics = [*_of_kernel(main), *_of_launches(launches, seen), *metrics]
        remarks = [*(_told(one) for one in seen), *_findings(main), *remarks]
    return Profile(metrics=tuple(metrics), remarks=tuple(remarks[:REMARKS]))


def _code(
    built: DeviceBuilt, cache_dir: Path, jail: Jail | None, home: Path | None
) -> tuple[dict[tuple[int, str], Listing], str]:
    """The kernels by cubin and symbol, and why there are none."""
    found = {}
    try:
        for index, cubin in enumerate(built.cubins):
            text = disassemble(cubin, cache_dir=cache_dir, jail=jail, home=home)
            found.update({(index, name): each for name, each in listings(text).items()})
    except PrerequisiteError as error:
        return {}, str(error)
    return found, ""


def _look(
    launch: Launch, facts: KernelFacts, code: Mapping[tuple[int, str], Listing], chip: Architecture
) -> _Seen:
    demand = Demand(launch.threads, facts.registers, facts.shared_bytes + launch.shared_bytes)
    resident = occupancy(demand, chip)
    listing = code.get((facts.cubin, facts.symbol))
    shape = Shape(launch.blocks, demand.warps, resident, listing)
    return _Seen(launch, facts, resident, mix_of(listing) if listing else None, shape)


def _modelled(
    seen: Sequence[_Seen], machine: Machine, flops: float, moved: float,
    accesses: Mapping[int, Access],
) -> tuple[list[_Seen], float]:  # fmt: skip
    trip_count = model.trips([one.shape for one in seen], flops, moved)
    asked = [model.requested(one.shape, trip_count) for one in seen]
    shares = [each / sum(asked) if sum(asked) else 1 / len(seen) for each in asked]
    told = []
    for one, share in zip(seen, shares, strict=True):
        found = model.estimate(
            one.shape, machine, trip_count=trip_count, moved=moved * share, accesses=accesses
        )
        told.append(_Seen(one.launch, one.facts, one.occupancy, one.mix, one.shape, estimate=found))
    return told, trip_count


def _scratch_bytes(launches: Launches) -> float:
    """Work buffers are written once and read once."""
    return float(
        sum(2 * np.dtype(s.dtype).itemsize * int(np.prod(s.shape)) for s in launches.scratch)
    )


def _filling_us(filled: int, fills: int, device: Device) -> float:
    moving = filled / (device.memory_gbs * model.BANDWIDTH_SHARE) / 1e3
    return moving + fills * model.LAUNCH_US


def _of_kernel(one: _Seen) -> list[Metric]:
    facts, resident = one.facts, one.occupancy
    return [
        Metric(name="registers", value=facts.registers, unit="per thread"),
        Metric(name="spill_stores", value=facts.spill_stores, unit="bytes"),
        Metric(name="spill_loads", value=facts.spill_loads, unit="bytes"),
        Metric(name="stack_bytes", value=facts.stack_bytes, unit="bytes"),
        Metric(
            name="shared_bytes", value=facts.shared_bytes + one.launch.shared_bytes, unit="bytes"
        ),
        Metric(name="block_threads", value=one.launch.threads, unit="threads"),
        Metric(name="grid_blocks", value=one.launch.blocks, unit="blocks"),
        Metric(name="blocks_per_sm", value=resident.blocks, unit="blocks"),
        Metric(name="occupancy", value=resident.share),
        *(
            Metric(name=f"limit_{term.name.lower()}", value=allowed, unit="blocks")
            for term, allowed in resident.limits.items()
        ),
        *(_of_mix(one.mix) if one.mix else []),
    ]


def _of_mix(mix: Mix) -> list[Metric]:
    counted = {
        "tensor_instructions": Kind.TENSOR, "async_copies": Kind.ASYNC, "atomics": Kind.ATOMIC,
        "shared_accesses": Kind.SHARED, "local_accesses": Kind.LOCAL, "barriers": Kind.SYNC,
        "warp_exchanges": Kind.WARP, "special_functions": Kind.SPECIAL,
    }  # fmt: skip
    return [
        Metric(name="instructions", value=mix.total),
        Metric(name="loop_instructions", value=sum(mix.in_loops.values())),
        Metric(name="load_bytes", value=mix.load_bytes, unit="bytes per thread"),
        Metric(name="store_bytes", value=mix.store_bytes, unit="bytes per thread"),
        *(Metric(name=name, value=mix.everywhere[kind]) for name, kind in counted.items()),
        Metric(name="local_in_loops", value=mix.in_loops[Kind.LOCAL]),
        Metric(name="integer_share", value=mix.share(Kind.INTEGER)),
        Metric(name="conversion_share", value=mix.share(Kind.CONVERT)),
    ]


def _of_launches(launches: Launches, seen: Sequence[_Seen]) -> list[Metric]:
    return [
        Metric(name="launches", value=len(launches.launches)),
        Metric(name="spilling_kernels", value=sum(one.facts.spill_stores > 0 for one in seen)),
        Metric(name="least_occupancy", value=min(one.occupancy.share for one in seen)),
    ]


def _times(
    seen: Sequence[_Seen], filling_us: float, *, flops: float, moved: float, device: Device
) -> list[Metric]:
    total = filling_us + sum(one.estimate.total_us for one in seen if one.estimate)
    peak = _peak(seen, device)
    floor = max(moved / device.memory_gbs / 1e3, flops / peak / 1e6)
    terms: dict[str, float] = {}
    for one in seen:
        for name, value in one.estimate.terms.items() if one.estimate else ():
            terms[name] = terms.get(name, 0.0) + value
    kept = {
        name: Metric(name=name, value=value, unit=unit, level=Level.MODELLED)
        for name, value, unit in (
            (MODELLED_US, total, "µs"),
            ("roofline_us", floor, "µs"),
            ("roofline_share", floor / total if total else 0.0, ""),
            *((f"model_{name.replace(' ', '_').replace('/', '_')}_us", value, "µs")
              for name, value in terms.items()),
        )
    }  # fmt: skip
    static = [
        Metric(name="flops", value=flops, unit="flops"),
        Metric(name="bytes", value=moved, unit="bytes"),
    ]
    return [*static, *kept.values()]


def _peak(seen: Sequence[_Seen], device: Device) -> float:
    """TFLOP/s: of the tensor cores where they are used, else of fp32."""
    uses_tensor = any(one.mix and one.mix.everywhere[Kind.TENSOR] for one in seen)
    return (
        device.tflops.get("fp16", device.tflops["fp32"]) if uses_tensor else device.tflops["fp32"]
    )


def _told(one: _Seen) -> str:
    facts, resident = one.facts, one.occupancy
    text = f"{facts.name}: {facts.registers} registers, "
    if resident.blocks == 0:
        return text + f"not even one block of {one.launch.threads} threads fits on an SM"
    limits = " and ".join(resident.limiting)
    text += (
        f"{resident.blocks} blocks of {one.launch.threads} threads per SM, occupancy "
        f"{resident.share:.0%}, limited by {limits}"
    )
    if resident.share <= _LOW_OCCUPANCY and resident.next_step:
        text += f"; {resident.next_step}"
    if one.estimate:
        text += f"; modelled {one.estimate.total_us:.3g} µs, bound by {one.estimate.bound}"
    return text


def _findings(one: _Seen) -> list[str]:
    """What a Judge would point at, in the kernel that takes the most time."""
    found = []
    if one.facts.spill_stores:
        where = (
            f", in loops at {_at(one.mix.spill_lines)}" if one.mix and one.mix.spill_lines else ""
        )
        found.append(
            f"{one.facts.name} spills {one.facts.spill_stores} bytes of registers a thread{where}"
        )
    if one.mix and one.mix.scalar_lines and one.mix.everywhere[Kind.ASYNC] == 0:
        found.append(
            f"{one.facts.name} moves less than eight bytes a thread in loops at "
            f"{_at(one.mix.scalar_lines)}"
        )
    return found


def _at(lines: tuple[int, ...]) -> str:
    return f"line{'s' if len(lines) > 1 else ''} " + ", ".join(map(str, lines[:8]))


def _assumptions(device: Device, trip_count: float, is_counted: bool) -> str:
    coalesced = "sectors as the emulation counted them" if is_counted else "coalesced accesses"
    return (
        f"modelled for {device.name} ({device.source}): {trip_count:.3g} passes of each loop, "
        f"{coalesced}, no reuse in L2, {model.BANDWIDTH_SHARE:.0%} of the bandwidth, "
        f"{model.LAUNCH_US:g} µs a launch; it ranks candidates and is no measurement"
    )
