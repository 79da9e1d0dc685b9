# SPDX-License-Identifier: Apache-2.0
"""What is looked at in builds of an emulated candidate that are not the one that was tried.

The access build shows races and counts what launches do, the sanitized one accesses out of bounds;
the build for the target says what it is like there. No figure of this module is a speed.
"""

from __future__ import annotations

import numpy as np

from ...kernelbench.arithmetic import arithmetic_of
from ...kernelbench.problem import Family, Problem, Structure
from ...kernelbench.products import Product, device_of
from ...sandbox.builders.model import EmulatedVariant
from ...sandbox.isolation.model import Limits
from ...sandbox.run import memory_access
from ...sandbox.run.once import CallInputs, byte_size
from ...sandbox.run.process import RunFault
from ...traces.records import Check, Profile, Status
from ..failure import Failed
from ..profile import static
from ..profile.executed import Counts
from ..truth.trials import make_item
from . import cuda_causes, refused_source, sanitize
from .cuda_candidate import CudaCandidate
from .gpu_candidates import DeviceCandidate, GpuGround
from .verdict_draft import Draft

RACES = "races"
SANITIZED_BYTES = 256 << 10
"""Of a sanitized trial: a warp for each of 20,000 rows takes seconds. Larger shapes have fences."""
ACCESS_TIMEOUT_S = 60.0
COUNTED = 2_000_000
"""Accesses of threads in a launch from which no more of its blocks are watched: under a second."""
COUNTED_BYTES = 128 << 20
"""Tensors and scratch of the workload that is emulated for its counts alone, at most."""
COUNT_TIMEOUT_S = 20.0
ACCESS_LIMITS = Limits(wall_s=120.0, cpu_s=240.0, memory_bytes=4 << 30)


def static_of(
    draft: Draft,
    ground: GpuGround,
    made: DeviceCandidate,
    counts: Counts | None = None,
    device: Product | None = None,
) -> Profile:
    """What its build for the target says, with a time that is modelled."""
    with draft.span("profile"):
        return static_profile(ground, made, counts, device)


def static_profile(
    ground: GpuGround,
    made: DeviceCandidate,
    counts: Counts | None = None,
    device: Product | None = None,
) -> Profile:
    """As `static_of`, outside of any evaluation."""
    problem, axes = ground.problem, ground.subject.axes
    return static.static_profile(
        ground.workshop,
        made.device,
        made.launches,
        flops=problem.flops(axes),
        moved=problem.bytes_moved(axes),
        arithmetic=arithmetic_of(problem),
        device=device or device_of(ground.architecture.name),
        counts=counts,
        scales=ground.scales,
    )


def run_sanitized(draft: Draft, made: CudaCandidate, rng: np.random.Generator) -> None:
    """AddressSanitizer over the emulation: accesses out of bounds, each with its line."""
    session = draft.session
    if reason := refused_source.explain_apart(draft.order.source):
        raise Failed(Status.UNSUPPORTED, reason)
    with draft.span("sanitize"):
        program = made.variant(EmulatedVariant.ASAN)
        found = sanitize.examine(
            session, program, rng, made.extra, most_bytes=SANITIZED_BYTES, hear=draft.hear
        )
    draft.checks.append(found)


def look_for_races(
    draft: Draft, made: CudaCandidate, rng: np.random.Generator
) -> memory_access.AccessReport:
    """A call of the access build on a small workload, which shows races."""
    stage = draft.session.stage
    with draft.span("profile"):
        report = _run_watched(draft, made, stage.target, rng)
    races = [cuda_causes.race_sentence(draft.order.source, race) for race in report.races]
    draft.checks.append(
        Check(
            name=RACES,
            passed=not races,
            figure=float(len(races)),
            workload=stage.target_name,
            detail="; ".join(races[:3]) or f"none on {stage.target_name}",
        )
    )
    return report


def profile_emulated(
    draft: Draft, made: CudaCandidate, report: memory_access.AccessReport, rng: np.random.Generator
) -> Profile:
    """What is known of it, with a time that is modelled from what its accesses were."""
    stage = draft.session.stage
    if stage.target is made.ground.subject:
        held = _buffer_bytes(draft.session.problem, stage.target)
        counts = Counts(stage.target_name, report.launches, is_subject=True, buffer_bytes=held)
    else:
        counts = _count_launches(draft, made, rng, report)
    return static_of(draft, made.ground, made, counts)


def _count_launches(
    draft: Draft, made: CudaCandidate, rng: np.random.Generator, small: memory_access.AccessReport
) -> Counts:
    """What the launches do on the workload that was asked for, else on the small one."""
    session, subject = draft.session, made.ground.subject
    name = session.task.workload.name
    lent = sum(made.extra(subject).scratch)
    if session.problem.bytes_moved(subject.axes) + lent > COUNTED_BYTES:
        lack = f"{name} has more than {COUNTED_BYTES >> 20} MiB"
    else:
        try:
            with draft.span("profile"):
                report = _run_watched(draft, made, subject, rng, budget=COUNTED)
            held = _buffer_bytes(session.problem, subject)
            return Counts(name, report.launches, is_subject=True, buffer_bytes=held)
        except (RunFault, Failed) as failed:
            # No failure: of blocks that wait for others, or that others wait for, some do not run.
            lack = f"no emulation of {name}: {failed.reason}"
    stage = session.stage
    return Counts(
        stage.target_name,
        small.launches,
        is_subject=False,
        lack=lack,
        buffer_bytes=_buffer_bytes(session.problem, stage.target),
    )


def _buffer_bytes(problem: Problem, structure: Structure) -> dict[str, int]:
    return {t.name: byte_size(t.extent(structure.axes), t.dtype) for t in problem.tensors}


def _run_watched(
    draft: Draft,
    made: CudaCandidate,
    structure: Structure,
    rng: np.random.Generator,
    *,
    budget: int = 0,
) -> memory_access.AccessReport:
    session = draft.session
    item = make_item(session.problem, structure, Family.NORMAL, rng)
    inputs = {**structure.arrays, **item.inputs}
    return memory_access.examine(
        session.workshop,
        made.build_variant(EmulatedVariant.ACCESS),
        CallInputs(session.problem, structure.axes, inputs, made.resolve_launches(structure)),
        limits=ACCESS_LIMITS,
        timeout_s=COUNT_TIMEOUT_S if budget else ACCESS_TIMEOUT_S,
        budget=budget,
    )
