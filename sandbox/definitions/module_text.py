# SPDX-License-Identifier: Apache-2.0
"""The file of a problem that a PyTorch module is, in the words of kernelbench/declaration.py."""

from __future__ import annotations

import json
import pprint
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...kernelbench.module import MODEL

Shape = tuple[str, ...]
"""Formulas of axes (kernelbench/terms.py)."""
TINY = 5
"""The longest axis of the tiny workload."""


@dataclass(frozen=True)
class ModuleShapes:
    """What a trace tells of a module."""

    source: str
    place: str
    """What its file is called."""
    sizes: Mapping[str, int]
    """Of each axis, in the file's examples."""
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    parameters: tuple[tuple[str, Shape], ...]
    """By their names in the module."""
    flops: str


def write_problem(traced: ModuleShapes) -> str:
    """The whole file."""
    axes = {axis: f"a size, {size} in the file" for axis, size in traced.sizes.items()}
    # A kernel has one size at least.
    axes = axes or {"M": "always 1: no size of this module can vary"}
    inputs = {f"x{n}": shape for n, shape in enumerate(traced.inputs, 1)}
    taken = {*inputs, *axes}
    weights = {_name_in_c(name, taken): (name, shape) for name, shape in traced.parameters}
    outputs = {_name_in_c(f"y{n}", taken): shape for n, shape in enumerate(traced.outputs, 1)}
    shapes = inputs | {name: shape for name, (_, shape) in weights.items()}
    arguments, written = ", ".join(shapes), ", ".join(outputs)
    named = ", ".join(f"{name}={name}" for name in shapes)
    told = ", ".join(f'"{name}": {_tuple_of(shape)}' for name, shape in shapes.items())
    parameters = json.dumps({name: of for name, (of, _) in weights.items()}, indent=4)
    problem = pprint.pformat(
        _declare(traced, axes, inputs, weights, outputs), sort_dicts=False, width=96
    )
    return f'''"""Made of {traced.place}: its module is the oracle, its parameters are inputs."""

from kernelwright.kernelbench.module import TracedModule

PROBLEM = {problem}
SOURCE = {traced.source!r}
module = TracedModule(SOURCE, {traced.place!r}, {parameters})


def values(family, rng, {", ".join(axes)}):
    return module.values({{{told}}}, family, rng)


def oracle({arguments}):
    return module.compute({named})


def by_torch({arguments}, {written}):
    return module.prepare(({written},), {named})


def by_compile({arguments}):
    return module.call({named})
'''


def _declare(
    traced: ModuleShapes,
    axes: Mapping[str, str],
    inputs: Mapping[str, Shape],
    weights: Mapping[str, tuple[str, Shape]],
    outputs: Mapping[str, Shape],
) -> dict[str, Any]:
    """The dictionary PROBLEM."""
    sizes = dict(traced.sizes) or {"M": 1}
    return {
        "title": f"{MODEL} of {traced.place}",
        "definition": f"what {MODEL}.forward of {traced.place} gives",
        "source": traced.place,
        "tags": ["dense", "torch"],
        "axes": dict(axes),
        **({} if traced.sizes else {"lengths": {"M": (1,)}}),
        "inputs": {
            **{name: _tensor(shape, "input of forward") for name, shape in inputs.items()},
            **{name: _tensor(shape, of) for name, (of, shape) in weights.items()},
        },
        "outputs": {name: _tensor(shape) for name, shape in outputs.items()},
        "flops": traced.flops,
        "workloads": {
            "realistic": {"file": {**sizes, "note": "the sizes of the file's examples"}},
            "tiny": {"tiny": {axis: min(size, TINY) for axis, size in sizes.items()}},
        },
    }


def _name_in_c(name: str, taken: set[str]) -> str:
    """A parameter's name as C takes it, and nobody has it yet."""
    found = "".join(c if c.isalnum() else "_" for c in name).lower()
    while found in taken:
        found += "_"
    taken.add(found)
    return found


def _tensor(shape: Shape, meaning: str = "") -> str:
    return f"float32[{', '.join(shape)}]" + (f": {meaning}" if meaning else "")


def _tuple_of(shape: Shape) -> str:
    return "(" + "".join(f"{term}, " for term in shape) + ")"
