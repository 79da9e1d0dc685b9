# SPDX-License-Identifier: Apache-2.0
"""What an export is made from: a candidate, its evidence and enough of its problem to call it.

It stands on the store's floor: a problem is described here by plain records, so that an export
can be made from a campaign's events alone. It knows no file format and no oracle; the recorded
cases are given by the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..records import Status, Verdict

EMULATED = "emulated, never timed on a device"

BUILD_FLAGS = (
    "-std=c++20",
    "-O3",
    "-march=native",
    "-fopenmp",
    "-fPIC",
    "-shared",
    "-fno-math-errno",
    "-fno-trapping-math",
)
"""The flags of the `cpp` builder; used where a campaign did not record its own."""


@dataclass(frozen=True)
class TensorSpec:
    """One input or output of the kernel's entry point."""

    name: str
    dtype: str
    """numpy's name: `float32`, `int32`."""
    shape: tuple[str, ...]
    """Each an axis name, a number, or a sum such as `M+1`."""
    is_index: bool = False
    meaning: str = ""


class Ancestor(NamedTuple):
    """One step of the lineage, the candidate itself included."""

    candidate: str
    number: int
    operator: str


class HostCode(NamedTuple):
    """What makes a candidate's launches where no workbench is, written out of its plan."""

    helpers: str
    """What the functions need; stands before them."""
    functions: str
    """Of CUDA `NAME_launch` and `NAME_scratch_bytes`, of Triton `launch`."""
    declarations: str = ""
    """Prototypes of these in C."""
    features: tuple[str, ...] = ()
    """Of the pattern: what the functions take behind the axes."""


class Measured(NamedTuple):
    """A workload that the kernel was timed on."""

    name: str
    sizes: Mapping[str, float]
    """Axes by name, and of a sparse pattern `skew`: its longest row over the mean one."""


class WorkloadInputs(NamedTuple):
    """The workload that a campaign timed, as far as it can be carried: its sizes and pattern."""

    name: str
    axes: Mapping[str, int]
    arrays: Mapping[str, np.ndarray]
    """The index inputs; values are drawn by whoever runs it."""


class Prebuilt(NamedTuple):
    """The kernel as a library that was built when it was exported."""

    content: bytes
    architectures: tuple[str, ...]
    """`90`, `90a`: there is machine code for each; of the last one PTX, too."""
    platform: str
    """`linux-x86_64`."""
    cuda: str
    """The release whose runtime is linked into it."""
    flags: tuple[str, ...]


class ModuleText(NamedTuple):
    """The PyTorch module that a problem was made of."""

    source: str
    parameters: Mapping[str, str]
    """Input of the problem → parameter or buffer of the module."""


@dataclass(frozen=True, eq=False)
class Case:
    """A recorded self-test: inputs, the float64 answer, and what error is allowed.

    An output y passes where |y − outputs| ≤ tolerances; NaN and infinities must match.
    """

    name: str
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]
    """float64, by output name."""
    tolerances: Mapping[str, np.ndarray]
    """float64, broadcastable to the output; 0 where it must match bit for bit."""
    axes: Mapping[str, int] = field(default_factory=dict)
    """Axis values; only those that the shapes do not give are needed."""


@dataclass(frozen=True)
class Bundle:
    """Everything that an export may use; nothing else reaches its files."""

    problem: str
    title: str
    definition: str
    axes: Mapping[str, str]
    """Axis name → meaning, in the order of the C parameters."""
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    entry: str
    """The C symbol."""
    candidate: str
    source: str
    language: str
    verdict: Verdict
    campaign: str
    lineage: tuple[Ancestor, ...] = ()
    """Oldest first; ends with the candidate."""
    flags: tuple[str, ...] = BUILD_FLAGS
    machine: Mapping[str, str] = field(default_factory=dict)
    verified_at: float | None = None
    """Seconds since the epoch, from the event that holds the verdict."""
    cases: tuple[Case, ...] = ()
    plan: Mapping[str, Any] | None = None
    """The launch plan as data, declared and resolved; None where its language has none."""
    host: HostCode | None = None
    """None where its language needs none, or nothing could be written."""
    module: ModuleText | None = None
    """None where the problem was not made of one."""
    reference: str = ""
    """Naive Python whose `run` takes axes, inputs and outputs by name and fills the outputs."""
    workload: WorkloadInputs | None = None
    is_prepared: bool = False
    """Whether it makes a plan of the index inputs, by a second function, before it is called."""
    kernels: tuple[str, ...] = ()
    """C symbols of the kernels that the entry point chooses between; none where it is the only."""
    measured: tuple[Measured, ...] = ()
    """What `apply()` serves lies near these."""

    prebuilt: Prebuilt | None = None
    """None where whoever installs it compiles it."""
    backward: Bundle | None = None
    """A kernel that its gradient takes; None where torch or the kernel itself computes that."""

    @property
    def caveat(self) -> str:
        """What each file must say of its evidence; empty where the candidate is VERIFIED."""
        status = self.verdict.status
        if status is Status.VERIFIED:
            return ""
        found = f"{status} for {self.verdict.target}, not VERIFIED"
        return f"{EMULATED}: {found}" if self.verdict.emulated else found

    @property
    def short(self) -> str:
        """The eight hex digits that stand in names."""
        return self.candidate[:8]

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Inputs, then outputs: the order of the C parameters after the axes."""
        return self.inputs + self.outputs
