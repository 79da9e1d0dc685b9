# SPDX-License-Identifier: Apache-2.0
"""The target card: what a writer of kernels must know of the machine it writes for.

Figures come from the driver and the system first, from the table of architectures next, from a
data sheet only where the driver names that very product. What nobody tells is named as unknown; a
relative's figures are never put in its place. A card is made once, when a campaign begins, and
kept in its first event: prompts must read the same when the campaign is resumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...kernelbench import machine
from ...kernelbench.products import device_of, product
from ...kernelbench.targets import (
    ARITHMETIC,
    CPU,
    MAX_THREADS_PER_BLOCK,
    SHARED_WITHOUT_OPT_IN,
    Architecture,
    Vendor,
    architecture,
    target_of,
)
from ...sandbox.run.device.nvml import Device as Driven
from ...traces.records import Record
from ...verifier.clock.roofline import Peaks
from ...verifier.request import Referee

_VECTOR_FLAGS = (
    "sse4_2",
    "avx",
    "avx2",
    "fma",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512_bf16",
    "amx_tile",
    "asimd",
    "sve",
    "sve2",
)
"""What decides which vector instructions there are."""
_REACHED = (
    ("memory_gbs", "memory bandwidth", "GB/s"),
    ("llc_gbs", "last-level cache bandwidth", "GB/s"),
    ("l2_gbs", "second-level cache bandwidth", "GB/s"),
    ("fma_gflops", "float32 multiply-adds in all", "GFLOP/s"),
)
"""Facts of the referee, as the card of a CPU tells them."""
PLAN = "plan for"
"""The figure that names the product which a ranking without a device assumes."""
WAVE = 64
"""Threads of a wavefront of CDNA; RDNA's have half."""
_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30


class CardFigure(Record):
    """One line of a card."""

    name: str
    value: str
    source: str


class Card(Record):
    """What is known of a target."""

    target: str
    title: str
    figures: tuple[CardFigure, ...] = ()
    unknown: tuple[str, ...] = ()
    """What a complete card would tell and this one cannot."""
    is_emulated: bool = False
    """No such device is here: candidates are checked by an emulation and never timed."""

    @property
    def is_partial(self) -> bool:
        """Whether something of it is unknown."""
        return bool(self.unknown)

    def get(self, name: str) -> str:
        """The value of a figure; empty where it is unknown."""
        return next((f.value for f in self.figures if f.name == name), "")

    @property
    def text(self) -> str:
        """The card as prompts show it."""
        # Where there is a product to plan for, that it is not the target's own is said there.
        unknown = () if self.get(PLAN) else self.unknown
        lines = [f"{self.target}: {self.title}" + (" (partial card)" if unknown else "")]
        lines += [f"- {f.name}: {f.value} ({f.source})" for f in self.figures]
        if unknown:
            lines.append(f"- unknown here: {', '.join(unknown)}")
        return "\n".join(lines)


def card_of(target: str, referee: Referee) -> Card:
    """The card of the target that this referee evaluates on."""
    if target_of(target).is_cpu:
        return cpu_card(referee.facts)
    if referee.is_emulated:
        return device_card(target)
    from ...verifier.stands.leased import Machine

    return device_card(target, driven=next(iter(Machine().devices(target)), None))


def device_card(
    target: str,
    *,
    driven: Driven | None = None,
    probed: Mapping[str, str] | None = None,
    peaks: Peaks | None = None,
) -> Card:
    """The card of a GPU target.

    Args:
        driven: What the driver says of the device that is used; None: there is none here.
        probed: What the probe of that device said (`sms`, `l2_bytes`).
        peaks: Rates that were measured on it; `cache_source` names a data sheet otherwise.

    Raises:
        UnknownNameError: the architecture is not known.
    """
    chip = architecture(target)
    figures = _limits(chip)
    if driven is None:
        return _card_of_emulated(chip, figures)
    numbers = {name: int(value) for name, value in (probed or {}).items() if value.isdigit()}
    figures += _of_driver(driven, numbers)
    unknown = [] if "sms" in numbers else ["number of SMs"]
    unknown += [] if "l2_bytes" in numbers else ["size of the L2 cache"]
    if peaks is not None and "data sheet" not in peaks.cache_source:
        figures += _rates(peaks)
    sheet = product(driven.name, numbers.get("sms"))
    if sheet is not None:
        source = f"{sheet.name}, {sheet.source}"
        figures += [_figure("memory bandwidth, peak", f"{sheet.memory_gbs:g} GB/s", source)]
        figures += [
            _figure(f"{kind} peak", f"{rate:g} {'TOP/s' if kind == 'int8' else 'TFLOP/s'}", source)
            for kind, rate in sheet.tflops.items()
        ]
    else:
        unknown += ["peak memory bandwidth", "peak rates of arithmetic"]
    return Card(target=chip.name, title=driven.name, figures=tuple(figures), unknown=tuple(unknown))


def cpu_card(
    facts: Mapping[str, float],
    *,
    cpuinfo: Path = machine.CPUINFO,
    caches: Path = machine.CACHES,
) -> Card:
    """The card of this machine as the target `cpu`.

    Args:
        facts: Of the referee: `cpus` that candidates run on, `vector_bytes`, and what this machine
            reached at best, where that was measured.
    """
    processor = machine.processor(cpuinfo)
    figures = [_figure("threads a candidate has", f"{facts['cpus']:.0f}", "the campaign's CPUs")]
    unknown = []
    if facts.get("vector_bytes"):
        bits = 8 * int(facts["vector_bytes"])
        lanes = bits // 32
        figures.append(_figure("vector width", f"{bits} bits, {lanes} floats", "the processor"))
    else:
        unknown.append("vector width")
    if found := [flag for flag in _VECTOR_FLAGS if flag in processor.flags]:
        figures.append(_figure("vector instructions", " ".join(found), str(cpuinfo)))
    else:
        unknown.append("vector instructions")
    levels = _cache_levels(caches)
    figures += levels
    unknown += [] if levels else ["caches"]
    reached = [
        _figure(name, f"{facts[key]:.3g} {unit}", "measured here")
        for key, name, unit in _REACHED
        if key in facts
    ]
    figures += reached
    unknown += [] if reached else ["memory bandwidth", "peak rate of arithmetic"]
    title = processor.name or "a processor that does not tell its name"
    return Card(target=CPU, title=title, figures=tuple(figures), unknown=tuple(unknown))


def _figure(name: str, value: str, source: str) -> CardFigure:
    return CardFigure(name=name, value=value, source=source)


def _limits(chip: Architecture) -> list[CardFigure]:
    if chip.vendor is Vendor.AMD:
        return _limits_of_amd(chip)
    source = f"compute capability {chip.capability // 10}.{chip.capability % 10}"
    pairs = [
        ("registers of an SM", f"{chip.registers.total} of 32 bits"),
        ("registers of a thread", f"at most {chip.registers.most}"),
        ("threads of a block", f"at most {MAX_THREADS_PER_BLOCK}"),
        ("resident warps of an SM", f"at most {chip.max_warps}"),
        ("resident blocks of an SM", f"at most {chip.max_blocks}"),
        ("shared memory of an SM", f"{chip.shared_per_sm // _KIB} KiB"),
        (
            "shared memory of a block",
            f"{SHARED_WITHOUT_OPT_IN // _KIB} KiB static, {chip.shared_per_block // _KIB} KiB with "
            "dynamic",
        ),
    ]
    return [_figure(name, value, source) for name, value in pairs]


def _limits_of_amd(chip: Architecture) -> list[CardFigure]:
    file = chip.registers
    source = f"the ISA of {chip.family}, LLVM's AMDGPU back end"
    pairs = [
        ("threads of a wavefront (Triton's warp)", f"{chip.warp}"),
        ("SIMDs of an SM", f"{file.parts}, each with {file.per_part} registers of 32 bits"),
        ("registers of a thread", f"at most {file.most} (VGPRs with AGPRs)"),
        ("threads of a block", f"at most {MAX_THREADS_PER_BLOCK}"),
        ("resident wavefronts of an SM", f"at most {chip.max_warps}"),
        ("resident blocks of an SM", f"at most {chip.max_blocks}"),
        ("shared memory of an SM", f"{chip.shared_per_sm // _KIB} KiB"),
        ("shared memory of a block", f"{chip.shared_per_block // _KIB} KiB"),
        ("matrix cores multiply", ", ".join(k for k in ARITHMETIC if chip.multiplies(k))),
        ("an SM is", "a compute unit" if chip.warp == WAVE else "a workgroup processor of two CUs"),
    ]
    return [_figure(name, value, source) for name, value in pairs]


def _card_of_emulated(chip: Architecture, figures: list[CardFigure]) -> Card:
    sheet = device_of(chip.name)
    unknown = ["the product"]
    if sheet is None:
        unknown += ["number of SMs", "memory bandwidth", "peak rates of arithmetic"]
    else:
        # Not the target's own figures: the ranking's assumption, and said to be one.
        rates = ", ".join(f"{rate:g} {kind}" for kind, rate in sheet.tflops.items())
        peaks = f"{sheet.name}: {sheet.sms} SMs, {sheet.memory_gbs:g} GB/s"
        peaks += f", TFLOP/s (int8: TOP/s): {rates}"
        peaks += f", {sheet.l2_mb:g} MB of L2 cache" if sheet.l2_mb else ""
        source = f"{sheet.source}; modelled times assume it"
        figures = [*figures, _figure(PLAN, peaks, source)]
    return Card(
        target=chip.name,
        title="a GPU of this architecture, and none is here",
        figures=tuple(figures),
        unknown=tuple(unknown),
        is_emulated=True,
    )


def _of_driver(driven: Driven, told: Mapping[str, int]) -> list[CardFigure]:
    source = f"driver {driven.driver}"
    figures = [_figure("memory", f"{driven.memory_bytes / _GIB:.1f} GiB", source)]
    if "sms" in told:
        figures.append(_figure("SMs", f"{told['sms']}", source))
    if "l2_bytes" in told:
        figures.append(_figure("L2 cache", f"{told['l2_bytes'] / _MIB:.1f} MiB", source))
    if driven.sm_clock_mhz:
        figures.append(_figure("SM clock", f"at most {driven.sm_clock_mhz} MHz", source))
    return figures


def _rates(peaks: Peaks) -> list[CardFigure]:
    source = "measured here"
    pairs = [
        ("memory bandwidth", peaks.bandwidth_gbs, "GB/s"),
        ("last-level cache bandwidth", peaks.llc_bandwidth_gbs, "GB/s"),
        ("second-level cache bandwidth", peaks.cache_bandwidth_gbs, "GB/s"),
        ("float32 multiply-adds in all", peaks.flops_gflops, "GFLOP/s"),
    ]
    return [_figure(name, f"{value:.3g} {unit}", source) for name, value, unit in pairs]


def _cache_levels(root: Path) -> list[CardFigure]:
    found: list[CardFigure] = []
    for cache in machine.caches(root=root):
        by = f", shared by {cache.sharing} CPUs" if cache.sharing > 1 else " each"
        found.append(
            _figure(f"L{cache.level} cache", f"{_format_size(cache.bytes)}{by}", str(root))
        )
    return found


def _format_size(size: int) -> str:
    return f"{size / _MIB:g} MiB" if size >= _MIB else f"{size // _KIB} KiB"
