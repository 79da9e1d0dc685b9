# SPDX-License-Identifier: Apache-2.0
"""The remarks of a static profile: sentences on launches, on source lines and on the model.

Each says what a reader can act on and could not tell from the figures alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ...kernelbench.arithmetic import BYTES_ALONE, Arithmetic, Peak
from ...kernelbench.products import Product
from ...kernelbench.targets import Vendor, architecture
from ...sandbox.run.memory_access import LaunchCount
from . import model
from .classes import OpClass
from .executed import Counts
from .occupancy import Term
from .seen import SeenLaunch
from .tensor_use import Unused


class KnownError(NamedTuple):
    """How modelled times stood to measured ones, with the counts of an emulation."""

    device: str
    kernels: int
    bias: float
    """The median of modelled over measured."""
    nine_of_ten: float
    """Within this factor."""


KNOWN_ERRORS = {"sm_90": KnownError("H200", 27, 0.70, 2.24)}
"""By target; docs/results/model.md has them, and a test holds both together."""
_LOW_OCCUPANCY = 0.5
"""Below this a remark says what the next step would take."""
_SPILL_LINES, _NARROW_LINES = 3, 8
"""Lines that a remark names at most."""
_TENSOR_WORDS = 4
"""Instructions that a remark names at most."""
_WAITS = 0.5
"""Of a launch's work: a latency term from which its assumptions are told."""


def launch(one: SeenLaunch, sms: int) -> str:
    """What a launch takes of the device.

    Args:
        sms: Of the device; 0 where it is not known.
    """
    facts, resident = one.facts, one.occupancy
    text = f"{facts.name}: {facts.registers} registers"
    if is_capped(one):
        text += ", the most that its launch bounds leave"
    if resident.blocks == 0:
        return f"{text}, not even one block of {one.launch.threads} threads fits on an SM"
    text += (
        f", {resident.blocks} blocks of {one.launch.threads} threads per SM, occupancy "
        f"{resident.share:.0%}"
    )
    if sms and one.waves(sms) <= 1:
        text += (
            f"; the grid has {one.launch.blocks}, no more than are resident at once: occupancy is "
            "not binding"
        )
    else:
        text += f", limited by {_limits(one)}"
        if resident.share <= _LOW_OCCUPANCY and resident.next_step:
            text += f"; {resident.next_step}"
    if made := one.estimate:
        text += (
            f"; modelled {made.total_us:.3g} µs ({made.work_us:.3g} of work and "
            f"{made.launch_us:.3g} of launching), bound by {made.bound}"
        )
    return text


def findings(one: SeenLaunch, counted: LaunchCount | None) -> list[str]:
    """What a Judge would point at.

    Args:
        counted: What an emulation saw of the launch.
    """
    found = []
    if one.facts.spill_stores:
        lines = one.mix.spill_lines[:_SPILL_LINES] if one.mix else ()
        where = f", in loops most at {_at(lines)}" if lines else ""
        why = " under the cap of its launch bounds" if is_capped(one) else ""
        found.append(
            f"{one.facts.name} spills {one.facts.spill_stores} bytes of registers a thread"
            f"{why}{where}"
        )
    if one.mix and one.mix.everywhere[OpClass.ASYNC] == 0:
        shared = _list_shared_lines(counted) if counted else ()
        narrow = [line for line in one.mix.scalar_lines if line not in shared]
        if narrow:
            found.append(
                f"{one.facts.name} moves less than eight bytes a thread in loops at "
                f"{_at(narrow[:_NARROW_LINES])}"
            )
    return found


def tell_fit(target: str, scales: Mapping[str, float]) -> str:
    """That the terms are not the built-in ones."""
    told = ", ".join(f"{name} x {scale:.2f}" for name, scale in sorted(scales.items()))
    return f"modelled times are fitted to measured ones of {target}: {told}"


def latency(one: SeenLaunch, sms: int) -> list[str]:
    """What the latency term rests on, where it decides."""
    made = one.estimate
    if made is None or made.terms.get("latency", 0.0) < _WAITS * made.work_us:
        return []
    work, loads = one.shape.work, f"{model.LOAD_CYCLES:g} cycles"
    if work is not None:
        loads += f" for memory, {model.L2_CYCLES:g} for L2, {model.L1_CYCLES:g} for L1"
    if made.is_by_longest and work is not None:
        text = f"the warp with the most work alone, {work.longest:.3g} times the mean"
    else:
        waves = model.waves(one.shape, sms)
        text = f"{waves} wave{'s' if waves > 1 else ''} of blocks, each as long as a mean warp"
    return [
        f"model_latency_us of {one.facts.name}: {text}; assumed: {model.FIXED_CYCLES:g} cycles a "
        f"block; in each pass of a loop loads wait {loads}, all at once that are "
        "issued before one of their answers is needed"
    ]


def counted_how(seen: Sequence[SeenLaunch], trip_count: float, counts: Counts | None) -> str:
    """Where the model's counts come from."""
    emulated_ones = [one for one in seen if one.shape.work is not None]
    if counts is not None and emulated_ones and len(emulated_ones) == len(seen):
        watched = [counts.find_count(one.number, one.launch.kernel) for one in seen]
        blocks = [f"{each.counted} of {each.blocks} blocks" for each in watched if each]
        return f"counts: emulated, on {counts.shape} ({', '.join(blocks)} watched, times the rest)"
    lack = f" ({counts.lack})" if counts is not None and counts.lack else ""
    text = f"counts: static{lack}, {trip_count:.3g} passes of each loop, every branch taken, "
    known = counts is not None and any(counts.find_count(o.number, o.launch.kernel) for o in seen)
    if counts is None or not known:
        return text + "coalesced accesses"
    return text + f"sectors and wavefronts per request as emulated on {counts.shape}"


def assumptions(device: Product, counted: str) -> str:
    """What a modelled time is made for, and of what."""
    is_amd = architecture(device.architecture).vendor is Vendor.AMD
    untried = (
        ", latencies and caches as NVIDIA's: no device of AMD's was compared" if is_amd else ""
    )
    return (
        f"modelled for {device.name} ({device.source}): {counted}; "
        f"{model.BANDWIDTH_SHARE:.0%} of the bandwidth, {model.LAUNCH_US:g} µs a launch{untried}; "
        f"it ranks candidates and is no measurement{known_error(device.architecture)}"
    )


def known_error(target: str) -> str:
    """How far modelled times were off where they were held against measured ones; empty where
    nobody did."""
    known = KNOWN_ERRORS.get(target)
    if known is None:
        return ""
    return (
        f" (of {known.kernels} kernels on an {known.device} the median took {1 / known.bias:.2f} "
        f"times as long, nine of ten within a factor of {known.nine_of_ten:g})"
    )


def tensor_cores(seen: Sequence[SeenLaunch]) -> list[str]:
    """What each kernel has for tensor cores, one remark a kernel."""
    found = {}
    for one in seen:
        if one.mix is None or not one.mix.tensor.words:
            continue
        text = f"{one.facts.name} multiplies on tensor cores: "
        text += ", ".join(one.mix.tensor.words[:_TENSOR_WORDS])
        text += f"; {one.mix.share(OpClass.TENSOR):.0%} of the instructions"
        if one.mix.tensor.untold:
            text += "; all of the problem's operations are taken to be theirs"
        else:
            text += f" and {one.mix.tensor.work:.0%} of the operations in its loops"
        found[one.facts.name] = text
    return list(found.values())


def unused_tensor_cores(found: Unused | None, arithmetic: Arithmetic) -> list[str]:
    """That tensor cores could be used and are not."""
    if found is None:
        return []
    times = f", whose peak is {found.times:.3g} times that of fp32" if found.times else ""
    return [
        f"no kernel uses tensor cores: the policy {arithmetic.policy} allows products in "
        f"{' and '.join(found.kinds)} on them{times}"
    ]


def bound(arithmetic: Arithmetic, peak: Peak | None) -> str:
    """Which peak roofline_us was made with."""
    if peak is None:
        return (
            f"roofline_us is of {BYTES_ALONE}: of {arithmetic.words} no peak is known of this "
            "device"
        )
    return (
        f"roofline_us: compulsory bytes, or flops at {peak.rate:.4g} TFLOP/s ({peak.words}; policy "
        f"{arithmetic.policy})"
    )


def is_capped(one: SeenLaunch) -> bool:
    """Whether the kernel has as many registers as its launch bounds let it have."""
    return one.facts.register_cap is not None and one.facts.registers >= one.facts.register_cap


def _limits(one: SeenLaunch) -> str:
    return " and ".join(
        f"{term} (by its launch bounds)" if term is Term.REGISTERS and is_capped(one) else term
        for term in one.occupancy.limiting
    )


def _list_shared_lines(counted: LaunchCount) -> set[int]:
    """Lines of which every access serves several lanes with one word: wider ones gain nothing."""
    return _lines(counted, is_shared=True) - _lines(counted, is_shared=False)


def _lines(counted: LaunchCount, *, is_shared: bool) -> set[int]:
    return {
        each.line
        for each in counted.accesses
        if each.space == "global"
        and (each.lanes * each.bytes > each.sectors * model.SECTOR) == is_shared
    }


def _at(lines: Collection[int]) -> str:
    return f"line{'s' if len(lines) > 1 else ''} " + ", ".join(map(str, lines))
