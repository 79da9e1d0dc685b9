# SPDX-License-Identifier: Apache-2.0
"""The file of a problem that a PyTorch module is, in the words of kernelbench/declaration.py."""

from __future__ import annotations

import ast
import json
import pprint
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...kernelbench.module import INIT_INPUTS, INPUTS, MODEL
from ...syntax import parse_python

Shape = tuple[str, ...]
"""Formulas of axes (kernelbench/terms.py)."""
TINY = 5
"""The longest axis of the tiny workload."""
MOST_LINES = 100
"""Of a module's definition; of a longer one forward alone."""
_RESERVED = """
alignas alignof and asm auto bool break case catch char const continue default delete do double
else enum explicit export extern float for friend goto if inline int long mutable namespace new
not operator or private protected public register restrict short signed sizeof static struct
switch template this throw true try typedef typename union unsigned using virtual void volatile
while xor
call family kernel module nan np oracle rng run self structure tl torch triton values
"""
"""Words of C++, and those that a problem's functions and kernels have a use of their own for."""


@dataclass(frozen=True)
class Weight:
    """A parameter or buffer."""

    name: str
    """In the module."""
    shape: Shape
    is_constant: bool
    """Whether training leaves it as it is."""


@dataclass(frozen=True)
class File:
    """What is traced."""

    source: str
    place: str
    """What it is called."""
    entry: str
    """What of it is the problem: the module, or a function."""


@dataclass(frozen=True)
class ModuleShapes:
    """What a trace tells of a module."""

    file: File
    examples: tuple[Mapping[str, int], ...]
    """Of each axis its size, in each set of the file's examples; sets may be alike."""
    most: Mapping[str, int]
    """Of an axis that may be no longer."""
    least: Mapping[str, int]
    """Of an axis that must be longer than 1."""
    inputs: tuple[tuple[str, Shape], ...]
    """By their names in forward."""
    outputs: tuple[Shape, ...]
    parameters: tuple[Weight, ...]
    flops: str
    held: str
    """Elements at once (trace_counts.py)."""


def write_problem(traced: ModuleShapes) -> str:
    """The whole file."""
    axes = {axis: f"a size, {size} in the file" for axis, size in traced.examples[0].items()}
    # A kernel has one size at least.
    axes = axes or {"M": "always 1: no size of this module can vary"}
    taken = {*_RESERVED.split(), *axes}
    inputs = {
        _name_input(name, number, taken): shape
        for number, (name, shape) in enumerate(traced.inputs, 1)
    }
    weights = {_name_in_c(weight.name, taken): weight for weight in traced.parameters}
    outputs = {_name_in_c(f"y{n}", taken): shape for n, shape in enumerate(traced.outputs, 1)}
    shapes = inputs | {name: weight.shape for name, weight in weights.items()}
    arguments, written = ", ".join(shapes), ", ".join(outputs)
    named = ", ".join(f"{name}={name}" for name in shapes)
    told = ", ".join(f'"{name}": {_tuple_of(shape)}' for name, shape in shapes.items())
    parameters = json.dumps({name: weight.name for name, weight in weights.items()}, indent=4)
    constants = tuple(name for name, weight in weights.items() if weight.is_constant)
    source, place = traced.file.source, traced.file.place
    problem = pprint.pformat(
        _declare(traced, axes, inputs, weights, outputs), sort_dicts=False, width=96
    )
    return f'''"""Made of {place}: its module is the oracle, its parameters are inputs."""

from kernelwright.kernelbench.module import TracedModule

PROBLEM = {problem}
SOURCE = {source!r}
module = TracedModule(SOURCE, {place!r}, {parameters}, {constants!r})


def values(family, rng, {", ".join(axes)}):
    return module.values({{{told}}}, family, rng)


def oracle({arguments}):
    return module.compute({named})


def by_torch({arguments}, {written}):
    return module.prepare(({written},), {named})


def by_compile(call, {arguments}, {written}):
    return module.prepare_writing(({written},), {named})
'''


def _declare(
    traced: ModuleShapes,
    axes: Mapping[str, str],
    inputs: Mapping[str, Shape],
    weights: Mapping[str, Weight],
    outputs: Mapping[str, Shape],
) -> dict[str, Any]:
    """The dictionary PROBLEM."""
    sets = [sizes or {"M": 1} for sizes in traced.examples]
    lengths = dict(traced.most) if traced.examples[0] else {"M": (1,)}
    constants = tuple(name for name, weight in weights.items() if weight.is_constant)
    return {
        "title": f"{traced.file.entry} of {traced.file.place}",
        "definition": define_module(traced.file.source, traced.file.place, traced.file.entry),
        "source": traced.file.place,
        "tags": ["dense", "torch"],
        "axes": dict(axes),
        **({"lengths": lengths} if lengths else {}),
        **({"least": dict(traced.least)} if traced.least else {}),
        "inputs": {
            **{name: _tensor(shape, "input of forward") for name, shape in inputs.items()},
            **{name: _tensor(weight.shape, _tell(weight)) for name, weight in weights.items()},
        },
        **({"constants": constants} if constants else {}),
        "outputs": {name: _tensor(shape) for name, shape in outputs.items()},
        "flops": traced.flops,
        "held": traced.held,
        "workloads": {
            "realistic": {
                f"file{n}" if n > 1 else "file": {**sizes, "note": "the file's examples"}
                for n, sizes in enumerate(_drop_alike(sets), 1)
            },
            "tiny": {"tiny": {axis: min(size, TINY) for axis, size in sets[0].items()}},
        },
    }


def _drop_alike(sets: Sequence[Mapping[str, int]]) -> list[Mapping[str, int]]:
    return [sizes for at, sizes in enumerate(sets) if sizes not in sets[:at]]


def define_module(source: str, place: str, entry: str) -> str:
    """What a file computes, in its own words: its classes and functions without what is said of
    them, or forward alone where that is long."""
    tree = parse_python(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    kept = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        and node.name not in (INPUTS, INIT_INPUTS)
    ]
    text = "\n".join(map(ast.unparse, kept))
    if text.count("\n") > MOST_LINES:
        text = "\n".join(
            ast.unparse(part)
            for node in kept
            if node.name == entry
            for part in (node.body if entry == MODEL else [node])
            if getattr(part, "name", "") in ("forward", entry)
        )
    called = f"{MODEL}.forward" if entry == MODEL else entry
    return f"What {called} of {place} gives:\n{text}"


def _tell(weight: Weight) -> str:
    return f"{weight.name}, always as the module makes it" if weight.is_constant else weight.name


def _name_input(name: str, number: int, taken: set[str]) -> str:
    """forward's own name of an input, where C can have it."""
    if not name.isascii() or name in taken or f"{name}_" in taken:
        return _name_in_c(f"x{number}", taken)
    taken.add(name)
    return name


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
