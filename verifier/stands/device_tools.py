# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's tools say of a candidate on a leased device: compute-sanitizer, Nsight Compute.

Both start a program of ours over one placed call. Where a tool is missing or forbidden that is
said, in the verdict's `unchecked` or in the profile's remarks; nothing is taken for clean.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ...kernelbench.arithmetic import arithmetic_of
from ...kernelbench.problem import Family, Structure
from ...sandbox.plan.model import ZERO_FILL
from ...sandbox.run.arena import EXTRA_BYTES, Arena, footprint, room
from ...sandbox.run.device.replay import PlacedCall, host_command
from ...traces.records import Check, Counting, Depth, Measurement, Profile
from ..profile import counters, metrics, ncu_csv, nsight
from ..truth.trials import make_item
from . import device_sanitizer
from .gpu_candidates import OnDevice
from .leased import Leased
from .session import Session
from .verdict_draft import Draft

COUNTED = (Depth.FULL, Depth.CONFIRM, Depth.RECORD)
"""Protocols that pay for counters; of a screening they are read if a Judge asks."""
_NOT_ASKED = {
    True: "nobody asked for counters (--counters)",
    False: "counters are read once a candidate is confirmed, or for a Judge",
}
_COUNT_AT = 11
"""Words of a launch before its arguments (sandbox/plan/model.py)."""


def sanitize(draft: Draft, leased: Leased, on_device: OnDevice, rng: np.random.Generator) -> None:
    """Adds a check for each tool of compute-sanitizer, up to the first that finds something.

    They look at the same time: each takes a second to start and hardly any to look, and nothing is
    timed.
    """
    sanitizer = device_sanitizer.find()
    if sanitizer is None:
        draft.unchecked.append("compute-sanitizer: not installed (it comes with the CUDA toolkit)")
        return
    stage = draft.session.stage
    known = [stage.target, *(structure for _, structure in stage.others)]
    small = min(known, key=lambda s: stage.problem.bytes_moved(s.axes))

    def examine(tool: str, own: np.random.Generator) -> Check | str:
        with _host(draft.session, leased, on_device, small, own, is_separate=True) as host:
            return device_sanitizer.examine(
                sanitizer, tool, host, environment=leased.access.environment
            )

    tools = device_sanitizer.TOOLS
    with ThreadPoolExecutor(len(tools)) as pool:
        all_found = list(pool.map(examine, tools, rng.spawn(len(tools))))
    for found in all_found:
        if not isinstance(found, Check):
            draft.unchecked.append(found)
            continue
        draft.checks.append(found)
        if not found.passed:
            return


def profile(
    draft: Draft,
    leased: Leased,
    on_device: OnDevice,
    measured: Measurement,
    rng: np.random.Generator,
) -> Profile:
    """What the counters say at a confirmation; else, and where they are forbidden, the timing."""
    session = draft.session
    is_counted = draft.order.protocol in COUNTED and session.task.counting is not None
    found: Profile | nsight.NotProfiled = (
        count(session, leased, on_device, rng)
        if is_counted
        else nsight.NotProfiled(_NOT_ASKED[draft.order.protocol in COUNTED])
    )
    if isinstance(found, Profile):
        return found
    axes = session.stage.target.axes
    return counters.without_counters(
        found,
        measured,
        flops=session.problem.flops(axes),
        moved=session.problem.bytes_moved(axes),
        ceilings=_ceilings(session, leased),
    )


def count(
    session: Session, leased: Leased, on_device: OnDevice, rng: np.random.Generator
) -> Profile | nsight.NotProfiled:
    """The counters of one call on the workload, those that the task names."""
    ncu, counting = nsight.find_ncu(), session.task.counting
    if ncu is None or counting is None:
        return nsight.NotProfiled("Nsight Compute is not installed")
    found = count_with_ncu(session, leased, on_device, ncu, rng, counting)
    if isinstance(found, nsight.NotProfiled):
        return found
    return counters.with_counters(
        found,
        metrics.load_packaged(),
        leased.device.architecture,
        ncu_version=ncu.version,
        ceilings=_ceilings(session, leased),
    )


def _ceilings(session: Session, leased: Leased) -> counters.Ceilings | None:
    sheet = leased.data_sheet
    allowed = arithmetic_of(session.problem)
    return counters.Ceilings.from_sheet(sheet, allowed) if sheet else None


def count_with_ncu(
    session: Session,
    leased: Leased,
    on_device: OnDevice,
    ncu: nsight.Ncu,
    rng: np.random.Generator,
    counting: Counting,
) -> list[ncu_csv.ProfiledLaunch] | nsight.NotProfiled:
    """What ncu tells of one call's launches on the workload."""
    target = session.stage.target
    kernels = list_launched(on_device.extra(target).table)
    names = {on_device.built.kernels[number].name for number in kernels}
    with _host(session, leased, on_device, target, rng, calls=nsight.WARM_UP_CALLS + 1) as host:
        return nsight.measure(
            ncu,
            host,
            metrics.load_packaged().list_collected(leased.device.architecture, counting),
            [name.partition("<")[0].rpartition("::")[2] for name in sorted(names)],
            launches=len(kernels),
            environment=leased.access.environment,
        )


def list_launched(table: bytes) -> list[int]:
    """The kernels that a packed table launches, in order, without the fills."""
    words = np.frombuffer(table, dtype=np.int64)
    found, at = [], 1
    for _ in range(int(words[0])):
        if words[at] != ZERO_FILL:
            found.append(int(words[at]))
        at += _COUNT_AT + 1 + 3 * int(words[at + _COUNT_AT])
    return found


@contextmanager
def _host(
    session: Session,
    leased: Leased,
    on_device: OnDevice,
    structure: Structure,
    rng: np.random.Generator,
    *,
    calls: int = 1,
    is_separate: bool = False,
) -> Iterator[list[str]]:
    """One call on the structure as a program of its own."""
    problem = session.problem
    inputs, outputs = footprint(problem, structure.axes)
    item = make_item(problem, structure, Family.NORMAL, rng)
    extra = on_device.extra(structure)
    behind = EXTRA_BYTES + room(extra)
    with (
        Arena(inputs + behind, outputs + behind) as arena,
        tempfile.TemporaryDirectory(prefix="kernelwright-host-") as folder,
    ):
        slot = arena.place(problem, structure, extra=extra)
        for name, array in item.inputs.items():
            slot.inputs[name][...] = array
        call = PlacedCall(arena.copy_of_inputs(), arena.sizes[1])
        yield host_command(
            session.workshop,
            Path(folder),
            on_device.built,
            problem,
            call,
            leased.access,
            calls=calls,
            is_separate=is_separate,
        )
