# SPDX-License-Identifier: Apache-2.0
"""In a jail: the file of a PyTorch module, or of a function, becomes the file of a problem.

`torch.export` traces the module with every size symbolic that can be; what must stay as it is, how
long the rest may be, and what shapes the answers have, follows from the trace (trace_sizes.py), and
so does what it costs (trace_counts.py). Parameters and buffers become inputs. What cannot be traced
is refused with the line of the file (refusals.py).
"""

from __future__ import annotations

import inspect
import socket
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ...kernelbench.module import (
    INPUTS,
    is_constant,
    list_examples,
    make_module,
    name_entry,
    named_tensors,
    run_source,
)
from .examples import (
    choose_traced,
    ensure_answers,
    ensure_entry,
    ensure_examples,
    ensure_in_order,
    list_sizes,
)
from .module_text import File, ModuleShapes, Weight, write_problem
from .refusals import CannotTraceError, ensure_statable, explain
from .trace_counts import count_flops, count_held, formula_of
from .trace_sizes import (
    find_fixed,
    find_least,
    find_most,
    list_hints,
    list_input_shapes,
    list_output_shapes,
    tie_attention,
)
from .wire import Message, receive, send

NAMES = ("M", "N", "K", "L", "P", "Q", "R", "S", *(f"D{n}" for n in range(1, 40)))
MOST_TENSORS = 40
"""Inputs, parameters and outputs together."""


def main() -> None:
    """Answers the one question of who has started it."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    send(channel, {"ready": True})
    message, _ = receive(channel, 0)
    place = message["place"]
    try:
        told: Message = {"text": trace(message["text"], place)}
    except BaseException as error:
        # Of any kind: the file is somebody's.
        told = explain(error, place)
    send(channel, told)


def trace(source: str, place: str) -> str:
    """The text of the problem. Raises CannotTraceError, and whatever the file raises."""
    import torch

    space = run_source(source, place)
    ensure_entry(space, source)
    torch.manual_seed(0)
    module, given = make_module(space), space[INPUTS]()
    ensure_in_order(module, given, source)
    sets = list_examples(given)
    names = _list_parameters(module, len(sets[0]))
    ensure_examples(sets, names, source)
    ensure_answers(module, sets[0])
    program = _export(module, choose_traced(sets))
    ensure_statable(program, place)
    sizes = list_sizes(program, sets, names, source)
    told = File(source, place, name_entry(space))
    return write_problem(_describe(told, module, program, names, sizes))


def _list_parameters(module: Any, count: int) -> list[str]:
    """What forward calls its inputs, of so many; those that it gathers are numbered."""
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = inspect.signature(module.forward).parameters.values()
    named = [each.name for each in given if each.kind in plain][:count]
    return named + [f"x{n}" for n in range(len(named) + 1, count + 1)]


def _export(module: Any, examples: Sequence[Any]) -> Any:
    """With as many sizes symbolic as the module and our formulas allow."""
    import torch

    auto, static = torch.export.Dim.AUTO, torch.export.Dim.STATIC
    dims = [[auto if size > 1 else static for size in example.shape] for example in examples]
    with warnings.catch_warnings(), torch.no_grad(), tie_attention():
        warnings.simplefilter("ignore")
        for _ in range(1 + sum(map(len, dims))):
            shapes = tuple(dict(enumerate(each)) for each in dims)
            program = torch.export.export(
                module, tuple(examples), dynamic_shapes=_like_forward(module, shapes), strict=False
            )
            fixed = find_fixed(program)
            if fixed is None:
                return program
            dims[fixed[0]][fixed[1]] = static
    raise CannotTraceError("its sizes cannot be stated")


def _like_forward(module: Any, shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shapes as torch.export wants them: those that forward gathers as `*inputs` in one."""
    for at, each in enumerate(inspect.signature(module.forward).parameters.values()):
        if each.kind is inspect.Parameter.VAR_POSITIONAL:
            return (*shapes[:at], shapes[at:])
    return shapes


def _describe(
    file: File,
    module: Any,
    program: Any,
    names: Sequence[str],
    sizes: Sequence[Mapping[Any, int]],
) -> ModuleShapes:
    """What the trace tells of a problem."""
    hints, most = list_hints(program), find_most(program)
    free = [name for name in NAMES if name not in names]
    axes = dict(zip(hints, free, strict=False))
    found = ModuleShapes(
        file=file,
        examples=tuple({axes[symbol]: size for symbol, size in each.items()} for each in sizes),
        most={axes[symbol]: size for symbol, size in most.items()},
        least={axes[symbol]: size for symbol, size in find_least(module, program).items()},
        inputs=tuple(
            (name, _shape_of(shape, axes))
            for name, shape in zip(names, list_input_shapes(program), strict=True)
        ),
        outputs=tuple(_shape_of(shape, axes) for shape in list_output_shapes(program)),
        parameters=tuple(
            Weight(name, tuple(map(str, tensor.shape)), is_constant(name, tensor))
            for name, tensor in named_tensors(module)
        ),
        flops=count_flops(program, axes),
        held=count_held(program, axes),
    )
    count = len(found.inputs) + len(found.outputs) + len(found.parameters)
    if count > MOST_TENSORS:
        raise CannotTraceError(f"{count} inputs, parameters and outputs; at most {MOST_TENSORS}")
    return found


def _shape_of(shape: Any, axes: Mapping[Any, str]) -> tuple[str, ...]:
    found = tuple(formula_of(size, axes) for size in shape)
    if None in found:
        raise CannotTraceError(f"the shape {tuple(shape)} is no formula of its inputs' sizes")
    return tuple(each or "" for each in found)
