# SPDX-License-Identifier: Apache-2.0
"""What a trace costs: operations of one call, and elements that it holds at once, as formulas."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Names = Mapping[Any, str]
"""Symbolic size → axis."""
_VIEWS = (
    *("view", "reshape", "permute", "transpose", "expand", "slice", "unsqueeze", "squeeze"),
    *("select", "alias", "clone", "contiguous", "dropout", "sym_size", "flatten", "getitem"),
    *(
        "split",
        "chunk",
        "unbind",
        "broadcast_tensors",
        "detach",
        "lift_fresh",
        "numpy_T",
        ".t.",
        "swapaxes",
        "movedim",
    ),
)
_PRODUCTS = (".mm", ".bmm", "._int_mm", "._scaled_mm", "matmul", ".mv", ".dot")
_ATTENTION = "scaled_dot_product_attention"
_HELD_TWICE = 2
"""What an operation reads is held beside what it gives."""


@dataclass(frozen=True)
class _Count:
    """Of one operation, each as a product of axes and numbers."""

    operations: tuple[str, ...]
    held: tuple[str, ...]


@dataclass(frozen=True)
class _Call:
    """An operation, or what it is given, in the form of a trace's node."""

    target: Any
    args: tuple[_Call, ...]
    meta: dict[str, Any]


def count_flops(program: Any, names: Names) -> str:
    """Two for each product and sum of matrix products, convolutions and attention; of any other
    operation one for each element that it gives, or that it reads where those are more."""
    counted: dict[str, int] = {}
    for count in _operations(program, names):
        for term in count.operations:
            key, size = _split(term)
            counted[key] = counted.get(key, 0) + size
    return _join(counted)


def count_call(target: Any, given: Sequence[Any], result: Any) -> tuple[int, bool]:
    """Operations of one call of an operation on tensors, by the rule of `count_flops`, and whether
    it is a product, of which they are known exactly."""
    node = _Call(target, tuple(_Call(None, (), {"val": each}) for each in given), {"val": result})
    shape = _shape_of(node)
    if shape is None or _is_view(str(target)):
        return 0, True
    read = [found for each in node.args if (found := _shape_of(each)) is not None]
    is_product = _ATTENTION in str(target) or _depth(str(target), read) is not None
    counted = (_split(term)[1] for term in _count(node, shape, {}).operations)
    return sum(counted), is_product


def count_held(program: Any, names: Names) -> str:
    """Elements that the module holds at once, beside its inputs and outputs, about: of the largest
    tensors between them."""
    largest: dict[str, int] = {}
    for count in _operations(program, names):
        for term in count.held:
            key, size = _split(term)
            largest[key] = max(largest.get(key, 0), _HELD_TWICE * size)
    return _join(largest)


def formula_of(size: Any, names: Names) -> str | None:
    """A size as a sum of products of axes; None where it is no such sum."""
    expression = expression_of(size)
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


def expression_of(size: Any) -> Any:
    """The sympy expression of a symbolic size; None of a number."""
    return None if isinstance(size, int) else size.node.expr


def hint_of(size: Any) -> int:
    """A size in the file's examples."""
    return size if isinstance(size, int) else int(size.node.hint)


def _operations(program: Any, names: Names) -> Iterator[_Count]:
    for node in program.graph.nodes:
        if node.op == "call_function" and not _is_view(str(node.target)):
            shape = _shape_of(node)
            if shape is not None:
                yield _count(node, shape, names)


def _count(node: Any, shape: Any, names: Names) -> _Count:
    read = [found for each in node.args if (found := _shape_of(each)) is not None]
    given = _terms(shape, names)
    target = str(node.target)
    if _ATTENTION in target:
        query, key, value = read[:3]
        # Scores of every query and key, and of these the sum of values.
        scores = _terms((*query[:-1], key[-2]), names)
        depths = [_terms((2, each[-1]), names) for each in (query, value)]
        done = tuple(f"{d}*{s}" for depth in depths for d in depth for s in scores)
        return _Count(done, given + scores)
    depth = _depth(target, read)
    if depth is not None:
        sums = _terms((2, *depth), names)
        columns = given
        if _is_convolution(target):
            # In float64 torch writes the columns of a matrix product first.
            columns += _terms((*depth, shape[0], *shape[2:]), names)
        return _Count(tuple(f"{s}*{e}" for s in sums for e in given), columns)
    most = max((shape, *read), key=lambda each: math.prod(map(hint_of, each)))
    return _Count(_terms(most, names), given)


def _is_view(target: str) -> bool:
    """Whether an operation moves or names what is there, and computes nothing."""
    return any(word in target for word in _VIEWS)


def _is_convolution(target: str) -> bool:
    return "conv" in target


def _depth(target: str, read: list[Any]) -> Any:
    """The lengths of the sums that each element of a product is; None of another operation."""
    if _is_convolution(target):
        return read[1][1:]
    if "linear" in target and "linalg" not in target:
        return read[0][-1:]
    if "addmm" in target or "baddbmm" in target:
        return read[1][-1:]
    if any(word in target for word in _PRODUCTS):
        return read[0][-1:]
    return None


def _shape_of(node: Any) -> Any:
    """The shape of what an operation gives, of several things the first; None of no tensor."""
    value = getattr(node, "meta", {}).get("val")
    if isinstance(value, tuple | list) and value:
        value = value[0]
    return getattr(value, "shape", None)


def _terms(shape: Any, names: Names) -> tuple[str, ...]:
    """The number of elements of a shape, as products; of one that no formula tells, its number in
    the examples."""
    found = [""]
    for size in shape:
        formula = formula_of(size, names) or str(hint_of(size))
        found = [
            "*".join(filter(None, (left, right))) for left in found for right in formula.split("+")
        ]
    return tuple(each or "1" for each in found)


def _split(term: str) -> tuple[str, int]:
    """A product's axes, and its number."""
    factors = term.split("*")
    key = "*".join(sorted(each for each in factors if not each.isdigit()))
    return key, math.prod(int(each) for each in factors if each.isdigit())


def _join(counted: Mapping[str, int]) -> str:
    return " + ".join("*".join(filter(None, (str(n), k))) for k, n in counted.items()) or "1"
