# SPDX-License-Identifier: Apache-2.0
"""Which sizes of a module's inputs may vary, how far, and which are the same, by its trace."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .trace_counts import expression_of, formula_of, hint_of

Place = tuple[int, int]
"""An input, and an axis of it."""
TRIALS = 24
"""Sets of sizes that a trace's conditions are tried with."""
_FEW = 3
"""Elements along an axis of a module that is tried."""
_TRIED = (17, 300)
"""The least and the most of such a size: what holds for all but the smallest is no condition."""


class WrongSizeError(ValueError):
    """A size of an input is not what a trace allows."""

    def __init__(self, place: Place, size: int, wanted: str) -> None:
        """With its place, what it is, and what it may be."""
        super().__init__(f"{size} in place of {wanted}")
        self.place, self.size, self.wanted = place, size, wanted


def tie_attention() -> Any:
    """A context in which an attention's sizes are those that its definition makes the same.

    torch's kernel for CPUs takes keys and values of unequal lengths, and reads past the shorter.
    """
    from torch.nn.functional import scaled_dot_product_attention
    from torch.overrides import TorchFunctionMode

    class Tie(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            del types
            if func is scaled_dot_product_attention:
                _tie(*args, **(kwargs or {}))
            return func(*args, **(kwargs or {}))

    return Tie()


def _tie(query: Any, key: Any, value: Any, attn_mask: Any = None, *_: Any, **__: Any) -> None:
    """Each comparison of sizes is one that the trace keeps. Raises ValueError."""
    if key.shape[-2] != value.shape[-2] or query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"scaled_dot_product_attention of queries {tuple(query.shape)}, keys "
            f"{tuple(key.shape)} and values {tuple(value.shape)}: keys and values have one length, "
            "queries and keys one width"
        )
    for one, other in ((query, key), (key, value)):
        for axis in range(min(one.ndim, other.ndim) - 2):
            _compare(one.shape[axis], other.shape[axis])
    if attn_mask is not None:
        _compare(attn_mask.shape[-1], key.shape[-2])
        _compare(attn_mask.shape[-2], query.shape[-2])


def _compare(one: Any, other: Any) -> bool:
    return bool(one == other)


def find_symbols(program: Any) -> dict[Any, Place]:
    """Each symbolic size, and where it comes first."""
    found: dict[Any, Place] = {}
    for at, shape in enumerate(list_input_shapes(program)):
        for axis, size in enumerate(shape):
            expression = expression_of(size)
            if expression is not None and expression.is_Symbol:
                found.setdefault(expression, (at, axis))
    return found


def list_input_shapes(program: Any) -> list[Any]:
    """Of forward's inputs, in their order."""
    names = set(program.graph_signature.user_inputs)
    return [
        node.meta["val"].shape
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in names
    ]


def list_output_shapes(program: Any) -> list[Any]:
    """In their order; of a number without axes one element, as a kernel writes it."""
    by_name = {node.name: node for node in program.graph.nodes}
    values = [by_name[name].meta["val"] for name in program.graph_signature.user_outputs]
    return [value.shape or (1,) for value in values]


def find_most(program: Any) -> dict[Any, int]:
    """Of each symbolic size that has a most, how much that is."""
    found = {}
    for symbol in find_symbols(program):
        allowed = program.range_constraints.get(symbol)
        if allowed is not None and allowed.upper.is_Integer:
            found[symbol] = int(allowed.upper)
    return found


def find_least(module: Any, program: Any) -> dict[Any, int]:
    """Of each symbolic size that cannot be 1 what is the least: a trace calls each size 2 at least,
    so the module is tried, on a few elements."""
    hints = list_hints(program)
    few = {symbol: min(_FEW, size) for symbol, size in hints.items()}
    if not hints or not _answers(module, program, few):
        return {}
    found = {s: 2 for s in hints if not _answers(module, program, {**few, s: 1})}
    if not found and not _answers(module, program, dict.fromkeys(hints, 1)):
        found[next(iter(hints))] = 2
    return found


def _answers(module: Any, program: Any, sizes: Mapping[Any, int]) -> bool:
    """Whether the module gives numbers for inputs of these sizes."""
    import torch

    drawn = torch.Generator().manual_seed(0)
    given = [
        torch.rand([_value(size, sizes) for size in shape], generator=drawn) + 0.5
        for shape in list_input_shapes(program)
    ]
    try:
        with torch.no_grad():
            found = module(*given)
    except (ValueError, RuntimeError, IndexError):
        # What torch and modules raise for sizes that mean nothing to them.
        return False
    answers = found if isinstance(found, tuple | list) else (found,)
    return all(bool(torch.isfinite(each).all()) for each in answers)


def read_sizes(program: Any, shapes: Sequence[tuple[int, ...]]) -> dict[Any, int]:
    """Of each symbolic size what it is in inputs of other shapes than those that were traced.

    Raises WrongSizeError where the trace does not hold for them.
    """
    symbols, most = find_symbols(program), find_most(program)
    found = {symbol: shapes[at][axis] for symbol, (at, axis) in symbols.items()}
    for at, shape in enumerate(list_input_shapes(program)):
        for axis, size in enumerate(shape):
            if _value(size, found) != shapes[at][axis]:
                raise WrongSizeError((at, axis), shapes[at][axis], str(_value(size, found)))
    for symbol, limit in most.items():
        if found[symbol] > limit:
            raise WrongSizeError(symbols[symbol], found[symbol], f"{limit} at most")
    return found


def _value(size: Any, sizes: Mapping[Any, int]) -> int:
    return size if isinstance(size, int) else int(expression_of(size).subs(sizes))


def find_fixed(program: Any) -> Place | None:
    """An input's axis whose size must stay as it is: an answer's shape is no sum of products of it,
    it has a least value beyond 2, or the module works for some of its values alone.

    Raises ValueError where an answer's size depends on what tensors hold.
    """
    symbols = find_symbols(program)
    for symbol, place in symbols.items():
        least = program.range_constraints.get(symbol)
        if least is not None and least.lower > 2:
            return place
    for shape in list_output_shapes(program):
        for size in shape:
            if formula_of(size, dict.fromkeys(symbols, "A")) is None:
                for symbol in sorted(expression_of(size).free_symbols, key=str):
                    if symbol in symbols:
                        return symbols[symbol]
                raise ValueError(f"an output's size depends on what tensors hold: {size}")
    for condition in _list_broken(program, symbols):
        return symbols[min(condition.free_symbols & set(symbols), key=str)]
    return None


def _list_broken(program: Any, symbols: dict[Any, Place]) -> Iterator[Any]:
    """Conditions of the trace that do not hold for all sizes in their ranges, as that one is a
    multiple of 4, or that two together are at most 128."""
    if not symbols:
        return
    import sympy

    most, drawn = find_most(program), random.Random(0)
    conditions = [c for c in _list_conditions(program) if not isinstance(c, sympy.Ne)]
    for number in range(TRIALS):
        sizes = {}
        for symbol in symbols:
            high = min(most.get(symbol, _TRIED[1]), _TRIED[1])
            low = min(_TRIED[0], high)
            # All at their most together, then anything.
            sizes[symbol] = high if number == 0 else drawn.randint(low, high)
        for condition in conditions:
            if condition.free_symbols <= set(symbols) and condition.subs(sizes) == sympy.false:
                yield condition


def _list_conditions(program: Any) -> Iterator[Any]:
    """What the trace asked of sizes, in the symbols that are left."""
    for shape in list_input_shapes(program):
        for size in shape:
            if not isinstance(size, int):
                environment = size.node.shape_env
                for guard in environment.guards:
                    found = environment.replace(guard.expr)
                    if getattr(found, "free_symbols", None):
                        yield found
                return


def list_hints(program: Any) -> dict[Any, int]:
    """Of each symbolic size what it is in the file's examples."""
    shapes = list_input_shapes(program)
    return {s: hint_of(shapes[at][axis]) for s, (at, axis) in find_symbols(program).items()}
