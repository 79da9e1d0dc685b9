# SPDX-License-Identifier: Apache-2.0
"""In a jail: a PyTorch module's file becomes the file of a problem.

`torch.export` traces the module with every size symbolic that can be; what must stay as it is, and
what shapes the answers have, follows from the trace. Parameters and buffers become inputs. What
cannot be traced is refused with the line of the file.
"""

from __future__ import annotations

import math
import socket
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from ...kernelbench.module import INPUTS, MODEL, make_module, named_tensors, run_source
from .inside import describe_error, find_line
from .module_text import ModuleShapes, write_problem
from .wire import Message, receive, send

NAMES = ("M", "N", "K", "L", "P", "Q", "R", "S", *(f"D{n}" for n in range(1, 40)))
_VIEWS = (
    *("view", "reshape", "permute", "transpose", "expand", "slice", "unsqueeze", "squeeze"),
    *("select", "alias", "clone", "contiguous", "dropout", "sym_size", "flatten", "getitem"),
)
MOST_TENSORS = 40
"""Inputs, parameters and outputs together."""


class CannotTraceError(Exception):
    """The file is no problem that we can state; the message says why."""


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
        told = {"why": describe_error(error), "line": find_line(error, place)}
    send(channel, told)


def trace(source: str, place: str) -> str:
    """The text of the problem. Raises CannotTraceError, and whatever the file raises."""
    import torch

    space = run_source(source, place)
    for needed in (MODEL, INPUTS):
        if needed not in space:
            raise CannotTraceError(f"it defines no {needed}, as KernelBench's files do")
    torch.manual_seed(0)
    module, examples = make_module(space), list(space[INPUTS]())
    for at, example in enumerate(examples):
        if not isinstance(example, torch.Tensor) or example.dtype != torch.float32:
            kind = getattr(example, "dtype", type(example).__name__)
            raise CannotTraceError(f"input {at + 1} of forward is {kind}: float32 tensors only")
    return write_problem(_describe(source, place, module, _export(module, examples)))


def _export(module: Any, examples: Sequence[Any]) -> Any:
    """With as many sizes symbolic as the module and our formulas allow."""
    import torch

    auto, static = torch.export.Dim.AUTO, torch.export.Dim.STATIC
    dims = [[auto if size > 1 else static for size in example.shape] for example in examples]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for _ in range(1 + sum(map(len, dims))):
            shapes = tuple(dict(enumerate(each)) for each in dims)
            program = torch.export.export(
                module, tuple(examples), dynamic_shapes=shapes, strict=False
            )
            bound = _unstatable(program)
            if bound is None:
                return program
            dims[bound[0]][bound[1]] = static
    raise CannotTraceError("its sizes cannot be stated")


def _unstatable(program: Any) -> tuple[int, int] | None:
    """An input and its axis whose size must be fixed: an answer's shape is no sum of products of
    it, or it has a least value beyond 2."""
    symbols = _symbols(program)
    for symbol, (at, axis) in symbols.items():
        least = program.range_constraints.get(symbol)
        if least is not None and least.lower > 2:
            return at, axis
    for shape in _output_shapes(program):
        for size in shape:
            if formula_of(size, dict.fromkeys(symbols, "A")) is None:
                free = sorted(_expression(size).free_symbols, key=str)
                for symbol in free:
                    if symbol in symbols:
                        return symbols[symbol]
                raise CannotTraceError(f"an output's size depends on what tensors hold: {size}")
    return None


def _symbols(program: Any) -> dict[Any, tuple[int, int]]:
    """Each symbolic size, and where it comes first: input, axis."""
    found: dict[Any, tuple[int, int]] = {}
    for at, shape in enumerate(_input_shapes(program)):
        for axis, size in enumerate(shape):
            expression = _expression(size)
            if expression is not None and expression.is_Symbol:
                found.setdefault(expression, (at, axis))
    return found


def _expression(size: Any) -> Any:
    """The sympy expression of a symbolic size; None of a number."""
    return None if isinstance(size, int) else size.node.expr


def _input_shapes(program: Any) -> list[Any]:
    names = set(program.graph_signature.user_inputs)
    return [
        node.meta["val"].shape
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in names
    ]


def _output_shapes(program: Any) -> list[Any]:
    by_name = {node.name: node for node in program.graph.nodes}
    return [by_name[name].meta["val"].shape for name in program.graph_signature.user_outputs]


def formula_of(size: Any, names: dict[Any, str]) -> str | None:
    """A size as a sum of products of axes; None where it is no such sum."""
    expression = _expression(size)
    if expression is None:
        return str(size)
    import sympy

    terms = []
    for term in sympy.Add.make_args(sympy.expand(expression)):
        count, rest = term.as_coeff_Mul()
        if not count.is_Integer or count < 0:
            return None
        powers = rest.as_powers_dict()
        parts = [str(count)] if count != 1 or rest == 1 else []
        for base, power in powers.items():
            if base == 1:
                continue
            if base not in names or not power.is_Integer or power < 1:
                return None
            parts += [names[base]] * int(power)
        terms.append("*".join(parts) or "1")
    return "+".join(sorted(terms)) or None


def _describe(source: str, place: str, module: Any, program: Any) -> ModuleShapes:
    """What the trace tells of a problem."""
    symbols = _symbols(program)
    axes = dict(zip(symbols, NAMES, strict=False))
    inputs = _input_shapes(program)
    sizes = {axes[symbol]: _hint(inputs[at][axis]) for symbol, (at, axis) in symbols.items()}
    found = ModuleShapes(
        source,
        place,
        sizes,
        tuple(_shape_of(shape, axes) for shape in inputs),
        tuple(_shape_of(shape, axes) for shape in _output_shapes(program)),
        tuple((name, tuple(map(str, tensor.shape))) for name, tensor in named_tensors(module)),
        _count_flops(program, axes),
    )
    count = len(found.inputs) + len(found.outputs) + len(found.parameters)
    if count > MOST_TENSORS:
        raise CannotTraceError(f"{count} inputs, parameters and outputs; at most {MOST_TENSORS}")
    return found


def _shape_of(shape: Any, axes: dict[Any, str]) -> tuple[str, ...]:
    found = tuple(formula_of(size, axes) for size in shape)
    if None in found:
        raise CannotTraceError(f"the shape {tuple(shape)} is no formula of its inputs' sizes")
    return tuple(each or "" for each in found)


def _count_flops(program: Any, axes: dict[Any, str]) -> str:
    """Two for each product and sum of matrix products and convolutions, one for each element that
    any other operation gives."""
    counted: dict[str, int] = {}
    for term in _operations(program, axes):
        for part in term.split("+"):
            factors = part.split("*")
            key = "*".join(sorted(each for each in factors if not each.isdigit()))
            size = math.prod(int(each) for each in factors if each.isdigit())
            counted[key] = counted.get(key, 0) + size
    return " + ".join("*".join(filter(None, (str(n), k))) for k, n in counted.items()) or "1"


def _operations(program: Any, names: dict[Any, str]) -> Iterator[str]:
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op != "call_function" or not hasattr(value, "shape"):
            continue
        target = str(node.target)
        if _is_view(target):
            continue
        elements = _product(value.shape, names)
        if elements is None:
            continue
        depth = _depth(target, node)
        yield elements if depth is None else f"{_product(depth, names) or 1}*2*{elements}"


def _is_view(target: str) -> bool:
    """Whether an operation moves or names what is there, and computes nothing."""
    return any(word in target for word in _VIEWS)


def _depth(target: str, node: Any) -> Any:
    """The lengths of the sums that each element of a product is; None of another operation."""
    shapes = [
        each.meta["val"].shape
        for each in node.args
        if hasattr(each, "meta") and hasattr(each.meta.get("val"), "shape")
    ]
    if "convolution" in target or "conv" in target.split(".")[1]:
        return shapes[1][1:]
    if "linear" in target:
        return shapes[0][-1:]
    if any(word in target for word in ("addmm", "baddbmm")):
        return shapes[1][-1:]
    if any(word in target for word in (".mm", ".bmm", "matmul", ".mv", ".dot")):
        return shapes[0][-1:]
    return None


def _product(shape: Any, names: dict[Any, str]) -> str | None:
    found = [formula_of(size, names) for size in shape]
    if None in found or any("+" in (each or "") for each in found):
        return None
    return "*".join(each or "" for each in found) or "1"


def _hint(size: Any) -> int:
    return size if isinstance(size, int) else int(size.node.hint)
