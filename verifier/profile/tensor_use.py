# SPDX-License-Identifier: Apache-2.0
"""How a candidate's launches use tensor cores, against what its problem allows: figures of it.

Shares and counts are of the built code and `static`; what is made of peaks is `modelled`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...kernelbench.arithmetic import FP32, Arithmetic, Peak
from ...kernelbench.products import Product
from ...kernelbench.targets import WARP, Architecture
from ...traces.records import Level, Metric
from .classes import OpClass
from .mix import Mix, flops_of, kind_of
from .model import UntoldProducts
from .seen import SeenLaunch
from .tensor_cores import UNTOLD


class Unused(NamedTuple):
    """That no kernel of a matrix product uses the tensor cores that its policy allows."""

    kinds: tuple[str, ...]
    """What it may multiply on them here."""
    times: float | None
    """Their peak over float32's; None where no peaks are known."""


def products_for_one(seen: Sequence[SeenLaunch], arithmetic: Arithmetic) -> int:
    """How many products the code makes of one of the problem's: 3 in TF32 for `tf32x3`."""
    kinds = {kind for use in _uses(seen) for kind in use.tensor.counts}
    ways = (way for way in (*arithmetic.main, *arithmetic.others) if way.kind in kinds)
    return next((way.products for way in ways), 1)


def with_untold(
    seen: Sequence[SeenLaunch], arithmetic: Arithmetic, flops: float
) -> list[SeenLaunch]:
    """Launches whose tensor-core instructions do not say what they multiply are taken to do all of
    the problem's operations, in equal parts, and in its policy's type where theirs is not told."""
    which = [one for one in seen if one.mix and one.mix.tensor.untold]
    guess = next(iter(arithmetic.tensor_kinds), "fp16")
    found = []
    for one in seen:
        if one.mix and one.mix.tensor.untold:
            told = one.mix.tensor.untold
            untold = UntoldProducts(guess if told == UNTOLD else told, flops / len(which))
            one = replace(one, shape=replace(one.shape, untold=untold))
        found.append(one)
    return found


def find_bound(seen: Sequence[SeenLaunch], arithmetic: Arithmetic, device: Product) -> Peak | None:
    """The peak of the data sheet that the problem's arithmetic is held to, in TFLOP/s."""
    return arithmetic.usual_peak(device.tflops, on_tensor_cores=_is_used(seen))


def find_unused(
    seen: Sequence[SeenLaunch],
    arithmetic: Arithmetic,
    chip: Architecture,
    tflops: Mapping[str, float] | None,
) -> Unused | None:
    """None where the policy forbids tensor cores, they would gain nothing, some kernel uses them,
    or the code of one is not known."""
    here = tuple(k for k in arithmetic.tensor_kinds if chip.multiplies(k))
    if not arithmetic.is_product or not here or len(list(_uses(seen))) < len(seen):
        return None
    if _is_used(seen):
        return None
    if tflops is None:
        return Unused(here, None)
    peak = arithmetic.usual_peak(tflops, on_tensor_cores=False)
    if peak is None or not peak.way.is_tensor:
        return None
    return Unused(here, peak.rate / tflops[FP32])


def metrics_of_code(mix: Mix) -> list[Metric]:
    """The part of tensor cores in a kernel's code, and their instructions by type."""
    return [
        Metric(name="tensor_share", value=mix.share(OpClass.TENSOR)),
        Metric(name="tensor_work_share", value=mix.tensor.work),
        *(
            Metric(name=f"tensor_{kind}", value=count)
            for kind, count in sorted(mix.tensor.counts.items())
        ),
    ]


def metrics_of_executed(one: SeenLaunch) -> list[Metric]:
    """What tensor cores do in a launch, where an emulation counted how often its code runs."""
    work, code = one.shape.work, one.shape.code
    if work is None or code is None:
        return []
    done = sum(
        WARP * flops_of(i) * work.executed[i.address]
        for i, _ in code.counted
        if kind_of(i) is OpClass.TENSOR
    )
    return [Metric(name="executed_tensor_flops", value=done, unit="flops", level=Level.MODELLED)]


def metrics_of_unused(unused: Unused | None) -> list[Metric]:
    """How much higher the peak is that is left unused."""
    if unused is None or unused.times is None:
        return []
    return [
        Metric(
            name="unused_tensor_peak",
            value=unused.times,
            unit="times float32's",
            level=Level.MODELLED,
        )
    ]


def _uses(seen: Sequence[SeenLaunch]) -> Iterator[Mix]:
    return (one.mix for one in seen if one.mix is not None)


def _is_used(seen: Sequence[SeenLaunch]) -> bool:
    return any(mix.tensor.counts for mix in _uses(seen))
