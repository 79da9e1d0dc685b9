# SPDX-License-Identifier: Apache-2.0
"""A Triton candidate's launch plan as Python: one function that makes its launches.

Expressions of a plan are Python as they stand; the functions that they call are named here. See
`host_text` for CUDA.
"""

from __future__ import annotations

from ...kernelbench.features import SPARSE_FEATURES
from ...kernelbench.problem import Problem
from .declared import BufferPart, DeclaredArgument, DeclaredLaunch, Float, Plan
from .expressions import Expression, Variable
from .model import Constant, Dtype

HELPERS = """\
def cdiv(a, b):
    return -(-a // b)


def next_pow2(a):
    return 1 << (a - 1).bit_length() if a > 1 else 1
"""
"""What expressions call beside Python's own; stands before the function."""
IMPORTS = """\
from math import ceil, floor

import torch
import triton.language as tl
"""


def write_host_python(plan: Plan, problem: Problem, name: str = "launch") -> str:
    """The function `name(axes…, features…, inputs…, outputs…)` of a Triton plan with launches.

    Tensors are torch's, contiguous and on one device; nothing is returned.
    """
    return _Writer(plan, problem).write(name)


def features_of(plan: Plan) -> tuple[str, ...]:
    """The features of a sparse pattern that the plan's expressions read."""
    used = {
        name for launch in plan.launches for each in _expressions(launch) for name, _ in each.names
    }
    used |= {name for each in plan.scratch for extent in each.shape for name, _ in extent.names}
    return tuple(name for name in SPARSE_FEATURES if name in used)


def _expressions(launch: DeclaredLaunch) -> list[Expression]:
    options = [each for each in launch.options.values() if isinstance(each, Expression)]
    constants = [each for each in launch.constants.values() if isinstance(each, Expression)]
    found = [*launch.grid, *options, *constants, *([launch.when] if launch.when else [])]
    for given in launch.arguments:
        if isinstance(given, BufferPart):
            found.append(given.offset)
        elif not isinstance(given, Float):
            found.append(given.expression)
    return found


class _Writer:
    def __init__(self, plan: Plan, problem: Problem) -> None:
        self.plan, self.problem = plan, problem
        self.features = features_of(plan)
        self.buffers = {t.name for t in problem.tensors} | {each.name for each in plan.scratch}

    def write(self, name: str) -> str:
        taken = [*self.problem.axes, *self.features, *(t.name for t in self.problem.tensors)]
        device = self.problem.outputs[0].name
        lines = [f"def {name}({', '.join(taken)}):"]
        lines += [f"    {knob} = {value}" for knob, value in self.plan.knobs.items()]
        for each in self.plan.scratch:
            shape = ", ".join(extent.text for extent in each.shape)
            lines.append(
                f"    {each.name} = torch.empty(({shape},), dtype=torch.{each.dtype}, "
                f"device={device}.device)"
            )
        for launch in self.plan.launches:
            indent = "    "
            if launch.when:
                lines.append(f"    if {launch.when.text}:")
                indent = "        "
            lines += [indent + line for line in self._launch(launch)]
        return "\n".join(lines) + "\n"

    def _launch(self, launch: DeclaredLaunch) -> list[str]:
        if launch.zero:
            return [f"{launch.zero}.zero_()"]
        grid = ", ".join(each.text for each in launch.grid)
        given = [self._argument(each) for each in launch.arguments]
        given += [f"{name}={self._constant(each)}" for name, each in launch.constants.items()]
        given += [f"{name}={each.text}" for name, each in launch.options.items()]
        return [f"{launch.kernel}[({grid},)](", *(f"    {one}," for one in given), ")"]

    def _argument(self, given: DeclaredArgument) -> str:
        if isinstance(given, Float):
            return repr(given.value)
        if isinstance(given, BufferPart):
            return f"{given.buffer}.view(-1)[{given.offset.text} :]"
        node = given.expression.node
        if isinstance(node, Variable) and node.name in self.buffers:
            return node.name
        return given.expression.text

    def _constant(self, value: Expression | Constant) -> str:
        if isinstance(value, Expression):
            return value.text
        return f"tl.{value.name}" if isinstance(value, Dtype) else repr(value)
