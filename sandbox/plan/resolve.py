# SPDX-License-Identifier: Apache-2.0
"""From a plan and one workload to concrete launches, held against the limits of a target."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...kernelbench.dtypes import DTYPES, dtype_of
from ...kernelbench.problem import Problem
from ...kernelbench.targets import Architecture
from . import limits
from .declared import BufferPart, DeclaredArgument, DeclaredLaunch, DeclaredScratch, Float, Plan
from .expressions import Expression, Values, Variable
from .faults import PlanFault, PlanFaultKind, PlanRefusedError
from .fit import check
from .model import (
    ZERO_FILL,
    Argument,
    ArgumentKind,
    Extent,
    Launch,
    Launches,
    Scratch,
    Specialisation,
)
from .signature import Parameter

_ALLOWED_OPTIONS: dict[str, tuple[Sequence[int], str]] = {
    "num_warps": ((1, 2, 4, 8, 16, 32), "a power of two from 1 to 32"),
    "num_stages": (range(1, 17), "1 to 16"),
    "num_ctas": ((1, 2, 4, 8, 16), "a power of two from 1 to 16"),
    "maxnreg": (range(24, 256), "24 to 255"),
}


class _Buffer(NamedTuple):
    """What an argument may point at."""

    kind: ArgumentKind
    place: int
    item_bytes: int
    elements: int
    is_output: bool


def resolve(
    plan: Plan,
    problem: Problem,
    axes: Mapping[str, int],
    features: Mapping[str, float],
    architecture: Architecture,
) -> Launches | PlanFault:
    """What the plan comes to for a workload with these axes and features on this target.

    For Triton a launch's grid counts blocks as the hardware does, `num_ctas` to a program; its
    block is 32 threads for each of `num_warps`, until the compiler says otherwise.
    """
    try:
        return _Resolver(plan, problem, axes, features, architecture).launches()
    except PlanRefusedError as error:
        return error.fault


class _Resolver:
    def __init__(
        self,
        plan: Plan,
        problem: Problem,
        axes: Mapping[str, int],
        features: Mapping[str, float],
        architecture: Architecture,
    ) -> None:
        self.plan = plan
        self.architecture = architecture
        check(plan, problem, features)
        self.values: Values = {**features, **axes, **plan.knobs}
        self.scratch = self._scratch()
        self.buffers = self._buffers(problem, axes)
        self.specialisations: dict[str, Specialisation] = {}

    def launches(self) -> Launches:
        made = [self._launch(each) for each in self.plan.launches if self._is_wanted(each)]
        if not made and any(b.elements for b in self.buffers.values() if b.is_output):
            raise self._nothing_wanted()
        if self.plan.dialect.is_specialised:
            special = tuple(self.specialisations.values())
            return Launches(tuple(self.specialisations), tuple(made), self.scratch, special)
        return Launches(self.plan.kernels, tuple(made), self.scratch)

    def _is_wanted(self, launch: DeclaredLaunch) -> bool:
        return launch.when is None or bool(launch.when.evaluate(self.values))

    def _nothing_wanted(self) -> PlanRefusedError:
        last = self.plan.launches[-1]
        said = last.when.bindings(self.values) if last.when else ""
        return self.plan.refusal_error(
            f"no launch's `when` holds for this workload{said}, so that nothing would be computed; "
            "let the last launch cover what the others leave",
            ("launch", last.index, "when"),
        )

    def _scratch(self) -> tuple[Scratch, ...]:
        found, total = [], 0
        for each in self.plan.scratch:
            shape = tuple(self._scratch_extent(extent) for extent in each.shape)
            total += math.prod(shape) * dtype_of(each.dtype).bytes
            if total > limits.MAX_SCRATCH_BYTES:
                raise self._too_much_scratch(each, total)
            # An address is passed even for an empty buffer.
            found.append(Scratch(each.name, each.dtype, shape if all(shape) else (1,)))
        return tuple(found)

    def _scratch_extent(self, extent: Expression) -> int:
        size = extent.integer(self.values)
        if size < 0:
            raise PlanRefusedError(
                f"the extent is {size}{extent.bindings(self.values)}; it must not be negative",
                extent.place(0),
            )
        return size

    def _too_much_scratch(self, scratch: DeclaredScratch, total: int) -> PlanRefusedError:
        said = "".join(extent.bindings(self.values) for extent in scratch.shape)
        return self.plan.refusal_error(
            f"the scratch buffers take {total} bytes{said}, at most {limits.MAX_SCRATCH_BYTES} "
            "are lent; reduce in registers or shared memory, or in fewer parts",
            ("scratch", scratch.name, "shape"),
            PlanFaultKind.LIMIT,
        )

    def _buffers(self, problem: Problem, axes: Mapping[str, int]) -> dict[str, _Buffer]:
        found = {}
        for index, tensor in enumerate(problem.tensors):
            found[tensor.name] = _Buffer(
                ArgumentKind.TENSOR,
                index,
                dtype_of(tensor.dtype).bytes,
                math.prod(tensor.extent(axes)),
                is_output=index >= len(problem.inputs),
            )
        for index, each in enumerate(self.scratch):
            found[each.name] = _Buffer(
                ArgumentKind.SCRATCH,
                index,
                dtype_of(each.dtype).bytes,
                math.prod(each.shape),
                is_output=False,
            )
        return found

    def _launch(self, launch: DeclaredLaunch) -> Launch:
        if launch.zero:
            return self._fill(launch)
        grid = self._extent(launch.grid, limits.grid_wrong)
        arguments = tuple(self._argument(launch, at) for at in range(len(launch.arguments)))
        if reason := limits.parameters_wrong(self._sizes(launch)):
            path = ("launch", launch.index, "args")
            raise self.plan.refusal_error(reason, path, PlanFaultKind.LIMIT)
        if self.plan.dialect.is_specialised:
            return self._triton(launch, grid, arguments)
        block = self._extent(launch.block, limits.block_wrong)
        cluster = _pad_extent([each.integer(self.values) for each in launch.cluster])
        self._hold(launch, "cluster", limits.cluster_wrong(cluster, grid, self.architecture))
        shared = launch.shared_bytes.integer(self.values) if launch.shared_bytes else 0
        self._hold(
            launch,
            "shared_bytes",
            limits.shared_wrong(shared, self.architecture),
            launch.shared_bytes,
        )
        return Launch(
            kernel=self.plan.kernels.index(launch.kernel),
            grid=grid,
            block=block,
            shared_bytes=shared,
            cluster=cluster,
            arguments=arguments,
        )

    def _extent(
        self,
        written: tuple[Expression, ...],
        wrong: Callable[[Extent], tuple[int, str] | None],
    ) -> Extent:
        extent = _pad_extent([each.integer(self.values) for each in written])
        if found := wrong(extent):
            at, sentence = found
            culprit = written[min(at, len(written) - 1)]
            head, semicolon, remedy = sentence.partition(";")
            said = culprit.bindings(self.values)
            raise PlanRefusedError(f"{head}{said}{semicolon}{remedy}", culprit.place(0))
        return extent

    def _hold(
        self,
        launch: DeclaredLaunch,
        key: str,
        wrong: tuple[str, PlanFaultKind] | None,
        written: Expression | None = None,
    ) -> None:
        if wrong is not None:
            sentence, kind = wrong
            said = written.bindings(self.values) if written else ""
            head, semicolon, remedy = sentence.partition(";")
            path = ("launch", launch.index, key)
            raise self.plan.refusal_error(f"{head}{said}{semicolon}{remedy}", path, kind)

    def _fill(self, launch: DeclaredLaunch) -> Launch:
        buffer = self.buffers[launch.zero]
        size = buffer.elements * buffer.item_bytes
        address = Argument(buffer.kind, buffer.place)
        return Launch(ZERO_FILL, arguments=(address, Argument(ArgumentKind.INTEGER, size)))

    def _argument(self, launch: DeclaredLaunch, at: int) -> Argument:
        given: DeclaredArgument = launch.arguments[at]
        if isinstance(given, Float):
            return _literal(given)
        parameter = self._parameter(launch, at)
        if isinstance(given, BufferPart):
            return self._part(given, parameter)
        node = given.expression.node
        if isinstance(node, Variable) and node.name in self.buffers:
            buffer = self.buffers[node.name]
            return Argument(buffer.kind, buffer.place)
        value = given.expression.integer(self.values)
        if parameter and not limits.holds(parameter.dtype, value):
            raise PlanRefusedError(
                f"argument {at + 1} is {value}{given.expression.bindings(self.values)}, which the "
                f"parameter '{parameter.text}' cannot hold; declare it as long long",
                given.expression.place(0),
            )
        return Argument(ArgumentKind.INTEGER, value)

    def _sizes(self, launch: DeclaredLaunch) -> list[int]:
        """Bytes of each parameter, the least that it may have where the source does not tell."""
        found = []
        for at, given in enumerate(launch.arguments):
            parameter = self._parameter(launch, at)
            if isinstance(given, Float):
                found.append(given.bits // 8)
            elif isinstance(given, BufferPart) or given.text in self.buffers:
                found.append(8)
            else:
                known = DTYPES.get(parameter.dtype) if parameter else None
                found.append(known.bytes if known else 4)
        return found

    def _parameter(self, launch: DeclaredLaunch, at: int) -> Parameter | None:
        """What the source says of the parameter; None where it is not certain."""
        signatures = self.plan.signatures.get(launch.kernel, ())
        if len(signatures) != 1 or signatures[0].parameters is None:
            return None
        return signatures[0].runtime[at]

    def _part(self, part: BufferPart, parameter: Parameter | None) -> Argument:
        buffer = self.buffers[part.buffer]
        offset = part.offset.integer(self.values)
        said = part.offset.bindings(self.values)
        if not 0 <= offset <= buffer.elements:
            raise PlanRefusedError(
                f"element {offset}{said} does not lie in {part.buffer}, which has "
                f"{buffer.elements}",
                part.offset.place(0),
            )
        start = offset * buffer.item_bytes
        if parameter and start % parameter.alignment:
            raise PlanRefusedError(
                f"element {offset}{said} of {part.buffer} starts at byte {start}, and "
                f"'{parameter.text}' must start at a multiple of {parameter.alignment}; round the "
                "offset up, or take a pointer to single elements",
                part.offset.place(0),
            )
        return Argument(buffer.kind, buffer.place, start)

    def _triton(
        self, launch: DeclaredLaunch, grid: Extent, arguments: tuple[Argument, ...]
    ) -> Launch:
        options = {key: self._option(key, launch) for key in launch.options}
        constants = tuple(
            (name, value.integer(self.values) if isinstance(value, Expression) else value)
            for name, value in launch.constants.items()
        )
        special = Specialisation(launch.kernel, constants, **options)
        cluster = (special.num_ctas, 1, 1)
        whole = (grid[0] * special.num_ctas, grid[1], grid[2])
        if found := limits.grid_wrong(whole):
            raise self.plan.refusal_error(found[1], ("launch", launch.index, "grid"))
        self._hold(launch, "num_ctas", limits.cluster_wrong(cluster, whole, self.architecture))
        self.specialisations.setdefault(special.label, special)
        return Launch(
            kernel=list(self.specialisations).index(special.label),
            grid=whole,
            block=(self.architecture.warp * special.num_warps, 1, 1),
            cluster=cluster,
            arguments=arguments,
        )

    def _option(self, key: str, launch: DeclaredLaunch) -> int:
        written = launch.options[key]
        value = written.integer(self.values)
        allowed, words = _ALLOWED_OPTIONS[key]
        if value not in allowed:
            raise PlanRefusedError(
                f"{key} is {value}{written.bindings(self.values)}; it must be {words}",
                written.place(0),
            )
        return value


def _literal(number: Float) -> Argument:
    if number.bits == 32:
        (bits,) = struct.unpack("<I", struct.pack("<f", number.value))
        return Argument(ArgumentKind.FLOAT32, bits)
    (bits,) = struct.unpack("<q", struct.pack("<d", number.value))
    return Argument(ArgumentKind.FLOAT64, bits)


def _pad_extent(sizes: list[int]) -> Extent:
    x, y, z = ([*sizes, 1, 1])[:3]
    return x, y, z
