"""Builds and plays CUDA sources on the CPU, the way the referee does: in jails, by the runner."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench.problem import Arrays, Tensor
from kernelwright.sandbox.builders import emulated
from kernelwright.sandbox.builders.model import BuildFailed, Built, EmulatedVariant, Unsupported
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.isolation.model import Jail, Limits
from kernelwright.sandbox.plan.model import (
    ZERO_FILL,
    Argument,
    ArgumentKind,
    Launch,
    Launches,
    Scratch,
)
from kernelwright.sandbox.run.emulated import emulated_program
from kernelwright.sandbox.run.memory_access import AccessReport, examine
from kernelwright.sandbox.run.once import CallInputs, play
from kernelwright.sandbox.run.process import RunFault

LIMITS = Limits(wall_s=120.0, cpu_s=120.0, memory_bytes=3 << 30)
TIMEOUT_S = 60.0
CPUS = (min(os.sched_getaffinity(0)),)


def argument(value: int | float | str, names: list[str], scratch: list[str]) -> Argument:
    """A tensor or scratch buffer by its name, else a number."""
    if isinstance(value, float):
        return Argument(ArgumentKind.FLOAT32, int(np.float32(value).view(np.uint32)))
    if isinstance(value, int):
        return Argument(ArgumentKind.INTEGER, value)
    if value in names:
        return Argument(ArgumentKind.TENSOR, names.index(value))
    return Argument(ArgumentKind.SCRATCH, scratch.index(value))


@dataclass(frozen=True)
class Step:
    """One launch as a test writes it; `zero` names a buffer to clear, with its bytes."""

    grid: Any = 1
    block: Any = 1
    arguments: tuple[int | float | str, ...] = ()
    shared_bytes: int = 0
    kernel: int = 0
    zero: bool = False


def extent(of: Any) -> tuple[int, int, int]:
    given = (of,) if isinstance(of, int) else tuple(of)
    return (*given, 1, 1)[:3]  # type: ignore[return-value]


@dataclass(frozen=True)
class Case:
    """A source with everything that one call of it needs."""

    source: str
    kernels: tuple[str, ...]
    inputs: Arrays
    outputs: dict[str, tuple[str, tuple[int, ...]]]
    steps: tuple[Step, ...]
    scratch: tuple[Scratch, ...] = ()

    @property
    def call(self) -> CallInputs:
        tensors = [
            Tensor(name=name, dtype=str(array.dtype), shape=tuple(map(str, array.shape)))
            for name, array in self.inputs.items()
        ]
        results = [
            Tensor(name=name, dtype=dtype, shape=tuple(map(str, shape)))
            for name, (dtype, shape) in self.outputs.items()
        ]
        problem: Any = SimpleNamespace(
            name="case", axes={}, inputs=tensors, outputs=results, tensors=[*tensors, *results]
        )
        names = [tensor.name for tensor in problem.tensors]
        buffers = [scratch.name for scratch in self.scratch]
        launches = tuple(
            Launch(
                ZERO_FILL if step.zero else step.kernel,
                extent(step.grid),
                extent(step.block),
                step.shared_bytes,
                arguments=tuple(argument(a, names, buffers) for a in step.arguments),
            )
            for step in self.steps
        )
        return CallInputs(problem, {}, self.inputs, Launches(self.kernels, launches, self.scratch))


class Machine:
    """Builds cases once per variant and plays them."""

    def __init__(self, jail: Jail, cache: Path) -> None:
        self.workshop = Workshop(jail, cache, CPUS)
        self._built: dict[tuple[str, tuple[str, ...], EmulatedVariant], Any] = {}

    def attempt(
        self, case: Case, variant: EmulatedVariant = EmulatedVariant.PLAIN
    ) -> Built | BuildFailed | Unsupported:
        key = case.source, case.kernels, variant
        if key not in self._built:
            self._built[key] = emulated.build(
                self.workshop,
                case.source,
                case.call.problem,
                case.kernels,
                variant=variant,
            )
        return self._built[key]

    def built(self, case: Case, variant: EmulatedVariant = EmulatedVariant.PLAIN) -> Built:
        found = self.attempt(case, variant)
        assert isinstance(found, Built), found
        return found

    def run(
        self,
        case: Case,
        schedule: str = "order",
        variant: EmulatedVariant = EmulatedVariant.PLAIN,
        cpus: tuple[int, ...] = CPUS,
    ) -> Arrays:
        """The outputs of one call. Raises RunFault."""
        program = emulated_program(
            self.workshop, self.built(case, variant), variant=variant, schedule=schedule
        )
        workshop = replace(self.workshop, cpus=cpus)
        return play(workshop, program, case.call, limits=LIMITS, timeout_s=TIMEOUT_S).outputs

    def fault(
        self, case: Case, schedule: str = "order", variant: EmulatedVariant = EmulatedVariant.PLAIN
    ) -> RunFault:
        """How one call ended that should not have answered."""
        with pytest.raises(RunFault) as caught:
            self.run(case, schedule, variant)
        return caught.value

    def report(self, case: Case, budget: int = 0) -> AccessReport:
        """What the access build says of one call."""
        return examine(
            self.workshop,
            self.built(case, EmulatedVariant.ACCESS),
            case.call,
            limits=LIMITS,
            timeout_s=TIMEOUT_S,
            budget=budget,
        )


def machine_in(cache: Path) -> Machine:
    """A machine with this cache; skips where no jail works."""
    os.chmod(cache, 0o755)
    try:
        return Machine(choose("auto"), cache)
    except PrerequisiteError as error:
        pytest.skip(f"no jail works here: {error}")
