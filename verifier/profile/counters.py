# SPDX-License-Identifier: Apache-2.0
"""Makes a Profile of what the hardware's counters said: figures, stalls, roofline, what bounds it.

Where counters could not be read, `without_counters` gives what is left. Every remark says how its
figures came about; nothing here starts a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...kernelbench.arithmetic import FP32, Arithmetic, Peak, Way
from ...kernelbench.products import Product
from ...traces.metric_words import stall_words
from ...traces.records import Level, Measurement, Metric, Profile
from .cpu import achieved_rates
from .metrics import Catalogue
from .ncu_csv import ProfiledLaunch
from .nsight import NotProfiled

TIME = "gpu__time_duration.sum"
_DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
_SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
_DRAM_BYTES = "dram__bytes.sum"
_FLOPS = {
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 2.0,
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": 1.0,
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": 1.0,
}
"""Float32 operations of an instruction; tensor cores are not in it."""
_TENSOR_PIPES = "sm__inst_executed_pipe_tensor"
_TENSOR_NOISE = 5.0
"""Per cent of the pipe's peak. A GELU without one tensor instruction was counted at 1.7 on an H200
(tests/verifier/profile/ncu/h200-full.csv)."""
BUSY = 60.0
"""Per cent of a peak below which neither memory nor arithmetic bounds a kernel (peers.md)."""
_TOLD_STALLS = 4


@dataclass(frozen=True)
class Ceilings:
    """What a device reaches at most."""

    memory_gbs: float
    fp32_gflops: float
    source: str
    peak: Peak | None = None
    """What the problem's arithmetic is held to, in GFLOP/s; None: no such peak is known."""

    @classmethod
    def from_sheet(cls, device: Product, arithmetic: Arithmetic) -> Ceilings:
        """From the data sheet."""
        rates = {kind: 1e3 * rate for kind, rate in device.tflops.items()}
        return cls(
            device.memory_gbs,
            rates[FP32],
            f"{device.name}, {device.source}",
            arithmetic.usual_peak(rates, on_tensor_cores=False),
        )


def with_counters(
    launched: Sequence[ProfiledLaunch],
    catalogue: Catalogue,
    architecture: str,
    *,
    ncu_version: str,
    ceilings: Ceilings | None = None,
) -> Profile:
    """The profile of one call: sums over its launches, and means weighed by their times."""
    figures = _combine_launches(launched)
    stalls = catalogue.stalls(architecture)
    metrics = [
        Metric(name=name, value=value, unit=unit, level=Level.MEASURED)
        for name, (value, unit) in figures.items()
        if name not in stalls
    ]
    values = {name: value for name, (value, _) in figures.items()}
    shares = _stall_shares(values, stalls)
    metrics += [
        Metric(name=f"stall:{reason}", value=share, unit="share", level=Level.MEASURED)
        for reason, share in shares.items()
    ]
    has_tensor_work = any(
        value > _TENSOR_NOISE for name, value in values.items() if _TENSOR_PIPES in name
    )
    metrics += _roofline(values, ceilings, has_all_flops=not has_tensor_work)
    remarks = [f"measured by the hardware's counters (ncu {ncu_version})"]
    if has_tensor_work:
        remarks.append("tensor cores worked, whose operations are not counted: no roofline")
    remarks += _bound(values) + _word_stalls(shares) + _shares_of_time(launched)
    if missing := sorted({name for one in launched for name in one.missing}):
        remarks.append(f"not told by this device: {', '.join(missing)}")
    return Profile(metrics=tuple(metrics), remarks=tuple(remarks))


def without_counters(
    why: NotProfiled,
    measured: Measurement | None,
    *,
    flops: float,
    moved: float,
    ceilings: Ceilings | None = None,
) -> Profile:
    """What is left where counters are forbidden: rates from the timing and the declared work."""
    hint = f"; {why.hint}" if why.hint else ""
    if measured is None:
        return Profile(remarks=(f"no counters ({why.reason}{hint}) and no timing",))
    metrics = achieved_rates(measured, flops, moved)
    remarks = [
        f"measured by timing alone: {why.reason}{hint}",
        "achieved_gbs and achieved_gflops count the work that the problem declares, not what the "
        "device did",
    ]
    if ceilings:
        rates = {metric.name: metric.value for metric in metrics}
        metrics += [
            Metric(
                name="memory_share",
                value=rates["achieved_gbs"] / ceilings.memory_gbs,
                unit="share",
                level=Level.MODELLED,
            ),
        ]
        if peak := ceilings.peak:
            # Of int8 operations no share of float32's peak says anything.
            metrics.append(
                Metric(
                    name="tensor_peak_share" if peak.way.is_tensor else "fp32_share",
                    value=rates["achieved_gflops"] / peak.rate,
                    unit="share" if peak.way == Way(FP32) else f"of {peak.words}",
                    level=Level.MODELLED,
                )
            )
        remarks.append(f"shares are of {ceilings.source}")
    return Profile(metrics=tuple(metrics), remarks=tuple(remarks))


def _combine_launches(launched: Sequence[ProfiledLaunch]) -> dict[str, tuple[float, str]]:
    """One value for each metric; of what a launch is given (launch__*) the longest launch's."""
    longest = max(launched, key=lambda one: one.get(TIME) or 0.0)
    found: dict[str, tuple[float, str]] = {}
    for name in dict.fromkeys(name for one in launched for name in one.figures):
        told = [one for one in launched if name in one.figures]
        values = [one.figures[name].value for one in told]
        if name.startswith("launch__"):
            value = (longest if name in longest.figures else told[0]).figures[name].value
        elif name.endswith(".sum"):
            value = sum(values)
        else:
            weights = [one.get(TIME) or 1.0 for one in told]
            pairs = zip(values, weights, strict=True)
            value = sum(v * w for v, w in pairs) / sum(weights)
        found[name] = (value, told[0].figures[name].unit)
    return found


def _stall_shares(values: dict[str, float], stalls: dict[str, str]) -> dict[str, float]:
    """Of the cycles in which a warp did not issue, the share of each reason; largest first."""
    told = {r: values[name] for name, r in stalls.items() if name in values and r != "selected"}
    total = sum(told.values())
    if total <= 0:
        return {}
    ordered = sorted(told.items(), key=lambda pair: -pair[1])
    return {reason: value / total for reason, value in ordered}


def _roofline(
    values: dict[str, float], ceilings: Ceilings | None, *, has_all_flops: bool
) -> list[Metric]:
    seconds = values.get(TIME, 0.0) / 1e9
    if seconds <= 0:
        return []
    metrics = []
    moved = values.get(_DRAM_BYTES)
    if moved is not None:
        metrics.append(_metric("dram_gbs", moved / seconds / 1e9, "GB/s"))
    if not all(name in values for name in _FLOPS):
        return metrics
    flops = sum(values[name] * each for name, each in _FLOPS.items())
    metrics.append(_metric("fp32_gflops", flops / seconds / 1e9, "GFLOP/s"))
    if not moved or not has_all_flops:
        return metrics
    metrics.append(_metric("intensity", flops / moved, "flop/byte"))
    if ceilings and flops > 0:
        roof = min(ceilings.fp32_gflops, flops / moved * ceilings.memory_gbs)
        share = flops / seconds / 1e9 / roof
        metrics.append(
            Metric(name="roofline_share", value=share, unit="share", level=Level.MODELLED)
        )
    return metrics


def _metric(name: str, value: float, unit: str) -> Metric:
    return Metric(name=name, value=value, unit=unit, level=Level.MEASURED)


def _bound(values: dict[str, float]) -> list[str]:
    if _DRAM not in values or _SM not in values:
        return []
    memory, arithmetic = values[_DRAM], values[_SM]
    told = f"memory {memory:.0f} %, SMs {arithmetic:.0f} % of their peaks"
    if max(memory, arithmetic) < BUSY:
        return [f"bound by latency: {told}"]
    return [f"bound by {'memory' if memory >= arithmetic else 'the SMs'}: {told}"]


def _word_stalls(shares: dict[str, float]) -> list[str]:
    return [
        f"{share:.0%} of stalled warps: {reason} ({stall_words()[reason]})"
        for reason, share in list(shares.items())[:_TOLD_STALLS]
    ]


def _shares_of_time(launched: Sequence[ProfiledLaunch]) -> list[str]:
    total = sum(one.get(TIME) or 0.0 for one in launched)
    if len(launched) < 2 or total <= 0:
        return []
    return [
        f"{(one.get(TIME) or 0.0) / total:.0%} of the time: {one.kernel}, grid {one.grid}, "
        f"block {one.block}"
        for one in launched
    ]
