# SPDX-License-Identifier: Apache-2.0
"""What the code and the launches of a candidate say without running it: the static profile.

Everywhere the same: registers, spills, memory, occupancy and what limits it, the mix of
instructions, and a modelled time whose formula stands in `model`. The figures are those of the
launch that the model gives the most time; every launch has its remark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import PrerequisiteError
from ...kernelbench.arithmetic import Arithmetic, Peak
from ...kernelbench.dtypes import dtype_of
from ...kernelbench.products import Product
from ...kernelbench.targets import Architecture, Vendor, architecture
from ...sandbox.builders.disassembler import disassemble
from ...sandbox.builders.model import DeviceBuilt, KernelFacts
from ...sandbox.builders.workshop import Workshop
from ...sandbox.plan.model import ZERO_FILL, Launch, Launches
from ...traces.records import MODELLED_US, HotCode, Level, Metric, Profile
from . import amd_listing, emulated, model, remarks, tensor_use, traffic
from .classes import OpClass
from .executed import Counts, work_of
from .fit import FITTED
from .hot_code import code_of_listing
from .mix import Mix, mix_of
from .model import LaunchShape
from .occupancy import Demand, occupancy
from .rates import DeviceRates
from .sass import Listing, listings
from .seen import SeenLaunch

REMARKS = 60
_CLASSES = {
    "fp32": (OpClass.FP32,),
    "tensor": (OpClass.TENSOR,),
    "integer": (OpClass.INTEGER,),
    "global": (OpClass.LOAD, OpClass.STORE, OpClass.ASYNC),
    "shared": (OpClass.SHARED,),
    "local": (OpClass.LOCAL,),
}
"""Of the instructions that ran: what is told apart; all else is `executed_other`."""


def static_profile(
    workshop: Workshop,
    built: DeviceBuilt,
    launches: Launches,
    *,
    flops: float,
    moved: float,
    arithmetic: Arithmetic,
    device: Product | None,
    counts: Counts | None = None,
    home: Path | None = None,
    scales: Mapping[str, float] | None = None,
) -> Profile:
    """The profile of one candidate on one workload.

    Args:
        flops: Floating-point operations of one call, by the problem's cost model.
        moved: Compulsory bytes of one call.
        arithmetic: What the problem allows; says which peak bounds it.
        device: Whose data sheet the time is modelled with; None: no time is modelled.
        counts: What an emulation counted. Of the workload that is profiled, the modelled time is
            made of it; of another one, its ratios by source line are.
        home: The folder of a CUDA toolkit to use instead of the one that is found.
        scales: Factors of the model's terms that were fitted to this target (fit.py).

    Raises:
        SandboxError, StorageError: the disassembler's jail or the cache failed.
    """
    chip = architecture(built.architecture)
    code, lack = _code(workshop, built, home, chip.vendor)
    kernels = [launch for launch in launches.launches if launch.kernel != ZERO_FILL]
    seen = [
        _look(number, launch, built.kernels[launch.kernel], code, chip)
        for number, launch in enumerate(kernels)
    ]
    said = [f"no instructions are known: {lack}"] if lack else []
    filled = sum(one.arguments[1].value for one in launches.launches if one.kernel == ZERO_FILL)
    fills = len(launches.launches) - len(seen)
    metrics: list[Metric] = []
    if device is not None and all(one.occupancy.blocks for one in seen):
        machine = DeviceRates(chip, device)
        work = flops * tensor_use.products_for_one(seen, arithmetic)
        seen = tensor_use.with_untold(seen, arithmetic, work)
        seen, trip_count = _model_times(
            seen, machine, work, moved + _scratch_bytes(launches), counts
        )
        if scales:
            seen = [replace(o, estimate=o.estimate.scale(scales)) for o in seen if o.estimate]
            said.append(remarks.tell_fit(chip.name, scales))
            metrics.append(Metric(name=FITTED, value=1.0, level=Level.MODELLED))
        filling = _filling_us(filled, fills, device)
        bound = tensor_use.find_bound(seen, arithmetic, device)
        metrics += _times(seen, filling, flops=flops, moved=moved, device=device, peak=bound)
        said.append(remarks.bound(arithmetic, bound))
        said.append(remarks.assumptions(device, remarks.counted_how(seen, trip_count, counts)))
    else:
        why = (
            f"no data sheet is known for {chip.name}" if device is None else "a block does not fit"
        )
        said.append(f"no time is modelled: {why}")
    rates = device.tflops if device else None
    unused = tensor_use.find_unused(seen, arithmetic, chip, rates)
    main = max(seen, key=lambda one: one.estimate.total_us if one.estimate else 0.0, default=None)
    if main is not None:
        sms = device.sms if device else 0
        counted = counts.find_count(main.number, main.launch.kernel) if counts else None
        metrics = [*_of_kernel(main, sms), *_of_launches(launches, seen), *metrics]
        metrics += tensor_use.metrics_of_unused(unused)
        about = [*remarks.findings(main, counted), *remarks.latency(main, sms)]
        about += [*remarks.tensor_cores(seen), *remarks.unused_tensor_cores(unused, arithmetic)]
        said = [*(remarks.launch(one, sms) for one in seen), *about, *said]
        if counts is not None and counted is not None:
            where = f"{main.facts.name} on {counts.shape}"
            metrics += [*emulated.metrics_of(counted, where), *traffic.metrics_of(counts)]
            said += traffic.remarks_of(counts)
            said += emulated.remarks_of(counted, where, turn_us=main.turn_us)
    return Profile(
        metrics=tuple(metrics),
        remarks=tuple(said[:REMARKS]),
        code=_code_of(main) if main else (),
    )


def _code_of(main: SeenLaunch) -> tuple[HotCode, ...]:
    executed = main.shape.work.executed if main.shape.work else {}
    return code_of_listing(main.facts.name, main.shape.code, executed)


def _code(
    workshop: Workshop, built: DeviceBuilt, home: Path | None, vendor: Vendor
) -> tuple[dict[tuple[int, str], Listing], str]:
    """The kernels by cubin and symbol, and why there are none."""
    found = {}
    try:
        for index, cubin in enumerate(built.cubins):
            if vendor is Vendor.AMD:
                told = amd_listing.listings(cubin.listing)
            else:
                told = listings(disassemble(workshop, cubin, home))
            found.update({(index, name): each for name, each in told.items()})
    except PrerequisiteError as error:
        return {}, str(error)
    return found, ""


def _look(
    number: int,
    launch: Launch,
    facts: KernelFacts,
    code: Mapping[tuple[int, str], Listing],
    chip: Architecture,
) -> SeenLaunch:
    shared = facts.shared_bytes + launch.shared_bytes
    demand = Demand(launch.threads, facts.registers, shared, chip.warp)
    resident = occupancy(demand, chip)
    listing = code.get((facts.cubin, facts.symbol))
    shape = LaunchShape(launch.blocks, demand.warps, resident, listing, warp=chip.warp)
    return SeenLaunch(number, launch, facts, resident, mix_of(listing) if listing else None, shape)


def _model_times(
    seen: Sequence[SeenLaunch],
    machine: DeviceRates,
    flops: float,
    moved: float,
    counts: Counts | None,
) -> tuple[list[SeenLaunch], float]:
    trip_count = model.trips([one.shape for one in seen], flops, moved)
    if counts is not None and counts.is_subject:
        seen = [_with_work(one, counts, flops) for one in seen]
    asked = [model.requested_bytes(one.shape, trip_count) for one in seen]
    shares = [each / sum(asked) if sum(asked) else 1 / len(seen) for each in asked]
    told = []
    for one, share in zip(seen, shares, strict=True):
        count = counts.find_count(one.number, one.launch.kernel) if counts else None
        found = model.estimate(
            one.shape,
            machine,
            trip_count=trip_count,
            moved=moved * share,
            accesses=emulated.by_line(count) if count else {},
        )
        turn_us = model.turn_us(one.shape, machine) if one.shape.work else 0.0
        told.append(replace(one, estimate=found, turn_us=turn_us))
    return told, trip_count


def _with_work(one: SeenLaunch, counts: Counts, flops: float) -> SeenLaunch:
    """With what an emulation counted of exactly this launch, where it did."""
    count, code = counts.find_count(one.number, one.launch.kernel), one.shape.code
    if count is None or not count.counted or count.blocks != one.launch.blocks or code is None:
        return one
    work = work_of(code, count, warps=one.shape.all_warps, flops=flops)
    return replace(one, shape=replace(one.shape, work=work))


def _scratch_bytes(launches: Launches) -> float:
    """Work buffers are written once and read once."""
    return float(sum(2 * dtype_of(s.dtype).bytes * int(np.prod(s.shape)) for s in launches.scratch))


def _filling_us(filled: int, fills: int, device: Product) -> float:
    moving = filled / (device.memory_gbs * model.BANDWIDTH_SHARE) / 1e3
    return moving + fills * model.LAUNCH_US


def _of_kernel(one: SeenLaunch, sms: int) -> list[Metric]:
    facts, resident = one.facts, one.occupancy
    return [
        Metric(name="registers", value=facts.registers, unit="per thread"),
        *_of_amd(facts),
        Metric(name="spill_stores", value=facts.spill_stores, unit="bytes"),
        Metric(name="spill_loads", value=facts.spill_loads, unit="bytes"),
        Metric(name="stack_bytes", value=facts.stack_bytes, unit="bytes"),
        Metric(
            name="shared_bytes", value=facts.shared_bytes + one.launch.shared_bytes, unit="bytes"
        ),
        Metric(name="block_threads", value=one.launch.threads, unit="threads"),
        Metric(name="grid_blocks", value=one.launch.blocks, unit="blocks"),
        Metric(name="blocks_per_sm", value=resident.blocks, unit="blocks"),
        *([Metric(name="waves", value=one.waves(sms))] if sms and resident.blocks else []),
        Metric(name="occupancy", value=resident.share),
        *(
            Metric(name=f"limit_{term.name.lower()}", value=allowed, unit="blocks")
            for term, allowed in resident.limits.items()
        ),
        *(_of_mix(one.mix) if one.mix else []),
        *_of_executed(one),
    ]


def _of_amd(facts: KernelFacts) -> list[Metric]:
    """What AMD's compiler tells beside: NVIDIA's kernels have no scalar registers."""
    if not facts.scalars:
        return []
    return [
        Metric(name="accumulator_registers", value=facts.accumulators, unit="per thread"),
        Metric(name="scalar_registers", value=facts.scalars, unit="per warp"),
    ]


def _of_executed(one: SeenLaunch) -> list[Metric]:
    """How much of each class ran, where an emulation counted it."""
    ran = model.count_executed(one.shape)
    if not ran:
        return []
    total = sum(ran.values())
    counted = {name: sum(ran.get(k, 0.0) for k in kinds) for name, kinds in _CLASSES.items()}
    counted = {"instructions": total, **counted, "other": total - sum(counted.values())}
    return [
        Metric(name=f"executed_{name}", value=value, level=Level.MODELLED)
        for name, value in counted.items()
    ] + tensor_use.metrics_of_executed(one)


def _of_mix(mix: Mix) -> list[Metric]:
    counted = {
        "tensor_instructions": OpClass.TENSOR,
        "async_copies": OpClass.ASYNC,
        "atomics": OpClass.ATOMIC,
        "shared_accesses": OpClass.SHARED,
        "local_accesses": OpClass.LOCAL,
        "barriers": OpClass.BARRIER,
        "warp_syncs": OpClass.WARP_SYNC,
        "warp_exchanges": OpClass.WARP,
        "special_functions": OpClass.SPECIAL,
    }
    return [
        Metric(name="instructions", value=mix.total),
        Metric(name="loop_instructions", value=mix.total_in_loops),
        Metric(name="load_bytes", value=mix.load_bytes, unit="bytes per thread"),
        Metric(name="store_bytes", value=mix.store_bytes, unit="bytes per thread"),
        *(Metric(name=name, value=mix.everywhere[kind]) for name, kind in counted.items()),
        Metric(name="local_in_loops", value=mix.in_loops[OpClass.LOCAL]),
        Metric(name="integer_share", value=mix.share(OpClass.INTEGER)),
        Metric(name="conversion_share", value=mix.share(OpClass.CONVERT)),
        *tensor_use.metrics_of_code(mix),
    ]


def _of_launches(launches: Launches, seen: Sequence[SeenLaunch]) -> list[Metric]:
    return [
        Metric(name="launches", value=len(launches.launches)),
        Metric(name="spilling_kernels", value=sum(one.facts.spill_stores > 0 for one in seen)),
        Metric(name="least_occupancy", value=min(one.occupancy.share for one in seen)),
    ]


def _times(
    seen: Sequence[SeenLaunch],
    filling_us: float,
    *,
    flops: float,
    moved: float,
    device: Product,
    peak: Peak | None,
) -> list[Metric]:
    total = filling_us + sum(one.estimate.total_us for one in seen if one.estimate)
    floor = max(moved / device.memory_gbs / 1e3, flops / peak.rate / 1e6 if peak else 0.0)
    terms: dict[str, float] = {}
    for one in seen:
        for name, value in one.estimate.terms.items() if one.estimate else ():
            terms[name] = terms.get(name, 0.0) + value
    kept = {
        name: Metric(name=name, value=value, unit=unit, level=Level.MODELLED)
        for name, value, unit in (
            (MODELLED_US, total, "µs"),
            ("roofline_us", floor, "µs"),
            ("launching_us", total - sum(o.estimate.work_us for o in seen if o.estimate), "µs"),
            ("roofline_share", floor / total if total else 0.0, ""),
            *(
                (f"model_{model.name_metric(name)}_us", value, "µs")
                for name, value in terms.items()
            ),
        )
    }
    static = [
        Metric(name="flops", value=flops, unit="flops"),
        Metric(name="bytes", value=moved, unit="bytes"),
    ]
    if peak:
        unit = f"TFLOP/s, {peak.words}"
        static.append(Metric(name="peak_tflops", value=peak.rate, unit=unit, level=Level.MODELLED))
    return [*static, *kept.values()]
